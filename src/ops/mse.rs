//! Mean squared error: the mean, the sum, or each of `d²` with `d = p - t`, without a factor 1/2.
//!
//! `dp = 2 d dy / n` (without `n` unless it is the mean), and `dt = -dp`.

use super::loss::{self, Loss};
use super::{Args, Op, Reduction, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct Mse;

impl<B: Backend> Loss<B> for Mse {
    const NAME: &'static str = "mse";

    #[inline(always)]
    fn new(_: &Args) -> Self {
        Self
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem) {
        let d = x - t;
        (d * d, d + d)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &loss::of_difference::<B, Mse>() }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ.
pub const fn spec(prediction: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    loss::spec("mse", prediction, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of the squared differences.
    #[track_caller]
    pub const fn mse<S: Dims>(&mut self, prediction: Var<S>, target: Var<S>) -> Var<R0> {
        self.mse_with(prediction, target, Reduction::Mean)
    }

    /// The squared differences, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn mse_with<S: Dims, Y: Dims>(
        &mut self,
        prediction: Var<S>,
        target: Var<S>,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[prediction.id(), target.id()], spec(S::SHAPE, S::SHAPE, reduction))
    }
}

crate::tape::methods! {
    /// The squared differences of two values of one shape, reduced so; both get gradients. A fault where the shapes differ.
    mse(prediction, target)(reduction: Reduction) => (op(), spec(prediction, target, reduction))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([3]);
        let spec = |reduction| spec(shape, shape, reduction).unwrap();
        let (p, t) = ([1.0, 2.0, 3.0], [0.0, 0.0, 1.0]);
        let dp = [2.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0];
        check(op(), spec(Reduction::Mean), &[&p, &t], &[3.0], &[&dp, &dp.map(|d: f64| -d)]);
        check(op(), spec(Reduction::Sum), &[&p, &t], &[9.0], &[&[2.0, 4.0, 4.0], &[-2.0, -4.0, -4.0]]);
        let (y, dx) = run(op::<Strict<f64>>(), spec(Reduction::None), &[&p, &t], &[1.0, 10.0, 100.0], 0);
        assert_eq!((y, dx), (std::vec![1.0, 4.0, 4.0], std::vec![2.0, 40.0, 400.0]));
    }

    #[test]
    fn the_batch_mean_divides_by_the_first_axis() {
        let shape = Shape::new([2, 3]);
        let spec = spec(shape, shape, Reduction::BatchMean).unwrap();
        let (dp, t) = ([1.0, 2.0, 0.0, 0.0, 0.0, -3.0], [0.0; 6]);
        check(op(), spec, &[&dp, &t], &[7.0], &[&dp, &dp.map(|d: f64| -d)]);
    }
}
