//! Softmax cross-entropy of logits `x` `[n, c, ...]` (or `[c]`) against class indices `[n, ...]` or probabilities of the
//! shape of `x` (one-hot rows among them): a row's loss is `Σ q (ln Σ e^x - x)` over its classes, computed from `x` minus the
//! row's largest element.
//!
//! `dx = p Σ q - q`, times the loss's gradient, where `p = softmax(x)`. Forward keeps `p` where the logits were, if nothing
//! else reads them, and backward turns it into `dx` there. With label smoothing ε the target is `(1 - ε) q + ε / c`. The
//! definition is that of PyTorch's `cross_entropy`; the target gets no gradient.

#[cfg(target_arch = "x86_64")]
use core::array::from_fn;
#[cfg(target_arch = "x86_64")]
use core::hint::black_box;
use core::marker::PhantomData;

use super::class_loss::ClassTarget;
use super::class_loss::{self, Classes, Index, Probability, Row, Target};
use super::loss::{self, Terms, share};
use super::runs::{Run, first_of, for_each_run, map_in_blocks, runs_of};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, OverGradient, Reads, Reduction, Spec};
use crate::backend::dispatch::{Kernel, dispatch};
use crate::backend::{Backend, Real, sum_of};
#[cfg(target_arch = "x86_64")]
use crate::backend::{transpose::transpose, tree};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
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
    Op::new("cross_entropy", forward, [x, Gradient::None, Gradient::None]).over(Over::Saved).words(loss::WORDS)
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

/// The output is a scalar, or has the shape of `x` without the classes' axis where nothing is reduced.
///
/// # Errors
/// When the target is neither that shape nor the shape of `x`, `x` is a scalar, or the smoothing is not from 0 to 1.
pub const fn spec(x: Shape, target: Shape, settings: CrossEntropy) -> Result<Spec, ShapeError> {
    let op = "cross_entropy";
    let smoothing = settings.label_smoothing;
    if !(smoothing >= 0.0 && smoothing <= 1.0) {
        return Err(ShapeError::Setting { op, rule: "label smoothing is from 0 to 1", found: smoothing });
    }
    match class_loss::spec(op, x, target, settings.reduction) {
        Ok(spec) => Ok(Spec { saved: x.len(), ..spec.args(spec.args.with_scalar(loss::SCALAR, smoothing)) }),
        Err(error) => Err(error),
    }
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

crate::tape::methods! {
    /// The softmax cross-entropy of logits `[n, c, ...]` or `[c]` against probabilities of their shape, or class indices of
    /// that shape without `c`. A fault where the target has another shape, an index is no class, or the smoothing is not from
    /// 0 to 1. No gradient flows into the target.
    cross_entropy(logits, target)(settings: CrossEntropy) => {
        let spec = spec(logits, target, settings);
        class_loss::call(logits, target, [op_indices(), op_probabilities()], spec)
    }
}

/// Smoothed weights: `keep` times the target's, and `spread` for every class.
struct Smoothing<E> {
    keep: E,
    spread: E,
}

impl<E: Real> Smoothing<E> {
    #[inline(always)]
    fn new(args: &Args, classes: Classes) -> Self {
        let smoothing: E = args.scalar::<E, { loss::SCALAR }>();
        Self { keep: E::ONE - smoothing, spread: smoothing / E::from_usize(classes.classes) }
    }

    /// The weight of a class of a row.
    #[inline(always)]
    fn weight<T: Target<E>>(&self, target: &[E], classes: Classes, row: Row, only: usize, class: usize) -> E {
        self.keep * T::weight(target, classes, row, only, class) + self.spread
    }

    /// Whether there is none, so that the only class of a row, where it has one, has all the weight.
    #[inline(always)]
    fn is_none<T: Target<E>>(&self) -> bool {
        T::ONE_CLASS && self.spread == E::ZERO
    }

    /// Σ q and Σ q x of a row; a class without weight adds nothing, even where its x is -∞.
    #[inline(always)]
    fn weigh<B: Backend<Elem = E>, T: Target<E>>(
        &self,
        target: &[E],
        classes: Classes,
        row: Row,
        only: usize,
        x: impl Fn(usize) -> E,
    ) -> (E, E) {
        let (mut total, mut of_targets) = (E::ZERO, E::ZERO);
        let mut weigh = |class| {
            let weight = self.weight::<T>(target, classes, row, only, class);
            if weight != E::ZERO {
                total += weight;
                of_targets = B::mul_add(weight, x(class), of_targets);
            }
        };
        if self.is_none::<T>() && only < classes.classes {
            weigh(only);
        } else {
            (0..classes.classes).for_each(weigh);
        }
        (total, of_targets)
    }
}

fn forward<B: Backend, T: Target<B::Elem>>(mut call: ForwardCall<'_, B::Elem>) {
    dispatch::<B, _>(Rows::<B, T> { call: &mut call, target: PhantomData });
}

struct Rows<'c, 'a, B: Backend, T> {
    call: &'c mut ForwardCall<'a, B::Elem>,
    target: PhantomData<T>,
}

impl<B: Backend, T: Target<B::Elem>> Kernel<B::Elem> for Rows<'_, '_, B, T> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = B::Elem>, const VECTOR: usize>(self) {
        let call = self.call;
        let classes = Classes::new(call.args);
        if VECTOR >= 32 && classes.stride == 1 {
            let mut terms = Terms::new(call.args, call.y);
            let smoothing = Smoothing::new(call.args, classes);
            #[cfg(target_arch = "x86_64")]
            if classes.classes <= FEW && call.saved.len() >= ROWS / 2 * classes.classes {
                few_together::<B, T>(call.x[1], classes, &smoothing, call.saved, &mut terms);
                return terms.finish();
            }
            rows_together::<B, T>(call.x[1], classes, &smoothing, call.saved, &mut terms);
            return terms.finish();
        }
        let sum = sum_of(runs_of(call.args, call.saved.len()), |row| term::<B, T, VECTOR>(call, row));
        finish(call, sum);
    }
}

