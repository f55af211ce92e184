//! The largest element over any axes; NaN where there is one.
//!
//! `dx = dy / k` at the `k` elements that equal `y`, else 0: ties share the gradient evenly, as in PyTorch. Where `y` is NaN,
//! the NaNs share it.

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
        &Op::new("amax", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of `x` without these axes, or with one element along them where `keepdim`. Negative axes count
/// from behind the last; none named are all.
///
/// # Errors
/// When `x` has no such axis, names one twice, or has no elements along them.
pub const fn spec(x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    reduce::spec_of_some("amax", x, axes, keepdim)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The largest element over these axes, or over all where none is named; negative axes count from behind the last. The
    /// annotated output has one element along them, or lacks them.
    ///
    /// # Panics
    /// When `x` has no such axis, one is named twice, there are no elements along them, or the annotated shape is another.
    #[track_caller]
    pub const fn amax<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        let spec = spec(S::SHAPE, axes, reduce::keeps_axes(S::SHAPE, Y::SHAPE));
        self.record("", op(), &[x.id()], spec)
    }
}

crate::tape::methods! {
    /// The largest element over `axes`, all where there are none; negative ones count from behind the last. `keep` leaves them with
    /// length 1. A fault where `x` has no such axis, one is named twice, or there are no elements along them.
    amax(x)(axes: &[isize], keep: bool) => (op(), spec(x, axes, keep))
}

/// Where the largest element of `x` is: the first of several, the first NaN where there is one, `None` without elements.
///
/// ```
/// use slabgrad::ops::amax::argmax;
///
/// assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), Some(1));
/// assert_eq!(argmax::<f32>(&[]), None);
/// ```
#[must_use]
pub fn argmax<E: Real>(x: &[E]) -> Option<usize> {
    let mut largest: Option<(usize, E)> = None;
    for (i, &x) in x.iter().enumerate() {
        let is_larger = |&(_, y): &(usize, E)| !y.is_nan() && (x > y || x.is_nan());
        if largest.as_ref().is_none_or(is_larger) {
            largest = Some((i, x));
        }
    }
    largest.map(|(i, _)| i)
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    reduce::forward(call, |walk, x, first| walk.elements(x, first).fold(-B::Elem::INFINITY, B::Elem::maximum));
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    reduce::gradient_over_ties(call);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 5.0, 5.0, 7.0, -2.0, 6.0];
        let spec = spec(Shape::new([2, 3]), &[1], false).unwrap();
        check(op(), spec, &[&x], &[5.0, 7.0], &[&[0.0, 0.5, 0.5, 1.0, 0.0, 0.0]]);
    }

    #[test]
    fn a_nan_is_the_result_and_gets_the_gradient() {
        let spec = spec(Shape::new([3]), &[], true).unwrap();
        let (y, dx) = run(op::<Strict<f64>>(), spec, &[&[1.0, f64::NAN, 3.0]], &[2.0], 0);
        assert!(y[0].is_nan() && dx == [0.0, 2.0, 0.0], "{y:?} {dx:?}");
    }

    #[test]
    fn the_largest_element_is_the_first_of_several_or_a_nan() {
        let cases: [(&[f64], Option<usize>); 4] = [
            (&[-1.0, 2.0, 2.0], Some(1)),
            (&[f64::NEG_INFINITY; 2], Some(0)),
            (&[1.0, f64::NAN, 3.0, f64::NAN], Some(1)),
            (&[], None),
        ];
        for (x, at) in cases {
            assert_eq!(argmax(x), at, "{x:?}");
        }
    }

    #[test]
    fn no_elements_have_no_largest() {
        let error = spec(Shape::new([2, 0]), &[1], false).unwrap_err();
        let text = "amax: the input has shape [2, 0], expected at least one element along the reduced axes";
        assert_eq!(std::format!("{error}"), text);
    }
}
