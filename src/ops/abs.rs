//! Absolute value: `y = |x|`, element-wise. The derivative needs `x`, which is kept.
//!
//! `dx = dy` where `x > 0`, `-dy` where `x < 0`, and 0 at 0, as in PyTorch.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Abs;

impl<B: Backend> Unary<B> for Abs {
    const NAME: &'static str = "abs";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        x.abs()
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        if x > B::Elem::ZERO {
            dy
        } else if x < B::Elem::ZERO {
            -dy
        } else {
            // 0, or NaN where `x` is.
            dy * x
        }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Abs>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `|x|`, element-wise.
    #[track_caller]
    pub const fn abs<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `|x|`, element-wise.
    abs(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.5, -2.0, 0.0], [1.5, 2.0, 0.0]);
        let dx = [1.0, -1.0, 0.0];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
