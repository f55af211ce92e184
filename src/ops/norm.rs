//! What layer, RMS and group normalisation share. The data is `[rows, groups, channels, plane]`, and each group is brought to
//! unit scale by itself: `x̂ = (x - mean) s` with `s = 1 / √(variance + ε)`, or without a mean `x̂ = x / √(mean x² + ε)`. Then
//! `y = x̂ w + b` with a weight and a bias for each of the `groups · channels`, which may be absent.
//!
//! With `g = dy w` and n elements in a group, `dx = s (g - Σ g / n - x̂ Σ (g x̂) / n)`, without the first sum where there is no
//! mean; `dw = Σ dy x̂`, `db = Σ dy` (Ba, Kiros and Hinton, *Layer Normalization*, 2016; PyTorch's `native_layer_norm_backward`).
//! Sums over a group take 8 partial sums, those over rows go in ascending order. Mean and scale are computed again in
//! backward: that costs two passes over data that is read anyway, and no memory.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec, planes};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Id, Name, Var};
use crate::init::Init;
use crate::shape::{Dims, Shape};

/// The table of one of these operations.
pub(super) const fn table<B: Backend>(name: &'static str) -> Op<B> {
    let x = Gradient::over_dy(gradient_x::<B>, Reads::input(0).and(Reads::input(1)));
    let weight = Gradient::kernel(gradient_weight::<B>, Reads::input(0));
    Op::new(name, forward::<B>, [x, weight, Gradient::kernel(gradient_bias::<B>, Reads::NONE)]).over(Over::Output)
}

/// How the data is divided.
pub(super) struct Division {
    pub(super) groups: usize,
    pub(super) channels: usize,
    pub(super) plane: usize,
    /// Whether the mean is taken off.
    pub(super) centred: bool,
}

/// The spec of a normalisation `op`; weight and bias have the shape `affine` where they are there.
pub(super) const fn spec(
    op: &'static str,
    x: Shape,
    [weight, bias]: [Option<Shape>; 2],
    affine: Shape,
    division: &Division,
    epsilon: f64,
) -> Result<Spec, ShapeError> {
    if let Err(error) = check_affine(op, [weight, bias], affine) {
        return Err(error);
    }
    if let Err(error) = check_epsilon(op, epsilon) {
        return Err(error);
    }
    let &Division { groups, channels, plane, centred } = division;
    let args = Args::new(&[groups, channels, plane, 0, 0, 0, centred as usize]);
    Ok(Spec::new(x).args(args.with_scalar(3, epsilon)))
}

/// The spec of a normalisation `op` over the last `axes` axes together.
pub(super) const fn spec_of_last_axes(
    op: &'static str,
    x: Shape,
    affine: [Option<Shape>; 2],
    axes: usize,
    epsilon: f64,
    centred: bool,
) -> Result<Spec, ShapeError> {
    if axes == 0 || axes > 3 || axes > x.rank() {
        let (operand, expected) = ("the input", "as many axes as are normalised over, 1 to 3");
        return Err(ShapeError::Rank { op, operand, expected, found: x });
    }
    let normalised = last_axes(x, axes);
    let division = Division { groups: 1, channels: normalised.len(), plane: 1, centred };
    spec(op, x, affine, normalised, &division, epsilon)
}

/// The last `axes` axes of a shape; all where it has fewer.
pub(super) const fn last_axes(x: Shape, axes: usize) -> Shape {
    let mut shape = Shape::SCALAR;
    let mut axis = x.rank().saturating_sub(axes);
    while axis < x.rank() {
        shape = shape.push(x.axis(axis));
        axis += 1;
    }
    shape
}

/// Weight and bias have the shape `affine`, and there is no bias without a weight.
pub(super) const fn check_affine(
    op: &'static str,
    [weight, bias]: [Option<Shape>; 2],
    affine: Shape,
) -> Result<(), ShapeError> {
    let expected = "that of what is normalised";
    match (weight, bias) {
        (Some(found), _) if !found.equals(&affine) => {
            Err(ShapeError::Rank { op, operand: "the weight", expected, found })
        }
        (_, Some(found)) if !found.equals(&affine) => {
            Err(ShapeError::Rank { op, operand: "the bias", expected, found })
        }
        (None, Some(found)) => {
            Err(ShapeError::Rank { op, operand: "the bias", expected: "none where there is no weight", found })
        }
        _ => Ok(()),
    }
}

pub(super) const fn check_epsilon(op: &'static str, epsilon: f64) -> Result<(), ShapeError> {
    if epsilon >= 0.0 && epsilon < f64::INFINITY {
        Ok(())
    } else {
        Err(ShapeError::Setting { op, rule: "epsilon is at least 0 and finite", found: epsilon })
    }
}

