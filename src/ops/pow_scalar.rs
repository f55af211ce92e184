//! Power with a constant exponent: `y = x^exponent` with the special cases of IEEE 754's `pow`, element-wise. The derivative
//! needs `x`, which is kept. For exponents 2, 1/2, -1/2 and -1 there are [`square`](super::square), [`sqrt`](super::sqrt),
//! [`rsqrt`](super::rsqrt) and [`reciprocal`](super::reciprocal).
//!
//! `dx = dy exponent x^(exponent - 1)`, 0 for an exponent of 0, as in PyTorch.

use super::pow::power_gradient;
use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct PowScalar;

impl<B: Backend> Unary<B> for PowScalar {
    const NAME: &'static str = "pow_scalar";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        B::powf(x, args.scalar::<B::Elem, 0>())
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        power_gradient::<B>(x, args.scalar::<B::Elem, 0>(), dy)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, PowScalar>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape, exponent: f64) -> Spec {
    Spec::new(x).args(Args::NONE.with_scalar(0, exponent))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` to the power `exponent`, element-wise.
    #[track_caller]
    pub const fn pow_scalar<S: Dims>(&mut self, x: Var<S>, exponent: f64) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE, exponent))
    }
}

crate::tape::methods! {
    /// `x` to the power `exponent`, element-wise.
    pow_scalar(x)(exponent: f64) => (op(), spec(x, exponent))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([2.0, -2.0, 0.0], [8.0, -8.0, 0.0]);
        let dx = [12.0, 12.0, 0.0];
        check(op(), spec(Shape::new([3]), 3.0), &[&x], &y, &[&dx]);
    }
}
