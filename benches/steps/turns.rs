//! Timing of programs that run in turns, in blocks: machines drift, and ratios of neighbours stay. `benches/products` does so, too.
//!
//! All of them take the time that the processor spends on their process, which is the time on the clock when nobody else is at work.

/// How long a block of steps should take, and how many there are.
const BLOCK_SECONDS: f64 = 0.02;
const BLOCKS: usize = 25;

/// Runs so many steps, and returns the seconds that they took.
pub(crate) type Run<'r> = Box<dyn FnMut(usize) -> f64 + 'r>;

/// The median time of a step of each, from blocks in turns.
pub(crate) fn medians(runs: &mut [Run<'_>]) -> Vec<f64> {
    let steps: Vec<usize> =
        runs.iter_mut().map(|run| (3.0 * BLOCK_SECONDS / run(3)).clamp(3.0, 300.0) as usize).collect();
    let mut times = vec![Vec::new(); runs.len()];
    for _ in 0..BLOCKS {
        for ((run, &steps), times) in runs.iter_mut().zip(&steps).zip(&mut times) {
            times.push(run(steps) / steps as f64);
        }
    }
    times.into_iter().map(median).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
