//! Cross-entropy of probabilities `p` `[n, c, ...]` (or `[c]`), such as a softmax leaves, against class indices `[n, ...]` or
//! probabilities `q` of the shape of `p`: a row's loss is `-Σ q ln max(p, 1e-10)`; their mean, sum, or each.
//!
//! `dp = -q / max(p, 1e-10)`, times `dy / n` (without `n` unless it is the mean). Value and gradient are nanograd's
//! `cross-entropy-loss`: a class that is less likely than 1e-10 still has the gradient that it has there. The target gets no
//! gradient. From logits, [`cross_entropy`](super::cross_entropy) is more accurate, and cheaper.

use super::class_loss::{self, ClassLoss, ClassTarget, Index, Probability, Target};
use super::{Gradient, Op, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, R2, Shape};

struct OfProbabilities;

/// The smallest probability that counts. A NaN stays one.
#[inline(always)]
fn clamped<E: Real>(p: E) -> E {
    p.maximum(E::choose(1e-10, 1e-10))
}

impl<B: Backend> ClassLoss<B> for OfProbabilities {
    #[inline(always)]
    fn term(p: B::Elem) -> B::Elem {
        -B::ln(clamped(p))
    }

    #[inline(always)]
    fn slope(p: B::Elem) -> B::Elem {
        -B::Elem::ONE / clamped(p)
    }
}

/// The table for class indices.
#[must_use]
pub const fn op_indices<B: Backend>() -> &'static Op<B> {
    const { &table::<B, Index>() }
}

/// The table for probabilities.
#[must_use]
pub const fn op_probabilities<B: Backend>() -> &'static Op<B> {
    const { &table::<B, Probability>() }
}

const fn table<B: Backend, T: Target<B::Elem>>() -> Op<B> {
    let (forward, gradient) = class_loss::kernels::<B, OfProbabilities, T>();
    let p = Gradient::kernel(gradient, Reads::input(0).and(Reads::input(1)));
    Op::new("cross_entropy_of_probabilities", forward, [p, Gradient::None, Gradient::None])
}

/// The output is a scalar, or has the shape of `p` without the classes' axis where nothing is reduced.
///
/// # Errors
/// When the target is neither that shape nor the shape of `p`, or `p` is a scalar.
pub const fn spec(p: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    class_loss::spec("cross_entropy_of_probabilities", p, target, reduction)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean cross-entropy of probabilities against class indices or probabilities.
    #[track_caller]
    pub const fn cross_entropy_of_probabilities<const A: usize, const C: usize, T: ClassTarget<A, C>>(
        &mut self,
        p: Var<R2<A, C>>,
        target: Var<T>,
    ) -> Var<R0> {
        self.cross_entropy_of_probabilities_with(p, target, Reduction::Mean)
    }

    /// The same, reduced so; the annotated output is a scalar, or `R1<A>` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn cross_entropy_of_probabilities_with<const A: usize, const C: usize, T: ClassTarget<A, C>, Y: Dims>(
        &mut self,
        p: Var<R2<A, C>>,
        target: Var<T>,
        reduction: Reduction,
    ) -> Var<Y> {
        let spec = spec(p.shape(), T::SHAPE, reduction);
        if T::INDICES {
            self.index_below(target.id(), C);
            self.record("", op_indices(), &[p.id(), target.id()], spec)
        } else {
            self.record("", op_probabilities(), &[p.id(), target.id()], spec)
        }
    }
}

crate::tape::methods! {
    /// The cross-entropy `-Σ q ln max(p, 1e-10)` of probabilities `[n, c, ...]` or `[c]` against probabilities of their shape,
    /// or class indices of that shape without `c`, reduced so. A fault where the target has another shape, or an index is no
    /// class. No gradient flows into the target.
    cross_entropy_of_probabilities(p, target)(reduction: Reduction) => {
        let spec = spec(p, target, reduction);
        class_loss::call(p, target, [op_indices(), op_probabilities()], spec)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient as run;
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn indices_and_one_hot_rows_agree() {
        let p: &[f64] = &[0.5, 0.25, 0.25, 0.125, 0.375, 0.5];
        let shape = Shape::new([2, 3]);
        let y = [f64::midpoint(libm::log(4.0), libm::log(8.0))];
        let dp = [0.0, -2.0, 0.0, -4.0, 0.0, 0.0];
        let indices = spec(shape, Shape::new([2]), Reduction::Mean).unwrap();
        let found = run(op_indices::<Strict<f64>>(), indices, &[p, &[1.0, 0.0]], &[1.0], 0);
        assert_eq!(found, (y.to_vec(), dp.to_vec()));
        let one_hot = spec(shape, shape, Reduction::Mean).unwrap();
        let target = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0];
        let found = run(op_probabilities::<Strict<f64>>(), one_hot, &[p, &target], &[1.0], 0);
        assert_eq!(found, (y.to_vec(), dp.to_vec()));
    }

    #[test]
    fn less_likely_than_1e_10_counts_as_1e_10() {
        let spec = spec(Shape::new([2]), Shape::SCALAR, Reduction::Sum).unwrap();
        let found = run(op_indices::<Strict<f64>>(), spec, &[&[0.0, 1.0], &[0.0]], &[2.0], 0);
        assert_eq!(found, (std::vec![-libm::log(1e-10)], std::vec![-2e10, 0.0]));
    }
}
