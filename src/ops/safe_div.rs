//! Quotient with a little added to the divisor: `y = a / (b + eps)`, element by element, with NumPy's broadcasting. It is
//! finite for a divisor of 0 (and not for one of `-eps`).
//!
//! `da = dy / (b + eps)` and `db = -dy y / (b + eps)`, each summed over the axes along which it was broadcast. Neither reads
//! `a`.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct SafeDiv;

impl<B: Backend> Binary<B> for SafeDiv {
    const NAME: &'static str = "safe_div";
    const READS: [Reads; 2] = [Reads::input(1), Reads::OUTPUT.and(Reads::input(1))];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, args: &Args) -> B::Elem {
        a / divisor(b, args)
    }

    #[inline(always)]
    fn gradient_a(_: B::Elem, b: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        dy / divisor(b, args)
    }

    #[inline(always)]
    fn gradient_b(a: B::Elem, b: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        // What is read as `a` is the output.
        -dy * (a / divisor(b, args))
    }
}

#[inline(always)]
fn divisor<E: Real>(b: E, args: &Args) -> E {
    b + args.scalar::<E, 8>()
}

/// What is added to the divisor where nothing else is said.
pub const EPS: f64 = 1e-8;

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, SafeDiv>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape, eps: f64) -> Result<Spec, ShapeError> {
    match binary::spec("safe_div", a, b) {
        Ok(spec) => Ok(spec.args(spec.args.with_scalar(8, eps))),
        Err(error) => Err(error),
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a / (b + 1e-8)`, element by element, for equal shapes; for others see [`Graph::safe_div_broadcast`].
    #[track_caller]
    pub const fn safe_div<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.safe_div_broadcast(a, b, EPS)
    }

    /// `a / (b + eps)`, element by element, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn safe_div_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>, eps: f64) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE, eps))
    }
}

crate::tape::methods! {
    /// `a / (b + eps)`, element by element, with NumPy's broadcasting. A fault where the shapes do not broadcast to one
    /// another.
    safe_div(a, b)(eps: f64) => (op(a, b), spec(a, b, eps))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([3]);
        let (a, b) = ([3.0, 0.0, 2.0], [1.0, 0.0, 0.0]);
        let (y, da, db) = ([2.0, 0.0, 4.0], [2.0 / 3.0, 2.0, 2.0], [-4.0 / 3.0, 0.0, -8.0]);
        check(op(shape, shape), spec(shape, shape, 0.5).unwrap(), &[&a, &b], &y, &[&da, &db]);
    }
}
