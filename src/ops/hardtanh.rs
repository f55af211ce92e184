//! Piecewise linear stand-in for tanh: [`clamp`](super::clamp) under its name as an activation, usually between -1 and 1.
//!
//! `dx = dy` between the bounds; 0 at them and beyond, as in PyTorch.

use super::clamp::Clamp;
use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Hardtanh;

impl<B: Backend> Unary<B> for Hardtanh {
    const NAME: &'static str = "hardtanh";

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        <Clamp as Unary<B>>::value(x, args)
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        <Clamp as Unary<B>>::gradient(y, dy, args)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Hardtanh>()
}

/// Any shape; the output has the same.
///
/// # Errors
/// When `min` is above `max`, or one of them is NaN.
pub const fn spec(x: Shape, min: f64, max: f64) -> Result<Spec, ShapeError> {
    if min <= max {
        Ok(Spec::new(x).args(Args::NONE.with_scalar(0, min).with_scalar(3, max)))
    } else {
        Err(ShapeError::Setting { op: "hardtanh", rule: "the lower bound must be at most the upper one", found: min })
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` between `min` and `max` (in most networks -1 and 1), the nearer bound beyond, element-wise.
    ///
    /// # Panics
    /// When `min` is above `max`, or one of them is NaN.
    #[track_caller]
    pub const fn hardtanh<S: Dims>(&mut self, x: Var<S>, min: f64, max: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, min, max))
    }
}

crate::tape::methods! {
    /// `x` between `min` and `max` (in most networks -1 and 1), the nearer bound beyond, element-wise.
    /// A fault where `min` is above `max`, or one of them is NaN.
    hardtanh(x)(min: f64, max: f64) => (op(), spec(x, min, max))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-2.0, -1.0, 0.5, 1.0, 4.0], [-1.0, -1.0, 0.5, 1.0, 1.0]);
        let dx = [0.0, 0.0, 1.0, 0.0, 0.0];
        check(op(), spec(Shape::new([5]), -1.0, 1.0).unwrap(), &[&x], &y, &[&dx]);
    }

    #[test]
    fn bounds_in_the_wrong_order_are_an_error() {
        let error = spec(Shape::new([1]), 2.0, -1.5).unwrap_err();
        assert_eq!(std::format!("{error}"), "hardtanh: the lower bound must be at most the upper one, found 2");
    }
}
