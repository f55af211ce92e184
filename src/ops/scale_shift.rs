//! Linear function with constant coefficients: `y = scale x + shift`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = scale dy`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct ScaleShift;

impl<B: Backend> Unary<B> for ScaleShift {
    const NAME: &'static str = "scale_shift";
    const READS: Reads = Reads::NONE;

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        B::mul_add(x, args.scalar::<B::Elem, 0>(), args.scalar::<B::Elem, 3>())
    }

    #[inline(always)]
    fn gradient(_: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        dy * args.scalar::<B::Elem, 0>()
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, ScaleShift>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape, scale: f64, shift: f64) -> Spec {
    Spec::new(x).args(Args::NONE.with_scalar(0, scale).with_scalar(3, shift))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `scale x + shift`, element-wise.
    #[track_caller]
    pub const fn scale_shift<S: Dims>(&mut self, x: Var<S>, scale: f64, shift: f64) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE, scale, shift))
    }
}

crate::tape::methods! {
    /// `scale x + shift`, element-wise.
    scale_shift(x)(scale: f64, shift: f64) => (op(), spec(x, scale, shift))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.0, -2.0], [3.5, 2.0]);
        let dx = [0.5, 0.5];
        check(op(), spec(Shape::new([2]), 0.5, 3.0), &[&x], &y, &[&dx]);
    }
}
