//! Two-dimensional max pooling: the largest element of every window over each plane of `x` `[n, c, h, w]`.
//!
//! The gradient goes to the element that was taken: of equal ones the first in row-major order. A window with a NaN gives
//! NaN, and its gradient goes to the first NaN. Padding is never taken.

use super::window::{for_each_window, pooling_spec};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec, Window2d};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R4, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(0));
        &Op::new("max_pool2d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, oh, ow]`; see [`Window2d::output`].
///
/// # Errors
/// When `x` has another number of axes, the window does not fit, or a window could lie in the padding alone: its padding
/// is more than half of it, or its dilation steps over the input.
pub const fn spec(x: Shape, window: Window2d) -> Result<Spec, ShapeError> {
    pooling_spec("max_pool2d", x, window)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The largest element of every window. Height and width of the output are annotated.
    ///
    /// # Panics
    /// When height and width are not what the window gives, or the window does not fit.
    #[track_caller]
    pub const fn max_pool2d<
        const A: usize,
        const C: usize,
        const H: usize,
        const W: usize,
        const OH: usize,
        const OW: usize,
    >(
        &mut self,
        x: Var<R4<A, C, H, W>>,
        window: Window2d,
    ) -> Var<R4<A, C, OH, OW>> {
        self.record("", op(), &[x.id()], spec(x.shape(), window))
    }
}

crate::tape::methods! {
    /// The largest element of every window over `x` `[n, c, h, w]`. A fault where `x` has
    /// another number of axes, the window does not fit, or one could lie in the padding alone.
    max_pool2d(x)(window: Window2d) => (op(), spec(x, window))
}

/// Calls `each` for every window, in the order of the output, with the largest element and where it lies.
fn for_each_maximum<E: Real>(args: &Args, x: &[E], mut each: impl FnMut(E, Option<usize>)) {
    for_each_window(args, x.len(), |window| {
        let (mut best, mut best_at) = (-E::INFINITY, None);
        window.for_each(|at| {
            let Some(&value) = x.get(at) else {
                return;
            };
            // The first of equals stays, and a NaN is never replaced.
            if best_at.is_none() || value > best || (value.is_nan() && !best.is_nan()) {
                (best, best_at) = (value, Some(at));
            }
        });
        each(best, best_at);
    });
}

pub(super) fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let mut y = call.y.iter_mut();
    for_each_maximum(call.args, call.x[0], |largest, _| {
        if let Some(y) = y.next() {
            *y = largest;
        }
    });
}

pub(super) fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    let mut dy = call.dy.iter();
    for_each_maximum(call.args, call.x[0], |_, at| {
        if let (Some(&dy), Some(dx)) = (dy.next(), at.and_then(|at| call.dx.get_mut(at))) {
            *dx += dy;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn the_first_of_equal_elements_takes_the_gradient() {
        let x = [1.0, 3.0, 2.0, 2.0, 3.0, 0.0, 2.0, 2.0];
        let spec = spec(Shape::new([1, 1, 2, 4]), Window2d::size(2)).unwrap();
        let dx = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        check(op(), spec, &[&x], &[3.0, 2.0], &[&dx]);
    }

    #[test]
    fn a_window_of_nans_gives_nan_and_sends_no_gradient_elsewhere() {
        let x = [f64::NAN; 4];
        let spec = spec(Shape::new([1, 1, 2, 2]), Window2d::size(2)).unwrap();
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&x], &[1.0], 0);
        assert!(y[0].is_nan());
        assert_eq!(dx, [1.0, 0.0, 0.0, 0.0]);
        let x = [-f64::INFINITY, f64::NAN, 7.0, f64::NAN];
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&x], &[1.0], 0);
        assert!(y[0].is_nan());
        assert_eq!(dx, [0.0, 1.0, 0.0, 0.0]);
    }
}
