//! Softmax cross-entropy of logits `x` `[..., c]` against class indices `[...]` or probabilities `[..., c]` (one-hot rows
//! among them): a row's loss is `Σ q (ln Σ e^x - x)`, computed from `x` minus the row's largest element.
//!
//! `dx = p Σ q - q`, times the loss's gradient, where `p = softmax(x)`. Forward keeps `p` where the logits were, if nothing
//! else reads them, and backward turns it into `dx` there. With label smoothing ε the target is `(1 - ε) q + ε / c`. The
//! definition is that of PyTorch's `cross_entropy`; the target gets no gradient.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, OverGradient, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Indices, Var};
use crate::shape::{Dims, R0, R2, Shape};

/// The table for class indices.
#[must_use]
pub const fn op_indices<B: Backend>() -> &'static Op<B> {
    const { &table(forward::<B, Index>, gradient::<B, Index>) }
}

/// The table for probabilities.
#[must_use]
pub const fn op_probabilities<B: Backend>() -> &'static Op<B> {
    const { &table(forward::<B, Probability>, gradient::<B, Probability>) }
}

const fn table<B: Backend>(forward: super::Forward<B>, run: super::Backward<B>) -> Op<B> {
    let reads = Reads::input(1).and(Reads::SAVED);
    let x = Gradient::Kernel { run, reads, over: OverGradient::Saved, rows: false };
    Op::new("cross_entropy", forward, [x, Gradient::None, Gradient::None]).over(Over::Saved)
}

/// How a cross-entropy is reduced, and how its targets are smoothed.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    reduction: Reduction,
    label_smoothing: f64,
}

impl CrossEntropy {
    /// The mean over the rows, without smoothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { reduction: Reduction::Mean, label_smoothing: 0.0 }
    }

    /// Reduced so.
    #[must_use]
    pub const fn reduction(self, reduction: Reduction) -> Self {
        Self { reduction, ..self }
    }

    /// With targets that are smoothed by so much, from 0 to 1.
    #[must_use]
    pub const fn label_smoothing(self, label_smoothing: f64) -> Self {
        Self { label_smoothing, ..self }
    }
}

impl Default for CrossEntropy {
    fn default() -> Self {
        Self::new()
    }
}

/// The output is a scalar, or has the shape of `x` without the last axis where nothing is reduced.
///
/// # Errors
/// When the target is neither that shape nor the shape of `x`, `x` is a scalar, or the smoothing is not from 0 to 1.
pub const fn spec(x: Shape, target: Shape, settings: CrossEntropy) -> Result<Spec, ShapeError> {
    let op = "cross_entropy";
    if x.rank() == 0 {
        return Err(ShapeError::Rank { op, operand: "the logits", expected: "[..., classes]", found: x });
    }
    let rows = x.prefix(x.rank() - 1);
    if !target.equals(&rows) && !target.equals(&x) {
        let expected = "that of the logits, or the same without the last axis for class indices";
        return Err(ShapeError::Rank { op, operand: "the target", expected, found: target });
    }
    if !(settings.label_smoothing >= 0.0 && settings.label_smoothing <= 1.0) {
        return Err(ShapeError::Setting {
            op,
            rule: "label smoothing is from 0 to 1",
            found: settings.label_smoothing,
        });
    }
    let args = Args::new(&[x.axis_from_end(0), settings.reduction.code()]).with_scalar(2, settings.label_smoothing);
    Ok(Spec { saved: x.len(), ..Spec::new(settings.reduction.shape(rows)).args(args) })
}

/// What a cross-entropy of `A` rows of `C` classes takes as its target: [`Indices`] or probabilities.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no target for logits of shape [{A}, {C}]",
    label = "expected class indices for {A} samples, or probabilities `R2<{A}, {C}>`",
    note = "class indices are an input of their own kind: `g.class_indices::<{A}>(\"label\")`"
)]
pub trait ClassTarget<const A: usize, const C: usize> {
    /// The shape as a value.
    const SHAPE: Shape;
    /// Whether these are indices.
    const INDICES: bool;
}

impl<const A: usize, const C: usize> ClassTarget<A, C> for Indices<A> {
    const SHAPE: Shape = Shape::new([A]);
    const INDICES: bool = true;
}

