//! Training steps and inferences of the standard workloads beside the same ones in C: `cargo bench --bench steps`.
//!
//! ```text
//! cargo bench --bench steps                     the table
//! cargo bench --bench steps -- W1               only workloads whose name begins so
//! cargo bench --bench steps --features rayon -- threads   steps on two threads, beside those on one
//! cargo bench --bench steps -- run W1 train 100 runs 100 steps, for counting instructions; W1-fast in Fast
//! cargo bench --bench steps -- peers [PROGRAM WORD]...
//!                                               the table, and W1 to W3 beside these programs; `cargo xtask bench --peers` has some
//! ```
//!
//! W1 is an MLP 64-32-10 at batch 16, W2 an MLP 784-256-128-10 at batch 32, W3 a CNN on 1x28x28 at batch 32 (3x3 convolutions
//! to 16 channels and, with stride 2, to 32; linear layers of 64 and 4); W4 are W1 and W3 at batch 1. A step is forward,
//! cross-entropy, backward and Adam. The C program lies in `benches/baseline`; it is compiled with gcc for this machine, fused
//! operations and all. All programs start from the same parameters and have to come to the same losses before they are timed.
//! They run in turns, in blocks that begin with fresh parameters, and the median block counts, since machines drift; compare
//! ratios, not the times of two runs.
//!
//! The roof of a workload is its products at the rate at which this machine multiplies and adds in registers, fused, and in training
//! one pass over what Adam reads and writes. `Strict` fuses nothing: its products can reach half of that rate where the same units multiply
//! and add, and all of it where either has its own.

mod memory;
mod nets;
mod peer;
mod roof;
mod turns;
mod workloads;

use std::{hint::black_box, path::PathBuf, process::Command};

use cpu_time::ProcessTime;
use peer::Peer;
use slabgrad::prelude::*;
use turns::{Run, medians};
use workloads::{Data, Workload};

#[derive(Clone, Copy, PartialEq)]
enum What {
    Train,
    Infer,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["run", name, what, steps] => {
            let what = if what == "train" { What::Train } else { What::Infer };
            let steps = steps.parse().expect("a number of steps");
            match name.strip_suffix("-fast") {
                Some(name) => run(&workloads::fast(), name, what, steps),
                None => run(&workloads::strict(), name, what, steps),
            }
        }
        #[cfg(feature = "rayon")]
        ["threads"] => threads(),
        [] => table(""),
        ["peers", ref programs @ ..] if programs.len() % 2 == 0 => {
            table("");
            peers(programs);
        }
        [filter] => table(filter),
        _ => panic!("what is {words:?}? See the head of benches/steps/main.rs"),
    }
}

fn run<B: Backend<Elem = f32>>(workloads: &[Workload<B>], name: &str, what: What, steps: usize) {
    let mut ours = Ours::new(workloads.iter().find(|workload| workload.name == name).expect("a workload"));
    // Within the pool, where threads are nearest; `RAYON_NUM_THREADS` says how many.
    #[cfg(feature = "rayon")]
    let loss = rayon::scope(|_| ours.run(what, steps).1);
    #[cfg(not(feature = "rayon"))]
    let loss = ours.run(what, steps).1;
    println!("loss {loss}, hash of the parameters {:016x}", ours.hash());
}

/// Steps on one thread and on two, in turns, by the clock on the wall.
#[cfg(feature = "rayon")]
fn threads() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let pools = [pool(1), pool(2)];
    let time = |threads: usize, ours: &mut Ours<_>, steps| {
        let start = std::time::Instant::now();
        pools[threads - 1].install(|| ours.run(What::Train, steps));
        start.elapsed().as_secs_f64()
    };
    println!("{:<8} {:>11} {:>11} {:>6}", "Strict", "1 thread", "2 threads", "");
    for workload in &workloads::strict() {
        let [mut one, mut two] = [Ours::new(workload), Ours::new(workload)];
        let times =
            medians(&mut [Box::new(|steps| time(1, &mut one, steps)), Box::new(|steps| time(2, &mut two, steps))]);
        time(1, &mut one, 20);
        time(2, &mut two, 20);
        assert_eq!(one.hash(), two.hash(), "two threads have the bits of one");
        let [one, two] = [times[0] * 1e6, times[1] * 1e6];
        println!("{:<8} {one:>8.1} µs {two:>8.1} µs {:>6.2}", workload.name, one / two);
    }
}

fn table(filter: &str) {
    let (peak, vectors) = roof::peak();
    println!("one core multiplies and adds at {:.1} GFLOP/s ({vectors}, fused)\n", peak / 1e9);
    let backend = |name: &str| format!("{name:>11} {:>8} {:>6} {:>6}", "GFLOP/s", "roof", "to C");
    println!("{:<16}{}{} {:>11} {:>9}", "", backend("Strict"), backend("Fast"), "C", "RAM");
    for (strict, fast) in workloads::strict().iter().zip(&workloads::fast()) {
        if !strict.name.starts_with(filter) {
            continue;
        }
        let (mut ours, mut ours_fast) = (Ours::new(strict), Ours::new(fast));
        let mut c = Peer::c(strict.name, strict.c, &ours.write_start());
        ours.expect_same_loss(&mut c);
        let pass = roof::pass(strict.train.params_len());
        for what in [What::Train, What::Infer] {
            let times = medians(&mut [
                Box::new(|steps| ours.run(what, steps).0),
                Box::new(|steps| ours_fast.run(what, steps).0),
                Box::new(|steps| c.run(what, steps).0),
            ]);
            let is_training = what == What::Train;
            let flops = 2.0 * strict.products[usize::from(is_training)] as f64;
            let roof = flops / peak + if is_training { pass } else { 0.0 };
            let column = |time: f64| {
                let (rate, share) = (flops / time / 1e9, 100.0 * roof / time);
                format!("{:>8.1} µs {rate:>8.1} {share:>4.0} % {:>6.2}", time * 1e6, time / times[2])
            };
            println!(
                "{:<8} {:<7}{}{} {:>8.1} µs {:>9}",
                strict.name,
                if is_training { "train" } else { "infer" },
                column(times[0]),
                column(times[1]),
                times[2] * 1e6,
                if is_training { strict.train } else { strict.infer }.ram_bytes(),
            );
        }
    }
}

