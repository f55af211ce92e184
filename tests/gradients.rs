//! The gradients of every operation against central differences in double precision, over random shapes, with axes of one
//! element among them; and the same gradients in a graph where the operation works in place, shares its operands with
//! another one, or reads one operand twice. The random cases are the same in every run.

#![cfg(feature = "alloc")]

mod common;

use common::{Lcg, operations, relative_difference};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use slabgrad::error::ShapeError;
use slabgrad::graph::{Id, Name};
use slabgrad::ops::{self, BackwardCall, ForwardCall, Gradient, Op, Spec};
use slabgrad::prelude::*;
use slabgrad::testing::{check_gradients_with_state, run, run_with_state, weighted_sum};

type Double = Strict<f64>;

/// How far a gradient may be from central differences, relative to the larger of it and 1. With a step of 1e-6 a loss of
/// some tens leaves rounding of 1e-8 in the quotient; the worst of eight times as many cases was 4e-8.
const TOLERANCE: f64 = 1e-7;

/// The operations that the tests below check.
const CHECKED: &[&str] = &[
    "abs",
    "add",
    "add_scalar",
    "amax",
    "amin",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bce_with_logits",
    "broadcast_to",
    "clamp",
    "compensated_sum",
    "concat",
    "conv1d",
    "conv2d",
    "conv_transpose2d",
    "cos",
    "cosine_similarity",
    "cross_entropy",
    "cross_entropy_of_probabilities",
    "div",
    "dot",
    "dropout",
    "elu",
    "embedding",
    "erf",
    "exp",
    "expm1",
    "gather",
    "gelu",
    "global_avg_pool2d",
    "group_norm",
    "gru_cell",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber",
    "kl_div",
    "l1",
    "l2_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log",
    "log1p",
    "log_softmax",
    "logsumexp",
    "lstm_cell",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "maximum",
    "mean",
    "minimum",
    "mish",
    "mse",
    "mul",
    "mul_scalar",
    "neg",
    "nll",
    "pad",
    "permute",
    "pow",
    "pow_scalar",
    "prod",
    "reciprocal",
    "reduce_by",
    "relu",
    "relu6",
    "reshape",
    "rms_norm",
    "rsqrt",
    "safe_div",
    "scale_shift",
    "scaled_softmax",
    "sigmoid",
    "silu",
    "sin",
    "slice",
    "smooth_l1",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "tanh",
    "unsqueeze",
    "upsample_nearest2d",
    "var",
    "where_",
    "zeros",
];

#[test]
fn every_operation_is_checked() {
    let mut found = operations();
    found.sort_unstable();
    assert_eq!(found, CHECKED, "the operations of the library, and those whose gradients are checked here");
}

/// Checks `cases` random values of a strategy, from a fixed seed.
fn for_random<S: Strategy>(cases: u32, strategy: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner.run(&strategy, check).unwrap_or_else(|error| panic!("{error}"));
}

/// Shapes of some axes with one to four elements.
fn shapes(rank: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Shape> {
    prop::collection::vec(1..=4_usize, rank).prop_map(|axes| Shape::from_slice(&axes))
}

fn values(seed: u32, len: usize) -> Vec<f64> {
    Lcg(seed).values(len, 2.0)
}

/// Checks the gradients of an operation: by central differences, and in other surroundings.
fn check(op: &'static Op<Double>, spec: Spec, operands: &[Vec<f64>]) -> Result<(), TestCaseError> {
    check_with_state(op, spec, operands, &[])
}

/// The same for an operation that starts from this state.
fn check_with_state(
    op: &'static Op<Double>,
    spec: Spec,
    operands: &[Vec<f64>],
    state: &[f64],
) -> Result<(), TestCaseError> {
    let operands: Vec<&[f64]> = operands.iter().map(Vec::as_slice).collect();
    let dy = values(7, spec.shape.len());
    check_gradients_with_state(op, spec, &operands, state, &dy, TOLERANCE).map_err(TestCaseError::fail)?;
    let alone = run_with_state(op, spec, &operands, state, &dy);
    let run_in_graph = |operands: &[&[f64]], reading| run_in_graph(op, spec, operands, state, &dy, reading);

    let (y, gradients) = run_in_graph(&operands, Reading::Alone);
    prop_assert_eq!(&y, &alone.y, "{} in place, the output", op.name);
    prop_assert_eq!(&gradients, &alone.gradients, "{} in place, the gradients", op.name);

    let (_, gradients) = run_in_graph(&operands, Reading::WithATwin);
    for (found, dx) in gradients.iter().zip(&alone.gradients) {
        let want: Vec<f64> = dx.iter().map(|dx| 2.0 * dx).collect();
        let near = relative_difference(found, &want) < 1e-14;
        prop_assert!(near, "{} by two nodes: {found:?}, expected twice {dx:?}", op.name);
    }

    if let [a, b] = operands[..]
        && a.len() == b.len()
        && alone.gradients.iter().all(|gradient| !gradient.is_empty())
    {
        let alone = run_with_state(op, spec, &[a, a], state, &dy);
        let (y, gradients) = run_in_graph(&[a, a], Reading::OneOperandTwice);
        prop_assert_eq!(&y, &alone.y, "{} of a value with itself, the output", op.name);
        let want: Vec<f64> = alone.gradients[0].iter().zip(&alone.gradients[1]).map(|(da, db)| da + db).collect();
        let near = relative_difference(&gradients[0], &want) < 1e-14;
        prop_assert!(near, "{} of a value with itself: {:?}, expected {want:?}", op.name, gradients[0]);
    }
    Ok(())
}

/// How an operation stands in a graph. Its operands are copies of parameters, so that they lie in the work space.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// Nothing else reads the operands: it may work in place.
    Alone,
    /// A second node of the same operation reads them too, and both reach the loss.
    WithATwin,
    /// The first operand is the second one as well.
    OneOperandTwice,
}

/// The output, and the gradients of each operand (empty where there is none), of the loss `Σ y dy`.
fn run_in_graph(
    op: &'static Op<Double>,
    spec: Spec,
    operands: &[&[f64]],
    state: &[f64],
    dy: &[f64],
    reading: Reading,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    const NAMES: [&str; 3] = ["x0", "x1", "x2"];
    let differentiable = |i: usize| op.view || !matches!(op.backward[i], Gradient::None);
    let mut g = Graph::<Double, 16>::new();
    let (mut ids, mut inputs) = (Vec::<Id>::new(), Vec::new());
    for (i, x) in operands.iter().enumerate() {
        let shape = Shape::new([x.len()]);
        ids.push(if i == 1 && reading == Reading::OneOperandTwice {
            ids[0]
        } else if differentiable(i) {
            let parameter = g.parameter_dyn(Name::new("", NAMES[i]), shape, Init::Zeros);
            g.apply_dyn(copy(), &[parameter], Spec::new(shape))
        } else {
            inputs.push(*x);
            g.input_dyn(NAMES[i], shape)
        });
    }
    let seed = g.input_dyn("dy", Shape::new([dy.len()]));
    inputs.push(dy);
    let kept = g.state("", "state", Shape::new([state.len()]), Init::Zeros);
    let y = g.apply_dyn(op, &ids, spec);
    if !state.is_empty() {
        g.with_state(kept);
    }
    g.output_dyn("y", y);
    let mut loss = g.apply_dyn(weighted_sum(), &[y, seed], Spec::new(Shape::SCALAR));
    if reading == Reading::WithATwin {
        let twin = g.apply_dyn(op, &ids, spec);
        if !state.is_empty() {
            g.with_state(kept);
        }
        let other = g.apply_dyn(weighted_sum(), &[twin, seed], Spec::new(Shape::SCALAR));
        let sum = ops::add::spec(Shape::SCALAR, Shape::SCALAR).unwrap();
        loss = g.apply_dyn(ops::add::op_same(), &[loss, other], sum);
    }
    g.loss_dyn(loss);

    let tables = g.train(Training::with_slots(0).keep_outputs()).tables();
    let program = tables.program();
    let mut slab = vec![f64::NAN; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    program.tensor_mut(&mut memory, "state").expect("it is in the graph").copy_from_slice(state);
    for (name, x) in NAMES.iter().zip(operands) {
        if let Some(parameter) = program.tensor_mut(&mut memory, name) {
            parameter.copy_from_slice(x);
        }
    }
    program.gradients(&mut memory, &inputs).unwrap();
    let gradient = |i: usize| program.gradient(&memory, NAMES[i]).unwrap_or_default().to_vec();
    (program.output(&memory, "y").expect("it is kept").to_vec(), (0..operands.len()).map(gradient).collect())
}

fn copy() -> &'static Op<Double> {
    fn forward(call: ForwardCall<'_, f64>) {
        call.y.copy_from_slice(call.x[0]);
    }
    const { &Op::new("copy", forward, [Gradient::Pass, Gradient::None, Gradient::None]) }
}

