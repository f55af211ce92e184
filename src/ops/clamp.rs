//! Keeps elements within bounds: `y = min(max(x, lower), upper)`, element-wise, in place where nothing else reads `x`. A bound
//! may be infinite. A NaN goes through.
//!
//! `dx = dy` between the bounds; 0 at them and beyond, as in PyTorch 2.15 (earlier versions pass `dy` at the bounds).

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

pub(super) struct Clamp;

impl<B: Backend> Unary<B> for Clamp {
    const NAME: &'static str = "clamp";

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        let (min, max) = bounds(args);
        // Written so that a NaN, for which no comparison holds, is kept.
        if x <= min {
            min
        } else if x >= max {
            max
        } else {
            x
        }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        let (min, max) = bounds(args);
        if y <= min || y >= max { B::Elem::ZERO } else { dy }
    }
}

#[inline(always)]
fn bounds<E: Real>(args: &Args) -> (E, E) {
    (args.scalar::<E, 0>(), args.scalar::<E, 3>())
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Clamp>()
}

/// Any shape; the output has the same.
///
/// # Errors
/// When `min` is above `max`, or one of them is NaN.
pub const fn spec(x: Shape, min: f64, max: f64) -> Result<Spec, ShapeError> {
    if min <= max {
        Ok(Spec::new(x).args(Args::NONE.with_scalar(0, min).with_scalar(3, max)))
    } else {
        Err(ShapeError::Setting { op: "clamp", rule: "the lower bound must be at most the upper one", found: min })
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The nearest to `x` that is at least `min` and at most `max`, element-wise.
    ///
    /// # Panics
    /// When `min` is above `max`, or one of them is NaN.
    #[track_caller]
    pub const fn clamp<S: Dims>(&mut self, x: Var<S>, min: f64, max: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, min, max))
    }
}

crate::tape::methods! {
    /// The nearest to `x` that is at least `min` and at most `max`, element-wise.
    /// A fault where `min` is above `max`, or one of them is NaN.
    clamp(x)(min: f64, max: f64) => (op(), spec(x, min, max))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-2.0, -1.0, 0.5, 3.0, 4.0], [-1.0, -1.0, 0.5, 3.0, 3.0]);
        let dx = [0.0, 0.0, 1.0, 0.0, 0.0];
        check(op(), spec(Shape::new([5]), -1.0, 3.0).unwrap(), &[&x], &y, &[&dx]);
    }

    #[test]
    fn bounds_in_the_wrong_order_are_an_error() {
        let error = spec(Shape::new([1]), 2.0, -1.5).unwrap_err();
        assert_eq!(std::format!("{error}"), "clamp: the lower bound must be at most the upper one, found 2");
    }
}
