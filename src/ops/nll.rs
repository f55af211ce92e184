//! Negative log-likelihood: `-x` of the target's class, for log-probabilities `x` `[n, c, ...]` (or `[c]`) and class indices
//! `[n, ...]`; their mean, sum, or each.
//!
//! `dx = -dy / n` at the target's class (without `n` unless it is the mean), else 0, as in PyTorch's `nll_loss`. After
//! [`log_softmax`](super::log_softmax) it is what [`cross_entropy`](super::cross_entropy) computes in one step.

use super::class_loss::{self, ClassLoss, Index};
use super::{Gradient, Op, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Indices, Var};
use crate::shape::{Dims, R0, R2, Shape};
use crate::tape::Call;

struct Nll;

impl<B: Backend> ClassLoss<B> for Nll {
    #[inline(always)]
    fn term(x: B::Elem) -> B::Elem {
        -x
    }

    #[inline(always)]
    fn slope(_: B::Elem) -> B::Elem {
        -B::Elem::ONE
    }
}

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let (forward, gradient) = class_loss::kernels::<B, Nll, Index>();
        let x = Gradient::kernel(gradient, Reads::input(1));
        &Op::new("nll", forward, [x, Gradient::None, Gradient::None])
    }
}

/// The output is a scalar, or has the shape of the target where nothing is reduced.
///
/// # Errors
/// When `x` is a scalar, or the target does not have its shape without the classes' axis.
pub const fn spec(x: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    if x.rank() > 0 && target.rank() + 1 != x.rank() {
        let (op, expected) = ("nll", "that of the prediction without the classes' axis");
        return Err(ShapeError::Rank { op, operand: "the target", expected, found: target });
    }
    class_loss::spec("nll", x, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean negative log-likelihood of the target's classes.
    #[track_caller]
    pub const fn nll<const A: usize, const C: usize>(
        &mut self,
        log_probabilities: Var<R2<A, C>>,
        target: Var<Indices<A>>,
    ) -> Var<R0> {
        self.nll_with(log_probabilities, target, Reduction::Mean)
    }

    /// The same, reduced so; the annotated output is a scalar, or `R1<A>` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn nll_with<const A: usize, const C: usize, Y: Dims>(
        &mut self,
        log_probabilities: Var<R2<A, C>>,
        target: Var<Indices<A>>,
        reduction: Reduction,
    ) -> Var<Y> {
        self.index_below(target.id(), C);
        let spec = spec(log_probabilities.shape(), Shape::new([A]), reduction);
        self.record("", op(), &[log_probabilities.id(), target.id()], spec)
    }
}

crate::tape::methods! {
    /// `-x` of the target's class, for log-probabilities `[n, c, ...]` or `[c]` and class indices of that shape without `c`,
    /// reduced so. A fault where the shapes do not fit, or an index is no class.
    nll(log_probabilities, target)(reduction: Reduction) => {
        let bound = class_loss::classes(log_probabilities);
        Call::new(op(), spec(log_probabilities, target, reduction)).indices(1, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0];
        let spec_mean = spec(Shape::new([2, 3]), Shape::new([2]), Reduction::Mean).unwrap();
        let dx = [0.0, -0.5, 0.0, -0.5, 0.0, 0.0];
        let (y, found) = run(op::<Strict<f64>>(), spec_mean, &[&x, &[1.0, 0.0]], &[1.0], 0);
        assert_eq!((y, &found[..]), (std::vec![3.0], &dx[..]));
        check(op(), spec_mean, &[&x, &[1.0, 0.0]], &[3.0], &[&dx, &[]]);
        // Three classes for each of two places of one sample: they lie two apart.
        let spec = spec(Shape::new([1, 3, 2]), Shape::new([1, 2]), Reduction::None).unwrap();
        let (y, dx) = run(op::<Strict<f64>>(), spec, &[&x, &[2.0, 0.0]], &[10.0, 1.0], 0);
        assert_eq!((y, dx), (std::vec![5.0, 2.0], std::vec![0.0, -1.0, 0.0, 0.0, -10.0, 0.0]));
    }

    #[test]
    fn probabilities_are_no_indices() {
        let error = spec(Shape::new([2, 3]), Shape::new([2, 3]), Reduction::Mean).unwrap_err();
        let text = "nll: the target has shape [2, 3], expected that of the prediction without the classes' axis";
        assert_eq!(std::format!("{error}"), text);
    }
}
