//! The square root as the machine's own instruction where it has one. It is correctly rounded on every path, so all give
//! the same bits.
//!
//! Adam takes one root per parameter, and neither `core` nor `libm` emits the instruction of an ARM core with a
//! floating-point unit, so that one is written out.

#![allow(unsafe_code)]

/// `x` to the power 1/2, correctly rounded.
#[inline(always)]
pub(super) fn sqrt_f32(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(all(not(feature = "std"), target_arch = "arm", target_abi = "eabihf"))]
    {
        let y;
        // SAFETY: one instruction from a register to a register; the ABI promises a unit with single precision.
        unsafe {
            core::arch::asm!("vsqrt.f32 {y}, {x}", x = in(sreg) x, y = lateout(sreg) y, options(pure, nomem, nostack));
        }
        return y;
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
