//! Piecewise linear stand-in for the logistic function: `y = min(max(x + 3, 0), 6) / 6`, element-wise, in place where nothing else reads `x`.
//! <https://arxiv.org/abs/1905.02244>
//!
//! `dx = dy / 6` where `0 < y < 1`, else 0; so the derivative at -3 and at 3 is 0, as in PyTorch.

use super::unary::{self, Unary, number};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Hardsigmoid;

impl<B: Backend> Unary<B> for Hardsigmoid {
    const NAME: &'static str = "hardsigmoid";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        let (x, six) = (x + number(3.0), number(6.0));
        // Written so that a NaN, for which no comparison holds, is kept.
        if x <= B::Elem::ZERO {
            B::Elem::ZERO
        } else if x >= six {
            B::Elem::ONE
        } else {
            x / six
        }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        if y <= B::Elem::ZERO || y >= B::Elem::ONE { B::Elem::ZERO } else { dy / number(6.0) }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Hardsigmoid>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `min(max(x + 3, 0), 6) / 6`, element-wise.
    #[track_caller]
    pub const fn hardsigmoid<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `min(max(x + 3, 0), 6) / 6`, element-wise.
    hardsigmoid(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-4.0, -3.0, 0.5, 3.0, 4.0], [0.0, 0.0, 0.583_333_333_333_333_4, 1.0, 1.0]);
        let dx = [0.0, 0.0, 0.166_666_666_666_666_66, 0.0, 0.0];
        check(op(), spec(Shape::new([5])), &[&x], &y, &[&dx]);
    }
}
