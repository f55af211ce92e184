//! The smaller of two, element by element: `y = min(a, b)`, with NumPy's broadcasting; NaN where one is NaN.
//!
//! `dy` goes to the smaller one. Where both are equal each gets half of it, and where one is NaN both get all of it, as in
//! PyTorch; summed over the axes along which an operand was broadcast.

use super::binary::{self, Binary};
use super::unary::number;
use super::{Args, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Minimum;

impl<B: Backend> Binary<B> for Minimum {
    const NAME: &'static str = "minimum";
    const READS: [Reads; 2] = [Reads::input(0).and(Reads::input(1)); 2];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        a.minimum(b)
    }

    #[inline(always)]
    fn gradient_a(a: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        share(a, b, dy)
    }

    #[inline(always)]
    fn gradient_b(a: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        share(b, a, dy)
    }
}

/// What the operand with the element `own` gets.
#[inline(always)]
fn share<E: Real>(own: E, other: E, dy: E) -> E {
    if own == other {
        dy * number(0.5)
    } else if own > other {
        E::ZERO
    } else {
        dy
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Minimum>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("minimum", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The smaller of `a` and `b`, element by element, for equal shapes; for others see [`Graph::minimum_broadcast`].
    #[track_caller]
    pub const fn minimum<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.minimum_broadcast(a, b)
    }

    /// The smaller of `a` and `b`, element by element, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn minimum_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// The smaller of `a` and `b`, element by element, with NumPy's broadcasting. A fault where the shapes do not
    /// broadcast to one another.
    minimum(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;
    use crate::backend::Strict;
    use crate::testing::run;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([3]);
        let (a, b) = ([1.0, 2.0, 2.0], [3.0, 2.0, -4.0]);
        check(
            op(shape, shape),
            spec(shape, shape).unwrap(),
            &[&a, &b],
            &[1.0, 2.0, -4.0],
            &[&[1.0, 0.5, 0.0], &[0.0, 0.5, 1.0]],
        );
    }

    #[test]
    fn a_nan_goes_through() {
        let shape = Shape::new([2]);
        let (a, b) = ([f64::NAN, 1.0], [1.0, f64::NAN]);
        let outcome = run::<Strict<f64>>(op(shape, shape), spec(shape, shape).unwrap(), &[&a, &b], &[1.0; 2]);
        assert!(outcome.y.iter().all(|y| y.is_nan()), "{:?}", outcome.y);
        assert_eq!(outcome.gradients, [[1.0; 2]; 2]);
    }
}