#[test]
fn relu_away_from_its_kink() {
    for_random(96, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        let x = values(seed, shape.len()).into_iter().map(|x| x + f64::copysign(0.01, x)).collect();
        check(ops::relu::op(), ops::relu::spec(shape), &[x])
    });
}

/// An operation of one operand: its table, its spec by shape, and the places where it is not smooth.
type Unary = (&'static Op<Double>, fn(Shape) -> Spec, &'static [f64]);
/// Some of them, and where a number from -2 to 2 goes for them.
type Group<'a> = (&'a [Unary], fn(f64) -> f64);

#[test]
fn unary_operations_away_from_their_kinks() {
    let near_0: [Unary; 17] = [
        (ops::neg::op(), ops::neg::spec, &[]),
        (ops::abs::op(), ops::abs::spec, &[0.0]),
        (ops::square::op(), ops::square::spec, &[]),
        (ops::exp::op(), ops::exp::spec, &[]),
        (ops::expm1::op(), ops::expm1::spec, &[]),
        (ops::sin::op(), ops::sin::spec, &[]),
        (ops::cos::op(), ops::cos::spec, &[]),
        (ops::erf::op(), ops::erf::spec, &[]),
        (ops::leaky_relu::op(), |x| ops::leaky_relu::spec(x, 0.01).unwrap(), &[0.0]),
        (ops::elu::op(), |x| ops::elu::spec(x, 1.5).unwrap(), &[0.0]),
        (ops::softplus::op(), |x| ops::softplus::spec(x, 1.5, 20.0).unwrap(), &[]),
        (ops::clamp::op(), |x| ops::clamp::spec(x, -1.0, 1.5).unwrap(), &[-1.0, 1.5]),
        (ops::hardtanh::op(), |x| ops::hardtanh::spec(x, -1.0, 1.5).unwrap(), &[-1.0, 1.5]),
        (ops::add_scalar::op(), |x| ops::add_scalar::spec(x, 0.75), &[]),
        (ops::mul_scalar::op(), |x| ops::mul_scalar::spec(x, -0.75), &[]),
        (ops::scale_shift::op(), |x| ops::scale_shift::spec(x, 1.75, -0.375), &[]),
        (ops::pow_scalar::op(), |x| ops::pow_scalar::spec(x, 3.0), &[]),
    ];
    let wide: [Unary; 7] = [
        (ops::relu6::op(), ops::relu6::spec, &[0.0, 6.0]),
        (ops::silu::op(), ops::silu::spec, &[]),
        (ops::mish::op(), ops::mish::spec, &[]),
        (ops::gelu::op_erf(), ops::gelu::spec, &[]),
        (ops::gelu::op_tanh(), ops::gelu::spec, &[]),
        (ops::hardsigmoid::op(), ops::hardsigmoid::spec, &[-3.0, 3.0]),
        (ops::hardswish::op(), ops::hardswish::spec, &[-3.0, 3.0]),
    ];
    let positive: [Unary; 6] = [
        (ops::sqrt::op(), ops::sqrt::spec, &[]),
        (ops::rsqrt::op(), ops::rsqrt::spec, &[]),
        (ops::reciprocal::op(), ops::reciprocal::spec, &[]),
        (ops::log::op(), ops::log::spec, &[]),
        (ops::log1p::op(), ops::log1p::spec, &[]),
        (ops::pow_scalar::op(), |x| ops::pow_scalar::spec(x, -1.5), &[]),
    ];
    let groups: [Group<'_>; 3] = [(&near_0, |x| x), (&wide, |x| 4.0 * x), (&positive, |x| x + 2.3)];
    for_random(32, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        let x = values(seed, shape.len());
        for (operations, place) in groups {
            for (op, spec, kinks) in operations {
                let is_near = |x: f64| kinks.iter().any(|kink| (x - kink).abs() < 0.01);
                let x = x.iter().map(|&x| place(x)).map(|x| if is_near(x) { x + 0.03 } else { x }).collect();
                check(op, spec(shape), &[x])?;
            }
        }
        Ok(())
    });
}

#[test]
fn tanh_and_sigmoid() {
    for_random(96, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        check(ops::tanh::op(), ops::tanh::spec(shape), &[values(seed, shape.len())])?;
        check(ops::sigmoid::op(), ops::sigmoid::spec(shape), &[values(seed, shape.len())])
    });
}

#[test]
fn reshape() {
    for_random(96, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        let spec = ops::reshape::spec(shape, Shape::new([shape.len()])).unwrap();
        check(ops::reshape::op(), spec, &[values(seed, shape.len())])
    });
}

/// An operand that is stretched along the axes of `y` that have a bit in `stretched`, without its first axes of one element
/// where `short`.
fn stretched(y: &[usize], stretched: usize, short: bool) -> Shape {
    let axes: Vec<usize> =
        y.iter().enumerate().map(|(i, &axis)| if stretched >> i & 1 == 1 { 1 } else { axis }).collect();
    let leading = if short { axes.iter().take_while(|&&axis| axis == 1).count() } else { 0 };
    Shape::from_slice(&axes[leading..])
}

/// A binary operation: its table and its spec by shapes, and operands of these lengths where it is smooth.
struct Binary {
    op: fn(Shape, Shape) -> &'static Op<Double>,
    spec: fn(Shape, Shape) -> Result<Spec, ShapeError>,
    operands: fn([usize; 2]) -> [Vec<f64>; 2],
}

fn binary_operations() -> [Binary; 8] {
    fn both(lengths: [usize; 2]) -> [Vec<f64>; 2] {
        [values(1, lengths[0]), values(2, lengths[1])]
    }
    /// From 0.3 to 4.3.
    fn above_0(lengths: [usize; 2]) -> [Vec<f64>; 2] {
        both(lengths).map(|x| x.into_iter().map(|x| x + 2.3).collect())
    }
    fn over_positive(lengths: [usize; 2]) -> [Vec<f64>; 2] {
        [values(1, lengths[0]), above_0(lengths)[1].clone()]
    }
    fn positive_base(lengths: [usize; 2]) -> [Vec<f64>; 2] {
        [above_0(lengths)[0].clone(), values(2, lengths[1])]
    }
    /// No two equal or nearly so: even and odd tenths.
    fn no_ties(lengths: [usize; 2]) -> [Vec<f64>; 2] {
        let mut operands = both(lengths).map(|x| x.into_iter().map(|x| (x * 5.0).round() / 5.0).collect::<Vec<_>>());
        operands[1].iter_mut().for_each(|x| *x += 0.1);
        operands
    }
    let row = |op, spec, operands| Binary { op, spec, operands };
    [
        row(ops::add::op, ops::add::spec, both),
        row(ops::sub::op, ops::sub::spec, both),
        row(ops::mul::op, ops::mul::spec, both),
        row(ops::div::op, ops::div::spec, over_positive),
        row(ops::safe_div::op, |a, b| ops::safe_div::spec(a, b, 0.5), over_positive),
        row(ops::maximum::op, ops::maximum::spec, no_ties),
        row(ops::minimum::op, ops::minimum::spec, no_ties),
        row(ops::pow::op, ops::pow::spec, positive_base),
    ]
}

fn check_binary(Binary { op, spec, operands }: &Binary, a: Shape, b: Shape) -> Result<(), TestCaseError> {
    check(op(a, b), spec(a, b).unwrap(), &operands([a.len(), b.len()]))
}

#[test]
fn binary_operations_with_every_pattern_of_broadcasting() {
    for operation in &binary_operations() {
        let lengths = [3, 2, 4];
        // All have add's kernels and differ in what they read, which two axes show.
        let ranks = if (operation.op)(Shape::SCALAR, Shape::SCALAR).name == "add" { 3 } else { 2 };
        for rank in 0..=ranks {
            let y = &lengths[..rank];
            for pattern in 0..1_usize << (2 * rank + 2) {
                let (a, b) = (pattern & ((1 << rank) - 1), pattern >> rank & ((1 << rank) - 1));
                let a = stretched(y, a, pattern >> (2 * rank) & 1 == 1);
                let b = stretched(y, b, pattern >> (2 * rank + 1) == 1);
                check_binary(operation, a, b).unwrap_or_else(|error| panic!("{a} with {b}: {error}"));
            }
        }
    }
}

#[test]
fn binary_operations_of_up_to_five_axes() {
    let operands = (prop::collection::vec(1..=3_usize, 4..=5), 0..32_usize, 0..32_usize, any::<[bool; 2]>());
    let operations = binary_operations();
    for_random(96, (operands, 0..operations.len()), |((y, a, b, [a_short, b_short]), which)| {
        check_binary(&operations[which], stretched(&y, a, a_short), stretched(&y, b, b_short))
    });
}

