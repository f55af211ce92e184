//! Quotient, element by element: `y = a / b`, with NumPy's broadcasting. Division by zero is IEEE's: an infinity, or a NaN
//! for 0 / 0.
//!
//! `da = dy / b` and `db = -dy y / b`, each summed over the axes along which it was broadcast. Neither reads `a`.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Div;

impl<B: Backend> Binary<B> for Div {
    const NAME: &'static str = "div";
    const READS: [Reads; 2] = [Reads::input(1), Reads::OUTPUT.and(Reads::input(1))];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        a / b
    }

    #[inline(always)]
    fn gradient_a(_: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy / b
    }

    #[inline(always)]
    fn gradient_b(a: B::Elem, b: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        // What is read as `a` is the output.
        -dy * (a / b)
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Div>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("div", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a / b`, element by element, for equal shapes; for others see [`Graph::div_broadcast`].
    #[track_caller]
    pub const fn div<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.div_broadcast(a, b)
    }

    /// `a / b`, element by element, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn div_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a / b`, with NumPy's broadcasting.
    div(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;
    use crate::backend::Strict;
    use crate::testing::run;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([2]);
        let spec = spec(shape, shape).unwrap();
        check(op(shape, shape), spec, &[&[6.0, 8.0], &[2.0, 4.0]], &[3.0, 2.0], &[&[0.5, 0.25], &[-1.5, -0.5]]);
    }

    #[test]
    fn division_by_zero_is_that_of_ieee() {
        let shape = Shape::new([3]);
        let y = run::<Strict<f32>>(
            op(shape, shape),
            spec(shape, shape).unwrap(),
            &[&[1.0, -1.0, 0.0], &[0.0; 3]],
            &[1.0; 3],
        )
        .y;
        assert!(y[0] == f32::INFINITY && y[1] == -f32::INFINITY && y[2].is_nan(), "{y:?}");
    }
}
