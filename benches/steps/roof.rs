//! The roof of this machine, measured: how fast one core multiplies and adds in registers, and how fast it moves what Adam
//! reads and writes.

use std::{hint::black_box, time::Instant};

use crate::memory::move_bytes;

/// The best of so many runs counts: a roof is what the machine can do when nobody disturbs it.
const RUNS: usize = 30;
const ROUNDS: usize = 200_000;
/// Sums that do not wait for one another: enough to cover the time that an operation takes, few enough for registers.
const SUMS: usize = 12;

/// The floating-point operations a second of one core, a fused multiply-add being two, and the instructions that were used.
pub(crate) fn peak() -> (f64, &'static str) {
    let (lanes, name, run) = kernel();
    let seconds = best(|| {
        black_box(run(black_box(0.999), black_box(1e-3)));
    });
    ((2 * lanes * SUMS * ROUNDS) as f64 / seconds, name)
}

/// The seconds of one pass over parameters, gradients and moments.
pub(crate) fn pass(parameters: usize) -> f64 {
    let [mut p, g, mut m, mut v] = [const { Vec::new() }; 4].map(|mut v: Vec<f32>| {
        v.resize(parameters, 0.5);
        v
    });
    let passes = (1_usize << 18).div_ceil(parameters);
    let seconds = best(|| {
        for _ in 0..passes {
            move_bytes(black_box(&mut p), black_box(&g), black_box(&mut m), black_box(&mut v));
        }
    });
    seconds / passes as f64
}

fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

type Kernel = fn(f32, f32) -> f32;

/// The lanes of this machine's vectors, their name, and a run of `ROUNDS` times `SUMS` operations on them.
fn kernel() -> (usize, &'static str, Kernel) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has AVX-512.
            return (16, "AVX-512", |x, y| unsafe { x86::avx512(x, y) });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the machine has AVX2 and FMA.
            return (8, "AVX2 and FMA", |x, y| unsafe { x86::avx2(x, y) });
        }
    }
    (4, "no vectors beyond the target's", portable)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_cvtss_f32, _mm512_fmadd_ps, _mm512_set1_ps,
    };

    use super::{ROUNDS, SUMS};

    macro_rules! kernel {
        ($name:ident, $features:literal, $set:ident, $multiply_add:ident, $first:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $name(x: f32, y: f32) -> f32 {
                let (x, y) = ($set(x), $set(y));
                let mut sums = [y; SUMS];
                for _ in 0..ROUNDS {
                    sums.iter_mut().for_each(|sum| *sum = $multiply_add(*sum, x, y));
                }
                sums.iter().map(|&sum| $first(sum)).sum()
            }
        };
    }
    kernel!(avx512, "avx512f", _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32);
    kernel!(avx2, "avx2,fma", _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32);
}

fn portable(x: f32, y: f32) -> f32 {
    let mut sums = [[y; 4]; SUMS];
    for _ in 0..ROUNDS {
        sums.as_flattened_mut().iter_mut().for_each(|sum| *sum = *sum * x + y);
    }
    sums.as_flattened().iter().sum()
}
