//! A counting allocator: whatever a program does, it allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use slabgrad::graph::Name;
use slabgrad::optim::Optimizer;
use slabgrad::prelude::*;
use slabgrad::tape::{FixedTape, Handle, Mark, Storage, Tape, TapeError};

struct Counting;

thread_local! {
    /// Calls by this thread, so that the other tests and the harness do not disturb the count. Constant, and without a
    /// destructor: it needs no allocation of its own.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    CALLS.set(CALLS.get() + 1);
}

// SAFETY: every call goes on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, len) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `run` allocates or frees, and what it returns.
fn allocations<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = CALLS.get();
    let result = run();
    (CALLS.get() - before, result)
}

/// One of everything that the static engine has so far.
const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let target = g.input::<R2<B, 10>>("target");
    let h: Var<R4<B, 4, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<B, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 16, 2, 2>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1).init(Init::HeNormal));
    let h = g.tanh(h);
    let mean = g.global_avg_pool2d(h);
    let mean: Var<R2<B, 16>> = g.flatten(mean);
    let h: Var<R2<B, 64>> = g.flatten(h);
    let h: Var<R2<B, 16>> = g.linear("fc1", h);
    let h = g.sigmoid(h);
    let h = g.add(h, mean);
    let weight = g.parameter::<R2<16, 10>>("fc2", "weight", Init::XavierUniform);
    let logits = g.matmul(h, weight);
    let p = g.softmax(logits, 1);
    g.output("p", p);
    g.output("logits", logits);
    let log_p = g.log_softmax(logits, 1);
    let regression = g.mse(log_p, target);
    let classification = g.cross_entropy(logits, label);
    let loss = g.add(classification, regression);
    g.loss(loss);
    g
}

const BATCH: usize = 4;
program!(static ADAM = net::<BATCH>().train(Training::with::<Adam>().keep_outputs().clip_norm(1.0)));
program!(static FUSED = net::<BATCH>().train(Training::with::<Adam>().keep_outputs().fused()));
program!(static MOMENTUM = net::<BATCH>().train(Training::with::<Momentum>()));
program!(static SGD = net::<BATCH>().train(Training::with::<Sgd>().fused()));
program!(static INFER = net::<1>().infer());

const IMAGES: [f32; BATCH * 64] = [0.5; BATCH * 64];
const LABELS: [f32; BATCH] = [0.0, 3.0, 9.0, 1.0];
const TARGETS: [f32; BATCH * 10] = [-2.0; BATCH * 10];
const INPUTS: [&[f32]; 3] = [&IMAGES, &LABELS, &TARGETS];

/// Initialises and trains; the last loss has to be below the first, so that the steps are real ones.
fn train<O: Optimizer<Strict<f32>>>(program: &Program, slab: &mut [f32], mut optimizer: O) -> Result<(), RunError> {
    let mut memory = program.memory(slab)?;
    program.init(&mut memory, 7)?;
    let first = program.step(&mut memory, &INPUTS, &mut optimizer)?;
    for _ in 0..20 {
        program.step(&mut memory, &INPUTS, &mut optimizer)?;
    }
    assert!(program.loss(&mut memory, &INPUTS)? < first, "the loss does not go down");
    Ok(())
}

#[test]
fn the_allocator_counts() {
    let (calls, ()) = allocations(|| drop(std::hint::black_box(vec![0_u8; 10])));
    assert_eq!(calls, 2, "one allocation and one release");
}

#[test]
fn training_allocates_nothing() {
    fn check<O: Optimizer<Strict<f32>>>(name: &str, program: &Program, optimizer: O) {
        let mut slab = vec![0.0; program.slab_len()];
        let (calls, outcome) = allocations(|| train(program, &mut slab, optimizer));
        assert_eq!((calls, outcome), (0, Ok(())), "{name}: calls of the allocator, and the outcome");
    }
    check("Adam, gradients kept and clipped", &ADAM, Adam::new(0.01));
    check("Adam, fused", &FUSED, Adam::new(0.01));
    check("momentum, gradients kept", &MOMENTUM, Sgd::new(0.01).momentum(0.9));
    check("gradient descent, fused", &SGD, Sgd::new(0.01));
}

#[test]
fn runs_gradients_and_outputs_allocate_nothing() {
    let mut slab = vec![0.0; ADAM.slab_len()];
    let (calls, result) = allocations(|| {
        let mut memory = ADAM.memory(&mut slab)?;
        ADAM.init(&mut memory, 7)?;
        ADAM.gradients(&mut memory, &INPUTS)?;
        let norm = slabgrad::optim::norm::<Strict<f32>>(memory.grads, slabgrad::optim::Norm::L2);
        ADAM.run(&mut memory, &INPUTS)?;
        INFER.run(&mut memory, &[&IMAGES[..64]])?;
        let sum: f32 = INFER.output(&memory, "p").unwrap_or_default().iter().sum();
        Ok((norm, sum))
    });
    let (norm, sum) = result.unwrap_or_else(|error: RunError| panic!("{error}"));
    assert_eq!(calls, 0);
    assert!(norm > 0.0 && (sum - 1.0).abs() < 1e-5, "gradient norm {norm}, sum of probabilities {sum}");
}

