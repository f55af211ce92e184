//! One-dimensional max pooling: the largest element of every window over each row of `x` `[n, c, l]`.
//!
//! Values, gradients and conventions are those of [`max_pool2d`](super::max_pool2d) over images of height 1.

use super::max_pool2d::{forward, gradient};
use super::window::pooling_spec_1d;
use super::{Gradient, Op, Reads, Spec, Window1d};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R3, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::input(0));
        &Op::new("max_pool1d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, ol]`; see [`Window1d::output`].
///
/// # Errors
/// When `x` has another number of axes, the window does not fit, or a window could lie in the padding alone.
pub const fn spec(x: Shape, window: Window1d) -> Result<Spec, ShapeError> {
    pooling_spec_1d("max_pool1d", x, window)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The largest element of every window. The length of the output is annotated.
    ///
    /// # Panics
    /// When the length is not what the window gives, or the window does not fit.
    #[track_caller]
    pub const fn max_pool1d<const A: usize, const C: usize, const L: usize, const OL: usize>(
        &mut self,
        x: Var<R3<A, C, L>>,
        window: Window1d,
    ) -> Var<R3<A, C, OL>> {
        self.record("", op(), &[x.id()], spec(x.shape(), window))
    }
}

crate::tape::methods! {
    /// The largest element of every window over `x` `[n, c, l]`. A fault where `x` has
    /// another number of axes, the window does not fit, or one could lie in the padding alone.
    max_pool1d(x)(window: Window1d) => (op(), spec(x, window))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 5.0, 2.0, 3.0, 4.0];
        let spec = spec(Shape::new([1, 1, 5]), Window1d::size(3).stride(2).padding(1)).unwrap();
        assert_eq!(spec.shape, Shape::new([1, 1, 3]));
        check(op(), spec, &[&x], &[5.0, 5.0, 4.0], &[&[0.0, 2.0, 0.0, 0.0, 1.0]]);
    }
}
