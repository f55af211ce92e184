//! Subtraction: `y = a - b`, with NumPy's broadcasting.
//!
//! `da = dy` and `db = -dy`, each summed over the axes along which it was broadcast.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Sub;

impl<B: Backend> Binary<B> for Sub {
    const NAME: &'static str = "sub";
    const READS: [Reads; 2] = [Reads::NONE; 2];
    const PASSES: [bool; 2] = [true, false];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        a - b
    }

    #[inline(always)]
    fn gradient_a(_: B::Elem, _: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy
    }

    #[inline(always)]
    fn gradient_b(_: B::Elem, _: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        -dy
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Sub>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("sub", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a - b`, for equal shapes; for others see [`Graph::sub_broadcast`].
    #[track_caller]
    pub const fn sub<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.sub_broadcast(a, b)
    }

    /// `a - b`, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn sub_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a - b`, with NumPy's broadcasting.
    sub(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (a, b) = (Shape::new([2, 3]), Shape::new([3]));
        let (x, y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0, 20.0, 30.0]);
        let difference = [-9.0, -18.0, -27.0, -6.0, -15.0, -24.0];
        check(op(a, b), spec(a, b).unwrap(), &[&x, &y], &difference, &[&[1.0; 6], &[-2.0; 3]]);
        let opposite = difference.map(|d| -d);
        check(op(b, a), spec(b, a).unwrap(), &[&y, &x], &opposite, &[&[2.0; 3], &[-1.0; 6]]);
    }
}
