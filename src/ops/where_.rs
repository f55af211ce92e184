//! Choice, element by element: `y = a` where the condition `c` is true, else `b`, with NumPy's broadcasting of all three. An
//! element of `c` is true unless it is 0, as in PyTorch; so a NaN is.
//!
//! `da = dy` where `c` is true, else 0, and `db` the other way round, each summed over the axes along which it was broadcast.
//! There is no gradient for `c`.

use super::broadcast::{self, Operand, Rows};
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{self, Dims, Shape};

/// The table for `a` and `b` of the shape of the output.
#[must_use]
pub const fn op_same<B: Backend>() -> &'static Op<B> {
    const {
        let a = Gradient::over_dy(gradient_in_place::<B, 1>, Reads::input(0));
        let b = Gradient::over_dy(gradient_in_place::<B, 2>, Reads::input(0));
        &Op::new("where_", forward::<B>, [Gradient::None, a, b])
    }
}

/// The table for any three shapes that broadcast.
#[must_use]
pub const fn op_any<B: Backend>() -> &'static Op<B> {
    const {
        let a = Gradient::kernel(gradient_summed::<B, 1>, Reads::input(0));
        let b = Gradient::kernel(gradient_summed::<B, 2>, Reads::input(0));
        &Op::new("where_", forward::<B>, [Gradient::None, a, b])
    }
}

/// The table that suits these shapes.
#[must_use]
pub const fn op<B: Backend>(c: Shape, a: Shape, b: Shape) -> &'static Op<B> {
    match shape::broadcast(c, a) {
        Some(y) if a.equals(&b) && a.equals(&y) => op_same(),
        _ => op_any(),
    }
}

/// The output has the shape of all three, broadcast.
///
/// # Errors
/// When the shapes do not broadcast to one another.
pub const fn spec(c: Shape, a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    let op = "where_";
    let Some(values) = shape::broadcast(a, b) else {
        return Err(ShapeError::Broadcast { op, a, b });
    };
    match shape::broadcast(c, values) {
        Some(y) => Ok(Spec::new(y).args(broadcast::args(&[c, a, b], y))),
        None => Err(ShapeError::Broadcast { op, a: c, b: values }),
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a` where `c` is not 0, else `b`, for equal shapes; for others see [`Graph::where_broadcast`].
    #[track_caller]
    pub const fn where_<S: Dims>(&mut self, c: Var<S>, a: Var<S>, b: Var<S>) -> Var<S> {
        self.where_broadcast(c, a, b)
    }

    /// `a` where `c` is not 0, else `b`, with NumPy's broadcasting, to the annotated shape `Y`.
    ///
    /// # Panics
    /// When the shapes do not broadcast to one another, or `Y` is not what they give.
    #[track_caller]
    pub const fn where_broadcast<R: Dims, S: Dims, T: Dims, Y: Dims>(
        &mut self,
        c: Var<R>,
        a: Var<S>,
        b: Var<T>,
    ) -> Var<Y> {
        let op = op(R::SHAPE, S::SHAPE, T::SHAPE);
        self.record("", op, &[c.id(), a.id(), b.id()], spec(R::SHAPE, S::SHAPE, T::SHAPE))
    }
}

crate::tape::methods! {
    /// `a` where `c` is not 0, else `b`, with NumPy's broadcasting of all three. A fault where the shapes do not broadcast to
    /// one another. No gradient flows into `c`.
    where_(c, a, b)() => (op(c, a, b), spec(c, a, b))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [c, a, b] = call.x;
    let b = Operand::new::<2>(call.args, b);
    broadcast::replace(call.y, b, Operand::none(call.args), |b, _, _| b);
    let (c, a) = (Operand::new::<0>(call.args, c), Operand::new::<1>(call.args, a));
    broadcast::replace(call.y, c, a, |c, a, b| if c == B::Elem::ZERO { b } else { a });
}

fn gradient_in_place<B: Backend, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    let c = Operand::new::<0>(call.args, call.x[0]);
    broadcast::replace(call.dx, c, Operand::none(call.args), |c, _, dy| share::<_, OPERAND>(c, dy));
}

fn gradient_summed<B: Backend, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    let c = Operand::new::<0>(call.args, call.x[0]);
    let rows = Rows::new::<OPERAND>(call.args);
    let f = |_, c, dy| share::<_, OPERAND>(c, dy);
    broadcast::sum::<B>((call.dy, call.dx), call.add, rows, Operand::none(call.args), c, f);
}

/// What operand 1, `a`, or operand 2, `b`, gets.
#[inline(always)]
fn share<E: Real, const OPERAND: usize>(c: E, dy: E) -> E {
    if (c == E::ZERO) == (OPERAND == 2) { dy } else { E::ZERO }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([4]);
        let spec = spec(shape, shape, shape).unwrap();
        let (c, a, b) = ([1.0, 0.0, -2.0, -0.0], [1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0]);
        let (y, da, db) = ([1.0, -2.0, 3.0, -4.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]);
        check(op(shape, shape, shape), spec, &[&c, &a, &b], &y, &[&[], &da, &db]);
    }

    #[test]
    fn all_three_broadcast() {
        let (c, a, b) = (Shape::new([2, 1]), Shape::new([3]), Shape::SCALAR);
        let spec = spec(c, a, b).unwrap();
        let y = [1.0, 2.0, 3.0, -1.0, -1.0, -1.0];
        check(op(c, a, b), spec, &[&[1.0, 0.0], &[1.0, 2.0, 3.0], &[-1.0]], &y, &[&[], &[1.0; 3], &[3.0]]);
    }
}
