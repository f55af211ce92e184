//! Kullback-Leibler divergence of log-probabilities `x` from target probabilities `q`: the sum of `q (ln q - x)` over the
//! batch's length, the mean, the sum, or each. A class of probability 0 adds nothing, whatever `x` is.
//!
//! `dx = -q dy / n` and `dq = (ln q + 1 - x) dy / n`, where `n` is the length that the sum is divided by, as in PyTorch's
//! `kl_div`. Its mean over all elements is no mean of divergences, hence [`Reduction::BatchMean`] is the default here.

use super::loss::{self, Loss};
use super::{Args, BackwardCall, Gradient, Op, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

struct KlDiv;

impl<B: Backend> Loss<B> for KlDiv {
    const NAME: &'static str = "kl_div";

    #[inline(always)]
    fn new(_: &Args) -> Self {
        Self
    }

    #[inline(always)]
    fn term(&self, x: B::Elem, q: B::Elem) -> (B::Elem, B::Elem) {
        let term = if q == B::Elem::ZERO { B::Elem::ZERO } else { q * (B::ln(q) - x) };
        (term, -q)
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let reads = Reads::input(0).and(Reads::input(1));
        &loss::of_pairs::<B, KlDiv>(Gradient::kernel(gradient_target::<B>, reads))
    }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ.
pub const fn spec(log_probabilities: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    loss::spec("kl_div", log_probabilities, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The divergences of `x`, logarithms of probabilities, from the target's probabilities, divided by the first axis.
    #[track_caller]
    pub const fn kl_div<S: Dims>(&mut self, x: Var<S>, target: Var<S>) -> Var<R0> {
        self.kl_div_with(x, target, Reduction::BatchMean)
    }

    /// The same, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn kl_div_with<S: Dims, Y: Dims>(&mut self, x: Var<S>, target: Var<S>, reduction: Reduction) -> Var<Y> {
        self.record("", op(), &[x.id(), target.id()], spec(S::SHAPE, S::SHAPE, reduction))
    }
}

crate::tape::methods! {
    /// The divergences `q (ln q - x)` of logarithms of probabilities from the target's probabilities, of one shape, reduced
    /// so ([`Reduction::BatchMean`] is the divergence of a sample). A fault where the shapes differ.
    kl_div(log_probabilities, target)(reduction: Reduction) => (op(), spec(log_probabilities, target, reduction))
}

fn gradient_target<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [x, q, _] = call.x;
    let share = loss::share(call.args, call.dy);
    for (i, ((dq, &x), &q)) in call.dx.iter_mut().zip(x).zip(q).enumerate() {
        let start = if call.add { *dq } else { B::Elem::ZERO };
        *dq = start + (B::ln(q) + B::Elem::ONE - x) * share(i);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([2, 2]);
        let spec = spec(shape, shape, Reduction::BatchMean).unwrap();
        let (x, q): ([f64; 4], [f64; 4]) = ([-1.0, -0.5, -2.0, -0.25], [0.5, 0.5, 0.25, 0.75]);
        let log = q.map(libm::log);
        let y = (0..4).map(|i| q[i] * (log[i] - x[i])).sum::<f64>() / 2.0;
        let dq: [f64; 4] = core::array::from_fn(|i| (log[i] + 1.0 - x[i]) / 2.0);
        check(op(), spec, &[&x, &q], &[y], &[&q.map(|q| -q / 2.0), &dq]);
    }

    #[test]
    fn an_impossible_class_costs_nothing() {
        let shape = Shape::new([2]);
        let spec = spec(shape, shape, Reduction::Sum).unwrap();
        let (y, dx) = run(op::<Strict<f64>>(), spec, &[&[f64::NEG_INFINITY, 0.0], &[0.0, 1.0]], &[1.0], 0);
        assert_eq!((y, dx), (std::vec![0.0], std::vec![0.0, -1.0]));
    }
}
