//! Reciprocal: `y = 1 / x`, element-wise, in place where nothing else reads `x`. Infinite at 0.
//!
//! `dx = -dy y²`.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Reciprocal;

impl<B: Backend> Unary<B> for Reciprocal {
    const NAME: &'static str = "reciprocal";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::Elem::ONE / x
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        -dy * (y * y)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Reciprocal>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `1 / x`, element-wise.
    #[track_caller]
    pub const fn reciprocal<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `1 / x`, element-wise.
    reciprocal(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.0, -4.0, 0.5], [1.0, -0.25, 2.0]);
        let dx = [-1.0, -0.062_5, -4.0];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
