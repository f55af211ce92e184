//! The largest error of every function of `Strict<f32>` over all 2^32 arguments, in units of the last place, and its
//! speed over a slice beside `libm`'s function of `f32`.
//!
//! `cargo bench --bench ulp` prints the table; `cargo bench --bench ulp -- --quick` looks at one argument in 1009, and names
//! of functions choose some. `powf` is sampled.

mod sweep;

use std::hint::black_box;
use std::time::Instant;

use slabgrad::backend::{Backend, Strict};
use sweep::{FUNCTIONS, POWF_BOUND};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Without `--bench` this is `cargo test --all-targets`.
    let quick = arguments.iter().any(|a| a == "--quick") || arguments.iter().all(|a| a != "--bench");
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| *n == name);

    println!("function      max ulp  bound     at                        above 1 ulp   ns     libm ns");
    let mut failed = false;
    for function in FUNCTIONS.iter().filter(|f| chosen(f.name)) {
        let worst = sweep::sweep(function, if quick { 1009 } else { 1 });
        let ours = nanoseconds(function.ours);
        let libm = nanoseconds(|ys| ys.iter_mut().for_each(|y| *y = (function.libm)(*y)));
        let at = format!("{:e} ({:08x})", worst.at, worst.at.to_bits());
        row(function.name, worst.error, function.bound, &at, worst.above_1, ours, libm);
        failed |= worst.error > function.bound;
    }
    if chosen("powf") {
        let (worst, exponent) = sweep::sample_powf(if quick { 1_000_000 } else { 200_000_000 });
        let ours = nanoseconds(|ys| ys.iter_mut().for_each(|y| *y = Strict::<f32>::powf(*y, 2.3)));
        let libm = nanoseconds(|ys| ys.iter_mut().for_each(|y| *y = libm::powf(*y, 2.3)));
        row("powf", worst.error, POWF_BOUND, &format!("{:e}, {exponent:e}", worst.at), worst.above_1, ours, libm);
        failed |= worst.error > POWF_BOUND;
    }
    assert!(!failed, "an error is above its bound");
}

fn row(name: &str, error: f64, bound: f64, at: &str, above_1: u64, ours: f64, libm: f64) {
    println!("{name:<12} {error:>8.3} {bound:>6}     {at:<26} {above_1:>10} {ours:>6.2} {libm:>8.2}");
}

/// Nanoseconds per element of a slice that fits the first cache, the best of many runs.
fn nanoseconds(mut f: impl FnMut(&mut [f32])) -> f64 {
    const LEN: usize = 2048;
    let arguments: [f32; LEN] = std::array::from_fn(|i| 0.1 + i as f32 * 0.003);
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let mut values = arguments;
        let start = Instant::now();
        f(black_box(&mut values));
        best = best.min(start.elapsed().as_secs_f64());
        black_box(&values);
    }
    best * 1e9 / LEN as f64
}