#[test]
fn where_of_up_to_four_axes() {
    let operands = (prop::collection::vec(1..=3_usize, 0..=4), [0..16_usize, 0..16, 0..16], any::<[bool; 3]>());
    for_random(128, operands, |(y, masks, short)| {
        let [c, a, b] = [0, 1, 2].map(|i| stretched(&y, masks[i], short[i]));
        let condition = values(3, c.len()).into_iter().map(|x| f64::from(x > 0.0)).collect();
        let operands = [condition, values(1, a.len()), values(2, b.len())];
        check(ops::where_::op(c, a, b), ops::where_::spec(c, a, b).unwrap(), &operands)
    });
}

#[test]
fn matmul_of_vectors_matrices_and_broadcast_batches() {
    let sizes = (1..=5_usize, 1..=5_usize, 1..=5_usize);
    let leading = (prop::collection::vec(1..=3_usize, 0..=3), 0..8_usize, 0..8_usize, any::<[bool; 2]>());
    for_random(256, (sizes, leading, 0..6_u8), |((m, k, n), (y, a, b, [a_short, b_short]), vectors)| {
        // One in six each: a vector on the left, on the right, or both.
        let (a_leading, b_leading) = (stretched(&y, a, a_short), stretched(&y, b, b_short));
        let a = if vectors == 0 || vectors == 2 { Shape::new([k]) } else { a_leading.push(m).push(k) };
        let b = if vectors == 1 || vectors == 2 { Shape::new([k]) } else { b_leading.push(k).push(n) };
        check(ops::matmul::op(), ops::matmul::spec(a, b).unwrap(), &[values(1, a.len()), values(2, b.len())])
    });
}

#[test]
fn matmul_with_a_transposed_operand() {
    let sizes = (1..=5_usize, 1..=5_usize, 1..=5_usize);
    let leading = (prop::collection::vec(1..=3_usize, 0..=3), 0..8_usize, 0..8_usize, any::<[bool; 2]>());
    for_random(128, (sizes, leading, any::<bool>()), |((m, k, n), (y, a, b, [a_short, b_short]), vector)| {
        let (a_leading, b_leading) = (stretched(&y, a, a_short), stretched(&y, b, b_short));
        let a = if vector { Shape::new([k]) } else { a_leading.push(m).push(k) };
        let (b, transposed) = (b_leading.push(k).push(n), b_leading.push(n).push(k));
        let (op, spec) = (ops::matmul::op_nt(), ops::matmul::spec_nt(a, transposed).unwrap());
        let operands = [values(1, a.len()), values(2, b.len())];
        check(op, spec, &operands)?;

        let mut plain = operands[1].clone();
        for (from, to) in operands[1].chunks(k * n).zip(plain.chunks_mut(k * n)) {
            (0..k * n).for_each(|i| to[i] = from[i % n * k + i / n]);
        }
        let dy = values(3, spec.shape.len());
        let want = run(ops::matmul::op::<Double>(), ops::matmul::spec(a, b).unwrap(), &[&operands[0], &plain], &dy);
        let found = run(op, spec, &[&operands[0], &operands[1]], &dy);
        prop_assert_eq!((&found.y, &found.gradients[0]), (&want.y, &want.gradients[0]), "a transposed operand");
        Ok(())
    });
}

#[test]
fn lstm_and_gru_cells() {
    for_random(96, (shapes(1..=4), any::<u32>()), |(h, seed)| {
        let times = |n: usize| h.prefix(h.rank() - 1).push(n * h.axis_from_end(0));
        let value = |shape: Shape, i: u32| values(seed ^ i, shape.len());
        let gates = times(4);
        check(ops::lstm_cell::op_gates(), ops::lstm_cell::spec_gates(gates).unwrap(), &[value(gates, 0)])?;
        let spec = ops::lstm_cell::spec(h, gates).unwrap();
        check(ops::lstm_cell::op_cell(), spec, &[value(h, 0), value(gates, 1)])?;
        check(ops::lstm_cell::op_hidden(), spec, &[value(h, 0), value(gates, 1)])?;
        let (gates, op) = (times(3), ops::gru_cell::op());
        let spec = ops::gru_cell::spec(h, gates, gates).unwrap();
        check(op, spec, &[value(h, 0), value(gates, 1), value(gates, 2)])
    });
}

#[test]
fn scaled_and_causal_softmax() {
    for_random(96, (shapes(2..=5), -2.0..2.0_f64, any::<bool>(), any::<u32>()), |(shape, scale, causal, seed)| {
        let spec = ops::scaled_softmax::spec(shape, scale, causal).unwrap();
        check(ops::scaled_softmax::op(), spec, &[values(seed, shape.len())])
    });
}

