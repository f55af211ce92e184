//! Exponential function less one: `y = e^x - 1`, accurate near 0, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy (y + 1)`.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Expm1;

impl<B: Backend> Unary<B> for Expm1 {
    const NAME: &'static str = "expm1";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::exp_m1(x)
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * (y + B::Elem::ONE)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Expm1>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `e^x - 1`, accurate near 0, element-wise.
    #[track_caller]
    pub const fn expm1<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `e^x - 1`, accurate near 0, element-wise.
    expm1(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) =
            ([0.0, 1.0e-10, -1.5, 2.0], [0.0, 1.000_000_000_05e-10, -0.776_869_839_851_570_2, 6.389_056_098_930_65]);
        let dx = [1.0, 1.000_000_000_1, 0.223_130_160_148_429_82, 7.389_056_098_930_65];
        check(op(), spec(Shape::new([4])), &[&x], &y, &[&dx]);
    }
}
