//! Mean over any axes: `y = Σ x / n`, `n` being the number of elements behind an output; NaN where that is 0.
//!
//! `dx = dy / n` at every element. The terms are added in the order of [`Backend::sum_pairs`].

use super::reduce;
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("mean", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    reduce::spec("mean", x, axes, keepdim)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn mean<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The mean over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1.
    mean(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| {
        walk.sum::<B>(x, first, |sum, x| sum + x) / B::Elem::from_usize(walk.count())
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    reduce::gradient(call, |run| run.dy / B::Elem::from_usize(run.walk.count()), |&share, _| share);
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];
        check(op(), spec(Shape::new([2, 3]), &[0], false).unwrap(), &[&x], &[2.5, 3.5, 6.0], &[&[0.5; 6]]);
        check(op(), spec(Shape::new([2, 3]), &[1], true).unwrap(), &[&x], &[2.0, 6.0], &[&[1.0 / 3.0; 6]]);
        check(op(), spec(Shape::new([2, 3]), &[], false).unwrap(), &[&x], &[4.0], &[&[1.0 / 6.0; 6]]);
    }
}
