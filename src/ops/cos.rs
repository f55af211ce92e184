//! Cosine of an angle in radians: `y = cos x`, element-wise. The derivative needs `x`, which is kept.
//!
//! `dx = -dy sin x`.

use super::{BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec, unary};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    B::cos_slice(call.y);
}

fn backward<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    unary::gradient_by_slices(call.x[0], call.dx, B::sin_slice, |dy, sin| -dy * sin);
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(backward::<B>, Reads::input(0));
        &Op::new("cos", forward::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// Any shape; the output has the same.
#[must_use]
pub const fn spec(x: Shape) -> Spec {
    Spec::new(x)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The cosine of `x` in radians, element-wise.
    #[track_caller]
    pub const fn cos<S: Dims>(&mut self, x: Var<S>) -> Var<S> {
        self.apply(op::<B>(), &[x.id()], spec(S::SHAPE))
    }
}

crate::tape::methods! {
    /// The cosine of `x` in radians, element-wise.
    cos(x)() => (op(), spec(x))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, y) = ([0.0, 1.0, -2.5], [1.0, 0.540_302_305_868_139_8, -0.801_143_615_546_933_7]);
        let dx = [0.0, -0.841_470_984_807_896_5, 0.598_472_144_103_956_5];
        check(op(), spec(Shape::new([3])), &[&x], &y, &[&dx]);
    }
}
