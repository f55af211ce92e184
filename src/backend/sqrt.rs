//! The square root as the machine's own instruction where it has one. It is correctly rounded on every path, so all give
//! the same bits.
//!
//! Adam takes one root per parameter, and neither `core` nor `libm` emits the instruction of an ARM core with a
//! floating-point unit. For a call of C's `sqrtf` the compiler does (and calls the function only for a NaN).

#![allow(unsafe_code)]

/// `x` to the power 1/2, correctly rounded.
#[inline(always)]
pub(super) fn sqrt_f32(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(all(not(feature = "std"), target_arch = "arm", target_abi = "eabihf"))]
    {
        unsafe extern "C" {
            fn sqrtf(x: f32) -> f32;
        }
        // SAFETY: the C library's function, which `compiler_builtins` provides; it has no preconditions.
        return unsafe { sqrtf(x) };
    }
    #[cfg(not(any(feature = "std", all(target_arch = "arm", target_abi = "eabihf"))))]
    libm::sqrtf(x)
}

/// As [`sqrt_f32`]. Microcontrollers' units are single precision, so `libm` serves where `std` is missing.
#[inline(always)]
pub(super) fn sqrt_f64(x: f64) -> f64 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrt(x)
}
