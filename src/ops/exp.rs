//! Exponential function: `y = e^x`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy y`.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Exp;

impl<B: Backend> Unary<B> for Exp {
    const NAME: &'static str = "exp";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::exp(x)
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * y
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Exp>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `e^x`, element-wise.
    #[track_caller]
    pub const fn exp<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `e^x`, element-wise.
    exp(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([0.0, -1.5, 2.0], [1.0, 0.223_130_160_148_429_82, 7.389_056_098_930_65]);
        let dx = [1.0, 0.223_130_160_148_429_82, 7.389_056_098_930_65];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
