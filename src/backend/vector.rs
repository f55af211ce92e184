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
