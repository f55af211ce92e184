//! Error function: `y = erf x = 2/√π ∫₀ˣ e^(-t²) dt`, element-wise. The derivative needs `x`, which is kept.
//!
//! `dx = dy 2/√π e^(-x²)`.

use super::unary::{self, Unary, number};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Erf;

impl<B: Backend> Unary<B> for Erf {
    const NAME: &'static str = "erf";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::erf(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * (number::<B::Elem>(core::f64::consts::FRAC_2_SQRT_PI) * B::exp(-(x * x)))
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Erf>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The error function of `x`, element-wise.
    #[track_caller]
    pub const fn erf<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// The error function of `x`, element-wise.
    erf(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([0.25, 1.0, -2.5], [0.276_326_390_168_236_96, 0.842_700_792_949_714_9, -0.999_593_047_982_555]);
        let dx = [1.060_014_129_376_114_3, 0.415_107_497_420_594_7, 0.002_178_284_230_352_709_5];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
