//! Power, element by element: `y = a^b`, with NumPy's broadcasting and the special cases of IEEE 754's `pow`; for one fixed
//! exponent see [`pow_scalar`](super::pow_scalar).
//!
//! `da = dy b a^(b - 1)`, 0 where `b = 0`; `db = dy a^b ln a`, 0 where `a = 0` and `b >= 0`, as in PyTorch; each summed over
//! the axes along which it was broadcast.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Pow;

impl<B: Backend> Binary<B> for Pow {
    const NAME: &'static str = "pow";
    const READS: [Reads; 2] = [Reads::input(0).and(Reads::input(1)); 2];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        B::powf(a, b)
    }

    #[inline(always)]
    fn gradient_a(a: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        power_gradient::<B>(a, b, dy)
    }

    #[inline(always)]
    fn gradient_b(a: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        if a == B::Elem::ZERO && b >= B::Elem::ZERO { B::Elem::ZERO } else { dy * (B::powf(a, b) * B::ln(a)) }
    }
}

/// `dy` times the derivative of `x^exponent` for `x`.
#[inline(always)]
pub(super) fn power_gradient<B: Backend>(x: B::Elem, exponent: B::Elem, dy: B::Elem) -> B::Elem {
    if exponent == B::Elem::ZERO { B::Elem::ZERO } else { dy * (exponent * B::powf(x, exponent - B::Elem::ONE)) }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Pow>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("pow", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a` to the power `b`, element by element, for equal shapes; for others see [`Graph::pow_broadcast`].
    #[track_caller]
    pub const fn pow<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.pow_broadcast(a, b)
    }

    /// `a` to the power `b`, element by element, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn pow_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a` to the power `b`, element by element, with NumPy's broadcasting. A fault where the shapes do not
    /// broadcast to one another.
    pow(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([4]);
        let (a, b) = ([2.0, 4.0, 0.0, 0.0], [3.0, -0.5, 0.0, 2.0]);
        let (y, da) = ([8.0, 0.5, 1.0, 0.0], [12.0, -0.0625, 0.0, 0.0]);
        let db = [5.545_177_444_479_562, core::f64::consts::LN_2, 0.0, 0.0];
        check(op(shape, shape), spec(shape, shape).unwrap(), &[&a, &b], &y, &[&da, &db]);
    }
}
