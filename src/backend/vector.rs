//! Vectors of x86-64, for loops whose vectors the compiler does not find, or does not keep to.

#![allow(unsafe_code)]

use core::arch::x86_64 as x86;

/// A vector.
///
/// # Safety of all methods
/// The machine has such vectors, and pointers are to [`Vector::LANES`] elements, or to one for [`Vector::splat`].
pub(crate) trait Vector: Copy {
    type Elem: Copy;

    const LANES: usize = size_of::<Self>() / size_of::<Self::Elem>();

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(to: *mut Self::Elem, x: Self);
    /// All lanes are the element.
    unsafe fn splat(from: *const Self::Elem) -> Self;
    unsafe fn add(a: Self, b: Self) -> Self;
    /// `a * b + c`, rounded once or twice.
    unsafe fn mul_add(is_fused: bool, a: Self, b: Self, c: Self) -> Self;
}

macro_rules! vector {
    ($name:ident of $elem:ty: $zero:ident $load:ident $store:ident $splat:ident $add:ident $mul:ident $mul_add:ident) => {
        impl Vector for x86::$name {
            type Elem = $elem;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller's promise, here and below.
                unsafe { x86::$zero() }
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                unsafe { x86::$load(from) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut $elem, x: Self) {
                unsafe { x86::$store(to, x) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const $elem) -> Self {
                unsafe { x86::$splat(*from) }
            }

            #[inline(always)]
            unsafe fn add(a: Self, b: Self) -> Self {
                unsafe { x86::$add(a, b) }
            }

            #[inline(always)]
            unsafe fn mul_add(is_fused: bool, a: Self, b: Self, c: Self) -> Self {
                unsafe { if is_fused { x86::$mul_add(a, b, c) } else { x86::$add(x86::$mul(a, b), c) } }
            }
        }
    };
}

vector!(__m512 of f32: _mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_mul_ps _mm512_fmadd_ps);
vector!(__m256 of f32: _mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_mul_ps _mm256_fmadd_ps);
vector!(__m512d of f64: _mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_mul_pd _mm512_fmadd_pd);
vector!(__m256d of f64: _mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_mul_pd _mm256_fmadd_pd);

/// Transposes a block of `8 x 8`: line `i` of `from` becomes column `i` of `to`.
///
/// # Safety
/// The machine has AVX. Eight lines of eight neighbours can be read, and written.
// Inlined into a loop, it is given more pointers than there are registers.
#[inline(never)]
#[target_feature(enable = "avx")]
pub(crate) unsafe fn transpose_8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use x86::{
        _mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };

    // SAFETY: the caller's promise.
    unsafe {
        // Lines `i` and `i + 4` share a vector: halves need not be exchanged later.
        let line = |i: usize, half: usize| {
            let at = |i: usize| _mm_loadu_ps(from.add(i * from_stride + half));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(at(i)), at(i + 4))
        };
        for half in [0, 4] {
            let [a, b, c, d] = [line(0, half), line(1, half), line(2, half), line(3, half)];
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let columns = [
                _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
                _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
            ];
            for (i, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to.add((half + i) * to_stride), column);
            }
        }
    }
}
