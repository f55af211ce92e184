//! Running programs: bad input changes nothing, state is taken over with the step that made it, programs share memory.

use slabgrad::ops::{BackwardCall, ForwardCall, Gradient, Op, OverGradient, Reads, Spec};
use slabgrad::prelude::*;
use slabgrad::program::Space;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<B, 3>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R2<B, 5>> = g.linear("fc1", x);
    let h = g.tanh(h);
    let logits: Var<R2<B, 4>> = g.linear("fc2", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static TRAIN = net::<2>().train(Training::with::<Adam>()));
program!(static FUSED = net::<2>().train(Training::with::<Adam>().fused()));
program!(static CLIPPED = net::<2>().train(Training::with::<Adam>().clip_norm(0.01)));
program!(static INFER_ONE = net::<1>().infer());
program!(static INFER_MANY = net::<64>().infer());

const X: [f32; 6] = [0.5, -1.0, 2.0, 0.0, 1.0, -0.5];
const LABELS: [f32; 2] = [3.0, 0.0];

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|x| x.to_bits()).collect()
}

/// Everything that must survive an error.
fn kept(memory: &Memory<'_, f32>) -> [Vec<u32>; 3] {
    [bits(memory.params), bits(memory.moments), bits(memory.state)]
}

#[test]
fn bad_input_is_an_error_with_the_numbers_in_it_and_changes_nothing() {
    let cases: [(&[&[f32]], &str); 9] = [
        (&[&X], "the program takes 2 inputs, the run was given 1"),
        (&[&X[..5], &LABELS], "input 0 has 5 elements, the program reads 6"),
        (&[&[], &[]], "input 0 has 0 elements, the program reads 6"),
        (&[&X, &LABELS[..1]], "input 1 has 1 elements, the program reads 2"),
        (&[&[0.0, 0.0, f32::NAN, 0.0, 0.0, 0.0], &LABELS], "input 0, element 2 is NaN, which is not finite"),
        (&[&[0.0, 0.0, 0.0, 0.0, f32::NEG_INFINITY, 0.0], &LABELS], "input 0, element 4 is -inf, which is not finite"),
        (&[&X, &[4.0, 0.0]], "input 1, element 0 is 4, not a class index: there are 4 classes"),
        (&[&X, &[0.0, -1.0]], "input 1, element 1 is -1, not a class index: there are 4 classes"),
        (&[&X, &[0.0, 0.5]], "input 1, element 1 is 0.5, not a class index: there are 4 classes"),
    ];
    for program in [&TRAIN, &FUSED] {
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.init(&mut memory, 3).unwrap();
        let mut adam = Adam::new(0.1);
        program.step(&mut memory, &[&X, &LABELS], &mut adam).unwrap();
        let (before, optimizer) = (kept(&memory), adam);
        for (inputs, text) in &cases {
            let error = program.step(&mut memory, inputs, &mut adam).unwrap_err();
            assert_eq!(error.to_string(), *text);
            assert_eq!(kept(&memory), before, "changed by: {text}");
            assert_eq!(adam, optimizer, "the optimizer counted a step that did not happen: {text}");
        }
    }
}

#[test]
fn memory_of_the_wrong_length_is_an_error() {
    let mut slab = vec![0.0; TRAIN.slab_len() - 1];
    let needed = TRAIN.slab_len();
    let error = TRAIN.memory(&mut slab).unwrap_err();
    assert_eq!(error.to_string(), format!("the slab has {} elements, the program needs {needed}", needed - 1));

    let (mut params, mut work) = ([0.0; 10], [0.0; 1000]);
    let mut memory =
        Memory { params: &mut params, frozen: &[], state: &mut [], grads: &mut [], moments: &mut [], work: &mut work };
    let error = INFER_ONE.run(&mut memory, &[&X[..3]]).unwrap_err();
    assert_eq!(error, RunError::SpaceLength { space: Space::Params, expected: 44, found: 10 });
    assert_eq!(error.to_string(), "the params space has 10 elements, the program needs 44");
}

#[test]
fn an_overflowing_loss_is_an_error_and_changes_nothing() {
    for program in [&TRAIN, &FUSED] {
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.init(&mut memory, 3).unwrap();
        program.tensor_mut(&mut memory, "fc2.weight").unwrap().fill(f32::MAX);
        let before = kept(&memory);
        let error = program.step(&mut memory, &[&X, &LABELS], &mut Adam::new(0.1)).unwrap_err();
        assert!(matches!(error, RunError::LossNotFinite { .. }), "{error}");
        assert_eq!(kept(&memory), before);
    }
}