/// The loss of a row, whose logits become probabilities.
// On a microcontroller this and each of its loops have frames of their own: one for all would have a place for whatever lives in any
// of them.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn term<B: Backend, T: Target<B::Elem>, const VECTOR: usize>(
    call: &mut ForwardCall<'_, B::Elem>,
    row: usize,
) -> B::Elem {
    let run = (first_of(call.args, row), row);
    let largest = on_row(call, run, |_, x| x.largest());
    let only = T::only(call.x[1], row);
    let (total, of_targets) = on_row(call, run, move |(args, target), x| {
        let classes = Classes::new(args);
        let below = |class| x.get(class) - largest;
        Smoothing::new(args, classes).weigh::<B, T>(target, classes, Row::of(x), only, below)
    });
    on_row(call, run, move |_, x| {
        if VECTOR == 0 { x.map(|x| exp::<B>(x - largest)) } else { x.map_on::<VECTOR>(|x| B::exp(x - largest)) }
    });
    let sum = on_row(call, run, |_, x| {
        let sum = sum_of(x.len(), |class| x.get(class));
        let scale = B::Elem::ONE / sum;
        x.map(|p| p * scale);
        sum
    });
    let term = total * ln::<B>(sum) - of_targets;
    keep(call, row, term);
    term
}

/// Writes the loss of a row, where every one stands for itself.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn keep<E: Real>(call: &mut ForwardCall<'_, E>, row: usize, term: E) {
    loss::keep(call.args, call.y, row, term);
}

/// Writes the loss of all rows, unless every one stands for itself.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn finish<E: Real>(call: &mut ForwardCall<'_, E>, sum: E) {
    loss::finish(call.args, call.y, sum);
}

/// What `f` makes of a row of logits, with the arguments and the target.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn on_row<E: Real, R>(
    call: &mut ForwardCall<'_, E>,
    (first, row): (usize, usize),
    f: impl FnOnce((&Args, &[E]), &mut Run<'_, E>) -> R,
) -> R {
    f((call.args, call.x[1]), &mut Run::new(call.args, call.saved, first, row))
}

/// The function as a function, on a microcontroller: its constants are no burden on the loops around it.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn exp<B: Backend>(x: B::Elem) -> B::Elem {
    B::exp(x)
}

/// Likewise.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
fn ln<B: Backend>(x: B::Elem) -> B::Elem {
    B::ln(x)
}

/// The largest element; NaN where there is one.
#[inline(always)]
fn largest<E: Real>(x: &[E]) -> E {
    let (blocks, rest) = x.as_chunks::<8>();
    let mut lanes = [-E::INFINITY; 8];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, &x)| *lane = E::maximum(*lane, x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = E::maximum(*lane, x));
    let [a, b, c, d, e, f, g, h] = lanes;
    let [a, b, c, d] = [E::maximum(a, e), E::maximum(b, f), E::maximum(c, g), E::maximum(d, h)];
    E::maximum(E::maximum(a, c), E::maximum(b, d))
}

