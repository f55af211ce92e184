//! Logarithm of the softmax along one axis: `y = (x - m) - ln Σ e^(x - m)`, where `m` is the largest element of the run. In
//! place where nothing else reads `x`.
//!
//! `dx = dy - e^y Σ dy`.

use super::runs::{self, for_each_run};
use super::{BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient::<B>, Reads::OUTPUT);
        &Op::new("log_softmax", forward::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// The output has the shape of `x`.
///
/// # Errors
/// When `x` has no such axis.
pub const fn spec(x: Shape, axis: usize) -> Result<Spec, ShapeError> {
    runs::spec("log_softmax", x, axis)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The logarithm of the softmax along `axis`, counted from 0.
    ///
    /// # Panics
    /// When `x` has no such axis.
    #[track_caller]
    pub const fn log_softmax<S: Dims>(&mut self, x: Var<S>, axis: usize) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axis))
    }
}

crate::tape::methods! {
    /// The logarithm of the softmax along `axis`, counted from 0. A fault where `x` has no such axis.
    log_softmax(x)(axis: usize) => (op(), spec(x, axis))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    for_each_run(call.args, call.y, |y| {
        let largest = y.largest();
        y.map(|y| y - largest);
        let log_sum = B::ln(y.sum(|y, _| B::exp(y), &[]));
        y.map(|y| y - log_sum);
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    for_each_run(call.args, call.dx, |dx| {
        let sum = dx.sum(|dy, _| dy, &[]);
        dx.map_with(call.y, |dy, y| dy - B::exp(y) * sum);
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let y = [-2.407_605_964_444_380_6_f64, -1.407_605_964_444_380_4, -0.407_605_964_444_380_4];
        let dx = y.map(|y| 1.0 - 3.0 * libm::exp(y));
        check(op(), spec(Shape::new([3]), 0).unwrap(), &[&[1.0, 2.0, 3.0]], &y, &[&dx]);
    }
}
