//! Hot loops compiled once for the target, and once more for each vector unit that a machine of the target may have, which is
//! found out when the program runs (with `std`, on x86-64).
//!
//! A loop is a [`Kernel`]: a value with its operands and a `run` which is inlined into one function for each unit. So there
//! is one source, and in [`Strict`](super::Strict) arithmetic one result.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
use super::vfp::finite_prefix;
use super::{Backend, Real};
#[cfg(not(all(target_arch = "arm", target_abi = "eabihf", target_os = "none")))]
use {
    super::threads::{ELEMENT, ELEMENTS_OF_A_PART, Each, parts, share},
    core::sync::atomic::{AtomicBool, Ordering},
};

/// A loop with its operands.
pub(crate) trait Kernel<E: Real> {
    /// What it returns.
    type Output;

    /// Runs the loop in the arithmetic `C`, on vectors of so many bytes; 0 where there are none worth writing a loop for.
    /// Has to be `inline(always)`, with all that it calls: what is not inlined is compiled for the target alone.
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) -> Self::Output;
}

/// Bytes of the vectors that every machine of the target has, and that are worth a loop of their own: SSE's are served by the
/// tile in `tile.rs`.
const VECTOR: usize = if cfg!(target_feature = "avx512f") {
    64
} else if cfg!(target_feature = "avx2") {
    32
} else if cfg!(any(target_arch = "aarch64", all(target_arch = "wasm32", target_feature = "simd128"))) {
    16
} else {
    0
};

/// Runs the kernel on the widest vectors of the machine.
#[inline]
pub(crate) fn dispatch<B: Backend, K: Kernel<B::Elem>>(kernel: K) -> K::Output {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    {
        use std::arch::is_x86_feature_detected as has;

        // The answers are cached; each is a load and a test.
        if has!("avx2") && has!("fma") {
            // Builds without optimization have enough to compile; `cargo xtask bits` looks at AVX2 on machines with more.
            if !cfg!(any(debug_assertions, slabgrad_without_avx512))
                && has!("avx512f")
                && has!("avx512vl")
                && has!("avx512bw")
                && has!("avx512dq")
            {
                // SAFETY: the machine has these features.
                return unsafe { avx512::<B, K>(kernel) };
            }
            // SAFETY: the machine has these features.
            return unsafe { avx2::<B, K>(kernel) };
        }
    }
    if cfg!(all(feature = "std", any(target_feature = "fma", target_arch = "aarch64"))) {
        kernel.run::<B::Fused, VECTOR>()
    } else {
        kernel.run::<B, VECTOR>()
    }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx2,fma")]
fn avx2<B: Backend, K: Kernel<B::Elem>>(kernel: K) -> K::Output {
    kernel.run::<B::Fused, 32>()
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn avx512<B: Backend, K: Kernel<B::Elem>>(kernel: K) -> K::Output {
    kernel.run::<B::Fused, 64>()
}

/// Where the first element lies that is infinite or NaN.
pub(crate) fn first_not_finite<E: Real>(x: &[E]) -> Option<usize> {
    let seen = finite_prefix(x);
    let rest = x.get(seen..).unwrap_or_default();
    rest.iter().position(|x| !x.is_finite()).map(|at| seen + at)
}

#[cfg(not(all(target_arch = "arm", target_abi = "eabihf", target_os = "none")))]
fn finite_prefix<E: Real>(x: &[E]) -> usize {
    let all_finite = AtomicBool::new(true);
    share(parts(ELEMENT * x.len()), ELEMENTS_OF_A_PART, 0..x.len(), Each(x, 1), &|_, Each(x, _)| {
        if !dispatch::<super::Strict<E>, _>(AllFinite(x)) {
            all_finite.store(false, Ordering::Relaxed);
        }
    });
    if all_finite.into_inner() { x.len() } else { 0 }
}

/// Whether it is certain that no element is infinite or NaN. Without vectors the search itself is as quick.
#[cfg_attr(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"), allow(dead_code))]
struct AllFinite<'a, E>(&'a [E]);

impl<E: Real> Kernel<E> for AllFinite<'_, E> {
    type Output = bool;

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) -> bool {
        if VECTOR == 0 {
            return false;
        }
        // Without a way out, so that it becomes vectors, but in blocks.
        let (blocks, rest) = self.0.as_chunks::<64>();
        let all = |x: &[E]| x.iter().fold(true, |all, x| all & x.is_finite());
        blocks.iter().all(|block| all(block)) && all(rest)
    }
}
