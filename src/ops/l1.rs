//! Mean absolute error: the mean, the sum, or each of `|d|` with `d = p - t`.
//!
//! `dp = sign(d) dy / n` (without `n` unless it is the mean), 0 where `d = 0`, and `dt = -dp`, as in PyTorch's `l1_loss`.

use super::loss::{self, Loss};
use super::{Args, Op, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct L1;

impl<B: Backend> Loss<B> for L1 {
    const NAME: &'static str = "l1";

    #[inline(always)]
    fn new(_: &Args) -> Self {
        Self
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem) {
        let d = x - t;
        (d.abs(), loss::sign(d))
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &loss::of_difference::<B, L1>() }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ.
pub const fn spec(prediction: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    loss::spec("l1", prediction, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of the absolute differences.
    #[track_caller]
    pub const fn l1<S: Dims>(&mut self, prediction: Var<S>, target: Var<S>) -> Var<R0> {
        self.l1_with(prediction, target, Reduction::Mean)
    }

    /// The absolute differences, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn l1_with<S: Dims, Y: Dims>(
        &mut self,
        prediction: Var<S>,
        target: Var<S>,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[prediction.id(), target.id()], spec(S::SHAPE, S::SHAPE, reduction))
    }
}

crate::tape::methods! {
    /// The absolute differences of two values of one shape, reduced so; both get gradients. A fault where the shapes differ.
    l1(prediction, target)(reduction: Reduction) => (op(), spec(prediction, target, reduction))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([4]);
        let spec = |reduction| spec(shape, shape, reduction).unwrap();
        let (p, t) = ([1.0, -2.0, 3.0, 0.5], [0.0, 0.0, 3.0, 1.5]);
        let dp = [0.25, -0.25, 0.0, -0.25];
        check(op(), spec(Reduction::Mean), &[&p, &t], &[1.0], &[&dp, &dp.map(|d: f64| -d)]);
        let (y, dx) = run(op::<Strict<f64>>(), spec(Reduction::None), &[&p, &t], &[1.0, 2.0, 3.0, 4.0], 0);
        assert_eq!((y, dx), (std::vec![1.0, 2.0, 0.0, 1.0], std::vec![1.0, -2.0, 0.0, -4.0]));
    }

    #[test]
    fn a_nan_goes_through_and_an_infinite_difference_has_a_direction() {
        let shape = Shape::new([2]);
        let spec = spec(shape, shape, Reduction::None).unwrap();
        let x = [f64::NAN, f64::NEG_INFINITY];
        let (y, dx) = run(op::<Strict<f64>>(), spec, &[&x, &[0.0, 0.0]], &[1.0, 1.0], 0);
        assert!(y[0].is_nan() && dx[0].is_nan() && y[1] == f64::INFINITY && dx[1] == -1.0, "{y:?} {dx:?}");
    }
}
