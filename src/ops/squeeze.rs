//! Squeeze: `x` without axes of one element. A view: no kernel runs, and input and output are the same memory.

use super::{Op, Spec, axes, reshape};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &Op { name: "squeeze", ..*reshape::op::<B>() } }
}

/// The output lacks these axes, or where none is named, all of one element. Negative axes count from behind the last.
///
/// # Errors
/// When `x` has no such axis, one is named twice, or has another number of elements than one.
pub const fn spec(x: Shape, axes: &[isize]) -> Result<Spec, ShapeError> {
    let op = "squeeze";
    let mask = match axes::mask(op, x, axes) {
        Ok(mask) => mask,
        Err(error) => return Err(error),
    };
    let (mut shape, mut axis) = (Shape::SCALAR, 0);
    while axis < x.rank() {
        let (length, is_named) = (x.axis(axis), mask >> axis & 1 == 1);
        if is_named && length != 1 {
            let (what, against) = ("elements along an axis that goes are", "but have to be");
            return Err(ShapeError::Length { op, what, found: length, against, expected: 1 });
        }
        if !is_named && (mask != 0 || length != 1) {
            shape = shape.push(length);
        }
        axis += 1;
    }
    Ok(Spec::new(shape))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` without these axes of one element, or without all such where none is named, as the annotated shape `Y`.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice or has more than one element, or the annotated shape is another.
    #[track_caller]
    pub const fn squeeze<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axes))
    }
}

crate::tape::methods! {
    /// `x` without these axes of one element, or without all such where none is named: a view. Negative ones count from behind
    /// the last. A fault where there is no such axis, one is named twice, or has another number of elements than one.
    squeeze(x)(axes: &[isize]) => (op(), spec(x, axes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn axes_of_one_element_go() {
        let shape = |axes: &[isize]| spec(Shape::new([1, 2, 1]), axes).unwrap().shape;
        assert_eq!(shape(&[]), Shape::new([2]));
        assert_eq!(shape(&[0]), Shape::new([2, 1]));
        assert_eq!(shape(&[-1]), Shape::new([1, 2]));
        check(op(), spec(Shape::new([1, 2]), &[]).unwrap(), &[&[3.0, 4.0]], &[3.0, 4.0], &[&[1.0, 1.0]]);
    }

    #[test]
    fn an_axis_of_more_elements_stays() {
        let error = spec(Shape::new([1, 2]), &[1]).unwrap_err();
        assert_eq!(std::format!("{error}"), "squeeze: elements along an axis that goes are 2, but have to be 1");
    }
}
