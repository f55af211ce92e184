//! Sum over any axes with Kahan's compensation: what an addition rounds away is carried over to the next (Kahan, "Further
//! remarks on reducing truncation errors", 1965). The error does not grow with the number of terms, as far as they do not
//! cancel.
//!
//! `dx = dy` at every element. The terms are added one after the other.

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
        &Op::new("compensated_sum", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    reduce::spec("compensated_sum", x, axes, keepdim)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The sum with Kahan's compensation over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn compensated_sum<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The sum with Kahan's compensation over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1. A fault where `x` has no such axis, or one is named twice.
    compensated_sum(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

/// The sum of `x` with Kahan's compensation.
///
/// ```
/// use slabgrad::ops::compensated_sum::compensated_sum;
///
/// let x = [0.1_f32; 10_000];
/// assert_eq!(compensated_sum(x.iter().copied()), 1000.0);
/// assert_ne!(x.iter().sum::<f32>(), 1000.0);
/// ```
pub fn compensated_sum<E: Real>(x: impl IntoIterator<Item = E>) -> E {
    let (mut sum, mut lost) = (E::ZERO, E::ZERO);
    for x in x {
        let term = x - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        // An infinite sum has lost nothing; its difference with itself would make it a NaN.
        if !lost.is_finite() {
            lost = E::ZERO;
        }
        sum = next;
    }
    sum
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| compensated_sum(walk.elements(x, first)));
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    reduce::gradient(call, |run| run.dy, |&dy, _| dy);
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient as run;
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        // Twice 2^-53 is the last place of 1; each by itself would be rounded away.
        let x = [1.0, f64::EPSILON / 2.0, f64::EPSILON / 2.0, 4.0, 5.0, 6.0];
        let outcome = run(op::<Strict<f64>>(), spec(Shape::new([2, 3]), &[1], false).unwrap(), &[&x], &[1.0, 2.0], 0);
        assert_eq!(outcome.0, [1.0 + f64::EPSILON, 15.0]);
        assert_eq!(outcome.1, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn infinities_stay() {
        let inf = f32::INFINITY;
        assert_eq!(compensated_sum([1.0, inf, 2.0]), inf);
        assert_eq!(compensated_sum([f32::MAX, f32::MAX, 1.0]), inf);
        assert!(compensated_sum([inf, -inf, 1.0]).is_nan());
    }
}
