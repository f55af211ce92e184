//! Mish: `y = x t` with `t = tanh(ln(1 + e^x))`, element-wise. The derivative needs `x`, which is kept.
//! <https://arxiv.org/abs/1908.08681>
//!
//! With `e = e^-|x|`, `t` is `(1 + 2e) / (1 + 2e + 2e²)` above 0 and `(e² + 2e) / (e² + 2e + 2)` below: one exponential, and
//! nothing overflows or cancels. `dx = dy (t + x s (1 - t²))` with `s = 1 / (1 + e^-x)`; `1 - t²` comes from the same fractions.

use super::unary::{self, Unary, number};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Mish;

impl<B: Backend> Unary<B> for Mish {
    const NAME: &'static str = "mish";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::mish(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        let (t, slope) = parts::<B>(x);
        dy * (t + x * slope)
    }
}

/// `t`, and its derivative `s (1 - t²)`.
#[inline(always)]
fn parts<B: Backend>(x: B::Elem) -> (B::Elem, B::Elem) {
    let (one, two) = (B::Elem::ONE, number::<B::Elem>(2.0));
    let e = B::exp(-x.abs());
    // `t` is `top / (top + rest)`.
    let (s, top, rest) = if x > B::Elem::ZERO {
        (one / (one + e), one + (e + e), two * (e * e))
    } else {
        (e / (one + e), e * (e + two), two)
    };
    let bottom = top + rest;
    (top / bottom, s * (rest / bottom) * ((top + bottom) / bottom))
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Mish>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x tanh(ln(1 + e^x))`, element-wise.
    #[track_caller]
    pub const fn mish<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `x tanh(ln(1 + e^x))`, element-wise.
    mish(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) =
            ([-1.0, 0.0, 1.5, -1000.0, 1000.0], [-0.303_401_461_374_108_9, 0.0, 1.403_378_266_395_802_5, 0.0, 1000.0]);
        let dx = [0.059_216_755_877_394_95, 0.6, 1.088_487_985_007_847_7, 0.0, 1.0];
        check(op(), spec(Shape::new([5])), &[&x], &y, &[&dx]);
    }
}