/// How many rows share vectors.
const ROWS: usize = 16;
/// As many classes are few.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 16;

/// The same for rows of neighbours with few classes, in machines with vectors: some rows share them, each is a number of every vector.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn few_together<B: Backend, T: Target<B::Elem>>(
    target: &[B::Elem],
    classes: Classes,
    smoothing: &Smoothing<B::Elem>,
    x: &mut [B::Elem],
    terms: &mut Terms<'_, B::Elem>,
) {
    let len = classes.classes.max(1);
    let mut by_class = [[B::Elem::ZERO; ROWS]; FEW];
    for (group, x) in x.chunks_mut(ROWS * len).enumerate() {
        let count = x.len() / len;
        transpose::<B>([count, len], x, len, by_class.as_flattened_mut(), ROWS);
        // Classes one at a time (`black_box`): of all together the compiler gathers one number of each.
        let mut largest = [-B::Elem::INFINITY; ROWS];
        for rows in by_class.iter().take(len).map(black_box) {
            largest = from_fn(|i| B::Elem::maximum(largest[i], rows[i]));
        }
        for rows in by_class.iter_mut().take(len).map(black_box) {
            rows.iter_mut().zip(&largest).for_each(|(x, &largest)| *x -= largest);
        }
        let (mut totals, mut of_targets) = ([B::Elem::ZERO; ROWS], [B::Elem::ZERO; ROWS]);
        for i in 0..count {
            let row = Row::of_neighbours(len, group * ROWS + i);
            let only = T::only(target, row.index);
            let below = |class: usize| by_class[class][i];
            (totals[i], of_targets[i]) = smoothing.weigh::<B, T>(target, classes, row, only, below);
        }
        let mut lanes = [[B::Elem::ZERO; ROWS]; 8];
        for (class, rows) in by_class.iter_mut().take(len).map(black_box).enumerate() {
            *rows = rows.map(B::exp);
            lanes[class % 8].iter_mut().zip(&*rows).for_each(|(sum, &x)| *sum += x);
        }
        let sums: [B::Elem; ROWS] = from_fn(|i| tree(lanes.map(|lane| lane[i])));
        let scales = sums.map(|sum| B::Elem::ONE / sum);
        for rows in by_class.iter_mut().take(len).map(black_box) {
            rows.iter_mut().zip(&scales).for_each(|(p, &scale)| *p *= scale);
        }
        transpose::<B>([len, count], by_class.as_flattened(), ROWS, x, len);
        let logarithms = sums.map(B::ln);
        for i in 0..count {
            terms.push(totals[i] * logarithms[i] - of_targets[i]);
        }
    }
}

/// The same for many classes: only the exponentials and logarithms of some rows share vectors.
#[inline(always)]
fn rows_together<B: Backend, T: Target<B::Elem>>(
    target: &[B::Elem],
    classes: Classes,
    smoothing: &Smoothing<B::Elem>,
    x: &mut [B::Elem],
    terms: &mut Terms<'_, B::Elem>,
) {
    let len = classes.classes.max(1);
    for (group, x) in x.chunks_mut(ROWS * len).enumerate() {
        let (mut totals, mut of_targets, mut sums) =
            ([B::Elem::ZERO; ROWS], [B::Elem::ZERO; ROWS], [B::Elem::ONE; ROWS]);
        for (i, (x, (total, of_targets))) in
            x.chunks_exact_mut(len).zip(totals.iter_mut().zip(&mut of_targets)).enumerate()
        {
            let largest = largest(x);
            x.iter_mut().for_each(|x| *x -= largest);
            let row = Row::of_neighbours(len, group * ROWS + i);
            let only = T::only(target, row.index);
            (*total, *of_targets) = smoothing.weigh::<B, T>(target, classes, row, only, |class| x[class]);
        }
        map_in_blocks::<B::Elem, 16>(x, B::exp);
        for (x, sum) in x.chunks_exact_mut(len).zip(&mut sums) {
            *sum = B::sum(x);
            let scale = B::Elem::ONE / *sum;
            x.iter_mut().for_each(|p| *p *= scale);
        }
        let logarithms: [B::Elem; ROWS] = core::array::from_fn(|i| B::ln(sums[i]));
        for i in 0..x.len() / len {
            terms.push(totals[i] * logarithms[i] - of_targets[i]);
        }
    }
}

fn gradient<B: Backend, T: Target<B::Elem>>(call: BackwardCall<'_, B::Elem>) {
    dispatch::<B, _>(GradientRows::<B, T> { call, target: PhantomData });
}

