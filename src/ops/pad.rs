//! Padding with a constant: along each axis so many elements before, and so many after.
//!
//! `dx` is the part of `dy` where `x` lies.

use super::{ForwardCall, Gradient, Op, Reads, Spec, axes, strided};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(strided::gradient_of_spread::<B>, Reads::NONE);
        &Op::new("pad", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has along each axis the elements of `x`, those before and those after. They are for the first axes; others
/// stay.
///
/// # Errors
/// When there are more lengths than axes, or not as many before as after.
pub const fn spec(x: Shape, before: &[usize], after: &[usize], value: f64) -> Result<Spec, ShapeError> {
    let op = "pad";
    if before.len() != after.len() {
        let (what, against) = ("lengths before are", "those after");
        return Err(ShapeError::Length { op, what, found: before.len(), against, expected: after.len() });
    }
    if before.len() > x.rank() {
        let (what, against) = ("padded axes are", "those of the input");
        return Err(ShapeError::Length { op, what, found: before.len(), against, expected: x.rank() });
    }
    let (mut shape, mut axis) = (x, 0);
    while axis < before.len() {
        shape = axes::replace(shape, axis, x.axis(axis).saturating_add(before[axis]).saturating_add(after[axis]));
        axis += 1;
    }
    let (strides, mut offset) = (axes::strides(shape), 0);
    axis = 0;
    while axis < before.len() {
        offset = usize::saturating_add(offset, before[axis].saturating_mul(strides[axis]));
        axis += 1;
    }
    Ok(Spec::new(shape).args(strided::args(x, strides, offset, true).with_scalar(strided::WORDS, value)))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` with so many elements of `value` before and after it along its first axes, as the annotated shape `Y`.
    ///
    /// # Panics
    /// When there are more lengths than axes, not as many before as after, or the annotated shape is another.
    #[track_caller]
    pub const fn pad<S: Dims, Y: Dims>(&mut self, x: Var<S>, before: &[usize], after: &[usize], value: f64) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, before, after, value))
    }
}

crate::tape::methods! {
    /// `x` with so many elements of `value` before and after it along its first axes. A fault where there are more lengths than
    /// axes, or not as many before as after.
    pad(x)(before: &[usize], after: &[usize], value: f64) => (op(), spec(x, before, after, value))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    call.y.fill(call.args.scalar::<B::Elem, { strided::WORDS }>());
    strided::spread::<B>(call);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([2, 1]), &[0, 1], &[1, 2], 9.0).unwrap();
        let y = [9.0, 1.0, 9.0, 9.0, 9.0, 2.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0];
        check(op(), spec, &[&[1.0, 2.0]], &y, &[&[1.0, 1.0]]);
        let dy = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        assert_eq!(gradient(op::<Strict<f64>>(), spec, &[&[1.0, 2.0]], &dy, 0).1, [1.0, 5.0]);
    }

    #[test]
    fn more_lengths_than_axes_are_an_error() {
        let error = spec(Shape::new([2]), &[0, 1], &[1, 2], 0.0).unwrap_err();
        assert_eq!(std::format!("{error}"), "pad: padded axes are 2, those of the input 1");
    }
}
