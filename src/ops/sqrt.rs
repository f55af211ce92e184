//! Square root: `y = √x`, correctly rounded, element-wise, in place where nothing else reads `x`. NaN below 0.
//!
//! `dx = dy / (2 y)`: infinite at 0.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Sqrt;

impl<B: Backend> Unary<B> for Sqrt {
    const NAME: &'static str = "sqrt";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        x.sqrt()
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy / (y + y)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Sqrt>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `√x`, element-wise.
    #[track_caller]
    pub const fn sqrt<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `√x`, element-wise.
    sqrt(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.0, 4.0, 9.0], [1.0, 2.0, 3.0]);
        let dx = [0.5, 0.25, 0.166_666_666_666_666_66];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
