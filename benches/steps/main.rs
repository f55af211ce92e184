//! Training steps and inferences of the standard workloads beside the same ones in C: `cargo bench --bench steps`.
//!
//! ```text
//! cargo bench --bench steps                     the table
//! cargo bench --bench steps -- W1               only workloads whose name begins so
//! cargo bench --bench steps --features rayon -- threads   steps on two threads, beside those on one
//! cargo bench --bench steps -- run W1 train 100 runs 100 steps, for counting instructions; W1-fast in Fast
//! ```
//!
//! W1 is an MLP 64-32-10 at batch 16, W2 an MLP 784-256-128-10 at batch 32, W3 a CNN on 1x28x28 at batch 32 (3x3 convolutions
//! to 16 channels and, with stride 2, to 32; linear layers of 64 and 4); W4 are W1 and W3 at batch 1. A step is forward,
//! cross-entropy, backward and Adam. The C program lies in `benches/baseline`; it is compiled with gcc for this machine, fused
//! operations and all. Both run in turns, in blocks that begin with fresh parameters, and the median block counts, since
//! machines drift; compare the ratio, not the times of two runs.

mod nets;
mod workloads;

use std::{
    hint::black_box,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use slabgrad::prelude::*;
use workloads::{Data, Workload};

/// How long a block of steps should take, and how many there are.
const BLOCK_SECONDS: f64 = 0.02;
const BLOCKS: usize = 25;

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
        [filter] => table(filter),
        _ => panic!("what is {words:?}? See the head of benches/steps/main.rs"),
    }
}

fn run<B: Backend<Elem = f32>>(workloads: &[Workload<B>], name: &str, what: What, steps: usize) {
    let mut ours = Ours::new(workloads.iter().find(|workload| workload.name == name).expect("a workload"));
    let loss = ours.run(what, steps).1;
    println!("loss {loss}, hash of the parameters {:016x}", ours.hash());
}

/// Steps on one thread and on two, in turns.
#[cfg(feature = "rayon")]
fn threads() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let pools = [pool(1), pool(2)];
    println!("{:<8} {:>11} {:>11} {:>6}", "Strict", "1 thread", "2 threads", "");
    for workload in &workloads::strict() {
        let mut ours = Ours::new(workload);
        let steps = (BLOCK_SECONDS / (ours.run(What::Train, 3).0 / 3.0)).clamp(3.0, 300.0) as usize;
        let (mut times, mut hashes) = ([const { Vec::new() }; 2], [0; 2]);
        for _ in 0..BLOCKS {
            for ((pool, times), hash) in pools.iter().zip(&mut times).zip(&mut hashes) {
                times.push(pool.install(|| ours.run(What::Train, steps)).0 / steps as f64);
                *hash = ours.hash();
            }
        }
        assert_eq!(hashes[0], hashes[1], "two threads have the bits of one");
        let [one, two] = times.map(median);
        println!("{:<8} {:>8.1} µs {:>8.1} µs {:>6.2}", workload.name, one * 1e6, two * 1e6, one / two);
    }
}

fn table(filter: &str) {
    println!(
        "{:<8} {:<6} {:>11} {:>8} {:>6} {:>11} {:>6} {:>11} {:>9}",
        "", "", "Strict", "GFLOP/s", "to C", "Fast", "to C", "C", "RAM"
    );
    for (strict, fast) in workloads::strict().iter().zip(&workloads::fast()) {
        if !strict.name.starts_with(filter) {
            continue;
        }
        let mut c = C::start(strict.name, strict.c);
        let (mut ours, mut ours_fast) = (Ours::new(strict), Ours::new(fast));
        for what in [What::Train, What::Infer] {
            let once = ours.run(what, 3).0 / 3.0;
            let steps = (BLOCK_SECONDS / once).clamp(3.0, 300.0) as usize;
            let mut times = [const { Vec::new() }; 3];
            for _ in 0..BLOCKS {
                let block = [ours.run(what, steps).0, ours_fast.run(what, steps).0, c.run(what, steps)];
                times.iter_mut().zip(block).for_each(|(times, time)| times.push(time / steps as f64));
            }
            let [strict_time, fast_time, c_time] = times.map(median);
            let flops = 2.0 * strict.products[usize::from(what == What::Train)] as f64;
            let program = if what == What::Train { strict.train } else { strict.infer };
            println!(
                "{:<8} {:<6} {:>8.1} µs {:>8.1} {:>6.2} {:>8.1} µs {:>6.2} {:>8.1} µs {:>9}",
                strict.name,
                if what == What::Train { "train" } else { "infer" },
                strict_time * 1e6,
                flops / strict_time / 1e9,
                strict_time / c_time,
                fast_time * 1e6,
                fast_time / c_time,
                c_time * 1e6,
                program.ram_bytes(),
            );
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
            start = Instant::now();
            for i in 0..steps {
                let (x, label) = batches[i % batches.len()];
                loss = train.step(&mut memory, &[x, label], &mut adam).expect("a step");
            }
        } else {
            let mut memory = infer.memory(&mut self.slab).expect("a slab for inference");
            start = Instant::now();
            for i in 0..steps {
                infer.run(&mut memory, &[batches[i % batches.len()].0]).expect("an inference");
                black_box(infer.output(&memory, "logits"));
            }
        }
        (start.elapsed().as_secs_f64(), loss)
    }

    /// FNV-1a of the parameters' bits: the same as before a change which changes no bit.
    fn hash(&self) -> u64 {
        let parameters = &self.slab[..self.workload.train.params_len()];
        let mix = |hash: u64, p: &f32| (hash ^ u64::from(p.to_bits())).wrapping_mul(0x0100_0000_01b3);
        parameters.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }
}

/// The C program, which runs steps when told to.
struct C {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl C {
    fn start(name: &str, defines: [&str; 2]) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline/run.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("steps-{name}"));
        // The root of Adam is an instruction only without errno.
        let status = Command::new("gcc")
            .args(["-O3", "-march=native", "-fno-math-errno", "-w"])
            .args(defines)
            .arg(source)
            .args(["-lm", "-o"])
            .arg(&program)
            .status();
        assert!(status.expect("gcc has to be installed").success(), "gcc failed");
        let mut process =
            Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the C program");
        let (to, from) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        Self { process, to, from: BufReader::new(from) }
    }

    /// The seconds that so many steps take.
    fn run(&mut self, what: What, steps: usize) -> f64 {
        let what = if what == What::Train { 't' } else { 'i' };
        writeln!(self.to, "{what} {steps}").expect("the C program listens");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("the C program answers");
        let nanoseconds = answer.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        nanoseconds.expect("a number") / 1e9
    }
}

impl Drop for C {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
