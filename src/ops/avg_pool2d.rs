//! Two-dimensional average pooling: the mean of every window over each plane of `x` `[n, c, h, w]`. Padding counts as
//! zeros, as PyTorch has it, or does not count (its `count_include_pad=False`).
//!
//! The elements of a window are added in row-major order. `dx` adds `dy / count` for every window that an element lies in,
//! in the order of the windows.

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
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("avg_pool2d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, oh, ow]`; see [`Window2d::output`].
///
/// # Errors
/// When `x` has another number of axes, the window does not fit, or a window could lie in the padding alone: its padding
/// is more than half of it, or its dilation steps over the input.
pub const fn spec(x: Shape, window: Window2d, padding: CountPadding) -> Result<Spec, ShapeError> {
    padding.spec(pooling_spec("avg_pool2d", x, window))
}

/// Whether an average counts the padding that a window sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountPadding {
    /// As zeros: every sum is divided by the window's size.
    #[default]
    Yes,
    /// Not at all: a sum is divided by the number of elements that the window sees.
    No,
}

impl CountPadding {
    /// A pooling's spec with this beside the window.
    pub(super) const fn spec(self, spec: Result<Spec, ShapeError>) -> Result<Spec, ShapeError> {
        match spec {
            Ok(mut spec) => {
                spec.args.0[8] = self as u32;
                Ok(spec)
            }
            error => error,
        }
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of every window; padding counts as zeros. Height and width of the output are annotated.
    ///
    /// # Panics
    /// When height and width are not what the window gives, or the window does not fit.
    #[track_caller]
    pub const fn avg_pool2d<
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
        self.avg_pool2d_with(x, window, CountPadding::Yes)
    }

    /// The same, where padding counts or does not.
    ///
    /// # Panics
    /// As [`Graph::avg_pool2d`].
    #[track_caller]
    pub const fn avg_pool2d_with<
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
        padding: CountPadding,
    ) -> Var<R4<A, C, OH, OW>> {
        self.record("", op(), &[x.id()], spec(x.shape(), window, padding))
    }
}

crate::tape::methods! {
    /// The mean of every window over `x` `[n, c, h, w]`. Padding counts as
    /// zeros, or does not. A fault where `x` has
    /// another number of axes, the window does not fit, or one could lie in the padding alone.
    avg_pool2d(x)(window: Window2d, padding: CountPadding) => (op(), spec(x, window, padding))
}

/// What the sum over a window that sees `seen` of its `size` elements is divided by.
fn count<E: Real>(args: &Args, size: usize, seen: usize) -> E {
    let [.., padding, _, _, _] = args.lengths();
    E::from_usize(if padding == CountPadding::Yes as usize { size } else { seen })
}

pub(super) fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let (x, mut y) = (call.x[0], call.y.iter_mut());
    for_each_window(call.args, x.len(), |window| {
        let (mut sum, mut seen) = (B::Elem::ZERO, 0);
        window.for_each(|at| {
            sum += x.get(at).copied().unwrap_or_default();
            seen += 1;
        });
        if let Some(y) = y.next() {
            *y = sum / count(call.args, window.size(), seen);
        }
    });
}

pub(super) fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let dx = call.dx;
    if !call.add {
        dx.fill(B::Elem::ZERO);
    }
    let mut dy = call.dy.iter();
    for_each_window(call.args, dx.len(), |window| {
        let mut seen = 0;
        window.for_each(|_| seen += 1);
        let share = dy.next().copied().unwrap_or_default() / count(call.args, window.size(), seen);
        window.for_each(|at| {
            if let Some(dx) = dx.get_mut(at) {
                *dx += share;
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let spec = spec(Shape::new([1, 1, 2, 4]), Window2d::size(2), CountPadding::Yes).unwrap();
        check(op(), spec, &[&x], &[3.5, 5.5], &[&[0.25; 8]]);
    }

    #[test]
    fn padding_counts_or_does_not() {
        let spec = |padding| {
            let window = Window2d::rect([1, 3]).stride(1).padding_hw([0, 1]);
            spec(Shape::new([1, 1, 1, 3]), window, padding).unwrap()
        };
        let (x, third) = ([3.0, 6.0, 9.0], 1.0 / 3.0);
        check(op(), spec(CountPadding::Yes), &[&x], &[3.0, 6.0, 5.0], &[&[2.0 * third, 1.0, 2.0 * third]]);
        let dx = [0.5 + third, 0.5 + third + 0.5, third + 0.5];
        check(op(), spec(CountPadding::No), &[&x], &[4.5, 6.0, 7.5], &[&dx]);
    }
}
