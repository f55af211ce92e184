//! Variance over any axes: `y = Σ (x - m)² / (n - c)`, where `m` is the mean of the `n` elements behind an output, and the
//! correction `c` is 1 (unbiased, as in PyTorch) unless set. The mean is found first, and then the squares, which does not
//! cancel.
//!
//! `dx = 2 dy (x - m) / (n - c)`. Backward computes the mean again.

use super::reduce::{self, Walk};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(0));
        &Op::new("var", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, one is named twice, or there are not more elements behind an output than `correction`.
pub const fn spec(x: Shape, axes: &[isize], correction: usize, keepdim: bool) -> Result<Spec, ShapeError> {
    let mut spec = match reduce::spec("var", x, axes, keepdim) {
        Ok(spec) => spec,
        Err(error) => return Err(error),
    };
    let count = reduce::count(&spec);
    if count <= correction {
        let (what, against) = ("elements behind an output are", "but must be more than the correction, which is");
        return Err(ShapeError::Length { op: "var", what, found: count, against, expected: correction });
    }
    spec.args.0[reduce::WORDS] = (count - correction) as u32;
    Ok(spec)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The unbiased variance over these axes, or over all where none is named; negative axes count from behind the last.
    /// The annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// As [`Graph::var_with`].
    #[track_caller]
    pub const fn var<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        self.var_with(x, axes, 1)
    }

    /// The variance with this correction: 1 is unbiased, 0 is the mean squared distance from the mean.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, there are not more elements behind an output than `correction`, or the
    /// annotated shape is another.
    #[track_caller]
    pub const fn var_with<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize], correction: usize) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, correction, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The variance over `axes`, all where there are none; negative ones count from behind the last. The sum of squares is
    /// divided by the number of elements less `correction` (1 is unbiased); `keep` leaves the axes with length 1. A fault where
    /// `x` has no such axis, one is named twice, or there are not more elements than `correction`.
    var(x)(axes: &[isize], correction: usize, keep: bool) => (op(), spec(x, axes, correction, keep))
}

fn divisor<E: Real>(args: &Args) -> E {
    let [_, _, _, _, _, _, divisor, ..] = args.lengths();
    E::from_usize(divisor)
}

#[inline(always)]
fn mean<B: Backend>(walk: &Walk, x: &[B::Elem], first: usize) -> B::Elem {
    walk.sum::<B>(x, first, |sum, x| sum + x) / B::Elem::from_usize(walk.count())
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let divisor = divisor::<B::Elem>(call.args);
    reduce::forward(call, |walk, x, first| {
        let mean = mean::<B>(walk, x, first);
        walk.sum::<B>(x, first, |sum, x| B::mul_add(x - mean, x - mean, sum)) / divisor
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let divisor = divisor::<B::Elem>(call.args);
    reduce::gradient(
        call,
        |run| (mean::<B>(run.walk, run.x, run.first), (run.dy + run.dy) / divisor),
        |&(mean, scale), x| scale * (x - mean),
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 2.0, 6.0, 5.0, 5.0, 5.0];
        let shape = Shape::new([2, 3]);
        let unbiased = spec(shape, &[-1], 1, false).unwrap();
        check(op(), unbiased, &[&x], &[7.0, 0.0], &[&[-2.0, -1.0, 3.0, 0.0, 0.0, 0.0]]);
        let biased = spec(shape, &[0], 0, true).unwrap();
        check(op(), biased, &[&x], &[4.0, 2.25, 0.25], &[&[-2.0, -1.5, 0.5, 2.0, 1.5, -0.5]]);
    }

    #[test]
    fn one_element_has_no_unbiased_variance() {
        let error = spec(Shape::new([4, 1]), &[1], 1, false).unwrap_err();
        let text = "var: elements behind an output are 1, but must be more than the correction, which is 1";
        assert_eq!(std::format!("{error}"), text);
        assert!(spec(Shape::new([4, 1]), &[1], 0, false).is_ok());
    }
}
