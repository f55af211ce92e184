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
    use std::vec::Vec;

    use super::super::testing::{check, gradient};
    use super::super::{Backward, BackwardCall, Gradient, Window1d, Window2d, conv1d, conv2d, linear};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [-1.0, 0.0, 1.0, 2.0];
        check(op(), spec(Shape::new([4])), &[&x], &[0.0, 0.0, 1.0, 2.0], &[&[0.0, 0.0, 1.0, 1.0]]);
        let (y, dx) = gradient(op::<Strict<f32>>(), spec(Shape::new([1])), &[&[f32::NAN]], &[1.0], 0);
        assert!(y[0].is_nan() && dx[0] == 1.0, "a NaN goes through: {y:?} {dx:?}");
    }

    #[test]
    fn kernels_that_go_on_through_relu_have_the_bits_of_a_pass_of_its_own() {
        type F = Strict<f32>;
        let shape = |axes: &[usize]| Shape::from_slice(axes);
        let (linear, linear_weight) = (shape(&[5, 40]), shape(&[9, 40]));
        let (signal, signal_weight) = (shape(&[2, 16, 21]), shape(&[6, 16, 3]));
        let (image, image_weight) = (shape(&[2, 16, 9, 11]), shape(&[6, 16, 3, 3]));
        let (window, flat) = (Window2d::size(3).stride(2).padding(1), Window1d::size(3).stride(1).padding(1));
        for (op, x, weight, spec) in [
            (linear::op::<F>(), linear, linear_weight, linear::spec(linear, linear_weight, None)),
            (conv1d::op(), signal, signal_weight, conv1d::spec(signal, signal_weight, None, flat, 1)),
            (conv2d::op(), image, image_weight, conv2d::spec(image, image_weight, None, window, 1)),
        ] {
            let spec = spec.unwrap();
            let numbers =
                |len: usize| -> Vec<f32> { (0..len).map(|i| (i * 7919 % 1009) as f32 / 504.0 - 1.0).collect() };
            let (mut y, weight, mut dy) = (numbers(x.len()), numbers(weight.len()), numbers(spec.shape.len()));
            y.iter_mut().zip([f32::NAN, 0.0, -0.0, f32::INFINITY, -f32::INFINITY]).for_each(|(y, x)| *y = x);
            dy.iter_mut().step_by(37).for_each(|dy| *dy = f32::NAN);
            let run = |run: Backward<F>, y: &[f32]| {
                let (mut gradient, mut scratch) = (std::vec![7.0; x.len()], std::vec![0.0; spec.scratch_backward[0]]);
                let (x, args, saved, dy) = ([y, &weight, &[]], &spec.args, &[][..], &dy[..]);
                let (dx, scratch) = (&mut gradient[..], &mut scratch[..]);
                run(BackwardCall { args, x, y: &[], saved, dy, dx, add: false, scratch, first_row: 0 });
                gradient
            };
            let Gradient::Kernel { run: alone, .. } = op.backward[0] else { panic!("{} has a kernel", op.name) };
            let (found, dx) = (run(op.behind_relu.unwrap(), &y), run(alone, &y));
            assert!(dx.iter().any(|dx| dx.is_nan()), "{}: no gradient is NaN", op.name);
            for (i, (&found, (&y, &dx))) in found.iter().zip(y.iter().zip(&dx)).enumerate() {
                let want = if y <= 0.0 { 0.0 } else { dx };
                let same = found.to_bits() == want.to_bits() || (found.is_nan() && want.is_nan());
                assert!(same, "{}, element {i}: {found} where the output is {y} and its gradient {dx}", op.name);
            }
        }
    }
}
