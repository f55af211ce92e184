//! Gaussian error linear unit, element-wise: `y = x Φ(x)` with the normal distribution's `Φ(x) = (1 + erf(x / √2)) / 2`
//! ([`op_erf`]), or with its approximation `(1 + tanh u) / 2`, `u = √(2/π) (x + 0.044715 x³)` ([`op_tanh`]); as `tanh` in
//! PyTorch's `approximate`. The derivative needs `x`, which is kept. <https://arxiv.org/abs/1606.08415>
//!
//! `dx = dy (Φ(x) + x φ(x))` with the density `φ(x) = e^(-x²/2) / √(2π)`. The approximation is computed as `s = 1 / (1 + e^-2u)`,
//! which keeps its small end; `dx = dy (s + x s (1 - s) 2u')`.

use super::unary::{self, Unary, number};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// `2 √(2/π)`.
const TWICE_ROOT: f64 = 1.595_769_121_605_730_7;
/// `2 √(2/π) 0.044715`.
const CUBIC: f64 = TWICE_ROOT * 0.044_715;
/// `1 / √(2π)`.
const DENSITY: f64 = 0.398_942_280_401_432_7;

struct Erf;

impl<B: Backend> Unary<B> for Erf {
    const NAME: &'static str = "gelu";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::gelu(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        let density = number::<B::Elem>(DENSITY) * B::exp(number::<B::Elem>(-0.5) * (x * x));
        dy * (B::normal_cdf(x) + x * density)
    }
}

struct Tanh;

impl<B: Backend> Unary<B> for Tanh {
    const NAME: &'static str = "gelu";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        B::gelu_tanh(x)
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        let s = approximation::<B>(x);
        let slope = s * (B::Elem::ONE - s);
        // Far out the slope is 0, while x² may overflow.
        if slope == B::Elem::ZERO {
            return dy * s;
        }
        let u = number::<B::Elem>(TWICE_ROOT) + number::<B::Elem>(3.0 * CUBIC) * (x * x);
        dy * (s + x * (slope * u))
    }
}

/// `(1 + tanh u) / 2`.
#[inline(always)]
fn approximation<B: Backend>(x: B::Elem) -> B::Elem {
    B::sigmoid(x * (number::<B::Elem>(TWICE_ROOT) + number::<B::Elem>(CUBIC) * (x * x)))
}

/// The table of the exact form.
#[must_use]
pub const fn op_erf<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Erf>()
}

/// The table of the approximation.
#[must_use]
pub const fn op_tanh<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Tanh>()
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x Φ(x)` with the normal distribution's `Φ`, element-wise: PyTorch's default.
    #[track_caller]
    pub const fn gelu<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op_erf::<B>(), &[x.id()], spec(S::SHAPE))
    }

    /// `x Φ(x)` with the approximation of `Φ` by tanh, element-wise.
    #[track_caller]
    pub const fn gelu_tanh<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op_tanh::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `x Φ(x)` with the normal distribution's `Φ`, element-wise: PyTorch's default.
    gelu(x)() => (op_erf(), spec(x));
    /// `x Φ(x)` with the approximation of `Φ` by tanh, element-wise.
    gelu_tanh(x)() => (op_tanh(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([3]));
        let x = [-2.0, 0.0, 0.75];
        let (y, dx) = (
            [-0.045_500_263_896_358_42, 0.0, 0.580_029_485_717_348_8],
            [-0.085_231_801_078_196_9, 0.5, 0.999_225_721_739_235_1],
        );
        check(op_erf(), spec, &[&x], &y, &[&dx]);
        let (y, dx) = (
            [-0.045_402_305_912_224_98, 0.0, 0.579_960_555_165_620_3],
            [-0.086_099_256_623_618_38, 0.5, 0.998_938_256_137_414_3],
        );
        check(op_tanh(), spec, &[&x], &y, &[&dx]);
    }

    #[test]
    fn far_out_it_is_0_or_x() {
        let x = [-1e30, -20.0, 20.0, 1e30_f32];
        for op in [op_erf::<Strict<f32>>(), op_tanh()] {
            let (y, dx) = gradient(op, spec(Shape::new([4])), &[&x], &[1.0; 4], 0);
            assert_eq!((&y[..], &dx[..]), (&[0.0, 0.0, 20.0, 1e30][..], &[0.0, 0.0, 1.0, 1.0][..]));
        }
    }
}
