//! What compiling a step is worth: `cargo bench --bench replay`.
//!
//! A training step of a convolutional net (1x28x28: conv 3x3 1 to 16, relu, conv 3x3 16 to 32 with stride 2, relu, 64 units with
//! relu, 4 classes, cross-entropy, Adam) in batches of 32: recorded on the model's tape each time, and compiled once and
//! replayed. All are the best of many runs, taken in turns, since the machine may be shared. The allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use slabgrad::compiled::{Context, Input};
use slabgrad::graph::Name;
use slabgrad::layer::{Model, Sequential};
use slabgrad::prelude::*;
use slabgrad::tape::{GrowingTape, Handle};

const BATCH: usize = 32;
const RUNS: usize = 200;

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, len) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn net() -> Model {
    let layers = Sequential::new()
        .conv2d("conv1", 1, 16, Conv2d::kernel(3).padding(1))
        .relu()
        .conv2d("conv2", 16, 32, Conv2d::kernel(3).stride(2).padding(1))
        .relu()
        .flatten()
        .linear("fc1", 6272, 64)
        .relu()
        .linear("fc2", 64, 4);
    Model::new(layers, [1, 28, 28], 1).expect("the layers fit")
}

/// A training step on the model's tape.
fn eager<'d>(x: Input<'d, f32>, label: Input<'d, f32>) -> impl FnMut() -> f32 + 'd {
    let mut model = net();
    move || {
        let input = model.tape().constant(x.0, black_box(x.1));
        let target = model.tape().constant(label.0, label.1);
        let logits = model.forward(input).expect("the input fits");
        let loss = model.tape().cross_entropy(logits, target, CrossEntropy::new());
        model.backward(loss).expect("the tape has no fault");
        model.update(&Adam::new(1e-3)).expect("the gradients are finite");
        let value = model.tape().item(loss);
        model.zero_grad();
        value
    }
}

/// The same step, compiled.
fn replay<'d>(training: Training, x: Input<'d, f32>, label: Input<'d, f32>) -> impl FnMut() -> f32 + 'd {
    let (mut model, mut context) = (net(), Context::with(training));
    move || {
        let loss = |tape: &mut GrowingTape, logits, extra: &[Handle]| {
            tape.cross_entropy(logits, extra[0], CrossEntropy::new())
        };
        let x = (x.0, black_box(x.1));
        context.training_step(&mut model, &mut Adam::new(1e-3), loss, x, &[label]).expect("the step is fine")
    }
}

fn main() {
    let mut x = vec![0.0; BATCH * 28 * 28];
    Init::XavierUniform.fill(&mut x, Shape::new([BATCH, 784]), Name::new("", "x"), 3);
    let label: Vec<f32> = (0..BATCH).map(|i| (i % 4) as f32).collect();
    let x = (Shape::new([BATCH, 1, 28, 28]), &x[..]);
    let label = (Shape::new([BATCH]), &label[..]);

    let (mut eager, mut kept, mut fused) = (
        eager(x, label),
        replay(Training::with::<Adam>(), x, label),
        replay(Training::with::<Adam>().fused(), x, label),
    );
    let mut steps: [(&str, &mut dyn FnMut() -> f32); 3] =
        [("eager tape", &mut eager), ("replay", &mut kept), ("replay, fused", &mut fused)];

    // The first steps compile, and grow the tape.
    let mut losses = steps.each_mut().map(|(_, step)| step());
    let (mut best, mut allocations) = ([Duration::MAX; 3], [0; 3]);
    for _ in 0..RUNS {
        for (i, (_, step)) in steps.iter_mut().enumerate() {
            let (calls, start) = (CALLS.load(Ordering::Relaxed), Instant::now());
            losses[i] = step();
            best[i] = best[i].min(start.elapsed());
            allocations[i] += CALLS.load(Ordering::Relaxed) - calls;
        }
    }
    assert!(losses.iter().all(|loss| loss.to_bits() == losses[0].to_bits()), "the losses differ: {losses:?}");
    println!("a training step of a convolutional net, batch {BATCH}, Adam, best of {RUNS}");
    for (i, (name, _)) in steps.iter().enumerate() {
        let speed = best[0].as_secs_f64() / best[i].as_secs_f64();
        let per_step = allocations[i] as f64 / RUNS as f64;
        println!("  {name:<14} {:>7.3} ms {speed:>6.2} x {per_step:>4} allocations", best[i].as_secs_f64() * 1e3);
    }
}
