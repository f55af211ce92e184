//! Addition: `y = a + b`, with NumPy's broadcasting.
//!
//! `da = dy` and `db = dy`, each summed over the axes along which it was broadcast, in row-major order. Three tables share
//! these kernels: one for equal shapes, whose gradients need no kernel; one for a `b` that broadcasts to `a`, which like the
//! first works in place; one for the rest.

use super::broadcast::{self, Rows};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{self, Dims, Shape};

/// The table for equal shapes.
#[must_use]
pub const fn op_same<B: Backend>() -> &'static Op<B> {
    const { &Op::new("add", add_b::<B>, [Gradient::Pass, Gradient::Pass, Gradient::None]).over(Over::Output) }
}

/// The table for a `b` that broadcasts to the shape of `a`.
#[must_use]
pub const fn op_into<B: Backend>() -> &'static Op<B> {
    const {
        &Op::new("add", add_b::<B>, [Gradient::Pass, Gradient::kernel(sum::<B, 1>, Reads::NONE), Gradient::None])
            .over(Over::Output)
    }
}

/// The table for any two shapes that broadcast.
#[must_use]
pub const fn op_any<B: Backend>() -> &'static Op<B> {
    const {
        let a = Gradient::kernel(sum::<B, 0>, Reads::NONE);
        let b = Gradient::kernel(sum::<B, 1>, Reads::NONE);
        &Op::new("add", add_both::<B>, [a, b, Gradient::None])
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(a: Shape, b: Shape) -> &'static Op<B> {
    match shape::broadcast(a, b) {
        Some(_) if a.equals(&b) => op_same(),
        Some(y) if a.equals(&y) => op_into(),
        _ => op_any(),
    }
}

/// The output has the shape of both, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    match shape::broadcast(a, b) {
        Some(y) => Ok(Spec::new(y).args(broadcast::args(a, b, y))),
        None => Err(ShapeError::Broadcast { op: "add", a, b }),
    }
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

fn add_both<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [a, b, _] = call.x;
    write_or_add::<B, 0>(call.args, a, call.y, false);
    write_or_add::<B, 1>(call.args, b, call.y, true);
}

fn add_b<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    write_or_add::<B, 1>(call.args, call.x[1], call.y, true);
}

fn write_or_add<B: Backend, const OPERAND: usize>(args: &Args, x: &[B::Elem], y: &mut [B::Elem], add: bool) {
    let rows = Rows::new::<OPERAND>(args);
    let stretched = rows.stride() == 0;
    for (y, at) in y.chunks_exact_mut(rows.len()).zip(rows) {
        let x = x.get(at..).unwrap_or_default();
        if stretched {
            let x = x.first().copied().unwrap_or_default();
            y.iter_mut().for_each(|y| *y = if add { *y + x } else { x });
        } else {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = if add { *y + x } else { x });
        }
    }
}

/// The gradient of an operand: `dy` summed over the axes that the operand was stretched along.
fn sum<B: Backend, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    let rows = Rows::new::<OPERAND>(call.args);
    let stretched = rows.stride() == 0;
    for (dy, at) in call.dy.chunks_exact(rows.len()).zip(rows) {
        let dx = call.dx.get_mut(at..).unwrap_or_default();
        if stretched {
            if let Some(dx) = dx.first_mut() {
                *dx += B::sum(dy);
            }
        } else {
            dx.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx += dy);
        }
    }
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
