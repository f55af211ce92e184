//! What operations along axes share: axes as users give them, negative ones counting from behind the last.

use crate::error::ShapeError;
use crate::shape::{MAX_RANK, Shape};

/// The axis, counted from 0.
pub(super) const fn find(op: &'static str, x: Shape, axis: isize) -> Result<usize, ShapeError> {
    let axes = x.rank();
    let found = if axis < 0 { axes.wrapping_sub(axis.unsigned_abs()) } else { axis.unsigned_abs() };
    if found < axes { Ok(found) } else { Err(ShapeError::Axis { op, axis, axes }) }
}

/// A bit for each of these axes.
pub(super) const fn mask(op: &'static str, x: Shape, axes: &[isize]) -> Result<u32, ShapeError> {
    let (mut mask, mut i) = (0, 0);
    while i < axes.len() {
        // Constants have no `?`.
        match find(op, x, axes[i]) {
            Ok(axis) if mask >> axis & 1 == 1 => return Err(ShapeError::RepeatedAxis { op, axis }),
            Ok(axis) => mask |= 1 << axis,
            Err(error) => return Err(error),
        }
        i += 1;
    }
    Ok(mask)
}

/// How far apart the elements of `x` lie along each axis.
pub(super) const fn strides(x: Shape) -> [usize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut axis = 0;
    while axis < x.rank() {
        strides[axis] = x.product(axis + 1, x.rank());
        axis += 1;
    }
    strides
}

/// `x` with another axis of this length as axis `axis` of the result, and which that is.
pub(super) const fn insert(
    op: &'static str,
    x: Shape,
    axis: isize,
    length: usize,
) -> Result<(Shape, usize), ShapeError> {
    if x.rank() == MAX_RANK {
        let (what, against) = ("axes of the output are", "at most there are");
        return Err(ShapeError::Length { op, what, found: MAX_RANK + 1, against, expected: MAX_RANK });
    }
    let at = match find(op, x.push(length), axis) {
        Ok(at) => at,
        Err(error) => return Err(error),
    };
    let (mut shape, mut i) = (x.prefix(at).push(length), at);
    while i < x.rank() {
        shape = shape.push(x.axis(i));
        i += 1;
    }
    Ok((shape, at))
}

/// `x` with axis `at` of this length; the longest that there is where that is longer, which no memory holds.
pub(super) const fn replace(x: Shape, at: usize, length: usize) -> Shape {
    let length = if length > u32::MAX as usize { u32::MAX as usize } else { length };
    let mut shape = Shape::SCALAR;
    let mut axis = 0;
    while axis < x.rank() {
        shape = shape.push(if axis == at { length } else { x.axis(axis) });
        axis += 1;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_axes_count_from_behind_the_last() {
        let x = Shape::new([2, 3, 4]);
        assert_eq!([0, 2, -1, -3].map(|axis| find("sum", x, axis).unwrap()), [0, 2, 2, 0]);
        let error = |axes: &[isize]| std::format!("{}", mask("sum", x, axes).unwrap_err());
        assert_eq!(error(&[3]), "sum: there is no axis 3, the number of axes is 3");
        assert_eq!(error(&[0, -4]), "sum: there is no axis -4, the number of axes is 3");
        assert_eq!(error(&[isize::MIN]), std::format!("sum: there is no axis {}, the number of axes is 3", isize::MIN));
        assert_eq!(error(&[2, -1]), "sum: axis 2 is named twice");
    }
}
