//! Hyperbolic tangent: `y = tanh(x)`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy (1 - y^2)`.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Tanh;

impl<B: Backend> Unary<B> for Tanh {
    const NAME: &'static str = "tanh";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::tanh(x)
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * (B::Elem::ONE - y * y)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Tanh>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `tanh(x)`, element-wise.
    #[track_caller]
    pub const fn tanh<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `tanh(x)`, element-wise.
    tanh(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let y1 = 0.761_594_155_955_764_9;
        check(op(), spec(Shape::new([2])), &[&[0.0, 1.0]], &[0.0, y1], &[&[1.0, 1.0 - y1 * y1]]);
    }
}
