//! Gather along an axis: `y[.., i, ..] = x[.., index[.., i, ..], ..]`, as PyTorch's `gather`. The index is a tensor of
//! whole numbers with as many axes as `x`, no longer than `x` along the others.
//!
//! `dx` is the sum of `dy` over the outputs that come from the same element, in ascending order. The index gets no gradient.
//! Where it is an input, a run checks that it lies within the axis; where it is computed and does not, `y` is NaN.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec, axes, strided};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, IndexDims, Var};
use crate::shape::{Dims, Shape};
use crate::tape::Call;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(1));
        &Op::new("gather", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of the index. Negative axes count from behind the last.
///
/// # Errors
/// When `x` has no such axis, or the index another number of axes, or more elements along another one.
pub const fn spec(x: Shape, index: Shape, axis: isize) -> Result<Spec, ShapeError> {
    let op = "gather";
    let axis = match axes::find(op, x, axis) {
        Ok(axis) => axis,
        Err(error) => return Err(error),
    };
    if index.rank() != x.rank() {
        let (what, against) = ("axes of the index are", "those of the input");
        return Err(ShapeError::Length { op, what, found: index.rank(), against, expected: x.rank() });
    }
    let mut i = 0;
    while i < x.rank() {
        if i != axis && index.axis(i) > x.axis(i) {
            return Err(ShapeError::Range { op, axis: i, length: x.axis(i), start: 0, stop: index.axis(i) });
        }
        i += 1;
    }
    let mut strides = axes::strides(x);
    let along = strides[axis];
    strides[axis] = 0;
    let mut args = strided::args(index, strides, 0, false);
    args.0[strided::WORDS + 1] = along as u32;
    args.0[strided::WORDS + 2] = x.axis(axis) as u32;
    Ok(Spec::new(index).args(args))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The elements of `x` at `index` along `axis`, as the annotated shape `Y`, which is that of the index. Negative axes
    /// count from behind the last.
    ///
    /// # Panics
    /// When `x` has no such axis, the index does not fit, or the annotated shape is another.
    #[track_caller]
    pub const fn gather<S: Dims, I: IndexDims, Y: Dims>(&mut self, x: Var<S>, index: Var<I>, axis: isize) -> Var<Y> {
        if let Ok(axis) = axes::find("gather", S::SHAPE, axis) {
            self.index_below(index.id(), S::SHAPE.axis(axis));
        }
        self.record("", op(), &[x.id(), index.id()], spec(S::SHAPE, I::SHAPE, axis))
    }
}

crate::tape::methods! {
    /// The elements of `x` at `index` along `axis`, in the shape of `index`, which has as many axes as `x`; negative axes count
    /// from behind the last. A fault where the shapes do not fit, there is no such axis, or an index does not lie within it.
    gather(x, index)(axis: isize) => {
        let bound = axes::find("gather", x, axis).map_or(0, |axis| x.axis(axis));
        Call::new(op(), spec(x, index, axis)).indices(1, bound)
    }
}

/// Calls `each` with every element of `dense` and where in `x` it comes from, if anywhere.
#[inline(always)]
fn for_each<E: Real, D>(
    args: &Args,
    index: &[E],
    dense: impl Iterator<Item = D>,
    mut each: impl FnMut(D, Option<usize>),
) {
    let [.., stride, along, length] = args.lengths();
    let rows = strided::Rows::new(args);
    let len = rows.len();
    let starts = rows.flat_map(move |at| (0..len).map(move |i| at + i * stride));
    for ((dense, index), start) in dense.zip(index).zip(starts) {
        let index = index.to_index().filter(|&index| index < length);
        each(dense, index.map(|index| start + index * along));
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [x, index, _] = call.x;
    for_each(call.args, index, call.y.iter_mut(), |y, at| {
        let nan = B::Elem::choose(f32::NAN, f64::NAN);
        *y = at.and_then(|at| x.get(at)).copied().unwrap_or(nan);
    });
}

fn gradient<B: Backend>(mut call: BackwardCall<'_, B::Elem>) {
    strided::start(&mut call);
    let dx = call.dx;
    for_each(call.args, call.x[1], call.dy.iter(), |&dy, at| {
        if let Some(dx) = at.and_then(|at| dx.get_mut(at)) {
            *dx += dy;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient;
    use super::*;
    use crate::backend::Strict;

    const X: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn values_and_gradients() {
        let run = |index: &[f64], shape, axis| {
            let spec = spec(Shape::new([2, 3]), shape, axis).unwrap();
            gradient(op::<Strict<f64>>(), spec, &[&X, index], &[1.0, 10.0, 100.0, 1000.0], 0)
        };
        let (y, dx) = run(&[2.0, 0.0, 1.0, 1.0], Shape::new([2, 2]), -1);
        assert_eq!((y, dx), (std::vec![3.0, 1.0, 5.0, 5.0], std::vec![10.0, 0.0, 1.0, 0.0, 1100.0, 0.0]));
        let (y, dx) = run(&[1.0, 0.0, 1.0, 1.0], Shape::new([2, 2]), 0);
        assert_eq!((y, dx), (std::vec![4.0, 2.0, 4.0, 5.0], std::vec![0.0, 10.0, 0.0, 101.0, 1000.0, 0.0]));
    }

    #[test]
    fn an_index_that_is_none_reads_nan_and_sends_no_gradient() {
        let spec = spec(Shape::new([2, 3]), Shape::new([1, 3]), 1).unwrap();
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&X, &[3.0, 0.5, 2.0]], &[1.0; 3], 0);
        assert!(y[0].is_nan() && y[1].is_nan() && y[2] == 3.0, "{y:?}");
        assert_eq!(dx, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn an_index_that_does_not_fit_is_an_error() {
        let error = |index| std::format!("{}", spec(Shape::new([2, 3]), index, 1).unwrap_err());
        let text = "gather: the range 0..3 does not lie within axis 0, whose length is 2";
        assert_eq!(error(Shape::new([3, 1])), text);
        assert_eq!(error(Shape::new([2])), "gather: axes of the index are 1, those of the input 2");
    }
}
