//! What losses share: how terms are reduced, and everything but the formula of the losses of a prediction and a target of
//! one shape.
//!
//! Forward computes a term's derivative along with the term and keeps it, where the prediction was if nothing else reads
//! that. So backward is one product per element, and the same kernel for all of them.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, OverGradient, Reads, Spec};
use crate::backend::{Backend, Real, no_sums, sum_of, tree};
use crate::error::ShapeError;
use crate::shape::Shape;

/// How a loss combines its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Their mean, as a scalar.
    #[default]
    Mean,
    /// Their sum divided by the length of the first axis, the batch, as a scalar.
    BatchMean,
    /// Their sum, as a scalar.
    Sum,
    /// Not at all: one value for each.
    None,
}

/// Where the arguments of a loss have its scalar; the words before it are those of [`Reduction::args`].
pub(super) const SCALAR: usize = 4;
/// All of them.
pub(super) const WORDS: usize = SCALAR + 3;

impl Reduction {
    /// The shape of the reduced loss of terms of shape `terms`.
    pub(super) const fn shape(self, terms: Shape) -> Shape {
        if matches!(self, Self::None) { terms } else { Shape::SCALAR }
    }

    /// The arguments of a loss: two words of its own, then whether every term stands for itself, and what their sum is
    /// divided by.
    pub(super) const fn args(self, own: [usize; 2], terms: Shape) -> Args {
        let (each, divisor) = match self {
            Self::Mean => (0, terms.len()),
            Self::BatchMean => (0, terms.axis(0)),
            Self::Sum => (0, 1),
            Self::None => (1, 1),
        };
        Args::new(&[own[0], own[1], each, divisor])
    }
}

/// A loss as its terms come in: each is written, or they are summed in the order of [`Backend::sum_pairs`].
pub(super) struct Terms<'y, E> {
    y: &'y mut [E],
    each: bool,
    divisor: usize,
    lanes: [E; 8],
    count: usize,
}

impl<'y, E: Real> Terms<'y, E> {
    pub(super) fn new(args: &Args, y: &'y mut [E]) -> Self {
        let [_, _, each, divisor, ..] = args.lengths();
        Self { y, each: each == 1, divisor, lanes: no_sums(), count: 0 }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, term: E) {
        if self.each {
            if let Some(y) = self.y.get_mut(self.count) {
                *y = term;
            }
        } else if let Some(lane) = self.lanes.get_mut(self.count % 8) {
            *lane += term;
        }
        self.count += 1;
    }

    pub(super) fn finish(self) {
        if let (false, Some(y)) = (self.each, self.y.first_mut()) {
            *y = tree(self.lanes) / E::from_usize(self.divisor);
        }
    }
}

/// A loss of so many terms, which may come in any order: as [`Terms`] has it, but on a microcontroller on a smaller stack.
#[inline(always)]
pub(super) fn reduce<E: Real>(args: &Args, y: &mut [E], count: usize, mut term: impl FnMut(usize) -> E) {
    if cfg!(target_os = "none") {
        let sum = sum_of(count, |i| {
            let term = term(i);
            keep(args, y, i, term);
            term
        });
        finish(args, y, sum);
    } else {
        let mut terms = Terms::new(args, y);
        (0..count).for_each(|i| terms.push(term(i)));
        terms.finish();
    }
}

/// Writes the term of this index where every term stands for itself.
#[inline(always)]
pub(super) fn keep<E: Real>(args: &Args, y: &mut [E], index: usize, term: E) {
    let [_, _, each, ..] = args.lengths();
    if let (1, Some(y)) = (each, y.get_mut(index)) {
        *y = term;
    }
}

/// Writes the loss of terms of this sum, unless every term stands for itself.
#[inline(always)]
pub(super) fn finish<E: Real>(args: &Args, y: &mut [E], sum: E) {
    let [_, _, each, divisor, ..] = args.lengths();
    if let (0, Some(y)) = (each, y.first_mut()) {
        *y = sum / E::from_usize(divisor);
    }
}

