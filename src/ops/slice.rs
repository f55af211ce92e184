//! Slice: of each axis the elements `start`, `start + step`, … below `stop`.
//!
//! `dx` is `dy` at these elements, and 0 elsewhere.

use super::{Gradient, Op, Reads, Spec, axes, strided};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, MAX_RANK, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(strided::gradient_of_some::<B>, Reads::NONE);
        &Op::new("slice", strided::copy::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has along each axis as many elements as its range. Starts, stops and steps are for the first axes; those that
/// are not named stay whole, and no steps are steps of 1.
///
/// # Errors
/// When a range does not lie within its axis, a step is 0, there are more ranges than axes, or not as many starts as stops.
pub const fn spec(x: Shape, starts: &[usize], stops: &[usize], steps: &[usize]) -> Result<Spec, ShapeError> {
    let op = "slice";
    if starts.len() != stops.len() {
        let (what, against) = ("starts are", "stops");
        return Err(ShapeError::Length { op, what, found: starts.len(), against, expected: stops.len() });
    }
    if starts.len() > x.rank() || steps.len() > x.rank() {
        let found = if starts.len() > steps.len() { starts.len() } else { steps.len() };
        let (what, against) = ("ranges are", "the axes of the input");
        return Err(ShapeError::Length { op, what, found, against, expected: x.rank() });
    }
    let (own, mut strides, mut offset) = (axes::strides(x), [0; MAX_RANK], 0);
    let (mut shape, mut axis) = (Shape::SCALAR, 0);
    while axis < x.rank() {
        let length = x.axis(axis);
        let (start, stop) = if axis < starts.len() { (starts[axis], stops[axis]) } else { (0, length) };
        let step = if axis < steps.len() { steps[axis] } else { 1 };
        if start > stop || stop > length {
            return Err(ShapeError::Range { op, axis, length, start, stop });
        }
        if step == 0 {
            return Err(ShapeError::Setting { op, rule: "a step is at least 1", found: 0.0 });
        }
        strides[axis] = own[axis].saturating_mul(step);
        offset = usize::saturating_add(offset, start.saturating_mul(own[axis]));
        shape = shape.push((stop - start).div_ceil(step));
        axis += 1;
    }
    Ok(Spec::new(shape).args(strided::args(shape, strides, offset, false)))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The elements of `x` from `starts` to below `stops`, as the annotated shape `Y`. They are for the first axes; those
    /// that are not named stay whole.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R2<5, 7>>("x");
    ///     let rows: Var<R2<3, 7>> = g.slice(x, &[1], &[4]);
    ///     let columns: Var<R2<5, 2>> = g.slice(x, &[0, 5], &[5, 7]);
    ///     g.output("rows", rows);
    ///     g.output("columns", columns);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// ```
    ///
    /// # Panics
    /// When a range does not lie within its axis, there are more ranges than axes, not as many starts as stops, or the
    /// annotated shape is another.
    #[track_caller]
    pub const fn slice<S: Dims, Y: Dims>(&mut self, x: Var<S>, starts: &[usize], stops: &[usize]) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, starts, stops, &[]))
    }

    /// As [`Graph::slice`], with these steps along the first axes.
    ///
    /// # Panics
    /// As [`Graph::slice`], and when a step is 0.
    #[track_caller]
    pub const fn slice_with_steps<S: Dims, Y: Dims>(
        &mut self,
        x: Var<S>,
        starts: &[usize],
        stops: &[usize],
        steps: &[usize],
    ) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, starts, stops, steps))
    }
}

crate::tape::methods! {
    /// The elements of `x` from `starts` to below `stops`, `steps` apart, along the first axes; those that are not named stay
    /// whole, and no steps are steps of 1. A fault where a range does not lie within its axis, there are more ranges than axes,
    /// not as many starts as stops, or a step is 0.
    slice(x)(starts: &[usize], stops: &[usize], steps: &[usize]) => (op(), spec(x, starts, stops, steps))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    const X: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

    #[test]
    fn values_and_gradients() {
        let x = Shape::new([2, 4]);
        let inner = spec(x, &[0, 1], &[2, 3], &[]).unwrap();
        check(op(), inner, &[&X], &[1.0, 2.0, 5.0, 6.0], &[&[0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]]);
        let steps = spec(x, &[0, 0], &[2, 4], &[1, 3]).unwrap();
        check(op(), steps, &[&X], &[0.0, 3.0, 4.0, 7.0], &[&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]]);
        let row = spec(x, &[1], &[2], &[]).unwrap();
        check(op(), row, &[&X], &[4.0, 5.0, 6.0, 7.0], &[&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]]);
        assert_eq!(spec(x, &[1], &[1], &[]).unwrap().shape, Shape::new([0, 4]));
    }

    #[test]
    fn a_range_outside_its_axis_is_an_error() {
        let error = |starts: &[usize], stops: &[usize], steps: &[usize]| {
            std::format!("{}", spec(Shape::new([2, 4]), starts, stops, steps).unwrap_err())
        };
        let text = "slice: the range 3..5 does not lie within axis 1, whose length is 4";
        assert_eq!(error(&[0, 3], &[2, 5], &[]), text);
        assert_eq!(error(&[2], &[1], &[]), "slice: the range 2..1 does not lie within axis 0, whose length is 2");
        assert_eq!(error(&[0], &[1], &[0]), "slice: a step is at least 1, found 0");
        assert_eq!(error(&[0; 3], &[1; 3], &[]), "slice: ranges are 3, the axes of the input 2");
        assert_eq!(error(&[0], &[], &[]), "slice: starts are 1, stops 0");
    }
}