#[test]
fn checkpoints_allocate_nothing() {
    use slabgrad::checkpoint::{Contents, Image};

    const WHOLE: Contents = Contents::training();
    let mut slab = vec![0.0; ADAM.slab_len()];
    let mut bytes = vec![0; ADAM.image_len(&WHOLE)];
    train(&ADAM, &mut slab, Adam::new(0.01)).expect("it trains");
    let mut memory = ADAM.memory(&mut slab).expect("the slab is long enough");
    let (calls, steps) = allocations(|| {
        ADAM.save(&memory, WHOLE, &mut bytes[..]).ok()?;
        memory.moments.fill(0.0);
        let image = Image::parse(&bytes).ok()?;
        ADAM.load(&mut memory, &image).ok()?;
        ADAM.load(&mut memory, &Image::parse(&bytes[1..]).ok().or(Some(image))?).ok()?;
        Some(ADAM.steps_done(&memory))
    });
    assert_eq!((calls, steps), (0, Some(21)), "calls of the allocator, and steps");
}

#[test]
fn a_refused_run_allocates_nothing() {
    let mut slab = vec![0.0; FUSED.slab_len()];
    let (calls, ()) = allocations(|| {
        assert!(FUSED.memory(&mut slab[1..]).is_err(), "a slab that is too short");
        let mut memory = FUSED.memory(&mut slab).expect("the slab is long enough");
        let mut adam = Adam::new(0.01);
        let mut refused = |inputs: &[&[f32]]| FUSED.step(&mut memory, inputs, &mut adam).is_err();
        assert!(refused(&INPUTS[..2]), "an input is missing");
        assert!(refused(&[&IMAGES[64..], &LABELS, &TARGETS]), "a smaller batch");
        assert!(refused(&[&IMAGES, &[0.0, 3.0, 10.0, 1.0], &TARGETS]), "a label that is out of range");
        assert!(refused(&[&[f32::NAN; BATCH * 64], &LABELS, &TARGETS]), "an image of NaNs");
    });
    assert_eq!(calls, 0);
}

/// What a program says of its memory is what it takes, and what it asks for.
#[test]
fn sizes_add_up() {
    for program in [&ADAM, &FUSED, &MOMENTUM, &SGD, &INFER] {
        let mut slab = vec![0.0; program.slab_len()];
        let memory = program.memory(&mut slab).unwrap();
        let spaces = [&*memory.params, memory.state, memory.grads, memory.moments, memory.work];
        assert_eq!(spaces.map(size_of_val).iter().sum::<usize>(), program.ram_bytes());
        let lens =
            [program.params_len(), program.state_len(), program.grads_len(), program.moments_len(), program.work_len()];
        assert_eq!(spaces.map(<[f32]>::len), lens);
    }
}

/// One step of a small perceptron on any tape, written as expressions, from the mark on.
fn tape_step<S: Storage<Backend = Strict<f32>>>(
    tape: &mut Tape<S>,
    [w, b]: [Handle; 2],
    mark: Mark,
    moments: &mut [f32],
) -> Result<f32, TapeError> {
    tape.reset_to(mark);
    let scope = tape.scope();
    let (x, label) = (scope.constant([BATCH, 64], &IMAGES), scope.constant([BATCH], &LABELS));
    let logits = x.linear(scope.of(w), Some(scope.of(b))).tanh() * 2.0;
    let parts = [logits.slice(&[0, 0], &[BATCH, 5], &[]), logits.slice(&[0, 5], &[BATCH, 10], &[])];
    let logits = parts[0].concat(&parts[1..], 1);
    let loss = logits.cross_entropy(label, CrossEntropy::new()).handle();
    tape.backward(loss)?;
    tape.clip_norm(1.0);
    tape.update(&Adam::new(0.01), moments)?;
    Ok(tape.item(loss))
}

/// Registers the parameters of such a perceptron.
fn perceptron<S: Storage<Backend = Strict<f32>>>(tape: &mut Tape<S>) -> ([Handle; 2], Mark) {
    let weight = tape.init_parameter(Name::new("fc", "weight"), [10, 64], Init::HeUniform, 1);
    ([weight, tape.parameter([10], &[0.0; 10])], tape.mark())
}

const PERCEPTRON: usize = 650;

#[test]
fn a_tape_in_a_slab_allocates_nothing_at_all() {
    let mut slab = vec![0.0; 4096];
    let (calls, losses) = allocations(|| {
        let mut moments = [0.0; slabgrad::optim::HEADER_LEN + 2 * PERCEPTRON];
        let mut tape: FixedTape<'_, 32> = FixedTape::in_slab(&mut slab, PERCEPTRON).ok()?;
        let (parameters, mark) = perceptron(&mut tape);
        let first = tape_step(&mut tape, parameters, mark, &mut moments).ok()?;
        (0..20).try_for_each(|_| tape_step(&mut tape, parameters, mark, &mut moments).map(|_| ())).ok()?;
        Some((first, tape_step(&mut tape, parameters, mark, &mut moments).ok()?))
    });
    let (first, last) = losses.expect("the slab is long enough");
    assert_eq!(calls, 0);
    assert!(last < first, "the loss does not go down: {first}, {last}");
}

