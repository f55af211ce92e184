//! Exponential linear unit: `y = x` where `x > 0`, else `alpha (e^x - 1)`, element-wise, in place where nothing else reads `x`.
//! <https://arxiv.org/abs/1511.07289>
//!
//! `dx = dy` where `y > 0`, else `dy (y + alpha)`; so the derivative at 0 is `alpha`, as in PyTorch, whose `alpha` is 1 unless
//! it is told another.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Elu;

impl<B: Backend> Unary<B> for Elu {
    const NAME: &'static str = "elu";

    #[inline(always)]
    fn value(x: B::Elem, args: &Args) -> B::Elem {
        if x > B::Elem::ZERO { x } else { args.scalar::<B::Elem, 0>() * B::exp_m1(x) }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, args: &Args) -> B::Elem {
        if y > B::Elem::ZERO { dy } else { dy * (y + args.scalar::<B::Elem, 0>()) }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    unary::op::<B, Elu>()
}

/// Any shape; the output has the same.
///
/// # Errors
/// When `alpha` is below 0 or NaN: the derivative could not be told from the output.
pub const fn spec(x: Shape, alpha: f64) -> Result<Spec, ShapeError> {
    if alpha >= 0.0 {
        Ok(Spec::new(x).args(Args::NONE.with_scalar(0, alpha)))
    } else {
        Err(ShapeError::Setting { op: "elu", rule: "alpha must be at least 0", found: alpha })
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` where it is above 0, else `alpha (e^x - 1)` (PyTorch's `alpha` is 1), element-wise.
    ///
    /// # Panics
    /// When `alpha` is below 0 or NaN.
    #[track_caller]
    pub const fn elu<S: Dims>(&mut self, x: Var<S>, alpha: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, alpha))
    }
}

crate::tape::methods! {
    /// `x` where it is above 0, else `alpha (e^x - 1)` (PyTorch's `alpha` is 1), element-wise.
    /// A fault where `alpha` is below 0 or NaN.
    elu(x)(alpha: f64) => (op(), spec(x, alpha))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([-2.0, 0.0, 3.0], [-0.432_332_358_381_693_65, 0.0, 3.0]);
        let dx = [0.067_667_641_618_306_35, 0.5, 1.0];
        check(op(), spec(Shape::new([3]), 0.5).unwrap(), &[&x], &y, &[&dx]);
    }

    #[test]
    fn a_negative_setting_is_an_error() {
        let error = spec(Shape::new([1]), -0.5).unwrap_err();
        assert_eq!(std::format!("{error}"), "elu: alpha must be at least 0, found -0.5");
    }
}