/// Training steps of W1 to W3 of each of the programs, too. The first of two words is an executable, the second its argument.
fn peers(programs: &[&str]) {
    const COMPARED: [&str; 3] = ["W1", "W2", "W3"];
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for (strict, fast) in workloads::strict().iter().zip(&workloads::fast()).filter(|(w, _)| COMPARED.contains(&w.name))
    {
        let (mut ours, mut ours_fast) = (Ours::new(strict), Ours::new(fast));
        let start = ours.write_start();
        let mut peers = vec![Peer::c(strict.name, strict.c, &start)];
        peers.extend(
            programs
                .chunks(2)
                .map(|words| Peer::start(Command::new(words[0]).args([words[1], strict.name]).arg(&start))),
        );
        peers.iter_mut().for_each(|peer| ours.expect_same_loss(peer));

        if rows.is_empty() {
            let names = ["slabgrad, Strict", "slabgrad, Fast"].into_iter().chain(peers.iter().map(|peer| &*peer.name));
            rows = names.map(|name| (name.to_owned(), Vec::new())).collect();
        }
        let mut runs: Vec<Run<'_>> = vec![
            Box::new(|steps| ours.run(What::Train, steps).0),
            Box::new(|steps| ours_fast.run(What::Train, steps).0),
        ];
        runs.extend(peers.iter_mut().map(|peer| -> Run<'_> { Box::new(|steps| peer.run(What::Train, steps).0) }));
        rows.iter_mut().zip(medians(&mut runs)).for_each(|((_, times), time)| times.push(time));
    }

    println!("\n{:<32} {:>19} {:>19} {:>19}", "a training step, Strict to it", "W1", "W2", "W3");
    for (name, times) in &rows {
        let column = |(time, strict): (&f64, &f64)| format!(" {:>9.1} µs {:>7.3}", time * 1e6, strict / time);
        let columns: String = times.iter().zip(&rows[0].1).map(column).collect();
        println!("{name:<32}{columns}");
    }
}

/// A workload with its memory.
struct Ours<'w, B: Backend + 'static> {
    workload: &'w Workload<B>,
    data: Data,
    slab: Vec<f32>,
}

impl<'w, B: Backend<Elem = f32>> Ours<'w, B> {
    fn new(workload: &'w Workload<B>) -> Self {
        let samples = if workload.features == 64 { 256 } else { 512 };
        let data = Data::new(samples, workload.features, workload.classes);
        Self { workload, data, slab: vec![0.0; workload.train.slab_len_with(workload.infer)] }
    }

    /// The seconds that so many steps take, from fresh parameters, and the last loss.
    fn run(&mut self, what: What, steps: usize) -> (f64, f32) {
        let Workload { batch, features, train, infer, .. } = *self.workload;
        let images = self.data.x.chunks_exact(batch * features);
        let batches: Vec<_> = images.zip(self.data.labels.chunks_exact(batch)).collect();
        let mut memory = train.memory(&mut self.slab).expect("a slab for training");
        train.init(&mut memory, 1).expect("parameters");
        let mut adam = Adam::new(1e-3);
        let mut loss = 0.0;
        let start;
        if what == What::Train {
            start = ProcessTime::now();
            for i in 0..steps {
                let (x, label) = batches[i % batches.len()];
                loss = train.step(&mut memory, &[x, label], &mut adam).expect("a step");
            }
        } else {
            let mut memory = infer.memory(&mut self.slab).expect("a slab for inference");
            start = ProcessTime::now();
            for i in 0..steps {
                infer.run(&mut memory, &[batches[i % batches.len()].0]).expect("an inference");
                black_box(infer.output(&memory, "logits"));
            }
        }
        (start.elapsed().as_secs_f64(), loss)
    }

    /// The file that peers start from.
    fn write_start(&mut self) -> PathBuf {
        self.run(What::Train, 0);
        peer::write_start(self.workload.name, &self.slab[..self.workload.train.params_len()], &self.data)
    }

    /// A peer that trains the same network on the same samples has the same losses, but for rounding.
    fn expect_same_loss(&mut self, peer: &mut Peer) {
        for steps in [3, 20] {
            let (expected, found) = (self.run(What::Train, steps + 1).1, peer.run(What::Train, steps).1);
            let is_near = (found - expected).abs() <= 1e-3 * expected + 1e-6;
            let names = (self.workload.name, &peer.name);
            assert!(is_near, "{names:?}: after {steps} steps the loss is {found}, ours {expected}");
        }
    }

    /// FNV-1a of the parameters' bits: the same as before a change which changes no bit.
    fn hash(&self) -> u64 {
        let parameters = &self.slab[..self.workload.train.params_len()];
        let mix = |hash: u64, p: &f32| (hash ^ u64::from(p.to_bits())).wrapping_mul(0x0100_0000_01b3);
        parameters.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }
}
