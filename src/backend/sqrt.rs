//! The square root as the machine's own instruction where it has one. It is correctly rounded on every path, so all give
//! the same bits.
//!
//! Neither `core` nor `libm` emits the instruction of an ARM core with a floating-point unit.

#![allow(unsafe_code)]

/// `x` to the power 1/2, correctly rounded.
#[inline(always)]
pub(super) fn sqrt_f32(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(all(not(feature = "std"), target_arch = "arm", target_abi = "eabihf"))]
    {
        let mut bits = x.to_bits();
        // SAFETY: computes a number from a number, on a unit that the target has.
        unsafe {
            core::arch::asm!(
                "vmov s0, {bits}",
                "vsqrt.f32 s0, s0",
                "vmov {bits}, s0",
                bits = inout(reg) bits,
                out("d0") _,
                options(pure, nomem, nostack),
            );
        }
        f32::from_bits(bits)
    }
    // LLVM makes it the instruction for one number, and in a loop the one for vectors.
    #[cfg(all(not(feature = "std"), target_arch = "wasm32", target_feature = "simd128"))]
    {
        use core::arch::wasm32::{f32x4_extract_lane, f32x4_splat, f32x4_sqrt};
        f32x4_extract_lane::<0>(f32x4_sqrt(f32x4_splat(x)))
    }
    #[cfg(not(any(
        feature = "std",
        all(target_arch = "arm", target_abi = "eabihf"),
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
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