#[test]
fn zeros_need_nothing() {
    for_random(16, shapes(0..=5), |shape| {
        let mut g = Graph::<Double>::new();
        let y = g.apply_dyn(ops::zeros::op(), &[], ops::zeros::spec(shape));
        g.output_dyn("y", y);
        let tables = g.infer().tables();
        let program = tables.program();
        let mut slab = vec![f64::NAN; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.run(&mut memory, &[]).unwrap();
        prop_assert_eq!(program.output(&memory, "y"), Some(&vec![0.0; shape.len()][..]));
        Ok(())
    });
}

#[test]
fn linear_with_and_without_a_bias() {
    for_random(128, (shapes(1..=5), 1..=5_usize, any::<bool>()), |(x, outputs, with_bias)| {
        let (weight, bias) = (Shape::new([outputs, x.axis_from_end(0)]), Shape::new([outputs]));
        let spec = ops::linear::spec(x, weight, with_bias.then_some(bias)).unwrap();
        let mut operands = vec![values(1, x.len()), values(2, weight.len())];
        if with_bias {
            operands.push(values(3, outputs));
        }
        check(ops::linear::op(), spec, &operands)
    });
}

#[test]
fn softmax_and_its_logarithm_along_every_axis() {
    for_random(64, (shapes(1..=4), any::<u32>()), |(shape, seed)| {
        for axis in 0..shape.rank() {
            let x = [values(seed, shape.len())];
            check(ops::softmax::op(), ops::softmax::spec(shape, axis).unwrap(), &x)?;
            check(ops::log_softmax::op(), ops::log_softmax::spec(shape, axis).unwrap(), &x)?;
        }
        Ok(())
    });
}

fn reductions() -> impl Strategy<Value = ops::Reduction> {
    use ops::Reduction::{BatchMean, Mean, None, Sum};
    prop::sample::select(vec![Mean, BatchMean, Sum, None])
}

/// The shape without the axis of the classes.
fn rows(shape: Shape) -> Shape {
    let class_axis = usize::from(shape.rank() > 1);
    let axes: Vec<usize> = (0..shape.rank()).filter(|&i| i != class_axis).map(|i| shape.axis(i)).collect();
    Shape::from_slice(&axes)
}

/// Class indices for the rows of a shape, and weights that need not add up to 1.
fn class_targets(shape: Shape, seed: u32) -> [Vec<f64>; 2] {
    let classes = shape.axis(usize::from(shape.rank() > 1));
    let mut random = Lcg(seed);
    let indices = (0..rows(shape).len()).map(|_| f64::from(random.below(classes) as u32)).collect();
    [indices, random.values(shape.len(), 0.5).into_iter().map(|q| q + 0.5).collect()]
}

#[test]
fn cross_entropy_of_indices_and_of_probabilities() {
    let smoothing = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    for_random(192, (shapes(1..=4), reductions(), smoothing, any::<u32>()), |(shape, reduction, smoothing, seed)| {
        let settings = CrossEntropy::new().reduction(reduction).label_smoothing(smoothing);
        let (x, [indices, weights]) = (values(seed, shape.len()), class_targets(shape, seed));
        let spec = ops::cross_entropy::spec(shape, rows(shape), settings).unwrap();
        check(ops::cross_entropy::op_indices(), spec, &[x.clone(), indices])?;
        let spec = ops::cross_entropy::spec(shape, shape, settings).unwrap();
        check(ops::cross_entropy::op_probabilities(), spec, &[x, weights])
    });
}

#[test]
fn losses_over_classes_of_probabilities_and_their_logarithms() {
    use ops::cross_entropy_of_probabilities as entropy;
    for_random(128, (shapes(1..=4), reductions(), any::<u32>()), |(shape, reduction, seed)| {
        let [indices, weights] = class_targets(shape, seed);
        let p: Vec<f64> = values(seed, shape.len()).into_iter().map(|x| 0.6 + x / 4.0).collect();
        let spec = ops::nll::spec(shape, rows(shape), reduction).unwrap();
        check(ops::nll::op(), spec, &[p.clone(), indices.clone()])?;
        let spec = entropy::spec(shape, rows(shape), reduction).unwrap();
        check(entropy::op_indices(), spec, &[p.clone(), indices])?;
        check(entropy::op_probabilities(), entropy::spec(shape, shape, reduction).unwrap(), &[p, weights])
    });
}

#[test]
fn losses_of_pairs_with_every_reduction() {
    for_random(96, (shapes(0..=5), reductions(), any::<u32>()), |(shape, reduction, seed)| {
        let operands = [values(seed, shape.len()), values(seed ^ 1, shape.len())];
        check(ops::mse::op(), ops::mse::spec(shape, shape, reduction).unwrap(), &operands)?;
        check(ops::bce_with_logits::op(), ops::bce_with_logits::spec(shape, shape, reduction).unwrap(), &operands)?;
        // Both positive: the first stands for the second as well.
        let positive = operands.map(|x| x.into_iter().map(|x| 0.6 + x / 4.0).collect());
        check(ops::kl_div::op(), ops::kl_div::spec(shape, shape, reduction).unwrap(), &positive)
    });
}

#[test]
fn losses_of_differences_away_from_their_kinks() {
    for_random(96, (shapes(0..=5), reductions(), 0.0..3.0_f64, any::<u32>()), |(shape, reduction, bend, seed)| {
        let t = values(seed, shape.len());
        // |x - t| is at least 0.01 away from 0 and from the bend.
        let apart = |(d, t): (f64, &f64)| -> f64 {
            let size = d.abs() + 0.01;
            t + f64::copysign(if (size - bend).abs() < 0.01 { bend + 0.02 } else { size }, d)
        };
        let x = values(seed ^ 1, shape.len()).into_iter().zip(&t).map(apart).collect();
        let operands = [x, t];
        check(ops::l1::op(), ops::l1::spec(shape, shape, reduction).unwrap(), &operands)?;
        check(ops::smooth_l1::op(), ops::smooth_l1::spec(shape, shape, bend, reduction).unwrap(), &operands)?;
        let delta = bend.max(0.005);
        check(ops::huber::op(), ops::huber::spec(shape, shape, delta, reduction).unwrap(), &operands)
    });
}

/// A window over images, by direction (height, width).
#[derive(Clone, Copy, Debug)]
struct Window {
    size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Window {
    /// Windows whose padding is at most half their size.
    fn strategy() -> impl Strategy<Value = Self> {
        let size = || [1..=3_usize, 1..=3];
        (size(), size(), [0..=1_usize, 0..=1], [1..=2_usize, 1..=2]).prop_map(|(size, stride, padding, dilation)| {
            let padding = [padding[0].min(size[0] / 2), padding[1].min(size[1] / 2)];
            Self { size, stride, padding, dilation }
        })
    }

    fn settings(&self) -> Window2d {
        Window2d::rect(self.size).stride_hw(self.stride).padding_hw(self.padding).dilation_hw(self.dilation)
    }

    /// By the definition: what the window at `(i, j)` sees of channel `channel`, in row-major order; `None` in the padding.
    fn view(&self, shape: Shape, x: &[f64], channel: usize, [i, j]: [usize; 2]) -> Vec<Option<f64>> {
        let (height, width) = (shape.axis(2), shape.axis(3));
        let place = |axis: usize, at: usize, tap: usize| {
            (at * self.stride[axis] + tap * self.dilation[axis]).checked_sub(self.padding[axis])
        };
        let taps = (0..self.size[0]).flat_map(|p| (0..self.size[1]).map(move |q| (p, q)));
        taps.map(|(p, q)| match (place(0, i, p), place(1, j, q)) {
            (Some(row), Some(column)) if row < height && column < width => {
                Some(x[(channel * height + row) * width + column])
            }
            _ => None,
        })
        .collect()
    }
}

/// The indices of an output `[n, c, h, w]`.
fn positions(y: Shape) -> impl Iterator<Item = (usize, usize, [usize; 2])> {
    let [channels, height, width] = [1, 2, 3].map(|i| y.axis(i));
    (0..y.len()).map(move |i| {
        let plane = i / (height * width);
        (plane / channels, plane % channels, [i / width % height, i % width])
    })
}

#[test]
fn conv2d_with_stride_padding_dilation_and_groups() {
    let channels = (1..=2_usize, 1..=3_usize, 1..=2_usize, 1..=2_usize);
    let shapes = (channels, [1..=6_usize, 1..=6], Window::strategy(), any::<bool>());
    for_random(192, shapes, |((batch, groups, inputs, outputs), [height, width], window, with_bias)| {
        let x = Shape::new([batch, groups * inputs, height, width]);
        let weight = Shape::new([groups * outputs, inputs, window.size[0], window.size[1]]);
        let bias = with_bias.then_some(Shape::new([groups * outputs]));
        let spec = ops::conv2d::spec(x, weight, bias, window.settings(), groups);
        prop_assume!(spec.is_ok());
        let (spec, op) = (spec.unwrap(), ops::conv2d::op());
        let mut operands = vec![values(1, x.len()), values(2, weight.len())];
        operands.extend(bias.map(|bias| values(3, bias.len())));

        let definition = |(n, o, at): (usize, usize, [usize; 2])| {
            let first = n * groups * inputs + o / outputs * inputs;
            let seen = (first..first + inputs).flat_map(|channel| window.view(x, &operands[0], channel, at));
            let taps = weight.product(1, 4);
            let products = seen.zip(&operands[1][o * taps..]).map(|(x, w)| x.unwrap_or(0.0) * w);
            operands.get(2).map_or(0.0, |bias| bias[o]) + products.sum::<f64>()
        };
        let want: Vec<f64> = positions(spec.shape).map(definition).collect();
        let slices: Vec<&[f64]> = operands.iter().map(Vec::as_slice).collect();
        let found = run(op, spec, &slices, &want).y;
        prop_assert!(relative_difference(&found, &want) < 1e-14, "conv2d: {found:?}, by the definition {want:?}");
        check(op, spec, &operands)
    });
}

#[test]
fn conv1d_is_conv2d_on_images_of_height_1() {
    let channels = (1..=2_usize, 1..=3_usize, 1..=2_usize, 1..=2_usize);
    let window = (1..=3_usize, 1..=3_usize, 0..=2_usize, 1..=2_usize);
    let shapes = (channels, 1..=7_usize, window, any::<bool>());
    for_random(128, shapes, |((batch, groups, inputs, outputs), length, window, with_bias)| {
        let (size, stride, padding, dilation) = window;
        let x = Shape::new([batch, groups * inputs, length]);
        let weight = Shape::new([groups * outputs, inputs, size]);
        let bias = with_bias.then_some(Shape::new([groups * outputs]));
        let window = Window1d::size(size).stride(stride).padding(padding).dilation(dilation);
        let spec = ops::conv1d::spec(x, weight, bias, window, groups);
        prop_assume!(spec.is_ok());
        let (spec, op) = (spec.unwrap(), ops::conv1d::op());
        let mut operands = vec![values(1, x.len()), values(2, weight.len())];
        operands.extend(bias.map(|bias| values(3, bias.len())));

        let of_height_1 = |shape: Shape| Shape::new([shape.axis(0), shape.axis(1), 1, shape.axis(2)]);
        let window = Window2d::rect([1, size]).stride_hw([1, stride]).padding_hw([0, padding]);
        let window = window.dilation_hw([1, dilation]);
        let spec_2d = ops::conv2d::spec(of_height_1(x), of_height_1(weight), bias, window, groups).unwrap();
        prop_assert_eq!(of_height_1(spec.shape), spec_2d.shape);
        let (slices, dy): (Vec<&[f64]>, _) =
            (operands.iter().map(Vec::as_slice).collect(), values(4, spec.shape.len()));
        let (found, want) = (run(op, spec, &slices, &dy), run(ops::conv2d::op::<Double>(), spec_2d, &slices, &dy));
        prop_assert_eq!((found.y, found.gradients), (want.y, want.gradients));
        check(op, spec, &operands)
    });
}

#[test]
fn conv_transpose2d_with_stride_padding_dilation_and_groups() {
    let channels = (1..=2_usize, 1..=3_usize, 1..=2_usize, 1..=2_usize);
    let settings = (Window::strategy(), [0..=1_usize, 0..=1], any::<bool>());
    for_random(192, (channels, [1..=4_usize, 1..=4], settings), |(channels, [height, width], settings)| {
        let ((batch, groups, inputs, outputs), (window, more, with_bias)) = (channels, settings);
        let x = Shape::new([batch, groups * inputs, height, width]);
        let weight = Shape::new([groups * inputs, outputs, window.size[0], window.size[1]]);
        let bias = with_bias.then_some(Shape::new([groups * outputs]));
        let spec = ops::conv_transpose2d::spec(x, weight, bias, window.settings(), more, groups);
        prop_assume!(spec.is_ok());
        let (spec, op) = (spec.unwrap(), ops::conv_transpose2d::op());
        let mut operands = vec![values(1, x.len()), values(2, weight.len())];
        operands.extend(bias.map(|bias| values(3, bias.len())));

        // By the definition: each element of the input adds the weights to the output.
        let (image, y) = ([spec.shape.axis(2), spec.shape.axis(3)], spec.shape);
        let mut want: Vec<f64> =
            positions(y).map(|(_, o, _)| operands.get(2).map_or(0.0, |bias: &Vec<f64>| bias[o])).collect();
        for (element, (n, c, at)) in positions(x).enumerate() {
            for o in 0..outputs {
                for (tap, (p, q)) in
                    (0..window.size[0]).flat_map(|p| (0..window.size[1]).map(move |q| (p, q))).enumerate()
                {
                    let place = |axis: usize, tap: usize| {
                        let at = at[axis] * window.stride[axis] + tap * window.dilation[axis];
                        at.checked_sub(window.padding[axis]).filter(|&at| at < image[axis])
                    };
                    if let (Some(i), Some(j)) = (place(0, p), place(1, q)) {
                        let map = n * y.axis(1) + c / inputs * outputs + o;
                        let weight = operands[1][(c * outputs + o) * window.size[0] * window.size[1] + tap];
                        want[(map * image[0] + i) * image[1] + j] += operands[0][element] * weight;
                    }
                }
            }
        }
        let slices: Vec<&[f64]> = operands.iter().map(Vec::as_slice).collect();
        let found = run(op, spec, &slices, &want).y;
        let near = relative_difference(&found, &want) < 1e-14;
        prop_assert!(near, "conv_transpose2d: {found:?}, by the definition {want:?}");
        check(op, spec, &operands)
    });
}

#[test]
fn avg_pool2d_with_and_without_counting_padding() {
    let shapes = (1..=2_usize, 1..=2_usize, [1..=6_usize, 1..=6], Window::strategy(), any::<bool>());
    for_random(192, shapes, |(batch, channels, [height, width], window, counts)| {
        let x = Shape::new([batch, channels, height, width]);
        let padding = if counts { CountPadding::Yes } else { CountPadding::No };
        let spec = ops::avg_pool2d::spec(x, window.settings(), padding);
        prop_assume!(spec.is_ok());
        let (spec, op) = (spec.unwrap(), ops::avg_pool2d::op());
        let data = values(1, x.len());
        let definition = |(n, c, at): (usize, usize, [usize; 2])| {
            let seen = window.view(x, &data, n * channels + c, at);
            let count = if counts { seen.len() } else { seen.iter().flatten().count() };
            seen.into_iter().flatten().sum::<f64>() / f64::from(count as u32)
        };
        let want: Vec<f64> = positions(spec.shape).map(definition).collect();
        let found = run(op, spec, &[&data], &want).y;
        prop_assert!(relative_difference(&found, &want) < 1e-14, "avg_pool2d: {found:?}, by the definition {want:?}");
        check(op, spec, &[data])
    });
}

#[test]
fn pooling_over_one_axis_is_that_of_images_of_height_1() {
    let window = (1..=3_usize, 1..=3_usize, 0..=1_usize, 1..=2_usize);
    for_random(96, (shapes(2), 1..=7_usize, window), |(channels, length, (size, stride, padding, dilation))| {
        let (batch, channels) = (channels.axis(0), channels.axis(1));
        let (x, image) = (Shape::new([batch, channels, length]), Shape::new([batch, channels, 1, length]));
        let window = Window1d::size(size).stride(stride).padding(padding).dilation(dilation);
        let window_2d = Window2d::rect([1, size]).stride_hw([1, stride]).padding_hw([0, padding]);
        let window_2d = window_2d.dilation_hw([1, dilation]);
        let max = ops::max_pool1d::spec(x, window);
        prop_assume!(max.is_ok());
        let average = |padding| {
            let spec = ops::avg_pool1d::spec(x, window, padding);
            (
                ops::avg_pool1d::op(),
                spec,
                ops::avg_pool2d::op::<Double>(),
                ops::avg_pool2d::spec(image, window_2d, padding),
            )
        };
        let max =
            (ops::max_pool1d::op(), max, ops::max_pool2d::op::<Double>(), ops::max_pool2d::spec(image, window_2d));
        // All different, and far apart.
        let data: Vec<f64> = (0..x.len()).map(|i| f64::from((i * 7 % 31) as u32) * 0.1 + i as f64 * 0.001).collect();
        for (op, spec, op_2d, spec_2d) in [max, average(CountPadding::Yes), average(CountPadding::No)] {
            let (spec, spec_2d) = (spec.unwrap(), spec_2d.unwrap());
            let dy = values(4, spec.shape.len());
            let (found, want) = (run(op, spec, &[&data], &dy), run(op_2d, spec_2d, &[&data], &dy));
            prop_assert_eq!((found.y, found.gradients), (want.y, want.gradients));
            check(op, spec, std::slice::from_ref(&data))?;
        }
        Ok(())
    });
}

#[test]
fn upsample_nearest2d_repeats_every_element() {
    for_random(64, (shapes(4), [1..=3_usize, 1..=3]), |(x, factors)| {
        let (spec, op) = (ops::upsample_nearest2d::spec(x, factors).unwrap(), ops::upsample_nearest2d::op());
        let data = values(1, x.len());
        let want: Vec<f64> = positions(spec.shape)
            .map(|(n, c, [i, j])| {
                let row = (n * x.axis(1) + c) * x.axis(2) + i / factors[0];
                data[row * x.axis(3) + j / factors[1]]
            })
            .collect();
        prop_assert_eq!(&run(op, spec, &[&data], &want).y, &want);
        check(op, spec, &[data])
    });
}

/// Weight and bias of this shape: none, the weight, or both.
fn affine(shape: Shape, count: usize) -> ([Option<Shape>; 2], Vec<Vec<f64>>) {
    let weight = (count > 0).then_some(shape);
    let bias = (count > 1).then_some(shape);
    ([weight, bias], (0..count).map(|i| values(2 + i as u32, shape.len())).collect())
}

/// An ε large enough that groups of nearly equal elements have moderate derivatives.
const EPSILON: f64 = 0.1;

#[test]
fn layer_norm_and_rms_norm_over_one_to_three_axes() {
    for_random(192, (shapes(1..=4), 1..=3_usize, 0..=2_usize, any::<u32>()), |(x, axes, parameters, seed)| {
        prop_assume!(axes <= x.rank());
        let normalised: Vec<usize> = (x.rank() - axes..x.rank()).map(|axis| x.axis(axis)).collect();
        let ([weight, bias], others) = affine(Shape::from_slice(&normalised), parameters);
        let mut operands = vec![values(seed, x.len())];
        operands.extend(others);
        let spec = ops::layer_norm::spec(x, weight, bias, axes, EPSILON).unwrap();
        check(ops::layer_norm::op(), spec, &operands)?;
        operands.truncate(2);
        let spec = ops::rms_norm::spec(x, weight, axes, EPSILON).unwrap();
        check(ops::rms_norm::op(), spec, &operands)
    });
}

#[test]
fn group_norm() {
    let shapes = (shapes(0..=2), 1..=2_usize, 1..=3_usize, 1..=3_usize, 0..=2_usize);
    for_random(128, shapes, |(plane, batch, groups, channels, parameters)| {
        let axes = (0..plane.rank()).map(|axis| plane.axis(axis));
        let axes: Vec<usize> = [batch, groups * channels].into_iter().chain(axes).collect();
        let x = Shape::from_slice(&axes);
        let ([weight, bias], others) = affine(Shape::new([groups * channels]), parameters);
        let mut operands = vec![values(1, x.len())];
        operands.extend(others);
        let spec = ops::group_norm::spec(x, weight, bias, groups, EPSILON).unwrap();
        check(ops::group_norm::op(), spec, &operands)
    });
}

#[test]
fn batch_norm_in_training_and_in_evaluation() {
    for_random(128, (shapes(2..=4), 0..=2_usize, any::<u32>()), |(x, parameters, seed)| {
        let ([weight, bias], others) = affine(Shape::new([x.axis(1)]), parameters);
        let mut operands = vec![values(seed, x.len())];
        operands.extend(others);
        let spec = ops::batch_norm::spec(x, weight, bias, BatchNorm::new().epsilon(EPSILON)).unwrap();
        let state: Vec<f64> = values(5, spec.state).into_iter().map(f64::abs).collect();
        check_with_state(ops::batch_norm::op(), spec, &operands, &state)?;
        check_with_state(ops::batch_norm::op_eval(), spec, &operands, &state)
    });
}

#[test]
fn dropout_has_the_gradient_of_its_mask() {
    let probability = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    for_random(96, (shapes(0..=5), probability, any::<u64>(), 0..9_u32), |(x, p, seed, step)| {
        let spec = ops::dropout::spec(x, Dropout::new(p).seed(seed), step).unwrap();
        check_with_state(ops::dropout::op(), spec, &[values(1, x.len())], &[f64::from(step), 0.0])
    });
}

#[test]
fn max_pool2d_away_from_ties() {
    let shapes = (1..=2_usize, 1..=2_usize, [1..=6_usize, 1..=6], Window::strategy(), any::<u32>());
    for_random(192, shapes, |(batch, channels, [height, width], window, seed)| {
        let x = Shape::new([batch, channels, height, width]);
        let spec = ops::max_pool2d::spec(x, window.settings());
        prop_assume!(spec.is_ok());
        let (spec, op) = (spec.unwrap(), ops::max_pool2d::op());
        // All different, and far apart against the step of the differences.
        let mut data: Vec<f64> = (0..x.len()).map(|i| f64::from(i as u32) * 0.05 - 1.0).collect();
        let mut random = Lcg(seed);
        for i in (1..data.len()).rev() {
            data.swap(i, random.below(i + 1));
        }

        let definition = |(n, c, at): (usize, usize, [usize; 2])| {
            let seen = window.view(x, &data, n * channels + c, at);
            seen.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max)
        };
        let want: Vec<f64> = positions(spec.shape).map(definition).collect();
        prop_assert!(want.iter().all(|y| y.is_finite()), "max_pool2d accepts a window that sees nothing: {window:?}");
        let found = run(op, spec, &[&data], &want).y;
        prop_assert_eq!(found, want, "max_pool2d, and its definition");
        check(op, spec, &[data])
    });
}

#[test]
fn global_avg_pool2d() {
    for_random(64, (shapes(4), any::<u32>()), |(shape, seed)| {
        let spec = ops::global_avg_pool2d::spec(shape).unwrap();
        check(ops::global_avg_pool2d::op(), spec, &[values(seed, shape.len())])
    });
}

type ReductionSpec = fn(Shape, &[isize], bool) -> Result<Spec, ShapeError>;
/// The table of a reduction, its spec, and its definition.
type Reduction = (&'static Op<Double>, ReductionSpec, fn(&[f64]) -> f64);

/// The axes with a bit in `mask`, every other one counted from behind the last.
fn axes_of(shape: Shape, mask: usize) -> Vec<isize> {
    let rank = shape.rank().cast_signed();
    (0..rank).filter(|axis| mask >> axis & 1 == 1).map(|axis| if axis % 2 == 0 { axis } else { axis - rank }).collect()
}

/// The elements behind each output of a reduction, by the definition.
fn runs_of(shape: Shape, mask: usize, x: &[f64]) -> Vec<Vec<f64>> {
    let mask = if mask & ((1 << shape.rank()) - 1) == 0 { usize::MAX } else { mask };
    let kept = (0..shape.rank()).filter(|axis| mask >> axis & 1 == 0);
    let outputs = kept.clone().map(|axis| shape.axis(axis)).product();
    let mut runs = vec![Vec::new(); outputs];
    for (i, &x) in x.iter().enumerate() {
        let index = |axis| i / shape.product(axis + 1, shape.rank()) % shape.axis(axis);
        runs[kept.clone().fold(0, |at, axis| at * shape.axis(axis) + index(axis))].push(x);
    }
    runs
}

#[test]
fn reductions_over_every_set_of_axes() {
    let sum = |run: &[f64]| run.iter().sum::<f64>();
    let reductions: [Reduction; 6] = [
        (ops::sum::op(), ops::sum::spec, sum),
        (ops::compensated_sum::op(), ops::compensated_sum::spec, sum),
        (ops::mean::op(), ops::mean::spec, |run| run.iter().sum::<f64>() / run.len() as f64),
        (ops::prod::op(), ops::prod::spec, |run| run.iter().product()),
        (ops::l2_norm::op(), ops::l2_norm::spec, |run| run.iter().map(|x| x * x).sum::<f64>().sqrt()),
        (ops::logsumexp::op(), ops::logsumexp::spec, |run| libm::log(run.iter().map(|&x| libm::exp(x)).sum())),
    ];
    for_random(96, (shapes(0..=5), 0..32_usize, any::<bool>(), any::<u32>()), |(shape, mask, keepdim, seed)| {
        // Away from 0, where the norm of one element has a kink; short enough for products.
        let x: Vec<f64> =
            values(seed, shape.len()).iter().map(|x| (x + f64::copysign(0.2, *x)).clamp(-1.5, 1.5)).collect();
        prop_assume!(shape.len() <= 64);
        let axes = axes_of(shape, mask);
        for (op, spec, value) in reductions {
            let spec = spec(shape, &axes, keepdim).unwrap();
            let want: Vec<f64> = runs_of(shape, mask, &x).iter().map(|run| value(run)).collect();
            let found = run(op, spec, &[&x], &want).y;
            prop_assert!(relative_difference(&found, &want) < 1e-13, "{}: {found:?}, expected {want:?}", op.name);
            check(op, spec, std::slice::from_ref(&x))?;
        }
        Ok(())
    });
}

#[test]
fn products_with_zeros() {
    for_random(96, (shapes(1..=3), 0..8_usize, any::<u32>()), |(shape, mask, seed)| {
        prop_assume!(shape.len() <= 32);
        let x = values(seed, shape.len()).iter().map(|x| if x.abs() < 0.7 { 0.0 } else { *x }).collect();
        check(ops::prod::op(), ops::prod::spec(shape, &axes_of(shape, mask), false).unwrap(), &[x])
    });
}

#[test]
fn largest_and_smallest_elements_away_from_ties() {
    for_random(96, (shapes(0..=5), 0..32_usize, any::<bool>(), any::<u32>()), |(shape, mask, keepdim, seed)| {
        let mut x: Vec<f64> = (0..shape.len()).map(|i| f64::from(i as u32) * 0.05 - 1.0).collect();
        let mut random = Lcg(seed);
        for i in (1..x.len()).rev() {
            x.swap(i, random.below(i + 1));
        }
        let axes = axes_of(shape, mask);
        for (op, spec, value) in [
            (ops::amax::op(), ops::amax::spec as ReductionSpec, f64::max as fn(f64, f64) -> f64),
            (ops::amin::op(), ops::amin::spec, f64::min),
        ] {
            let spec = spec(shape, &axes, keepdim).unwrap();
            let want: Vec<f64> =
                runs_of(shape, mask, &x).into_iter().map(|run| run.into_iter().reduce(value).unwrap()).collect();
            prop_assert_eq!(run(op, spec, &[&x], &want).y, want, "{}", op.name);
            check(op, spec, std::slice::from_ref(&x))?;
        }
        Ok(())
    });
}

#[test]
fn variance_with_every_correction() {
    let settings = (shapes(0..=5), 0..32_usize, 0..=2_usize, any::<bool>(), any::<u32>());
    for_random(96, settings, |(shape, mask, correction, keepdim, seed)| {
        let spec = ops::var::spec(shape, &axes_of(shape, mask), correction, keepdim);
        let x = values(seed, shape.len());
        let runs = runs_of(shape, mask, &x);
        prop_assert_eq!(spec.is_ok(), runs[0].len() > correction);
        let Ok(spec) = spec else { return Ok(()) };
        let variance = |run: &Vec<f64>| {
            let mean = run.iter().sum::<f64>() / run.len() as f64;
            run.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (run.len() - correction) as f64
        };
        let want: Vec<f64> = runs.iter().map(variance).collect();
        let found = run::<Double>(ops::var::op(), spec, &[&x], &want).y;
        prop_assert!(relative_difference(&found, &want) < 1e-13, "var: {found:?}, expected {want:?}");
        check(ops::var::op(), spec, &[x])
    });
}

/// The index along each axis of element `i`.
fn index_of(shape: Shape, i: usize) -> Vec<usize> {
    (0..shape.rank()).map(|axis| i / shape.product(axis + 1, shape.rank()) % shape.axis(axis)).collect()
}

/// The element at an index.
fn element(shape: Shape, index: &[usize]) -> usize {
    index.iter().enumerate().fold(0, |at, (axis, i)| at * shape.axis(axis) + i)
}

/// Checks an operation that moves elements: the output by `source`, which tells from an output's index where it comes from,
/// and the gradients.
fn check_moved(
    op: &'static Op<Double>,
    spec: Spec,
    x: Shape,
    source: impl Fn(Vec<usize>) -> Option<Vec<usize>>,
) -> Result<(), TestCaseError> {
    let data = values(3, x.len());
    let value = |i| source(index_of(spec.shape, i)).map_or(0.5, |index| data[element(x, &index)]);
    let want: Vec<f64> = (0..spec.shape.len()).map(value).collect();
    prop_assert_eq!(run(op, spec, &[&data], &want).y, want, "{}", op.name);
    check(op, spec, &[data])
}

#[test]
fn permute_and_transpose() {
    for_random(128, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        let mut random = Lcg(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
        let signed: Vec<isize> = order.iter().map(|&axis| axis.cast_signed()).collect();
        let spec = ops::permute::spec(shape, &signed).unwrap();
        let put_back = |index: Vec<usize>| {
            let mut source = vec![0; index.len()];
            order.iter().zip(&index).for_each(|(&axis, &i)| source[axis] = i);
            Some(source)
        };
        check_moved(ops::permute::op(), spec, shape, put_back)?;
        if shape.rank() > 1 {
            let (a, b) = (random.below(shape.rank()), random.below(shape.rank()));
            let spec =
                ops::permute::spec_transpose(shape, a.cast_signed() - shape.rank().cast_signed(), b.cast_signed())
                    .unwrap();
            check_moved(ops::permute::op(), spec, shape, |mut index| {
                index.swap(a, b);
                Some(index)
            })?;
        }
        Ok(())
    });
}

#[test]
fn slice_and_pad() {
    for_random(128, (shapes(0..=5), any::<u32>()), |(shape, seed)| {
        let mut random = Lcg(seed);
        let ranges = random.below(shape.rank() + 1);
        let (mut starts, mut stops, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for axis in 0..ranges {
            starts.push(random.below(shape.axis(axis)));
            stops.push(starts[axis] + 1 + random.below(shape.axis(axis) - starts[axis]));
            steps.push(1 + random.below(3));
        }
        let spec = ops::slice::spec(shape, &starts, &stops, &steps).unwrap();
        let moved = |index: Vec<usize>| {
            let from = |axis: usize| starts.get(axis).copied().unwrap_or(0);
            let step = |axis: usize| steps.get(axis).copied().unwrap_or(1);
            Some(index.iter().enumerate().map(|(axis, i)| from(axis) + i * step(axis)).collect())
        };
        check_moved(ops::slice::op(), spec, shape, moved)?;

        let before: Vec<usize> = (0..ranges).map(|_| random.below(3)).collect();
        let after: Vec<usize> = (0..ranges).map(|_| random.below(3)).collect();
        let spec = ops::pad::spec(shape, &before, &after, 0.5).unwrap();
        prop_assume!(spec.shape.len() <= 1024);
        let source = |index: Vec<usize>| {
            let within = |(axis, i): (usize, usize)| {
                i.checked_sub(before.get(axis).copied().unwrap_or(0)).filter(|&i| i < shape.axis(axis))
            };
            index.into_iter().enumerate().map(within).collect()
        };
        check_moved(ops::pad::op(), spec, shape, source)
    });
}

#[test]
fn broadcast_to() {
    let operands = (prop::collection::vec(1..=4_usize, 0..=5), 0..32_usize, any::<bool>());
    for_random(128, operands, |(y, pattern, short)| {
        let (x, to) = (stretched(&y, pattern, short), Shape::from_slice(&y));
        prop_assume!(to.len() <= 512);
        let spec = ops::broadcast_to::spec(x, to).unwrap();
        let source = |index: Vec<usize>| {
            let own = index[index.len() - x.rank()..].iter().enumerate();
            Some(own.map(|(axis, &i)| if x.axis(axis) == 1 { 0 } else { i }).collect())
        };
        check_moved(ops::broadcast_to::op(), spec, x, source)
    });
}

#[test]
fn squeeze_and_unsqueeze() {
    for_random(96, (shapes(0..=4), any::<u32>()), |(shape, seed)| {
        let x = values(seed, shape.len());
        let squeezed = ops::squeeze::spec(shape, &[]).unwrap();
        let lengths: Vec<usize> =
            (0..shape.rank()).map(|axis| shape.axis(axis)).filter(|&length| length != 1).collect();
        prop_assert_eq!(squeezed.shape, Shape::from_slice(&lengths));
        check(ops::squeeze::op(), squeezed, std::slice::from_ref(&x))?;
        for axis in -shape.rank().cast_signed() - 1..=shape.rank().cast_signed() {
            let spec = ops::unsqueeze::spec(shape, axis).unwrap();
            prop_assert_eq!(ops::squeeze::spec(spec.shape, &[axis]).unwrap().shape, shape);
            check(ops::unsqueeze::op(), spec, std::slice::from_ref(&x))?;
        }
        Ok(())
    });
}

/// The sum of cubes, as a user would write it.
struct Cubes;

impl<B: Backend> ops::reduce_by::Reducer<B> for Cubes {
    const NAME: &'static str = "cubes";
    fn start() -> B::Elem {
        B::Elem::ZERO
    }
    fn fold(x: B::Elem, result: B::Elem) -> B::Elem {
        result + x * x * x
    }
    fn gradient(dy: B::Elem, index: usize, all: &[B::Elem]) -> B::Elem {
        dy * all[index] * all[index] * B::Elem::from_usize(3)
    }
}

#[test]
fn a_reduction_of_the_users_own() {
    for_random(32, 0..12_usize, |len| {
        let spec = ops::reduce_by::spec(Shape::new([len]));
        check(ops::reduce_by::op::<_, Cubes>(), spec, &[values(1, len)])
    });
}

#[test]
fn concat_and_stack() {
    let settings = (shapes(1..=4), [1..=3_usize, 1..=3, 1..=3], 1..=3_usize, any::<u32>());
    for_random(128, settings, |(shape, lengths, count, seed)| {
        let axis = Lcg(seed).below(shape.rank());
        let with = |length| {
            let axes: Vec<usize> = (0..shape.rank()).map(|i| if i == axis { length } else { shape.axis(i) }).collect();
            Shape::from_slice(&axes)
        };
        let operands: Vec<Shape> = lengths[..count].iter().map(|&length| with(length)).collect();
        let data: Vec<Vec<f64>> = (1..).zip(&operands).map(|(seed, operand)| values(seed, operand.len())).collect();
        let slices: Vec<&[f64]> = data.iter().map(Vec::as_slice).collect();
        let spec = ops::concat::spec(&operands, axis.cast_signed() - shape.rank().cast_signed()).unwrap();
        let value = |i| {
            let (mut index, mut operand) = (index_of(spec.shape, i), 0);
            while index[axis] >= lengths[operand] {
                index[axis] -= lengths[operand];
                operand += 1;
            }
            data[operand][element(operands[operand], &index)]
        };
        let want: Vec<f64> = (0..spec.shape.len()).map(value).collect();
        prop_assert_eq!(run::<Double>(ops::concat::op(), spec, &slices, &want).y, want, "concat");
        check(ops::concat::op(), spec, &data)?;

        let data: Vec<Vec<f64>> = (0..count as u32).map(|seed| values(seed, shape.len())).collect();
        let slices: Vec<&[f64]> = data.iter().map(Vec::as_slice).collect();
        let spec = ops::stack::spec(shape, count, axis.cast_signed()).unwrap();
        let value = |i| {
            let mut index = index_of(spec.shape, i);
            let operand = index.remove(axis);
            data[operand][element(shape, &index)]
        };
        let want: Vec<f64> = (0..spec.shape.len()).map(value).collect();
        prop_assert_eq!(run::<Double>(ops::stack::op(), spec, &slices, &want).y, want, "stack");
        check(ops::stack::op(), spec, &data)
    });
}

#[test]
fn gather_along_every_axis() {
    for_random(128, (shapes(1..=5), any::<u32>()), |(shape, seed)| {
        let mut random = Lcg(seed);
        let axis = random.below(shape.rank());
        let length = |i| if i == axis { 1 + random.below(5) } else { 1 + random.below(shape.axis(i)) };
        let lengths: Vec<usize> = (0..shape.rank()).map(length).collect();
        let index = Shape::from_slice(&lengths);
        let at: Vec<f64> = (0..index.len()).map(|_| f64::from(random.below(shape.axis(axis)) as u32)).collect();
        let spec = ops::gather::spec(shape, index, axis.cast_signed() - shape.rank().cast_signed()).unwrap();
        let x = values(seed, shape.len());
        let value = |i: usize| {
            let mut source = index_of(index, i);
            source[axis] = at[i].to_index().unwrap();
            x[element(shape, &source)]
        };
        let want: Vec<f64> = (0..index.len()).map(value).collect();
        prop_assert_eq!(run::<Double>(ops::gather::op(), spec, &[&x, &at], &want).y, want, "gather");
        check(ops::gather::op(), spec, &[x, at])
    });
}

#[test]
fn embedding_with_repeated_indices() {
    for_random(96, (shapes(0..=4), 1..=4_usize, 1..=4_usize, any::<u32>()), |(indices, rows, width, seed)| {
        let mut random = Lcg(seed);
        let at: Vec<f64> = (0..indices.len()).map(|_| f64::from(random.below(rows) as u32)).collect();
        let weight = Shape::new([rows, width]);
        let spec = ops::embedding::spec(weight, indices).unwrap();
        check(ops::embedding::op(), spec, &[values(seed, weight.len()), at])
    });
}

#[test]
fn dot_of_vectors() {
    for_random(64, (1..=40_usize, any::<u32>()), |(len, seed)| {
        let spec = ops::dot::spec(Shape::new([len]), Shape::new([len])).unwrap();
        check(ops::dot::op(), spec, &[values(seed, len), values(seed ^ 1, len)])
    });
}

#[test]
fn normalisation_and_similarity_along_every_axis() {
    let epsilon = prop_oneof![Just(1e-8), Just(1.7)];
    for_random(96, (shapes(0..=4), epsilon, any::<u32>()), |(shape, epsilon, seed)| {
        // Away from 0, and from norms that are close to the larger epsilon.
        let away = |x: f64| x + f64::copysign(0.2, x);
        let [a, b]: [Vec<f64>; 2] =
            [seed, seed ^ 1].map(|seed| values(seed, shape.len()).into_iter().map(away).collect());
        let norms = |x: &[f64], mask: usize| -> Vec<f64> {
            runs_of(shape, mask, x).iter().map(|run| run.iter().map(|x| x * x).sum::<f64>().sqrt()).collect()
        };
        for axis in std::iter::once(None).chain((0..shape.rank().cast_signed()).map(Some)) {
            let mask = axis.map_or(0, |axis| 1 << axis);
            let near = |norm: &f64| (norm - epsilon).abs() < 1e-3;
            prop_assume!(!norms(&a, mask).iter().chain(&norms(&b, mask)).any(near));
            let spec = ops::l2_normalize::spec(shape, axis, epsilon).unwrap();
            check(ops::l2_normalize::op(), spec, std::slice::from_ref(&a))?;
            let spec = ops::cosine_similarity::spec(shape, shape, axis, epsilon).unwrap();
            check(ops::cosine_similarity::op(), spec, &[a.clone(), b.clone()])?;
        }
        Ok(())
    });
}

/// An empty slice of a parameter, reduced over its empty axis; what has no elements has no gradient to give.
#[test]
fn reductions_of_no_elements() {
    let nothing: [(&'static Op<Double>, ReductionSpec, f64); 6] = [
        (ops::sum::op(), ops::sum::spec, 0.0),
        (ops::compensated_sum::op(), ops::compensated_sum::spec, 0.0),
        (ops::mean::op(), ops::mean::spec, f64::NAN),
        (ops::prod::op(), ops::prod::spec, 1.0),
        (ops::l2_norm::op(), ops::l2_norm::spec, 0.0),
        (ops::logsumexp::op(), ops::logsumexp::spec, f64::NEG_INFINITY),
    ];
    for (op, spec, want) in nothing {
        let mut g = Graph::<Double, 8>::new();
        let x = Shape::new([2, 3]);
        let parameter = g.parameter_dyn(Name::new("", "x"), x, Init::Ones);
        let slice = ops::slice::spec(x, &[1], &[1], &[]).unwrap();
        let empty = g.apply_dyn(ops::slice::op(), &[parameter], slice);
        let spec = spec(slice.shape, &[0], false).unwrap();
        let y = g.apply_dyn(op, &[empty], spec);
        g.output_dyn("y", y);
        let loss = g.apply_dyn(ops::sum::op(), &[y], ops::sum::spec(spec.shape, &[], false).unwrap());
        g.loss_dyn(loss);
        let tables = g.infer().tables();
        let program = tables.program();
        let mut slab = vec![f64::NAN; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.run(&mut memory, &[]).unwrap();
        let y = program.output(&memory, "y").unwrap();
        let is_same = |y: &f64| y.is_nan() && want.is_nan() || y.to_bits() == want.to_bits();
        assert!(y.len() == 3 && y.iter().all(is_same), "{} of nothing: {y:?}", op.name);

        // An infinite loss would end the step.
        let tables = g.train(Training::with_slots(0)).tables();
        let program = tables.program();
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        if program.gradients(&mut memory, &[]).is_ok() {
            assert_eq!(program.gradient(&memory, "x").unwrap(), [0.0; 6], "{} of nothing", op.name);
        }
    }
}

/// Kernels on a batch of no samples: nothing to write, and gradients of parameters that are 0.
#[test]
fn an_empty_batch_gives_nothing_and_gradients_of_zero() {
    type Case = (&'static Op<Double>, Result<Spec, ShapeError>, Vec<Shape>);
    let none = |axes: &[usize]| Shape::from_slice(&[&[0], axes].concat());
    let image = none(&[4, 6, 6]);
    let (weight, channels) = (Shape::new([4, 4, 3, 3]), Shape::new([4]));
    let window = Window2d::size(3).stride(1).padding(1);
    let rows = none(&[5]);
    let cases: Vec<Case> = vec![
        (ops::conv2d::op(), ops::conv2d::spec(image, weight, Some(channels), window, 1), vec![image, weight, channels]),
        (
            ops::conv_transpose2d::op(),
            ops::conv_transpose2d::spec(image, weight, Some(channels), window, [0, 0], 1),
            vec![image, weight, channels],
        ),
        (ops::max_pool2d::op(), ops::max_pool2d::spec(image, Window2d::size(2)), vec![image]),
        (
            ops::avg_pool2d::op(),
            ops::avg_pool2d::spec(image, Window2d::size(2), ops::avg_pool2d::CountPadding::Yes),
            vec![image],
        ),
        (ops::global_avg_pool2d::op(), ops::global_avg_pool2d::spec(image), vec![image]),
        (ops::upsample_nearest2d::op(), ops::upsample_nearest2d::spec(image, [2, 2]), vec![image]),
        (
            ops::linear::op(),
            ops::linear::spec(rows, Shape::new([3, 5]), Some(Shape::new([3]))),
            vec![rows, Shape::new([3, 5]), Shape::new([3])],
        ),
        (ops::matmul::op(), ops::matmul::spec(rows, Shape::new([5, 2])), vec![rows, Shape::new([5, 2])]),
        (ops::softmax::op(), ops::softmax::spec(rows, 1), vec![rows]),
        (ops::log_softmax::op(), ops::log_softmax::spec(rows, 1), vec![rows]),
        (
            ops::layer_norm::op(),
            ops::layer_norm::spec(rows, Some(Shape::new([5])), Some(Shape::new([5])), 1, 1e-5),
            vec![rows, Shape::new([5]), Shape::new([5])],
        ),
        (ops::rms_norm::op(), ops::rms_norm::spec(rows, Some(Shape::new([5])), 1, 1e-5), vec![rows, Shape::new([5])]),
        (
            ops::group_norm::op(),
            ops::group_norm::spec(image, Some(channels), Some(channels), 2, 1e-5),
            vec![image, channels, channels],
        ),
    ];
    for (op, spec, shapes) in cases {
        let spec = spec.unwrap_or_else(|error| panic!("{}: {error}", op.name));
        assert!(spec.shape.is_empty(), "{}: an output of shape {}", op.name, spec.shape);
        let operands: Vec<Vec<f64>> = (1..).zip(&shapes).map(|(seed, shape)| values(seed, shape.len())).collect();
        let x = std::array::from_fn(|i| operands.get(i).map_or(&[][..], |operand| &operand[..]));
        let (mut saved, mut scratch) = (vec![0.0; spec.saved], vec![0.0; spec.scratch]);
        let (y, state) = (&mut [][..], &[][..]);
        (op.forward)(ForwardCall { args: &spec.args, x, y, saved: &mut saved, scratch: &mut scratch, state });
        for (i, shape) in shapes.iter().enumerate() {
            let Gradient::Kernel { run, .. } = op.backward[i] else { continue };
            // Written, whatever is there before.
            let (mut dx, mut scratch) = (vec![7.0; shape.len()], vec![0.0; spec.scratch_backward[i]]);
            let (saved, scratch) = (&saved[..], &mut scratch[..]);
            let (args, y, dy, dx_slice) = (&spec.args, &[][..], &[][..], &mut dx[..]);
            run(BackwardCall { args, x, y, saved, dy, dx: dx_slice, add: false, scratch, first_row: 0 });
            assert!(dx.iter().all(|&dx| dx == 0.0), "{}: the gradient for operand {i} is {dx:?}", op.name);
        }
    }
}
