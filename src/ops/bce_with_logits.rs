//! Binary cross-entropy of logits: the mean, the sum, or each of `max(x, 0) - x t + ln(1 + e^-|x|)`, which is
//! `-t ln σ(x) - (1 - t) ln(1 - σ(x))` without its overflow.
//!
//! `dx = (σ(x) - t) dy / n` (without `n` unless it is the mean) and `dt = -x dy / n`, as in PyTorch's
//! `binary_cross_entropy_with_logits`.

use super::loss::{self, Loss};
use super::{Args, BackwardCall, Gradient, Op, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct Bce;

impl<B: Backend> Loss<B> for Bce {
    const NAME: &'static str = "bce_with_logits";

    #[inline(always)]
    fn new(_: &Args) -> Self {
        Self
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem) {
        let (zero, one) = (B::Elem::ZERO, B::Elem::ONE);
        let e = B::exp(-x.abs());
        let sigmoid = if x < zero { e } else { one } / (one + e);
        (x.maximum(zero) - x * t + B::ln_1p(e), sigmoid - t)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &loss::of_pairs::<B, Bce>(Gradient::kernel(gradient_target::<B>, Reads::input(0))) }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ.
pub const fn spec(logits: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    loss::spec("bce_with_logits", logits, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean binary cross-entropy of logits against probabilities.
    #[track_caller]
    pub const fn bce_with_logits<S: Dims>(&mut self, logits: Var<S>, target: Var<S>) -> Var<R0> {
        self.bce_with_logits_with(logits, target, Reduction::Mean)
    }

    /// The binary cross-entropies, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn bce_with_logits_with<S: Dims, Y: Dims>(
        &mut self,
        logits: Var<S>,
        target: Var<S>,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[logits.id(), target.id()], spec(S::SHAPE, S::SHAPE, reduction))
    }
}

crate::tape::methods! {
    /// The binary cross-entropies of logits against probabilities of the same shape, reduced so; both get gradients. A
    /// fault where the shapes differ.
    bce_with_logits(logits, target)(reduction: Reduction) => (op(), spec(logits, target, reduction))
}

fn gradient_target<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let share = loss::share(call.args, call.dy);
    for (i, (dt, &x)) in call.dx.iter_mut().zip(call.x[0]).enumerate() {
        let start = if call.add { *dt } else { B::Elem::ZERO };
        *dt = start - x * share(i);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([2]);
        let spec = spec(shape, shape, Reduction::Sum).unwrap();
        let y2 = 0.880_797_077_977_882_4;
        // ln(1 + e^-2) is -ln y2.
        let loss = core::f64::consts::LN_2 + (2.0 - 2.0 * 0.25 - libm::log(y2));
        let dx = [0.5 - 1.0, y2 - 0.25];
        check(op(), spec, &[&[0.0, 2.0], &[1.0, 0.25]], &[loss], &[&dx, &[0.0, -2.0]]);
    }

    #[test]
    fn large_logits_neither_overflow_nor_lose_the_small_end() {
        let shape = Shape::new([4]);
        let spec = spec(shape, shape, Reduction::None).unwrap();
        let x = [1000.0, -1000.0, 20.0, -20.0];
        let (y, dx) = run(op::<Strict<f32>>(), spec, &[&x, &[0.0, 0.0, 1.0, 0.0]], &[1.0; 4], 0);
        let small = libm::expf(-20.0);
        assert_eq!(y, [1000.0, 0.0, small, small]);
        assert_eq!(dx, [1.0, 0.0, 0.0, small]);
    }
}
