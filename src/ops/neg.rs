//! Opposite: `y = -x`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = -dy`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Neg;

impl<B: Backend> Unary<B> for Neg {
    const NAME: &'static str = "neg";
    const READS: Reads = Reads::NONE;

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        -x
    }

    #[inline(always)]
    fn gradient(_: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        -dy
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Neg>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `-x`, element-wise.
    #[track_caller]
    pub const fn neg<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `-x`, element-wise.
    neg(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.5, -2.0, 0.0], [-1.5, 2.0, 0.0]);
        let dx = [-1.0, -1.0, -1.0];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
