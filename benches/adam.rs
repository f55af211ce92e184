//! Adam over a million parameters, against the memory's bandwidth: `cargo bench --bench adam`.
//!
//! An update reads parameters, gradients and both moments and writes all but the gradients: 28 bytes a parameter. The yardstick
//! is a loop that moves the same bytes through the same arrays and does next to nothing with them. Both are the best of many
//! runs, taken in turns, since the machine may be shared.

#[path = "steps/memory.rs"]
mod memory;

use std::hint::black_box;
use std::time::{Duration, Instant};

use slabgrad::optim::{Adam, Group, Optimizer};
use slabgrad::prelude::*;

const PARAMETERS: usize = 1 << 20;
const RUNS: usize = 40;
const BYTES: f64 = 28.0 * PARAMETERS as f64;

fn main() {
    let [mut p, mut g, mut m, mut v] = [0.5, 1e-3, 0.0, 0.0].map(|x: f32| vec![x; PARAMETERS]);
    let mut own = [0.0; 4];
    let [mut adam_best, mut move_best] = [Duration::MAX; 2];
    for _ in 0..RUNS {
        let coefficients = Optimizer::<Strict<f32>>::begin(&Adam::<f32>::new(1e-3), &mut own);
        let start = Instant::now();
        <Adam as Optimizer<Strict<f32>>>::update(
            &coefficients,
            &Group::default(),
            black_box(&mut p),
            black_box(&g),
            [black_box(&mut m), black_box(&mut v), &mut []],
        );
        adam_best = adam_best.min(start.elapsed());

        let start = Instant::now();
        memory::move_bytes(black_box(&mut p), black_box(&g), black_box(&mut m), black_box(&mut v));
        move_best = move_best.min(start.elapsed());
        g[0] += 1e-9;
    }
    let rate = |time: Duration| BYTES / time.as_secs_f64() / 1e9;
    println!("{PARAMETERS} parameters, 28 bytes each, best of {RUNS}");
    println!("{:<24} {:>9.2} ms {:>7.1} GB/s", "moving the same bytes", move_best.as_secs_f64() * 1e3, rate(move_best));
    println!("{:<24} {:>9.2} ms {:>7.1} GB/s", "Adam", adam_best.as_secs_f64() * 1e3, rate(adam_best));
    println!("Adam at {:.0} % of the memory's bandwidth", 100.0 * rate(adam_best) / rate(move_best));
}
