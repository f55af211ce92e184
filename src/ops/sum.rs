//! Sum over any axes: `y = Σ x`.
//!
//! `dx = dy` at every element. The terms are added in the order of [`Backend::sum_pairs`].

use super::reduce;
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("sum", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    reduce::spec("sum", x, axes, keepdim)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The sum over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R3<4, 2, 5>>("x");
    ///     let by_channel: Var<R1<2>> = g.sum(x, &[0, -1]);
    ///     let kept: Var<R3<1, 2, 1>> = g.sum(x, &[0, -1]);
    ///     let all: Var<R0> = g.sum(x, &[]);
    ///     g.output("by_channel", by_channel);
    ///     g.output("kept", kept);
    ///     g.output("all", all);
    ///     g
    /// }
    /// program!(static SUMS = net().infer());
    /// ```
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn sum<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The sum over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1.
    sum(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| walk.sum::<B>(x, first, |sum, x| sum + x));
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    reduce::gradient(call, |run| run.dy, |&dy, _| dy);
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    const X: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn values_and_gradients() {
        let cases: [(&[isize], &[f64]); 4] =
            [(&[], &[21.0]), (&[0], &[5.0, 7.0, 9.0]), (&[-1], &[6.0, 15.0]), (&[1, 0], &[21.0])];
        for (axes, y) in cases {
            for keepdim in [false, true] {
                check(op(), spec(Shape::new([2, 3]), axes, keepdim).unwrap(), &[&X], y, &[&[1.0; 6]]);
            }
        }
    }

    #[test]
    fn the_sum_of_a_scalar_is_the_scalar() {
        check(op(), spec(Shape::SCALAR, &[], false).unwrap(), &[&[3.0]], &[3.0], &[&[1.0]]);
    }

    #[test]
    fn an_axis_that_is_not_there_is_an_error() {
        let error = spec(Shape::new([2, 3]), &[-3], false).unwrap_err();
        assert_eq!(std::format!("{error}"), "sum: there is no axis -3, the number of axes is 2");
    }
}
