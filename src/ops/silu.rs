//! Sigmoid linear unit, also called swish: `y = x s` with `s = 1 / (1 + e^-x)`, element-wise. The derivative needs `x`, which is kept.
//! <https://arxiv.org/abs/1702.03118>
//!
//! `dx = dy s (1 + x (1 - s))`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Silu;

impl<B: Backend> Unary<B> for Silu {
    const NAME: &'static str = "silu";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::silu(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        let s = B::sigmoid(x);
        dy * (s * (B::Elem::ONE + x * (B::Elem::ONE - s)))
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Silu>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x / (1 + e^-x)`, element-wise.
    #[track_caller]
    pub const fn silu<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `x / (1 + e^-x)`, element-wise.
    silu(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) =
            ([-1.0, 0.0, 1.5, -1000.0, 1000.0], [-0.268_941_421_369_995_1, 0.0, 1.226_361_714_290_465_5, 0.0, 1000.0]);
        let dx = [0.072_329_488_128_513_27, 0.5, 1.041_294_154_299_143, 0.0, 1.0];
        check(op(), spec(Shape::new([5])), &[&x], &y, &[&dx]);
    }
}