/// Which parameters a normalisation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affine {
    WeightAndBias,
    Weight,
    Nothing,
}

impl Affine {
    /// The shapes of weight and bias.
    pub(crate) const fn shapes(self, shape: Shape) -> [Option<Shape>; 2] {
        match self {
            Self::WeightAndBias => [Some(shape), Some(shape)],
            Self::Weight => [Some(shape), None],
            Self::Nothing => [None, None],
        }
    }
}

/// Records a normalisation with parameters `name.weight`, all 1, and `name.bias`, all 0.
pub(super) const fn record<B: Backend, const N: usize, S: Dims>(
    g: &mut Graph<B, N>,
    name: &'static str,
    op: &'static Op<B>,
    x: Id,
    [weight, bias]: [Option<Shape>; 2],
    spec: Result<Spec, ShapeError>,
) -> Var<S> {
    let (Some(weight), Ok(_)) = (weight, &spec) else {
        return g.record(name, op, &[x], spec);
    };
    let weight = g.parameter_dyn(Name::new(name, "weight"), weight, Init::Ones);
    match bias {
        Some(bias) => {
            let bias = g.parameter_dyn(Name::new(name, "bias"), bias, Init::Zeros);
            g.record(name, op, &[x, weight, bias], spec)
        }
        None => g.record(name, op, &[x, weight], spec),
    }
}

/// The mean of a group, and what it is divided by to be of unit scale, inverted.
struct Statistics<E> {
    mean: E,
    scale: E,
}

impl<E: Real> Statistics<E> {
    fn of<B: Backend<Elem = E>>(x: &[E], epsilon: E, centred: bool) -> Self {
        let count = E::from_usize(x.len());
        let mean = if centred { B::sum(x) / count } else { E::ZERO };
        let squares = B::sum_pairs(x, x, |sum, x, _| B::mul_add(x - mean, x - mean, sum));
        Self { mean, scale: E::ONE / (squares / count + epsilon).sqrt() }
    }
}

fn is_centred(args: &Args) -> bool {
    args.0[6] != 0
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let ([_, channels, plane, ..], centred) = (call.args.lengths(), is_centred(call.args));
    let (epsilon, [_, weight, bias]) = (call.args.scalar::<B::Elem, 3>(), call.x);
    let group = (channels * plane).max(1);
    for y in call.y.chunks_exact_mut(group) {
        let Statistics { mean, scale } = Statistics::of::<B>(y, epsilon, centred);
        y.iter_mut().for_each(|y| *y = (*y - mean) * scale);
    }
    planes::multiply(call.y, weight, plane);
    planes::add(call.y, bias, plane);
}

fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let ([_, channels, plane, ..], centred) = (call.args.lengths(), is_centred(call.args));
    let (epsilon, [x, weight, _]) = (call.args.scalar::<B::Elem, 3>(), call.x);
    let group = (channels * plane).max(1);
    planes::multiply(call.dx, weight, plane);
    let count = B::Elem::from_usize(group);
    for (dx, x) in call.dx.chunks_exact_mut(group).zip(x.chunks_exact(group)) {
        let Statistics { mean, scale } = Statistics::of::<B>(x, epsilon, centred);
        let shift = if centred { B::sum(dx) / count } else { B::Elem::ZERO };
        let slope = B::sum_pairs(dx, x, |sum, g, x| B::mul_add(g, (x - mean) * scale, sum)) / count;
        for (dx, &x) in dx.iter_mut().zip(x) {
            *dx = scale * (*dx - shift - (x - mean) * scale * slope);
        }
    }
}

fn gradient_weight<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let ([groups, channels, plane, ..], centred) = (call.args.lengths(), is_centred(call.args));
    let (epsilon, x, dw) = (call.args.scalar::<B::Elem, 3>(), call.x[0], call.dx);
    let group = (channels * plane).max(1);
    if !call.add {
        dw.fill(B::Elem::ZERO);
    }
    let row = (groups * group).max(1);
    for (x, dy) in x.chunks_exact(row).zip(call.dy.chunks_exact(row)) {
        let of_groups = x.chunks_exact(group).zip(dy.chunks_exact(group));
        for ((x, dy), dw) in of_groups.zip(dw.chunks_exact_mut(channels.max(1))) {
            let Statistics { mean, scale } = Statistics::of::<B>(x, epsilon, centred);
            let of_channels = x.chunks_exact(plane.max(1)).zip(dy.chunks_exact(plane.max(1)));
            for ((x, dy), dw) in of_channels.zip(dw) {
                *dw += planes::sum_pairs::<B>(dy, x, |sum, dy, x| B::mul_add(dy, (x - mean) * scale, sum));
            }
        }
    }
}

fn gradient_bias<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [_, _, plane, ..] = call.args.lengths();
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    planes::add_sums::<B>(call.dx, call.dy, plane);
}
