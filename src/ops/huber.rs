//! Huber loss: `d² / 2` where `|d| < δ`, else `δ (|d| - δ / 2)`, with `d = p - t`; their mean, sum, or each (Huber, *Robust
//! Estimation of a Location Parameter*, 1964).
//!
//! `dp = d` where `|d| < δ`, else `δ sign(d)`, times `dy / n` (without `n` unless it is the mean), and `dt = -dp`, as in
//! PyTorch's `huber_loss`.

use super::loss::{self, Loss};
use super::{Args, Op, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct Huber<E> {
    delta: E,
    half: E,
}

impl<B: Backend> Loss<B> for Huber<B::Elem> {
    const NAME: &'static str = "huber";

    #[inline(always)]
    fn new(args: &Args) -> Self {
        Self { delta: args.scalar::<_, { loss::SCALAR }>(), half: B::Elem::choose(0.5, 0.5) }
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem) {
        let d = x - t;
        if d.abs() < self.delta {
            (self.half * d * d, d)
        } else {
            (self.delta * (d.abs() - self.half * self.delta), self.delta * loss::sign(d))
        }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &loss::of_difference::<B, Huber<B::Elem>>() }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ, or delta is not positive and finite.
pub const fn spec(prediction: Shape, target: Shape, delta: f64, reduction: Reduction) -> Result<Spec, ShapeError> {
    let delta = (delta, "delta is positive and finite", false);
    loss::spec_with("huber", prediction, target, reduction, delta)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of the Huber losses; PyTorch's `delta` is 1.
    ///
    /// # Panics
    /// When `delta` is not positive and finite.
    #[track_caller]
    pub const fn huber<S: Dims>(&mut self, prediction: Var<S>, target: Var<S>, delta: f64) -> Var<R0> {
        self.huber_with(prediction, target, delta, Reduction::Mean)
    }

    /// The Huber losses, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When `delta` is not positive and finite, or the annotated shape is another.
    #[track_caller]
    pub const fn huber_with<S: Dims, Y: Dims>(
        &mut self,
        prediction: Var<S>,
        target: Var<S>,
        delta: f64,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[prediction.id(), target.id()], spec(S::SHAPE, S::SHAPE, delta, reduction))
    }
}

crate::tape::methods! {
    /// `d² / 2` where the difference `d` is less than `delta`, else `delta (|d| - delta / 2)`, reduced so; PyTorch's `delta` is 1.
    /// A fault where the shapes differ, or `delta` is not positive and finite.
    huber(prediction, target)(delta: f64, reduction: Reduction) => (op(), spec(prediction, target, delta, reduction))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([4]);
        let (p, t) = ([1.0, -4.0, 3.0, 2.0], [0.0, 0.0, 3.0, 0.0]);
        let dp = [1.0, -2.0, 0.0, 2.0];
        let spec = spec(shape, shape, 2.0, Reduction::Sum).unwrap();
        check(op(), spec, &[&p, &t], &[0.5 + 6.0 + 0.0 + 2.0], &[&dp, &dp.map(|d: f64| -d)]);
    }

    #[test]
    fn a_delta_of_zero_is_an_error() {
        let error = spec(Shape::SCALAR, Shape::SCALAR, 0.0, Reduction::Mean).unwrap_err();
        assert_eq!(std::format!("{error}"), "huber: delta is positive and finite, found 0");
    }
}