/// The gradient of a term by its index: that of the term itself, or its share in the loss's.
pub(super) fn share<E: Real>(args: &Args, dy: &[E]) -> impl Fn(usize) -> E {
    let [_, _, each, divisor, ..] = args.lengths();
    let share = dy.first().copied().unwrap_or_default() / E::from_usize(divisor);
    move |term| if each == 1 { dy.get(term).copied().unwrap_or_default() } else { share }
}

/// A loss of a prediction and a target, element by element.
pub(super) trait Loss<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;

    /// With the settings of a node.
    fn new(args: &Args) -> Self;

    /// The term of `x` and the target `t`, and its derivative for `x`.
    fn term(&self, x: B::Elem, t: B::Elem) -> (B::Elem, B::Elem);
}

/// The table of a loss of the difference `x - t`, whose gradients are opposite.
pub(super) const fn of_difference<B: Backend, L: Loss<B>>() -> Op<B> {
    of_pairs::<B, L>(over_saved(gradient::<B, true>))
}

/// The table of a loss with this gradient for the target.
pub(super) const fn of_pairs<B: Backend, L: Loss<B>>(target: Gradient<B>) -> Op<B> {
    Op::new(L::NAME, forward::<B, L>, [over_saved(gradient::<B, false>), target, Gradient::None])
        .over(Over::Saved)
        .words(WORDS)
}

const fn over_saved<B: Backend>(run: super::Backward<B>) -> Gradient<B> {
    Gradient::Kernel { run, reads: Reads::SAVED, over: OverGradient::Saved, rows: false }
}

/// The spec of a loss of pairs.
pub(super) const fn spec(
    op: &'static str,
    prediction: Shape,
    target: Shape,
    reduction: Reduction,
) -> Result<Spec, ShapeError> {
    if !prediction.equals(&target) {
        let (operand, expected) = ("the target", "the shape of the prediction");
        return Err(ShapeError::Rank { op, operand, expected, found: target });
    }
    let args = reduction.args([0, 0], prediction);
    Ok(Spec { saved: prediction.len(), ..Spec::new(reduction.shape(prediction)).args(args) })
}

/// The same with a scalar that has to be positive and finite, or 0 where `or_zero`.
pub(super) const fn spec_with(
    op: &'static str,
    prediction: Shape,
    target: Shape,
    reduction: Reduction,
    scalar: (f64, &'static str, bool),
) -> Result<Spec, ShapeError> {
    let (found, rule, or_zero) = scalar;
    if !(found > 0.0 && found < f64::INFINITY || or_zero && found == 0.0) {
        return Err(ShapeError::Setting { op, rule, found });
    }
    match spec(op, prediction, target, reduction) {
        Ok(spec) => Ok(spec.args(spec.args.with_scalar(SCALAR, found))),
        Err(error) => Err(error),
    }
}

fn forward<B: Backend, L: Loss<B>>(call: ForwardCall<'_, B::Elem>) {
    let loss = L::new(call.args);
    let ForwardCall { args, x: [_, t, _], y, saved, .. } = call;
    reduce(args, y, saved.len(), |i| {
        let (Some(x), Some(&t)) = (saved.get_mut(i), t.get(i)) else { return B::Elem::ZERO };
        let (term, slope) = loss.term(*x, t);
        *x = slope;
        term
    });
}

fn gradient<B: Backend, const NEGATIVE: bool>(call: BackwardCall<'_, B::Elem>) {
    let share = share(call.args, call.dy);
    for (i, dx) in call.dx.iter_mut().enumerate() {
        *dx = if NEGATIVE { -*dx } else { *dx } * share(i);
    }
}

/// The derivative of `|d|`: 0 at 0, and NaN for a NaN.
#[inline(always)]
pub(super) fn sign<E: Real>(d: E) -> E {
    if d > E::ZERO {
        E::ONE
    } else if d < E::ZERO {
        -E::ONE
    } else {
        d
    }
}
