//! Rectified linear unit: `y = max(x, 0)`, element-wise, in place where nothing else reads `x`.
//!
//! `dx = dy` where `y > 0`, else 0; so the derivative at 0 is 0, as in PyTorch. A NaN goes through.

use super::unary::{self, Unary};
use super::{Args, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

struct Relu;

impl<B: Backend> Unary<B> for Relu {
    const NAME: &'static str = "relu";

    #[inline(always)]
    fn value(x: B::Elem, _: &Args) -> B::Elem {
        // Written so that a NaN, for which no comparison holds, is kept.
        if x <= B::Elem::ZERO { B::Elem::ZERO } else { x }
    }

    #[inline(always)]
    fn gradient(y: B::Elem, dy: B::Elem, _: &Args) -> B::Elem {
        if y <= B::Elem::ZERO { B::Elem::ZERO } else { dy }
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &Op { is_relu: true, ..unary::table::<B, Relu>() } }
}

/// Rectifies what kernels have just computed.
pub(super) fn in_place<B: Backend>(y: &mut [B::Elem]) {
    unary::map::<B, Relu>(y, &Args::NONE);
}

/// Takes the gradient of relu's output `y` to that of its input, in place: what kernels do who have just computed it.
pub(super) fn gradient_in_place<B: Backend>(dx: &mut [B::Elem], y: &[B::Elem]) {
    unary::map_gradient::<B, Relu>(dx, y, Args::NONE);
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `max(x, 0)`, element-wise.
    #[track_caller]
    pub const fn relu<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// `max(x, 0)`, element-wise.
    relu(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [-1.0, 0.0, 1.0, 2.0];
        check(op(), spec(Shape::new([4])), &[&x], &[0.0, 0.0, 1.0, 2.0], &[&[0.0, 0.0, 1.0, 1.0]]);
        let (y, dx) = gradient(op::<Strict<f32>>(), spec(Shape::new([1])), &[&[f32::NAN]], &[1.0], 0);
        assert!(y[0].is_nan() && dx[0] == 1.0, "a NaN goes through: {y:?} {dx:?}");
    }
}