struct GradientRows<'a, B: Backend, T> {
    call: BackwardCall<'a, B::Elem>,
    target: PhantomData<T>,
}

impl<B: Backend, T: Target<B::Elem>> Kernel<B::Elem> for GradientRows<'_, B, T> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = B::Elem>, const VECTOR: usize>(self) {
        let call = self.call;
        let classes = Classes::new(call.args);
        let smoothing = Smoothing::new(call.args, classes);
        let target = call.x[1];
        let share = share(call.args, call.dy);
        let of = |p: B::Elem, total: B::Elem, weight: B::Elem, share: B::Elem| (p * total - weight) * share;
        if VECTOR >= 32 && classes.stride == 1 && smoothing.is_none::<T>() {
            // As below, of slices, which become vectors.
            for (i, dx) in call.dx.chunks_exact_mut(classes.classes.max(1)).enumerate() {
                let (share, only) = (share(i), T::only(target, i));
                let p = dx.get(only).copied();
                dx.iter_mut().for_each(|dx| *dx = of(*dx, smoothing.keep, B::Elem::ZERO, share));
                if let (Some(p), Some(dx)) = (p, dx.get_mut(only)) {
                    *dx = of(p, smoothing.keep, smoothing.keep, share);
                }
            }
            return;
        }
        for_each_run(call.args, call.dx, |dx| {
            let row = Row::of(dx);
            let share = share(row.index);
            let only = T::only(target, row.index);
            let weight = |class| smoothing.weight::<T>(target, classes, row, only, class);
            let total = if smoothing.is_none::<T>() {
                weight(only)
            } else {
                (0..classes.classes).fold(B::Elem::ZERO, |total, class| total + weight(class))
            };
            if T::ONE_CLASS {
                // All but one have the same weight.
                let (p, other) = (dx.get_mut(only).copied(), weight(!only));
                dx.map(|p| of(p, total, other, share));
                if let (Some(p), Some(dx)) = (p, dx.get_mut(only)) {
                    *dx = of(p, total, weight(only), share);
                }
            } else {
                dx.for_each(|class, dx| *dx = of(*dx, total, weight(class), share));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

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

    #[test]
    fn machines_without_vectors_have_the_same_bits() {
        fn forward_without<T: Target<f64>>(mut call: ForwardCall<'_, f64>) {
            Rows::<Strict<f64>, T> { call: &mut call, target: PhantomData }.run::<Strict<f64>, 0>();
        }
        fn gradient_without<T: Target<f64>>(call: BackwardCall<'_, f64>) {
            GradientRows::<Strict<f64>, T> { call, target: PhantomData }.run::<Strict<f64>, 0>();
        }
        let indices = const { &table::<Strict<f64>>(forward_without::<Index>, gradient_without::<Index>) };
        let probabilities =
            const { &table::<Strict<f64>>(forward_without::<Probability>, gradient_without::<Probability>) };
        let numbers =
            |len: usize, step: usize| (0..len).map(|i| (i * step % 23) as f64 / 5.0 - 2.0).collect::<Vec<_>>();
        for shape in
            [Shape::new([21, 11]), Shape::new([18, 17]), Shape::new([3, 7, 5]), Shape::new([1, 1]), Shape::new([9])]
        {
            let rows = shape.without(usize::from(shape.rank() > 1));
            let classes = class_loss::classes(shape);
            let x = numbers(shape.len(), 7);
            let labels: Vec<f64> = (0..rows.len()).map(|i| (i * 5 % classes) as f64).collect();
            let weights: Vec<f64> = numbers(shape.len(), 3).iter().map(|x| x.abs()).collect();
            for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
                for smoothing in [0.0, 0.125, 1.0] {
                    let settings = CrossEntropy::new().reduction(reduction).label_smoothing(smoothing);
                    for (op, without, target_shape, target) in
                        [(op_indices(), indices, rows, &labels), (op_probabilities(), probabilities, shape, &weights)]
                    {
                        let spec = spec(shape, target_shape, settings).unwrap();
                        let dy = numbers(spec.shape.len(), 4);
                        let bits = |op| {
                            let (loss, dx) = run(op, spec, &[&x, target], &dy, 0);
                            [loss, dx].map(|x| x.into_iter().map(f64::to_bits).collect::<Vec<_>>())
                        };
                        assert_eq!(bits(op), bits(without), "{shape:?} {reduction:?} {smoothing}");
                    }
                }
            }
        }
    }
}
