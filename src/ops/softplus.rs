//! Smooth rectifier: `y = ln(1 + e^(beta x)) / beta`, and `x` itself where `beta x` is above `threshold`, element-wise. The derivative needs `x`, which is kept.
//! Computed as `(max(beta x, 0) + ln(1 + e^-|beta x|)) / beta`, which neither overflows nor loses its small end.
//!
//! `dx = dy / (1 + e^(-beta x))`, and `dy` above the threshold, as in PyTorch, whose `beta` is 1 and whose threshold is
//! [`THRESHOLD`].

use super::unary::{self, Unary};
use super::{Args, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Softplus;

impl<B: Backend> Unary<B> for Softplus {
    const NAME: &'static str = "softplus";
    const READS: Reads = Reads::input(0);

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        let z = x * args.scalar::<B::Elem, 0>();
        if z > args.scalar::<B::Elem, 3>() {
            return x;
        }
        B::softplus(z) / args.scalar::<B::Elem, 0>()
    }

    #[inline(always)]
    fn gradient(x: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        let z = x * args.scalar::<B::Elem, 0>();
        if z > args.scalar::<B::Elem, 3>() { dy } else { dy * B::sigmoid(z) }
    }
}

/// From where on PyTorch takes the function for linear.
pub const THRESHOLD: f64 = 20.0;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Softplus>()
}

/// Any shape; the output has the same.
///
/// # Errors
/// When `beta` is not above 0.
pub const fn spec(x: Shape, beta: f64, threshold: f64) -> Result<Spec, ShapeError> {
    if beta > 0.0 {
        Ok(Spec::new(x).args(Args::NONE.with_scalar(0, beta).with_scalar(3, threshold)))
    } else {
        Err(ShapeError::Setting { op: "softplus", rule: "beta must be above 0", found: beta })
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `ln(1 + e^(beta x)) / beta`, element-wise (PyTorch's `beta` is 1).
    ///
    /// # Panics
    /// When `beta` is not above 0.
    #[track_caller]
    pub const fn softplus<S: Dims>(&mut self, x: Var<S>, beta: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, beta, THRESHOLD))
    }
}

crate::tape::methods! {
    /// `ln(1 + e^(beta x)) / beta`, and `x` where `beta x` is above `threshold`, element-wise; PyTorch's `beta` is 1 and its
    /// threshold [`THRESHOLD`]. A fault where `beta` is not above 0.
    softplus(x)(beta: f64, threshold: f64) => (op(), spec(x, beta, threshold))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = (
            [-2.0, -1000.0, 3.0, 10.5, 10_000.0],
            [0.009_074_963_958_904_87, 0.0, 3.001_237_842_568_865, 10.5, 10_000.0],
        );
        let dx = [0.017_986_209_962_091_56, 0.0, 0.997_527_376_843_365_2, 1.0, 1.0];
        check(op(), spec(Shape::new([5]), 2.0, THRESHOLD).unwrap(), &[&x], &y, &[&dx]);
    }
}
