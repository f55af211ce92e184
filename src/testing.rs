//! Running one operation by itself, and checking its derivative: what the tests of a new operation need.
//!
//! An operation is run as everywhere: recorded in a graph, planned, and executed by a program. Its differentiable inputs are
//! parameters there, so that all gradients are computed, and the loss is `Σ y dy`.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::backend::{Backend, Real, Strict};
use crate::graph::{Graph, Id, Name};
use crate::init::Init;
use crate::ops::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::plan::Training;
use crate::shape::Shape;

/// What an operation computed.
#[derive(Clone, Debug)]
pub struct Outcome<E> {
    /// The output.
    pub y: Vec<E>,
    /// The gradient of `Σ y dy` with respect to each input; empty where the input is not differentiable.
    pub gradients: Vec<Vec<E>>,
    /// The state after the step; empty where the operation was run without.
    pub state: Vec<E>,
}

/// Runs `op` on `inputs`, forward and backward from `dy`.
///
/// # Panics
/// When the operation writes past its buffers' lengths, or `dy` is not as long as the output or not finite.
///
/// ```
/// use slabgrad::backend::Strict;
/// use slabgrad::ops::relu;
/// use slabgrad::shape::Shape;
/// use slabgrad::testing;
///
/// let outcome = testing::run::<Strict<f32>>(relu::op(), relu::spec(Shape::new([2])), &[&[-1.0, 2.0]], &[5.0, 5.0]);
/// assert_eq!(outcome.y, [0.0, 2.0]);
/// assert_eq!(outcome.gradients, [[0.0, 5.0]]);
/// ```
#[must_use]
pub fn run<B: Backend>(op: &'static Op<B>, spec: Spec, inputs: &[&[B::Elem]], dy: &[B::Elem]) -> Outcome<B::Elem> {
    run_with_state(op, spec, inputs, &[], dy)
}

/// The same from this state; an empty one stands for none.
///
/// # Panics
/// As [`run`], and when the state is shorter than the operation's.
#[must_use]
pub fn run_with_state<B: Backend>(
    op: &'static Op<B>,
    spec: Spec,
    inputs: &[&[B::Elem]],
    state: &[B::Elem],
    dy: &[B::Elem],
) -> Outcome<B::Elem> {
    let operand = |(i, &data)| {
        let differentiable = op.view || !matches!(op.backward[i], Gradient::None);
        Operand { shape: Shape::new([<[_]>::len(data)]), data, differentiable }
    };
    let operands: Vec<_> = inputs.iter().enumerate().map(operand).collect();
    run_any(&operands, state, dy, |g, ids, kept| {
        let y = g.apply_dyn(op, ids, spec);
        if !state.is_empty() {
            g.with_state(kept);
        }
        y
    })
}

/// An operand of a graph that is run by itself.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a, E> {
    /// Its shape.
    pub shape: Shape,
    /// Its elements.
    pub data: &'a [E],
    /// Whether its gradient is computed.
    pub differentiable: bool,
}

