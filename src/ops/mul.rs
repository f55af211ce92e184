//! Product, element by element: `y = a b`, with NumPy's broadcasting.
//!
//! `da = dy b` and `db = dy a`, each summed over the axes along which it was broadcast.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Mul;

impl<B: Backend> Binary<B> for Mul {
    const NAME: &'static str = "mul";
    const READS: [Reads; 2] = [Reads::input(1), Reads::input(0)];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        a * b
    }

    #[inline(always)]
    fn gradient_a(_: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * b
    }

    #[inline(always)]
    fn gradient_b(a: B::Elem, _: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy * a
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Mul>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("mul", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a b`, element by element, for equal shapes; for others see [`Graph::mul_broadcast`].
    #[track_caller]
    pub const fn mul<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.mul_broadcast(a, b)
    }

    /// `a b`, element by element, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn mul_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a * b`, with NumPy's broadcasting.
    mul(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([2]);
        let (a, b) = ([2.0, 3.0], [4.0, 5.0]);
        check(op(shape, shape), spec(shape, shape).unwrap(), &[&a, &b], &[8.0, 15.0], &[&b, &a]);
    }

    #[test]
    fn each_row_has_a_factor_of_its_own() {
        let (a, b) = (Shape::new([2, 3]), Shape::new([2, 1]));
        let (x, factors) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0, -1.0]);
        let (y, dx) = ([10.0, 20.0, 30.0, -4.0, -5.0, -6.0], [10.0, 10.0, 10.0, -1.0, -1.0, -1.0]);
        check(op(a, b), spec(a, b).unwrap(), &[&x, &factors], &y, &[&dx, &[6.0, 15.0]]);
        check(op(b, a), spec(b, a).unwrap(), &[&factors, &x], &y, &[&[6.0, 15.0], &dx]);
    }
}
