//! Rectified linear unit with a ceiling: `y = min(max(x, 0), 6)`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy` where `0 < y < 6`, else 0; so the derivative at 0 and at 6 is 0, as in PyTorch. A NaN goes through.

use super::unary::{self, Unary, number};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Relu6;

impl<B: Backend> Unary<B> for Relu6 {
    const NAME: &'static str = "relu6";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        let six = number(6.0);
        // Written so that a NaN, for which no comparison holds, is kept.
        if x <= B::Elem::ZERO {
            B::Elem::ZERO
        } else if x >= six {
            six
        } else {
            x
        }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        if y <= B::Elem::ZERO || y >= number(6.0) { B::Elem::ZERO } else { dy }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Relu6>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `min(max(x, 0), 6)`, element-wise.
    #[track_caller]
    pub const fn relu6<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `min(max(x, 0), 6)`, element-wise.
    relu6(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-2.0, 0.0, 0.5, 6.0, 7.0], [0.0, 0.0, 0.5, 6.0, 6.0]);
        let dx = [0.0, 0.0, 1.0, 0.0, 0.0];
        check(op(), spec(Shape::new([5])), &[&x], &y, &[&dx]);
    }
}