impl<const A: usize, const C: usize> ClassTarget<A, C> for R2<A, C> {
    const SHAPE: Shape = <Self as Dims>::SHAPE;
    const INDICES: bool = false;
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean cross-entropy of logits against class indices or probabilities.
    #[track_caller]
    pub const fn cross_entropy<const A: usize, const C: usize, T: ClassTarget<A, C>>(
        &mut self,
        logits: Var<R2<A, C>>,
        target: Var<T>,
    ) -> Var<R0> {
        self.cross_entropy_with(logits, target, CrossEntropy::new())
    }

    /// The cross-entropy with these settings; the annotated output is a scalar, or `R1<A>` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another, or the smoothing is not from 0 to 1.
    #[track_caller]
    pub const fn cross_entropy_with<const A: usize, const C: usize, T: ClassTarget<A, C>, Y: Dims>(
        &mut self,
        logits: Var<R2<A, C>>,
        target: Var<T>,
        settings: CrossEntropy,
    ) -> Var<Y> {
        let spec = spec(logits.shape(), T::SHAPE, settings);
        if T::INDICES {
            self.index_below(target.id(), C);
            self.record("", op_indices(), &[logits.id(), target.id()], spec)
        } else {
            self.record("", op_probabilities(), &[logits.id(), target.id()], spec)
        }
    }
}

/// The target of one row: the weight of a class, and the sum of all weights.
trait Target<E: Real> {
    /// Elements of the target for a row of `classes`.
    fn len(classes: usize) -> usize;
    /// The weight of class `i`.
    fn weight(target: &[E], i: usize) -> E;
    /// The sum of the weights.
    fn total<B: Backend<Elem = E>>(target: &[E]) -> E;
}

struct Index;
struct Probability;

impl<E: Real> Target<E> for Index {
    #[inline(always)]
    fn len(_: usize) -> usize {
        1
    }
    #[inline(always)]
    fn weight(target: &[E], i: usize) -> E {
        match target.first() {
            Some(&target) if target == E::from_usize(i) => E::ONE,
            _ => E::ZERO,
        }
    }
    #[inline(always)]
    fn total<B: Backend<Elem = E>>(_: &[E]) -> E {
        E::ONE
    }
}

impl<E: Real> Target<E> for Probability {
    #[inline(always)]
    fn len(classes: usize) -> usize {
        classes
    }
    #[inline(always)]
    fn weight(target: &[E], i: usize) -> E {
        target.get(i).copied().unwrap_or_default()
    }
    #[inline(always)]
    fn total<B: Backend<Elem = E>>(target: &[E]) -> E {
        B::sum(target)
    }
}

/// Smoothed weights: `keep` times the target's, and `spread` for every class.
struct Smoothing<E> {
    keep: E,
    spread: E,
    total: E,
}

impl<E: Real> Smoothing<E> {
    #[inline(always)]
    fn new(args: &Args, classes: usize) -> Self {
        let smoothing: E = args.scalar::<E, 2>();
        Self { keep: E::ONE - smoothing, spread: smoothing / E::from_usize(classes), total: smoothing }
    }

    #[inline(always)]
    fn weight<T: Target<E>>(&self, target: &[E], i: usize) -> E {
        self.keep * T::weight(target, i) + self.spread
    }

    #[inline(always)]
    fn total<B: Backend<Elem = E>, T: Target<E>>(&self, target: &[E]) -> E {
        self.keep * T::total::<B>(target) + self.total
    }
}

