//! Square: `y = x²`, element-wise. The derivative needs `x`, which is kept.
//!
//! `dx = 2 dy x`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Square;

impl<B: Backend> Unary<B> for Square {
    const NAME: &'static str = "square";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        x * x
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * (x + x)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Square>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x²`, element-wise.
    #[track_caller]
    pub const fn square<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `x²`, element-wise.
    square(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.5, -2.0, 0.0], [2.25, 4.0, 0.0]);
        let dx = [3.0, -4.0, 0.0];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