#[test]
fn a_program_that_infers_does_not_train() {
    let mut slab = vec![0.0; INFER_ONE.slab_len()];
    let mut memory = INFER_ONE.memory(&mut slab).unwrap();
    let error = INFER_ONE.step(&mut memory, &[&X[..3]], &mut Sgd::new(0.1)).unwrap_err();
    assert_eq!(error, RunError::NotTraining);
    let mut slab = vec![0.0; FUSED.slab_len()];
    let mut memory = FUSED.memory(&mut slab).unwrap();
    assert_eq!(FUSED.gradients(&mut memory, &[&X, &LABELS]), Err(RunError::NoGradients));
}

#[test]
fn an_optimizer_with_more_moments_than_planned_is_refused() {
    program!(static PLAIN = net::<2>().train(Training::with::<Sgd>()));
    let mut slab = vec![0.0; PLAIN.slab_len()];
    let mut memory = PLAIN.memory(&mut slab).unwrap();
    let error = PLAIN.step(&mut memory, &[&X, &LABELS], &mut Adam::new(0.1)).unwrap_err();
    assert_eq!(error, RunError::Slots { planned: 0, needed: 2 });
    PLAIN.step(&mut memory, &[&X, &LABELS], &mut Sgd::new(0.1)).unwrap();
}

/// Inference with a batch of one and of many runs between training steps in the same memory and disturbs nothing.
#[test]
fn programs_of_one_network_share_a_memory() {
    const { assert!(INFER_MANY.work_len() > TRAIN.work_len()) };
    let train = |infer: bool| {
        let mut slab = vec![0.0; TRAIN.slab_len_with(&INFER_MANY)];
        let mut memory = TRAIN.memory(&mut slab).unwrap();
        TRAIN.init(&mut memory, 3).unwrap();
        let mut adam = Adam::new(0.1);
        for _ in 0..5 {
            TRAIN.step(&mut memory, &[&X, &LABELS], &mut adam).unwrap();
            if infer {
                INFER_MANY.run(&mut memory, &[&X.repeat(32)]).unwrap();
                let many = bits(&INFER_MANY.output(&memory, "logits").unwrap()[..4]);
                INFER_ONE.run(&mut memory, &[&X[..3]]).unwrap();
                assert_eq!(bits(INFER_ONE.output(&memory, "logits").unwrap()), many, "batches disagree");
            }
        }
        kept(&memory)
    };
    assert_eq!(train(true), train(false));
}

