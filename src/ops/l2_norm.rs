//! Euclidean norm over any axes: `y = √Σ x²`.
//!
//! `dx = dy x / y`, and 0 where `y` is 0, as in PyTorch. Squares are not scaled: they overflow where x² does.

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
        let x = Gradient::kernel(gradient::<B>, Reads::input(0).and(Reads::OUTPUT));
        &Op::new("l2_norm", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    reduce::spec("l2_norm", x, axes, keepdim)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The Euclidean norm over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn l2_norm<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The Euclidean norm over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1. A fault where `x` has no such axis, or one is named twice.
    l2_norm(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| walk.sum::<B>(x, first, |sum, x| B::mul_add(x, x, sum)).sqrt());
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let scale = |y: B::Elem, dy: B::Elem| if y == B::Elem::ZERO { B::Elem::ZERO } else { dy / y };
    reduce::gradient(call, |run| scale(run.y, run.dy), |&scale, x| scale * x);
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [3.0, -4.0, 0.0, 0.0];
        let spec = spec(Shape::new([2, 2]), &[1], false).unwrap();
        check(op(), spec, &[&x], &[5.0, 0.0], &[&[0.6, -0.8, 0.0, 0.0]]);
    }
}
