//! Natural logarithm of one more: `y = ln(1 + x)`, accurate near 0, element-wise. The derivative needs `x`, which is kept.
//!
//! `dx = dy / (1 + x)`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Log1p;

impl<B: Backend> Unary<B> for Log1p {
    const NAME: &'static str = "log1p";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::ln_1p(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy / (B::Elem::ONE + x)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Log1p>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `ln(1 + x)`, accurate near 0, element-wise.
    #[track_caller]
    pub const fn log1p<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `ln(1 + x)`, accurate near 0, element-wise.
    log1p(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = (
            [0.0, 1.0e-10, -0.75, 2.0],
            [0.0, 9.999_999_999_500_001e-11, -1.386_294_361_119_890_6, 1.098_612_288_668_109_8],
        );
        let dx = [1.0, 0.999_999_999_9, 4.0, 0.333_333_333_333_333_3];
        check(op(), spec(Shape::new([4])), &[&x], &y, &[&dx]);
    }
}