fn forward<B: Backend, T: Target<B::Elem>>(call: ForwardCall<'_, B::Elem>) {
    let [classes, reduction, ..] = call.args.lengths();
    let (reduction, classes) = (Reduction::of_code(reduction), classes.max(1));
    let smoothing = Smoothing::new(call.args, classes);
    let rows = call.saved.len() / classes;
    let targets = call.x[1].chunks_exact(T::len(classes).max(1));
    let mut sums = [B::Elem::ZERO; 8];
    for (i, (row, target)) in call.saved.chunks_exact_mut(classes).zip(targets).enumerate() {
        let largest = row.iter().copied().fold(-B::Elem::INFINITY, B::Elem::maximum);
        // Σ q (x - m) of the row; a class without weight adds nothing, even where its logit is -∞.
        let mut of_targets = B::Elem::ZERO;
        for (class, x) in row.iter_mut().enumerate() {
            *x -= largest;
            let weight = smoothing.weight::<T>(target, class);
            if weight != B::Elem::ZERO {
                of_targets = B::mul_add(weight, *x, of_targets);
            }
            *x = B::exp(*x);
        }
        let sum = B::sum(row);
        let scale = B::Elem::ONE / sum;
        row.iter_mut().for_each(|p| *p *= scale);
        let loss = smoothing.total::<B, T>(target) * B::ln(sum) - of_targets;
        match (reduction, call.y.get_mut(i), sums.get_mut(i % 8)) {
            (Reduction::None, Some(y), _) => *y = loss,
            (_, _, Some(sum)) => *sum += loss,
            _ => {}
        }
    }
    if let (Reduction::Mean | Reduction::Sum, Some(y)) = (reduction, call.y.first_mut()) {
        let sum = B::sum(&sums);
        *y = if matches!(reduction, Reduction::Mean) { sum / B::Elem::from_usize(rows) } else { sum };
    }
}

fn gradient<B: Backend, T: Target<B::Elem>>(call: BackwardCall<'_, B::Elem>) {
    let [classes, reduction, ..] = call.args.lengths();
    let (reduction, classes) = (Reduction::of_code(reduction), classes.max(1));
    let smoothing = Smoothing::new(call.args, classes);
    let rows = call.dx.len() / classes;
    let targets = call.x[1].chunks_exact(T::len(classes).max(1));
    for (i, (row, target)) in call.dx.chunks_exact_mut(classes).zip(targets).enumerate() {
        let share = reduction.share(call.dy, i, rows);
        let total = smoothing.total::<B, T>(target);
        for (class, dx) in row.iter_mut().enumerate() {
            *dx = (*dx * total - smoothing.weight::<T>(target, class)) * share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient as run;
    use super::*;
    use crate::backend::Strict;

    const P: [f64; 3] = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8];

    fn close(found: &[f64], want: &[f64]) {
        let near = found.iter().zip(want).all(|(f, w)| (f - w).abs() < 1e-14);
        assert!(found.len() == want.len() && near, "{found:?}, expected {want:?}");
    }

    #[test]
    fn indices_and_one_hot_rows_agree() {
        let x: &[f64] = &[1.0, 2.0, 3.0, 501.0, 502.0, 503.0];
        let (logits, settings) = (Shape::new([2, 3]), CrossEntropy::new());
        let dx = [P[0] / 2.0, P[1] / 2.0, (P[2] - 1.0) / 2.0, (P[0] - 1.0) / 2.0, P[1] / 2.0, P[2] / 2.0];
        let y = -(P[2].ln() + P[0].ln()) / 2.0;
        let indices = spec(logits, Shape::new([2]), settings).unwrap();
        let (loss, found) = run(op_indices::<Strict<f64>>(), indices, &[x, &[2.0, 0.0]], &[1.0], 0);
        close(&loss, &[y]);
        close(&found, &dx);
        let one_hot = spec(logits, logits, settings).unwrap();
        let target = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let (loss, found) = run(op_probabilities::<Strict<f64>>(), one_hot, &[x, &target], &[1.0], 0);
        close(&loss, &[y]);
        close(&found, &dx);
    }

    #[test]
    fn every_row_has_its_own_largest_element() {
        let x: &[f64] = &[200.0, 0.0, 0.0, 1.0, 2.0, 3.0];
        let settings = CrossEntropy::new().reduction(Reduction::None);
        let spec = spec(Shape::new([2, 3]), Shape::new([2]), settings).unwrap();
        let (loss, _) = run(op_indices::<Strict<f64>>(), spec, &[x, &[0.0, 2.0]], &[1.0, 1.0], 0);
        close(&loss, &[0.0, -P[2].ln()]);
    }

    #[test]
    fn an_infinitely_unlikely_class_costs_nothing_unless_it_is_the_target() {
        let x: &[f64] = &[0.0, f64::NEG_INFINITY];
        let spec = spec(Shape::new([1, 2]), Shape::new([1]), CrossEntropy::new()).unwrap();
        let loss = |target: f64| run(op_indices::<Strict<f64>>(), spec, &[x, &[target]], &[1.0], 0).0[0];
        assert_eq!((loss(0.0), loss(1.0)), (0.0, f64::INFINITY));
    }
}
