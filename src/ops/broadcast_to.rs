//! Broadcasting to a shape by NumPy's rules: axes line up from the last, and those of one element, or missing, are repeated.
//!
//! `dx` is the sum of `dy` over the repetitions, in row-major order.

use super::{Gradient, Op, Reads, Spec, axes, strided};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, MAX_RANK, Shape, broadcast};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(strided::gradient_of_any::<B>, Reads::NONE);
        &Op::new("broadcast_to", strided::copy::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `to`.
///
/// # Errors
/// When `x` does not broadcast to it.
pub const fn spec(x: Shape, to: Shape) -> Result<Spec, ShapeError> {
    match broadcast(x, to) {
        Some(y) if y.equals(&to) => {}
        _ => return Err(ShapeError::Broadcast { op: "broadcast_to", a: x, b: to }),
    }
    let (own, mut strides, mut axis) = (axes::strides(x), [0; MAX_RANK], 0);
    let missing = to.rank() - x.rank();
    while axis < x.rank() {
        if x.axis(axis) != 1 {
            strides[missing + axis] = own[axis];
        }
        axis += 1;
    }
    Ok(Spec::new(to).args(strided::args(to, strides, 0, false)))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` repeated to the annotated shape `Y`.
    ///
    /// # Panics
    /// When `x` does not broadcast to it.
    #[track_caller]
    pub const fn broadcast_to<S: Dims, Y: Dims>(&mut self, x: Var<S>) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, Y::SHAPE))
    }
}

crate::tape::methods! {
    /// `x` repeated to this shape, by NumPy's rules. A fault where it does not broadcast to it.
    broadcast_to(x)(shape: impl Into<Shape>) => (op(), spec(x, shape.into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let along_rows = spec(Shape::new([2, 1]), Shape::new([2, 3])).unwrap();
        check(op(), along_rows, &[&[1.0, 2.0]], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0], &[&[3.0, 3.0]]);
        let along_columns = spec(Shape::new([2]), Shape::new([3, 2])).unwrap();
        check(op(), along_columns, &[&[1.0, 2.0]], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0], &[&[3.0, 3.0]]);
        check(op(), spec(Shape::SCALAR, Shape::new([2, 2])).unwrap(), &[&[7.0]], &[7.0; 4], &[&[4.0]]);
    }

    #[test]
    fn a_shape_that_x_does_not_broadcast_to_is_an_error() {
        for (x, to) in [(Shape::new([2]), Shape::new([3])), (Shape::new([2, 3]), Shape::new([2, 1]))] {
            assert!(spec(x, to).is_err(), "{x} to {to}");
        }
    }
}
