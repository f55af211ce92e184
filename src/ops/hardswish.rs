//! Piecewise stand-in for swish: `y = 0` up to -3, `x` from 3 on, else `x (x + 3) / 6`, element-wise. The derivative needs `x`, which is kept.
//! <https://arxiv.org/abs/1905.02244>
//!
//! `dx = 0` up to -3, `dy` from 3 on, as in PyTorch, else `dy (x / 3 + 1/2)`.

use super::unary::{self, Unary, number};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Hardswish;

impl<B: Backend> Unary<B> for Hardswish {
    const NAME: &'static str = "hardswish";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        let three = number::<B::Elem>(3.0);
        // Written so that a NaN, for which no comparison holds, is kept.
        if x <= -three {
            B::Elem::ZERO
        } else if x >= three {
            x
        } else {
            x * (x + three) / number(6.0)
        }
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        let three = number::<B::Elem>(3.0);
        if x <= -three {
            B::Elem::ZERO
        } else if x >= three {
            dy
        } else {
            dy * (x / three + number(0.5))
        }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Hardswish>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x min(max(x + 3, 0), 6) / 6`, element-wise.
    #[track_caller]
    pub const fn hardswish<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `x min(max(x + 3, 0), 6) / 6`, element-wise.
    hardswish(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-4.0, -3.0, 0.5, 3.0, 4.0], [0.0, 0.0, 0.291_666_666_666_666_7, 3.0, 4.0]);
        let dx = [0.0, 0.0, 0.666_666_666_666_666_6, 1.0, 1.0];
        check(op(), spec(Shape::new([5])), &[&x], &y, &[&dx]);
    }
}