#[test]
fn gradients_and_update_are_the_two_halves_of_a_step() {
    let run = |halves: bool| {
        let mut slab = vec![0.0; TRAIN.slab_len()];
        let mut memory = TRAIN.memory(&mut slab).unwrap();
        TRAIN.init(&mut memory, 3).unwrap();
        let mut adam = Adam::new(0.1);
        for _ in 0..3 {
            if halves {
                TRAIN.gradients(&mut memory, &[&X, &LABELS]).unwrap();
                TRAIN.update(&mut memory, &mut adam).unwrap();
            } else {
                TRAIN.step(&mut memory, &[&X, &LABELS], &mut adam).unwrap();
            }
        }
        kept(&memory)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn clipping_bounds_the_norm_of_all_gradients_together() {
    let mut slab = vec![0.0; CLIPPED.slab_len()];
    let mut memory = CLIPPED.memory(&mut slab).unwrap();
    CLIPPED.init(&mut memory, 3).unwrap();
    CLIPPED.gradients(&mut memory, &[&X, &LABELS]).unwrap();
    let free = memory.grads.to_vec();
    CLIPPED.update(&mut memory, &mut Adam::new(0.1)).unwrap();
    let norm = |grads: &[f32]| grads.iter().map(|g| g * g).sum::<f32>().sqrt();
    assert!((norm(memory.grads) - 0.01).abs() < 1e-6, "{}", norm(memory.grads));
    for (clipped, free_gradient) in memory.grads.iter().zip(&free) {
        assert!((clipped - free_gradient * 0.01 / norm(&free)).abs() < 1e-8);
    }

    let before = kept(&memory);
    memory.grads[7] = f32::INFINITY;
    let error = CLIPPED.update(&mut memory, &mut Adam::new(0.1)).unwrap_err();
    assert_eq!(error.to_string(), "a gradient or their norm is inf; nothing was updated");
    assert_eq!(kept(&memory), before);
}

/// `y = x + count`, where the state counts the runs: what running statistics do.
fn count_forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let count = call.state[0];
    call.y.iter_mut().zip(call.x[0]).for_each(|(y, &x)| *y = x + count);
    if let Some(new) = call.saved.first_mut() {
        *new = count + B::Elem::ONE;
    }
}

const fn counting() -> Graph {
    const COUNT: &Op<Strict<f32>> = &Op {
        infer: Some(count_forward::<Strict<f32>>),
        ..Op::new("count", count_forward::<Strict<f32>>, [Gradient::Pass, Gradient::None, Gradient::None])
    };
    let mut g = Graph::new();
    let x = g.input::<R1<2>>("x");
    let scale = g.parameter::<R1<2>>("", "offset", Init::Zeros);
    let target = g.input::<R1<2>>("target");
    let state = g.state("count", "runs", R1::<1>::SHAPE, Init::Zeros);
    let h = g.add(x, scale);
    let spec = Spec { state: 1, saved: 1, ..Spec::new(R1::<2>::SHAPE) };
    let y: Var<R1<2>> = g.apply(COUNT, &[h.id()], spec);
    g.with_state(state);
    g.output("y", y);
    let loss = g.mse(y, target);
    g.loss(loss);
    g
}

#[test]
fn state_is_taken_over_by_a_training_step_that_succeeds() {
    program!(static COUNTING = counting().train(Training::with::<Sgd>()));
    program!(static COUNTED = counting().infer());
    let mut slab = vec![0.0; COUNTING.slab_len()];
    let mut memory = COUNTING.memory(&mut slab).unwrap();
    COUNTING.init(&mut memory, 0).unwrap();
    let target = [0.0; 2];
    let mut sgd = Sgd::new(0.0);
    for step in 1..=3 {
        COUNTING.step(&mut memory, &[&[1.0, 2.0], &target], &mut sgd).unwrap();
        assert_eq!(COUNTING.tensor(&memory, "count.runs"), Some(&[step as f32][..]));
    }
    // A refused step, a loss without training and an inference leave it alone.
    COUNTING.step(&mut memory, &[&[f32::MAX, 2.0], &target], &mut sgd).unwrap_err();
    COUNTING.loss(&mut memory, &[&[1.0, 2.0], &target]).unwrap();
    COUNTED.run(&mut memory, &[&[1.0, 2.0]]).unwrap();
    assert_eq!(COUNTED.output(&memory, "y"), Some(&[4.0, 5.0][..]));
    assert_eq!(COUNTED.tensor(&memory, "count.runs"), Some(&[3.0][..]));
}

/// `y = a b`, element-wise, whose gradients can be computed by rows for both operands: each reads the other one.
fn product<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [a, b, _] = call.x;
    call.y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = a * b);
}

fn product_rows<B: Backend, const OTHER: usize>(call: BackwardCall<'_, B::Elem>) {
    let rows = |x| part(x, call.first_row, call.dx.len());
    let (other, dy) = (rows(call.x[OTHER]), rows(call.dy));
    for ((dx, &other), &dy) in call.dx.iter_mut().zip(other).zip(dy) {
        *dx = other * dy;
    }
}

fn part<E>(x: &[E], first: usize, len: usize) -> &[E] {
    &x[first..first + len]
}

#[test]
fn a_fused_program_reads_parameters_as_they_were() {
    const fn graph() -> Graph {
        const fn rows(run: slabgrad::ops::Backward<Strict<f32>>, other: usize) -> Gradient<Strict<f32>> {
            Gradient::Kernel { run, reads: Reads::input(other), over: OverGradient::Nothing, rows: true }
        }
        const PRODUCT: &Op<Strict<f32>> = &Op::new(
            "product",
            product::<Strict<f32>>,
            [rows(product_rows::<Strict<f32>, 1>, 1), rows(product_rows::<Strict<f32>, 0>, 0), Gradient::None],
        );
        let mut g = Graph::new();
        let a = g.parameter::<R1<6>>("", "a", Init::constant(2.0));
        let b = g.parameter::<R1<6>>("", "b", Init::constant(2.0));
        let target = g.input::<R1<6>>("target");
        let y: Var<R1<6>> = g.apply(PRODUCT, &[a.id(), b.id()], Spec::new(R1::<6>::SHAPE));
        let loss = g.mse(y, target);
        g.loss(loss);
        g
    }
    program!(static KEPT = graph().train(Training::with::<Sgd>()));
    program!(static FUSED_PRODUCT = graph().train(Training::with::<Sgd>().fused()));
    let run = |program: &Program<'_>| {
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.init(&mut memory, 0).unwrap();
        program.step(&mut memory, &[&[1.0; 6]], &mut Sgd::new(0.1)).unwrap();
        bits(memory.params)
    };
    assert_eq!(run(&KEPT), run(&FUSED_PRODUCT));
}
