//! Logarithm of the sum of exponentials, over any axes: `y = m + ln Σ e^(x - m)`, where `m` is the largest element of the
//! run, so that nothing overflows.
//!
//! `dx = dy e^(x - m) / Σ e^(x - m)`, the run's softmax; forward keeps the reciprocals of the sums, since `e^(x - y)` would
//! lose what `y` was rounded by. A run of nothing but -∞ gives -∞ and gets the gradient 0; +∞ gives +∞, and its gradient is
//! NaN.

use super::reduce::{self, Walk};
use super::{BackwardCall, Forward, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(0).and(Reads::SAVED));
        // An inference keeps no sums: `saved` is empty there.
        let infer = Some(forward::<B> as Forward<B>);
        &Op { infer, ..Op::new("logsumexp", forward::<B>, [x, Gradient::None, Gradient::None]) }
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, or names one twice.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    match reduce::spec("logsumexp", x, axes, keepdim) {
        Ok(spec) => Ok(Spec { saved: spec.shape.len(), ..spec }),
        error => error,
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The logarithm of the sum of exponentials over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, or the annotated shape is another.
    #[track_caller]
    pub const fn logsumexp<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// `ln Σ e^x` over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1. A fault where `x` has no such axis, or one is named twice.
    logsumexp(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

/// `x`, or 0 where it is infinite: what can be subtracted without making a NaN of equal infinities.
#[inline(always)]
fn finite_or_zero<E: Real>(x: E) -> E {
    if x == E::INFINITY || x == -E::INFINITY { E::ZERO } else { x }
}

/// What is subtracted from the run before the exponential: its largest element.
#[inline(always)]
fn shift<E: Real>(walk: &Walk, x: &[E], first: usize) -> E {
    finite_or_zero(walk.elements(x, first).fold(-E::INFINITY, E::maximum))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let walk = Walk::new(call.args);
    let mut saved = call.saved.iter_mut();
    for (y, first) in call.y.iter_mut().zip(walk.firsts()) {
        let shift = shift(&walk, call.x[0], first);
        let sum = walk.sum::<B>(call.x[0], first, |sum, x| sum + B::exp(x - shift));
        *y = shift + B::ln(sum);
        if let Some(scale) = saved.next() {
            *scale = if sum == B::Elem::ZERO { sum } else { B::Elem::ONE / sum };
        }
    }
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let scales = call.saved;
    reduce::gradient(
        BackwardCall { y: scales, ..call },
        |run| (shift(run.walk, run.x, run.first), run.y * run.dy),
        |&(shift, scale), x| scale * B::exp(x - shift),
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let y = 3.407_605_964_444_38;
        let dx = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8];
        let x = [1.0, 2.0, 3.0, 1001.0, 1002.0, 1003.0];
        let spec = spec(Shape::new([2, 3]), &[1], false).unwrap();
        check(op(), spec, &[&x], &[y, 1000.0 + y], &[&[dx[0], dx[1], dx[2], dx[0], dx[1], dx[2]]]);
    }

    #[test]
    fn infinities_and_nans_go_through() {
        let y = |x: [f64; 2]| run(op::<Strict<f64>>(), spec(Shape::new([2]), &[], false).unwrap(), &[&x], &[1.0], 0);
        let inf = f64::INFINITY;
        assert_eq!(y([-inf, -inf]), (std::vec![-inf], std::vec![0.0, 0.0]));
        assert_eq!(y([-inf, 2.0]), (std::vec![2.0], std::vec![0.0, 1.0]));
        assert_eq!(y([inf, 2.0]).0, [inf]);
        assert!(y([f64::NAN, 2.0]).0[0].is_nan());
    }
}
