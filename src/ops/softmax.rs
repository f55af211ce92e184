//! Softmax along one axis: `y = e^(x - m) / Σ e^(x - m)`, where `m` is the largest element of the run, so that nothing
//! overflows. In place where nothing else reads `x`.
//!
//! `dx = y (dy - Σ dy y)`.

use super::runs::{self, for_each_run};
use super::{BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient::<B>, Reads::OUTPUT);
        &Op::new("softmax", forward::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// The output has the shape of `x`.
///
/// # Errors
/// When `x` has no such axis.
pub const fn spec(x: Shape, axis: usize) -> Result<Spec, ShapeError> {
    runs::spec("softmax", x, axis)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The softmax along `axis`, counted from 0.
    ///
    /// # Panics
    /// When `x` has no such axis.
    #[track_caller]
    pub const fn softmax<S: Dims>(&mut self, x: Var<S>, axis: usize) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axis))
    }
}

crate::tape::methods! {
    /// The softmax along `axis`, counted from 0. A fault where `x` has no such axis.
    softmax(x)(axis: usize) => (op(), spec(x, axis))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    for_each_run(call.args, call.y, |y| {
        let largest = y.largest();
        y.map(|y| B::exp(y - largest));
        let scale = B::Elem::ONE / y.sum(|y, _| y, &[]);
        y.map(|y| y * scale);
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    for_each_run(call.args, call.dx, |dx| {
        let dot = dx.sum(|dy, y| dy * y, call.y);
        dx.map_with(call.y, |dy, y| y * (dy - dot));
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let y = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8];
        let x = [1.0, 2.0, 3.0, 1001.0, 1002.0, 1003.0];
        let spec = spec(Shape::new([2, 3]), 1).unwrap();
        let both = [y[0], y[1], y[2], y[0], y[1], y[2]];
        // The gradient of Σ y is 0.
        check(op(), spec, &[&x], &both, &[&[0.0; 6]]);
        let (_, dx) = gradient(op::<Strict<f64>>(), spec, &[&x], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 0);
        let want = [-y[0] * y[2], -y[1] * y[2], y[2] * (1.0 - y[2]), 0.0, 0.0, 0.0];
        assert!(dx.iter().zip(want).all(|(d, w)| (d - w).abs() < 1e-15), "{dx:?}");
    }

    #[test]
    fn an_axis_that_is_not_there_is_an_error() {
        let error = spec(Shape::new([2, 3]), 2).unwrap_err();
        assert_eq!(std::format!("{error}"), "softmax: the axis is 2, the number of axes 2");
    }
}
