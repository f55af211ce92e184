//! Natural logarithm: `y = ln x`, element-wise. The derivative needs `x`, which is kept. -∞ at 0, NaN below.
//!
//! `dx = dy / x`.

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Log;

impl<B: Backend> Unary<B> for Log {
    const NAME: &'static str = "log";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::ln(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy / x
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Log>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The natural logarithm of `x`, element-wise.
    #[track_caller]
    pub const fn log<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// The natural logarithm of `x`, element-wise: -∞ at 0, NaN below.
    log(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([1.0, 3.0, 0.25], [0.0, 1.098_612_288_668_109_8, -1.386_294_361_119_890_6]);
        let dx = [1.0, 0.333_333_333_333_333_3, 4.0];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
