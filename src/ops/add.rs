//! Addition: `y = a + b`, with NumPy's broadcasting.
//!
//! `da = dy` and `db = dy`, each summed over the axes along which it was broadcast. For equal shapes no kernel computes them.

use super::binary::{self, Binary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Add;

impl<B: Backend> Binary<B> for Add {
    const NAME: &'static str = "add";
    const READS: [Reads; 2] = [Reads::NONE; 2];
    const PASSES: [bool; 2] = [true; 2];

    #[inline(always)]
    fn value(a: B::Elem, b: B::Elem, _: &Args) -> B::Elem {
        a + b
    }

    #[inline(always)]
    fn gradient_a(_: B::Elem, _: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy
    }

    #[inline(always)]
    fn gradient_b(_: B::Elem, _: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        dy
    }
}

/// The table for equal shapes.
#[must_use]
pub const fn op_same<B: Backend>() -> &'static Op<B> {
    binary::op_same::<B, Add>()
}

/// The table for a `b` that broadcasts to the shape of `a`.
#[must_use]
pub const fn op_into<B: Backend>() -> &'static Op<B> {
    binary::op_into::<B, Add>()
}

/// The table for any two shapes that broadcast.
#[must_use]
pub const fn op_any<B: Backend>() -> &'static Op<B> {
    binary::op_any::<B, Add>()
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    binary::op::<B, Add>(a, b)
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    binary::spec("add", a, b)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a + b` for equal shapes; for others see [`Graph::add_broadcast`].
    #[track_caller]
    pub const fn add<S: Dims>(&mut self, a: Var<S>, b: Var<S>) -> Var<S> {
        self.add_broadcast(a, b)
    }

    /// `a + b` with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R2<16, 10>>("x");
    ///     let bias = g.parameter::<R1<10>>("", "bias", Init::Zeros);
    ///     let y: Var<R2<16, 10>> = g.add_broadcast(x, bias);
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static ADD = net().infer());
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn add_broadcast<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>) -> Var<Y> {
        self.record("", op(S::SHAPE, T::SHAPE), &[a.id(), b.id()], spec(S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a + b`, with NumPy's broadcasting.
    add(a, b)() => (op(a, b), spec(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn equal_shapes_pass_the_gradient() {
        let shape = Shape::new([3]);
        let (a, b) = ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]);
        check(op(shape, shape), spec(shape, shape).unwrap(), &[&a, &b], &[3.0, 5.0, 7.0], &[&[1.0; 3], &[1.0; 3]]);
    }

    #[test]
    fn gradients_are_summed_over_broadcast_axes() {
        let (a, b) = (Shape::new([2, 3]), Shape::new([3]));
        let y = [11.0, 22.0, 33.0, 14.0, 25.0, 36.0];
        let (x, bias) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0, 20.0, 30.0]);
        check(op(a, b), spec(a, b).unwrap(), &[&x, &bias], &y, &[&[1.0; 6], &[2.0; 3]]);
        check(op(b, a), spec(b, a).unwrap(), &[&bias, &x], &y, &[&[2.0; 3], &[1.0; 6]]);
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_named() {
        let error = spec(Shape::new([2, 3]), Shape::new([2])).unwrap_err();
        assert_eq!(std::format!("{error}"), "add: shapes [2, 3] and [2] do not broadcast to one another");
    }
}
