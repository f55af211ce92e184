//! Adds a constant: `y = x + scalar`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct AddScalar;

impl<B: Backend> Unary<B> for AddScalar {
    const NAME: &'static str = "add_scalar";
    const READS: Reads = Reads::NONE;
    const PASSES: bool = true;

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        x + args.scalar::<B::Elem, 0>()
    }

    #[inline(always)]
    fn gradient(_: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, AddScalar>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape, scalar: f64) -> Spec {
    Spec::new(x).args(Args::NONE.with_scalar(0, scalar))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x + scalar`, element-wise.
    #[track_caller]
    pub const fn add_scalar<S: Dims>(&mut self, x: Var<S>, scalar: f64) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE, scalar))
    }
}

crate::tape::methods! {
    /// `x + scalar`, element-wise.
    add_scalar(x)(scalar: f64) => (op(), spec(x, scalar))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.0, -2.0], [1.5, -1.5]);
        let dx = [1.0, 1.0];
        check(op(), spec(Shape::new([2]), 0.5), &[&x], &y, &[&dx]);
    }
}
