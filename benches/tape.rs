//! What a tape costs beside the kernels: `cargo bench --bench tape`.
//!
//! The first table is the time of an operation on a single element, where there is next to nothing to compute, forward and
//! backward. The second is a training step of an MLP 64-32-10 with relu, cross-entropy, batch 16 and Adam, on tapes and by
//! the static engine. All are the best of many runs, taken in turns, since the machine may be shared.

use std::hint::black_box;
use std::time::{Duration, Instant};

use slabgrad::prelude::*;
use slabgrad::tape::{self, FixedTape, Storage, Tape};

const OPERATIONS: usize = 1000;
const RUNS: usize = 400;
const BATCH: usize = 16;

const fn mlp() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<BATCH, 64>>("x");
    let label = g.class_indices::<BATCH>("label");
    let h: Var<R2<BATCH, 32>> = g.linear("fc0", x);
    let h = g.relu(h);
    let logits: Var<R2<BATCH, 10>> = g.linear("fc1", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}
program!(static STATIC = mlp().train(Training::with::<Adam>()));

fn main() {
    overhead();
    training();
}

/// The best time of an operation, forward and backward.
fn overhead() {
    let [mut forward, mut backward] = [Duration::MAX; 2];
    let mut tape = Tape::new();
    let x = tape.parameter([1], &[0.5]);
    let mark = tape.mark();
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut y = x;
        for _ in 0..OPERATIONS {
            y = tape.neg(y);
        }
        forward = forward.min(start.elapsed());
        let start = Instant::now();
        tape.backward(black_box(y)).expect("the tape has no fault");
        backward = backward.min(start.elapsed());
        tape.reset_to(mark);
    }
    println!("a node takes {} bytes", size_of::<tape::Node<Strict<f32>>>());
    println!("an operation on one element, best of {RUNS} runs of {OPERATIONS}");
    for (name, time) in [("forward", forward), ("backward", backward)] {
        println!("  {name:<10} {:>6.1} ns", time.as_secs_f64() * 1e9 / OPERATIONS as f64);
    }
}

struct Mlp {
    params: [tape::Handle; 4],
    mark: tape::Mark,
    moments: Vec<f32>,
}

impl Mlp {
    fn new<S: Storage<Backend = Strict<f32>>>(tape: &mut Tape<S>) -> Self {
        use slabgrad::graph::Name;
        let mut parameter =
            |scope, leaf, shape: Shape, init| tape.init_parameter(Name::new(scope, leaf), shape, init, 1);
        let params = [
            parameter("fc0", "weight", Shape::new([32, 64]), Init::HeUniform),
            parameter("fc0", "bias", Shape::new([32]), Init::Zeros),
            parameter("fc1", "weight", Shape::new([10, 32]), Init::HeUniform),
            parameter("fc1", "bias", Shape::new([10]), Init::Zeros),
        ];
        Self { params, mark: tape.mark(), moments: tape.moments::<Adam>() }
    }

    fn step<S: Storage<Backend = Strict<f32>>>(&mut self, tape: &mut Tape<S>, x: &[f32], label: &[f32]) -> f32 {
        let [w0, b0, w1, b1] = self.params;
        tape.reset_to(self.mark);
        let (x, label) = (tape.constant([BATCH, 64], x), tape.constant([BATCH], label));
        let h = tape.linear(x, w0, Some(b0));
        let h = tape.relu(h);
        let logits = tape.linear(h, w1, Some(b1));
        let loss = tape.cross_entropy(logits, label, CrossEntropy::new());
        tape.backward(loss).expect("the tape has no fault");
        tape.update(&Adam::new(1e-3), &mut self.moments).expect("the gradients are finite");
        tape.item(loss)
    }
}

fn training() {
    let mut x = [0.0_f32; BATCH * 64];
    Init::XavierUniform.fill(&mut x, Shape::new([BATCH, 64]), slabgrad::graph::Name::new("", "x"), 3);
    let label: [f32; BATCH] = std::array::from_fn(|i| (i % 10) as f32);

    let mut slab = vec![0.0; STATIC.slab_len()];
    let mut memory = STATIC.memory(&mut slab).expect("the slab is long enough");
    STATIC.init(&mut memory, 1).expect("the memory fits");
    let mut adam = Adam::new(1e-3);

    let mut growing = Tape::new();
    let mut on_heap = Mlp::new(&mut growing);
    let mut tape_slab = vec![0.0; 2 * 2410 + 8192];
    let mut fixed: FixedTape<16> = FixedTape::in_slab(&mut tape_slab, 2410).expect("the slab is long enough");
    let mut in_slab = Mlp::new(&mut fixed);

    let mut best = [Duration::MAX; 3];
    let mut losses = [0.0; 3];
    for _ in 0..RUNS {
        let start = Instant::now();
        losses[0] = STATIC.step(&mut memory, &[black_box(&x), &label], &mut adam).expect("the run is fine");
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        losses[1] = on_heap.step(&mut growing, black_box(&x), &label);
        best[1] = best[1].min(start.elapsed());
        let start = Instant::now();
        losses[2] = in_slab.step(&mut fixed, black_box(&x), &label);
        best[2] = best[2].min(start.elapsed());
    }
    assert!(losses.iter().all(|loss| loss.to_bits() == losses[0].to_bits()), "the losses differ: {losses:?}");
    println!(
        "a training step of an MLP 64-32-10, batch {BATCH}, Adam, best of {RUNS}; work space of the tape: {} elements",
        fixed.work_len()
    );
    for (name, time) in ["static engine", "growing tape", "fixed tape"].into_iter().zip(best) {
        let ratio = time.as_secs_f64() / best[0].as_secs_f64();
        println!("  {name:<14} {:>7.2} us {ratio:>6.2} x", time.as_secs_f64() * 1e6);
    }
}
