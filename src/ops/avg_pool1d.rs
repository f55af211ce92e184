//! One-dimensional average pooling: the mean of every window over each row of `x` `[n, c, l]`.
//!
//! Values, gradients and what padding counts are those of [`avg_pool2d`](super::avg_pool2d) over images of height 1.

use super::avg_pool2d::{CountPadding, forward, gradient};
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
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("avg_pool1d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, ol]`; see [`Window1d::output`].
///
/// # Errors
/// When `x` has another number of axes, the window does not fit, or a window could lie in the padding alone.
pub const fn spec(x: Shape, window: Window1d, padding: CountPadding) -> Result<Spec, ShapeError> {
    padding.spec(pooling_spec_1d("avg_pool1d", x, window))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of every window; padding counts as zeros. The length of the output is annotated.
    ///
    /// # Panics
    /// When the length is not what the window gives, or the window does not fit.
    #[track_caller]
    pub const fn avg_pool1d<const A: usize, const C: usize, const L: usize, const OL: usize>(
        &mut self,
        x: Var<R3<A, C, L>>,
        window: Window1d,
    ) -> Var<R3<A, C, OL>> {
        self.avg_pool1d_with(x, window, CountPadding::Yes)
    }

    /// The same, where padding counts or does not.
    ///
    /// # Panics
    /// As [`Graph::avg_pool1d`].
    #[track_caller]
    pub const fn avg_pool1d_with<const A: usize, const C: usize, const L: usize, const OL: usize>(
        &mut self,
        x: Var<R3<A, C, L>>,
        window: Window1d,
        padding: CountPadding,
    ) -> Var<R3<A, C, OL>> {
        self.record("", op(), &[x.id()], spec(x.shape(), window, padding))
    }
}

crate::tape::methods! {
    /// The mean of every window over `x` `[n, c, l]`. Padding counts as
    /// zeros, or does not. A fault where `x` has
    /// another number of axes, the window does not fit, or one could lie in the padding alone.
    avg_pool1d(x)(window: Window1d, padding: CountPadding) => (op(), spec(x, window, padding))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (shape, window) = (Shape::new([1, 1, 4]), Window1d::size(2).stride(2).padding(1));
        let x = [1.0, 2.0, 3.0, 4.0];
        let spec = |padding| spec(shape, window, padding).unwrap();
        check(op(), spec(CountPadding::Yes), &[&x], &[0.5, 2.5, 2.0], &[&[0.5; 4]]);
        check(op(), spec(CountPadding::No), &[&x], &[1.0, 2.5, 4.0], &[&[1.0, 0.5, 0.5, 1.0]]);
    }
}
