//! What the losses over classes share: where the classes lie, what a target gives each of them, and everything but the
//! formula of the losses `Σ q f(x)` over a row's classes.
//!
//! As in PyTorch the classes are axis 1 of `[n, c, ...]`, or the only axis of `[c]`. The target has the same shape, or lacks
//! the class axis and holds indices.

use super::loss::{Terms, share};
use super::runs::{Run, for_each_run};
use super::{Args, Backward, BackwardCall, Forward, ForwardCall, Op, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::Indices;
use crate::shape::{Dims, R2, Shape};
use crate::tape::Call;

/// The spec of a loss over classes: the arguments' first words are the classes and the elements behind their axis, as
/// [`runs`](super::runs) has them.
pub(super) const fn spec(op: &'static str, x: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    if x.rank() == 0 {
        return Err(ShapeError::Rank { op, operand: "the prediction", expected: "[c] or [n, c, ...]", found: x });
    }
    let axis = axis(x);
    let rows = x.without(axis);
    if !target.equals(&rows) && !target.equals(&x) {
        let expected = "that of the prediction, or the same without the classes' axis for class indices";
        return Err(ShapeError::Rank { op, operand: "the target", expected, found: target });
    }
    let args = reduction.args([x.axis(axis), x.product(axis + 1, x.rank())], rows);
    Ok(Spec::new(reduction.shape(rows)).args(args))
}

/// The axis of the classes.
const fn axis(x: Shape) -> usize {
    if x.rank() == 1 { 0 } else { 1 }
}

/// How many classes there are.
pub(super) const fn classes(x: Shape) -> usize {
    x.axis(axis(x))
}

/// What a tape records: by the table for indices, which have to be classes, or by the one for probabilities.
pub(super) const fn call<B: Backend>(
    x: Shape,
    target: Shape,
    [indices, probabilities]: [&'static Op<B>; 2],
    spec: Result<Spec, ShapeError>,
) -> Call<B> {
    if target.equals(&x) { Call::new(probabilities, spec) } else { Call::new(indices, spec).indices(1, classes(x)) }
}

/// What a loss over `A` rows of `C` classes takes as its target: [`Indices`] or probabilities.
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

/// How many classes a row has, and how far apart they lie.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    pub(super) classes: usize,
    pub(super) stride: usize,
}

impl Classes {
    #[inline(always)]
    pub(super) fn new(args: &Args) -> Self {
        let [classes, stride, ..] = args.lengths();
        Self { classes, stride }
    }

    /// All rows, in their order.
    fn rows(self, len: usize) -> impl Iterator<Item = Row> {
        let blocks = len / (self.classes * self.stride).max(1);
        (0..blocks).flat_map(move |block| {
            let (first, index) = (block * self.classes * self.stride, block * self.stride);
            (0..self.stride).map(move |inner| Row { first: first + inner, index: index + inner })
        })
    }

    /// The element of a class of a row.
    #[inline(always)]
    fn of<E: Real>(&self, x: &[E], row: Row, class: usize) -> E {
        x.get(row.first + class * self.stride).copied().unwrap_or_default()
    }
}

/// A row of classes.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where its first class lies.
    first: usize,
    /// Among all rows.
    pub(super) index: usize,
}

impl Row {
    /// A row of so many neighbours.
    #[inline(always)]
    pub(super) fn of_neighbours(classes: usize, index: usize) -> Self {
        Self { first: index * classes, index }
    }

    /// The row that a run along the axis of the classes is.
    #[inline(always)]
    pub(super) fn of<E: Real>(run: &Run<'_, E>) -> Self {
        Self { first: run.first, index: run.index }
    }
}

/// How targets are given.
pub(super) trait Target<E: Real>: 'static {
    /// Whether one class of a row has all the weight.
    const ONE_CLASS: bool;

    /// The only class of the row of this index that has a weight; [`NO_CLASS`] where there is none, or more.
    fn only(target: &[E], row: usize) -> usize;
    /// The weight of a class of a row with this only one.
    fn weight(target: &[E], classes: Classes, row: Row, only: usize, class: usize) -> E;

    /// The weights of the classes of a row.
    #[inline(always)]
    fn of_row(target: &[E], classes: Classes, row: Row) -> impl Fn(usize) -> E {
        let only = Self::only(target, row.index);
        move |class| Self::weight(target, classes, row, only, class)
    }
}

/// Nowhere is a class of this number.
pub(super) const NO_CLASS: usize = usize::MAX;

/// As the index of the one class of weight 1.
pub(super) struct Index;
/// As a weight for each class.
pub(super) struct Probability;

impl<E: Real> Target<E> for Index {
    const ONE_CLASS: bool = true;

    #[inline(always)]
    fn only(target: &[E], row: usize) -> usize {
        target.get(row).and_then(|target| target.to_index()).unwrap_or(NO_CLASS)
    }

    #[inline(always)]
    fn weight(_: &[E], _: Classes, _: Row, only: usize, class: usize) -> E {
        if class == only { E::ONE } else { E::ZERO }
    }
}

impl<E: Real> Target<E> for Probability {
    const ONE_CLASS: bool = false;

    #[inline(always)]
    fn only(_: &[E], _: usize) -> usize {
        NO_CLASS
    }

    #[inline(always)]
    fn weight(target: &[E], classes: Classes, row: Row, _: usize, class: usize) -> E {
        classes.of(target, row, class)
    }
}

/// A loss that adds up `q f(x)` over the classes of a row.
pub(super) trait ClassLoss<B: Backend>: 'static {
    /// `f(x)`.
    fn term(x: B::Elem) -> B::Elem;
    /// Its derivative.
    fn slope(x: B::Elem) -> B::Elem;
}

/// The kernels of `L`; the second gives the gradient for the prediction, which has to be there only where `L` reads it.
pub(super) const fn kernels<B: Backend, L: ClassLoss<B>, T: Target<B::Elem>>() -> (Forward<B>, Backward<B>) {
    (forward::<B, L, T>, gradient::<B, L, T>)
}

fn forward<B: Backend, L: ClassLoss<B>, T: Target<B::Elem>>(call: ForwardCall<'_, B::Elem>) {
    let classes = Classes::new(call.args);
    let [x, target, _] = call.x;
    let mut terms = Terms::new(call.args, call.y);
    for row in classes.rows(x.len()) {
        let mut loss = B::Elem::ZERO;
        let weights = T::of_row(target, classes, row);
        for class in 0..classes.classes {
            // A class without weight adds nothing, even where it is infinitely unlikely.
            let weight = weights(class);
            if weight != B::Elem::ZERO {
                loss = B::mul_add(weight, L::term(classes.of(x, row, class)), loss);
            }
        }
        terms.push(loss);
    }
    terms.finish();
}

fn gradient<B: Backend, L: ClassLoss<B>, T: Target<B::Elem>>(call: BackwardCall<'_, B::Elem>) {
    let classes = Classes::new(call.args);
    let [x, target, _] = call.x;
    let share = share(call.args, call.dy);
    for_each_run(call.args, call.dx, |dx| {
        let row = Row::of(dx);
        let share = share(row.index);
        let weights = T::of_row(target, classes, row);
        dx.for_each(|class, dx| {
            let weight = weights(class);
            let start = if call.add { *dx } else { B::Elem::ZERO };
            let slope = L::slope(classes.of(x, row, class));
            *dx = if weight == B::Elem::ZERO { start } else { start + weight * slope * share };
        });
    });
}
