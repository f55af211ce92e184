//! Stacking of up to three tensors of one shape along a new axis. The kernels are those of [`concat`].

use super::{Args, MAX_INPUTS, Op, Spec, axes, concat};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &concat::table("stack") }
}

/// The output has the operands one after the other along its axis `axis`, which counts from behind the last where negative.
///
/// # Errors
/// When there are not one to three operands, the output has no such axis, or would have more axes than there can be.
pub const fn spec(x: Shape, operands: usize, axis: isize) -> Result<Spec, ShapeError> {
    let op = "stack";
    if operands == 0 || operands > MAX_INPUTS {
        let (what, against) = ("operands are", "at least one, and at most");
        return Err(ShapeError::Length { op, what, found: operands, against, expected: MAX_INPUTS });
    }
    let (shape, axis) = match axes::insert(op, x, axis, operands) {
        Ok(inserted) => inserted,
        Err(error) => return Err(error),
    };
    let (mut args, mut i) = (Args::new(&[shape.product(axis, shape.rank())]), 0);
    while i < operands {
        args.0[1 + i] = x.product(axis, x.rank()) as u32;
        i += 1;
    }
    Ok(Spec::new(shape).args(args))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a` and `b` as the two elements along axis `axis` of the annotated shape `Y`; negative axes count from behind the
    /// last.
    ///
    /// # Panics
    /// When the annotated shape is another, or there would be more than five axes.
    pub const fn stack<S: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<S>, axis: isize) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id()], spec(S::SHAPE, 2, axis))
    }

    /// As [`Graph::stack`], of three.
    ///
    /// # Panics
    /// As [`Graph::stack`].
    pub const fn stack3<S: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<S>, c: Var<S>, axis: isize) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id(), c.id()], spec(S::SHAPE, 3, axis))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, a, b) = (Shape::new([2]), [1.0, 2.0], [3.0, 4.0]);
        check(op(), spec(x, 2, 0).unwrap(), &[&a, &b], &[1.0, 2.0, 3.0, 4.0], &[&[1.0; 2], &[1.0; 2]]);
        check(op(), spec(x, 2, -1).unwrap(), &[&a, &b], &[1.0, 3.0, 2.0, 4.0], &[&[1.0; 2], &[1.0; 2]]);
    }
}
