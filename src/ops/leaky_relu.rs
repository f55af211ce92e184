//! Leaky rectified linear unit: `y = x` where `x > 0`, else `slope x`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy` where `y > 0`, else `slope dy`; so the derivative at 0 is `slope`, as in PyTorch, whose slope is 0.01 unless it
//! is told another.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct LeakyRelu;

impl<B: Backend> Unary<B> for LeakyRelu {
    const NAME: &'static str = "leaky_relu";

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        if x > B::Elem::ZERO { x } else { x * args.scalar::<B::Elem, 0>() }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        if y > B::Elem::ZERO { dy } else { dy * args.scalar::<B::Elem, 0>() }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, LeakyRelu>()
}

/// Any shape; the output has the same.
///
/// # Errors
/// When `slope` is below 0 or NaN: the derivative could not be told from the output.
pub const fn spec(x: Shape, slope: f64) -> Result<Spec, ShapeError> {
    if slope >= 0.0 {
        Ok(Spec::new(x).args(Args::NONE.with_scalar(0, slope)))
    } else {
        Err(ShapeError::Setting { op: "leaky_relu", rule: "slope must be at least 0", found: slope })
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` where it is above 0, else `slope x` (PyTorch's slope is 0.01), element-wise.
    ///
    /// # Panics
    /// When `slope` is below 0 or NaN.
    #[track_caller]
    pub const fn leaky_relu<S: Dims>(&mut self, x: Var<S>, slope: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, slope))
    }
}

crate::tape::methods! {
    /// `x` where it is above 0, else `slope x` (PyTorch's slope is 0.01), element-wise.
    /// A fault where `slope` is below 0 or NaN.
    leaky_relu(x)(slope: f64) => (op(), spec(x, slope))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-2.0, 0.0, 3.0], [-0.5, 0.0, 3.0]);
        let dx = [0.25, 0.25, 1.0];
        check(op(), spec(Shape::new([3]), 0.25).unwrap(), &[&x], &y, &[&dx]);
    }

    #[test]
    fn a_negative_setting_is_an_error() {
        let error = spec(Shape::new([1]), -0.5).unwrap_err();
        assert_eq!(std::format!("{error}"), "leaky_relu: slope must be at least 0, found -0.5");
    }
}
