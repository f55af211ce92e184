//! Smooth L1: `d² / (2 β)` where `|d| < β`, else `|d| - β / 2`, with `d = p - t`; their mean, sum, or each.
//!
//! `dp = d / β` where `|d| < β`, else `sign(d)`, times `dy / n` (without `n` unless it is the mean), and `dt = -dp`, as in
//! PyTorch's `smooth_l1_loss`. With β = 0 it is [`l1`](super::l1).

use super::loss::{self, Loss};
use super::{Args, Op, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct SmoothL1<E> {
    beta: E,
    half: E,
}

impl<B: Backend> Loss<B> for SmoothL1<B::Elem> {
    const NAME: &'static str = "smooth_l1";

    #[inline(always)]
    fn new(args: &Args) -> Self {
        Self { beta: args.scalar::<_, { loss::SCALAR }>(), half: B::Elem::choose(0.5, 0.5) }
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem) {
        let d = x - t;
        if d.abs() < self.beta {
            let slope = d / self.beta;
            (self.half * d * slope, slope)
        } else {
            (d.abs() - self.half * self.beta, loss::sign(d))
        }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &loss::of_difference::<B, SmoothL1<B::Elem>>() }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ, or beta is negative or not finite.
pub const fn spec(prediction: Shape, target: Shape, beta: f64, reduction: Reduction) -> Result<Spec, ShapeError> {
    let beta = (beta, "beta is finite and not negative", true);
    loss::spec_with("smooth_l1", prediction, target, reduction, beta)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of the smooth absolute differences; PyTorch's `beta` is 1.
    ///
    /// # Panics
    /// When `beta` is negative or not finite.
    #[track_caller]
    pub const fn smooth_l1<S: Dims>(&mut self, prediction: Var<S>, target: Var<S>, beta: f64) -> Var<R0> {
        self.smooth_l1_with(prediction, target, beta, Reduction::Mean)
    }

    /// The smooth absolute differences, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When `beta` is negative or not finite, or the annotated shape is another.
    #[track_caller]
    pub const fn smooth_l1_with<S: Dims, Y: Dims>(
        &mut self,
        prediction: Var<S>,
        target: Var<S>,
        beta: f64,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[prediction.id(), target.id()], spec(S::SHAPE, S::SHAPE, beta, reduction))
    }
}

crate::tape::methods! {
    /// `d² / (2 beta)` where the difference `d` is less than `beta`, else `|d| - beta / 2`, reduced so; PyTorch's `beta` is 1. A
    /// fault where the shapes differ, or `beta` is negative or not finite.
    smooth_l1(prediction, target)(beta: f64, reduction: Reduction) => (op(), spec(prediction, target, beta, reduction))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([4]);
        let (p, t) = ([1.0, -4.0, 3.0, 2.0], [0.0, 0.0, 3.0, 0.0]);
        let dp = [0.5, -1.0, 0.0, 1.0];
        let spec_2 = spec(shape, shape, 2.0, Reduction::Sum).unwrap();
        check(op(), spec_2, &[&p, &t], &[0.25 + 3.0 + 0.0 + 1.0], &[&dp, &dp.map(|d: f64| -d)]);
        let dp = [1.0, -1.0, 0.0, 1.0];
        let spec_0 = spec(shape, shape, 0.0, Reduction::Sum).unwrap();
        check(op(), spec_0, &[&p, &t], &[7.0], &[&dp, &dp.map(|d: f64| -d)]);
    }

    #[test]
    fn a_negative_beta_is_an_error() {
        let error = spec(Shape::SCALAR, Shape::SCALAR, -1.5, Reduction::Mean).unwrap_err();
        assert_eq!(std::format!("{error}"), "smooth_l1: beta is finite and not negative, found -1.5");
    }
}
