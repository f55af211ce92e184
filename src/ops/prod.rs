//! Product over any axes: `y = Π x`.
//!
//! `dxᵢ = dy Π xⱼ` over the others `j ≠ i`, as the product of those before times the product of those behind. Nothing is
//! divided by, so that it is exact where elements are 0 or negative. The product is that of 8 strided partial products, in
//! the order in which sums are added.

use super::reduce::{self, Walk};
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(0));
        &Op::new("prod", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    match reduce::spec("prod", x, axes, keepdim) {
        Ok(spec) => Ok(Spec { scratch_backward: [reduce::count(&spec), 0, 0], ..spec }),
        error => error,
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The product over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn prod<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The product over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1. A fault where `x` has no such axis, or one is named twice.
    prod(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| {
        let [l0, l1, l2, l3, l4, l5, l6, l7] = reduce::lanes(walk.elements(x, first), B::Elem::ONE, |y, x| y * x);
        ((l0 * l4) * (l2 * l6)) * ((l1 * l5) * (l3 * l7))
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let walk = Walk::new(call.args);
    let x = call.x[0];
    for (&dy, first) in call.dy.iter().zip(walk.firsts()) {
        let mut before = B::Elem::ONE;
        for (place, x) in call.scratch.iter_mut().zip(walk.elements(x, first)) {
            *place = before;
            before *= x;
        }
        let mut behind = B::Elem::ONE;
        for (at, &before) in walk.run(first).rev().zip(call.scratch.iter().rev()) {
            if let (Some(dx), Some(&x)) = (call.dx.get_mut(at), x.get(at)) {
                let share = before * behind * dy;
                *dx = if call.add { *dx + share } else { share };
                behind *= x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients_are_exact_with_zeros_and_negative_factors() {
        let x = [2.0, -3.0, 4.0, 0.0, 5.0, 6.0, 0.0, 0.0, 7.0];
        let dx = [-12.0, 8.0, -6.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        check(op(), spec(Shape::new([3, 3]), &[1], false).unwrap(), &[&x], &[-24.0, 0.0, 0.0], &[&dx]);
        let dx = [0.0, 0.0, 42.0, 0.0, 0.0, 28.0, 0.0, -15.0, 24.0];
        check(op(), spec(Shape::new([3, 3]), &[0], true).unwrap(), &[&x], &[0.0, 0.0, 168.0], &[&dx]);
    }
}