/// As [`run`], for the graph that `build` makes of up to eight operands.
///
/// # Panics
/// As [`run`], or when the graph is wrong.
pub fn run_graph<B: Backend>(
    operands: &[Operand<'_, B::Elem>],
    dy: &[B::Elem],
    build: impl FnOnce(&mut Graph<B>, &[Id]) -> Id,
) -> Outcome<B::Elem> {
    run_any(operands, &[], dy, |g, ids, _| build(g, ids))
}

/// Runs the graph that `build` makes of the operands and the state.
fn run_any<B: Backend>(
    operands: &[Operand<'_, B::Elem>],
    state: &[B::Elem],
    dy: &[B::Elem],
    build: impl FnOnce(&mut Graph<B>, &[Id], Id) -> Id,
) -> Outcome<B::Elem> {
    let mut g = Graph::<B>::new();
    let mut fed = Vec::new();
    let mut ids = Vec::new();
    for (operand, &name) in operands.iter().zip(&NAMES) {
        ids.push(if operand.differentiable {
            g.parameter_dyn(Name::new("", name), operand.shape, Init::Zeros)
        } else {
            fed.push(operand.data);
            g.input_dyn(name, operand.shape)
        });
    }
    assert_eq!(ids.len(), operands.len(), "at most eight operands");
    let kept = g.state("", "state", Shape::new([state.len()]), Init::Zeros);
    let y = build(&mut g, &ids, kept);
    let seed = g.input_dyn("dy", Shape::new([dy.len()]));
    fed.push(dy);
    let loss = g.apply_dyn(weighted_sum::<B>(), &[y, seed], Spec::new(Shape::SCALAR));
    g.output_dyn("y", y);
    g.loss_dyn(loss);

    let tables = g.train(Training::with_slots(0).keep_outputs()).tables();
    let program = tables.program();
    let mut slab = vec![B::Elem::ZERO; program.slab_len()];
    let mut memory = program.memory(&mut slab).expect("the slab is as long as the program needs");
    for (operand, name) in operands.iter().zip(&NAMES).filter(|(operand, _)| operand.differentiable) {
        let parameter = program.tensor_mut(&mut memory, name).expect("the parameter is in the graph");
        parameter.copy_from_slice(operand.data);
    }
    program.tensor_mut(&mut memory, "state").expect("the state is in the graph").copy_from_slice(state);
    program.gradients_of_any_loss(&mut memory, &fed).unwrap_or_else(|error| panic!("running alone: {error}"));
    let gradient = |i: usize| program.gradient(&memory, NAMES[i]).unwrap_or_default().to_vec();
    Outcome {
        y: program.output(&memory, "y").unwrap_or_default().to_vec(),
        gradients: (0..operands.len()).map(gradient).collect(),
        state: program.tensor(&memory, "state").unwrap_or_default().to_vec(),
    }
}

const NAMES: [&str; 8] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];

/// `Σ x w`, differentiable in `x`: turns any output into a loss with a given gradient.
#[must_use]
pub const fn weighted_sum<B: Backend>() -> &'static Op<B> {
    fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
        if let Some(y) = call.y.first_mut() {
            *y = B::dot(call.x[0], call.x[1]);
        }
    }
    fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
        let dy = call.dy.first().copied().unwrap_or_default();
        for (dx, &w) in call.dx.iter_mut().zip(call.x[1]) {
            let share = w * dy;
            *dx = if call.add { *dx + share } else { share };
        }
    }
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(1));
        &Op::new("weighted_sum", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// Compares the gradients of `op` with central differences of `Σ y dy` in double precision, at every element of every
/// differentiable input. Returns the worst difference, relative to the larger of the gradient and 1.
///
/// # Errors
/// When a difference is above `tolerance`: which element, with both numbers.
pub fn check_gradients(
    op: &'static Op<Strict<f64>>,
    spec: Spec,
    inputs: &[&[f64]],
    dy: &[f64],
    tolerance: f64,
) -> Result<f64, String> {
    check_gradients_with_state(op, spec, inputs, &[], dy, tolerance)
}

/// The same from this state; an empty one stands for none.
///
/// # Errors
/// As [`check_gradients`].
pub fn check_gradients_with_state(
    op: &'static Op<Strict<f64>>,
    spec: Spec,
    inputs: &[&[f64]],
    state: &[f64],
    dy: &[f64],
    tolerance: f64,
) -> Result<f64, String> {
    let outcome = run_with_state(op, spec, inputs, state, dy);
    let mut worst = 0.0_f64;
    for (i, gradient) in outcome.gradients.iter().enumerate() {
        for (element, &found) in gradient.iter().enumerate() {
            let loss_at = |x: f64| {
                let mut moved = inputs[i].to_vec();
                moved[element] = x;
                let moved: Vec<&[f64]> =
                    (0..inputs.len()).map(|j| if j == i { &moved[..] } else { inputs[j] }).collect();
                let y = run_with_state(op, spec, &moved, state, dy).y;
                y.iter().zip(dy).map(|(y, dy)| y * dy).sum::<f64>()
            };
            let x = inputs[i][element];
            let h = 1e-6 * Real::abs(x).max(1.0);
            let want = (loss_at(x + h) - loss_at(x - h)) / (2.0 * h);
            let difference = Real::abs(found - want) / Real::abs(want).max(1.0);
            if Real::is_nan(difference) || difference > tolerance {
                return Err(alloc::format!(
                    "{}: the gradient for input {i}, element {element} (at {x}) is {found}, central differences give {want}",
                    op.name
                ));
            }
            worst = worst.max(difference);
        }
    }
    Ok(worst)
}