#[cfg(feature = "alloc")]
#[test]
fn a_growing_tape_allocates_nothing_from_the_second_step_on() {
    let mut tape = Tape::new();
    let (parameters, mark) = perceptron(&mut tape);
    let mut moments = tape.moments::<Adam>();
    let (calls, _) = allocations(|| tape_step(&mut tape, parameters, mark, &mut moments).unwrap());
    assert!(calls > 0, "the first step grows the tape");
    for _ in 0..20 {
        let (calls, _) = allocations(|| tape_step(&mut tape, parameters, mark, &mut moments).unwrap());
        assert_eq!(calls, 0);
    }
}

#[cfg(feature = "alloc")]
#[test]
fn a_tape_with_a_fault_allocates_nothing() {
    let mut tape = Tape::new();
    let (parameters, mark) = perceptron(&mut tape);
    let mut moments = tape.moments::<Adam>();
    tape_step(&mut tape, parameters, mark, &mut moments).unwrap();
    let (calls, ()) = allocations(|| {
        tape.reset_to(mark);
        let y = tape.add(parameters[0], parameters[0]);
        let y = tape.matmul(y, parameters[1]);
        let y = tape.relu(y);
        assert!(tape.backward(y).is_err(), "the shapes do not fit");
    });
    assert_eq!(calls, 0);
}
/// Compiled steps: what the first one of each shape has set up serves all later ones.
#[cfg(feature = "alloc")]
mod compiled {
    use core::ops::ControlFlow;

    use slabgrad::compiled::Context;
    use slabgrad::layer::{Model, Sequential};
    use slabgrad::train::{BatchReport, Callback, Dataset, Trainer};

    use super::*;

    fn model() -> Model {
        let layers = Sequential::new()
            .conv2d("conv1", 1, 4, Conv2d::kernel(3).padding(1))
            .batch_norm2d("bn", 4)
            .relu()
            .max_pool2d(Window2d::size(2))
            .flatten()
            .dropout(0.1)
            .linear("fc", 64, 10);
        Model::new(layers, [1, 8, 8], 7).unwrap()
    }

    #[test]
    fn replays_allocate_nothing() {
        for training in [Training::with::<Adam>(), Training::with::<Adam>().fused().keep_outputs()] {
            let (mut model, mut adam) = (model(), Adam::new(0.01));
            let (mut train, mut evaluate, mut infer) = (Context::with(training), Context::new(), Context::new());
            let (x, label) = ((Shape::new([BATCH, 1, 8, 8]), &IMAGES[..]), (Shape::new([BATCH]), &LABELS[..]));
            let mut step = || {
                let loss = |tape: &mut slabgrad::tape::GrowingTape, logits, extra: &[slabgrad::tape::Handle]| {
                    tape.cross_entropy(logits, extra[0], CrossEntropy::new())
                };
                let loss_before = train.training_step(&mut model, &mut adam, loss, x, &[label]).unwrap();
                let loss_after = evaluate.loss(&mut model, loss, x, &[label]).unwrap();
                infer.forward(&mut model, x).unwrap();
                (loss_before, loss_after)
            };
            let (first, _) = step();
            let (calls, last) = allocations(|| (0..20).map(|_| step()).last());
            assert_eq!(calls, 0, "calls of the allocator in 20 steps, losses and inferences");
            assert!(last.unwrap().0 < first, "the loss goes down");
        }
    }

    /// Counts what happens between the end of a batch and the end of the next one.
    #[derive(Default)]
    struct Watch {
        before: usize,
        calls: Vec<usize>,
    }

    impl Callback<Strict<f32>> for Watch {
        fn on_batch(&mut self, _: &BatchReport<f32>) -> ControlFlow<()> {
            self.calls.push(CALLS.get() - self.before);
            self.before = CALLS.get();
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn batches_of_a_training_loop_allocate_nothing() {
        let images = (0..10 * 64_u16).map(|i| f32::from(i % 7) / 7.0).collect();
        let data = Dataset::with_labels([1, 8, 8], images, 10, 0..10).unwrap();
        let mut watch = Watch { calls: Vec::with_capacity(9), ..Watch::default() };
        let loss = |tape: &mut slabgrad::tape::GrowingTape, logits, label| {
            tape.cross_entropy(logits, label, CrossEntropy::new())
        };
        let trainer = Trainer::new(3, 4).callback(&mut watch);
        trainer.fit(&mut model(), &data, &mut Adam::new(0.01), loss).unwrap();
        // Two full batches and a smaller one, which has a program of its own; between epochs the history grows.
        let within_epochs: Vec<usize> = watch.calls[3..].chunks(3).flat_map(|epoch| epoch[1..].to_vec()).collect();
        assert_eq!((watch.calls[1], within_epochs), (0, vec![0; 4]), "{:?}", watch.calls);
    }
}
