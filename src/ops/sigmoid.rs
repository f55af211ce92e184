//! Logistic function: `y = 1 / (1 + e^-x)`, element-wise, in place where nothing else reads `x`; stable over the whole
//! range ([`Backend::sigmoid`]).
//!
//! `dx = dy y (1 - y)`.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Sigmoid;

impl<B: Backend> Unary<B> for Sigmoid {
    const NAME: &'static str = "sigmoid";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::sigmoid(x)
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * (y * (B::Elem::ONE - y))
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Sigmoid>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `1 / (1 + e^-x)`, element-wise.
    #[track_caller]
    pub const fn sigmoid<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `1 / (1 + e^-x)`, element-wise.
    sigmoid(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let y2 = 0.880_797_077_977_882_4;
        let x = [0.0, 2.0, -1000.0];
        check(op(), spec(Shape::new([3])), &[&x], &[0.5, y2, 0.0], &[&[0.25, y2 * (1.0 - y2), 0.0]]);
    }
}
