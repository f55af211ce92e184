//! Vectors of x86-64, for loops whose vectors the compiler does not find, or does not keep to.

#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64 as x86;

/// A vector.
///
/// # Safety of all methods
/// The machine has such vectors, and pointers are to [`Vector::LANES`] elements, or to one for [`Vector::mul_add`].
pub(crate) trait Vector: Copy {
    type Elem: Copy;

    const LANES: usize = size_of::<Self>() / size_of::<Self::Elem>();

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(to: *mut Self::Elem, x: Self);
    unsafe fn add(a: Self, b: Self) -> Self;
    /// `a * b + c` for one element `a`, rounded once or twice.
    unsafe fn mul_add(is_fused: bool, a: *const Self::Elem, b: Self, c: Self) -> Self;
}

/// An element, in all lanes, times a vector.
macro_rules! element_times {
    ($name:ident, $vector:ident of $elem:ty: $mul:ident $splat:ident) => {
        #[target_feature(enable = "avx")]
        #[inline]
        unsafe fn $name(a: *const $elem, b: x86::$vector) -> x86::$vector {
            // SAFETY: the caller's promise.
            x86::$mul(x86::$splat(unsafe { *a }), b)
        }
    };
    // AVX-512 reads the element in the instruction that multiplies. For a second vector the compiler would rather load it once, with an
    // instruction that takes the place of one that adds: products by two vectors took 1.4 times as long.
    ($name:ident, $vector:ident of $elem:ty: $instruction:literal) => {
        #[target_feature(enable = "avx512f")]
        #[inline]
        unsafe fn $name(a: *const $elem, b: x86::$vector) -> x86::$vector {
            let product;
            // SAFETY: it reads the element, which the caller promises, and nothing else.
            unsafe {
                asm!(
                    $instruction,
                    product = lateout(zmm_reg) product,
                    b = in(zmm_reg) b,
                    a = in(reg) a,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            product
        }
    };
}

element_times!(times_16_f32, __m512 of f32: "vmulps {product}, {b}, dword ptr [{a}]{{1to16}}");
element_times!(times_8_f64, __m512d of f64: "vmulpd {product}, {b}, qword ptr [{a}]{{1to8}}");
element_times!(times_8_f32, __m256 of f32: _mm256_mul_ps _mm256_set1_ps);
element_times!(times_4_f64, __m256d of f64: _mm256_mul_pd _mm256_set1_pd);

macro_rules! vector {
    ($name:ident of $elem:ty: $zero:ident $load:ident $store:ident $splat:ident $add:ident $times:ident $mul_add:ident) => {
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
            unsafe fn add(a: Self, b: Self) -> Self {
                unsafe { x86::$add(a, b) }
            }

            #[inline(always)]
            unsafe fn mul_add(is_fused: bool, a: *const $elem, b: Self, c: Self) -> Self {
                unsafe { if is_fused { x86::$mul_add(x86::$splat(*a), b, c) } else { x86::$add($times(a, b), c) } }
            }
        }
    };
}

vector!(__m512 of f32: _mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps times_16_f32 _mm512_fmadd_ps);
vector!(__m256 of f32: _mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps times_8_f32 _mm256_fmadd_ps);
vector!(__m512d of f64: _mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd times_8_f64 _mm512_fmadd_pd);
vector!(__m256d of f64: _mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd times_4_f64 _mm256_fmadd_pd);
