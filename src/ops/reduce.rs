//! What the reductions share: which axes are reduced, and walking the elements behind each output.
//!
//! Neighbouring axes that are all kept, or all reduced, are one axis as far as memory goes, and axes of one element are none.
//! So six are left at the most, kept and reduced ones in turns. The run behind an output is its reduced elements in row-major
//! order; sums over it take the order of [`Backend::sum_pairs`].

use super::{Args, BackwardCall, ForwardCall, Spec, axes};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::shape::Shape;

/// Words of the arguments that [`spec`] takes; those behind them are the operation's.
pub(super) const WORDS: usize = 6;

/// The spec of a reduction over these axes, or over all where none is named. With `keepdim` they stay, of length 1.
pub(super) const fn spec(op: &'static str, x: Shape, axes: &[isize], keepdim: bool) -> Result<Spec, ShapeError> {
    let reduced = match axes::mask(op, x, axes) {
        Ok(0) => (1 << x.rank()) - 1,
        Ok(mask) => mask,
        Err(error) => return Err(error),
    };
    // Kept axes are at even places, reduced ones at odd ones.
    let (mut lengths, mut at) = ([1_usize; WORDS], 0);
    let (mut shape, mut axis) = (Shape::SCALAR, 0);
    while axis < x.rank() {
        let (length, is_reduced) = (x.axis(axis), reduced >> axis & 1 == 1);
        if length != 1 {
            if (at % 2 == 1) != is_reduced {
                at += 1;
            }
            lengths[at] = lengths[at].saturating_mul(length);
        }
        if !is_reduced {
            shape = shape.push(length);
        } else if keepdim {
            shape = shape.push(1);
        }
        axis += 1;
    }
    Ok(Spec::new(shape).args(Args::new(&lengths)))
}

/// The number of elements behind each output.
pub(super) const fn count(spec: &Spec) -> usize {
    let [_, a, _, b, _, c, ..] = spec.args.0;
    usize::saturating_mul(a as usize, b as usize).saturating_mul(c as usize)
}

/// As [`spec`], for a reduction that has no value for no elements.
pub(super) const fn spec_of_some(op: &'static str, x: Shape, axes: &[isize], keep: bool) -> Result<Spec, ShapeError> {
    let spec = match spec(op, x, axes, keep) {
        Ok(spec) => spec,
        Err(error) => return Err(error),
    };
    if count(&spec) == 0 {
        let (operand, expected) = ("the input", "at least one element along the reduced axes");
        return Err(ShapeError::Rank { op, operand, expected, found: x });
    }
    Ok(spec)
}

/// Whether an output that is annotated as `y` keeps the axes of `x`.
pub(super) const fn keeps_axes(x: Shape, y: Shape) -> bool {
    x.rank() == y.rank()
}

/// The elements behind each output.
pub(super) struct Walk {
    /// Lengths from the outermost axis, kept and reduced ones in turns.
    lengths: [usize; WORDS],
    strides: [usize; WORDS],
}

impl Walk {
    pub(super) fn new(args: &Args) -> Self {
        let [a, b, c, d, e, f, ..] = args.lengths();
        Self { lengths: [a, b, c, d, e, f], strides: [b * c * d * e * f, c * d * e * f, d * e * f, e * f, f, 1] }
    }

    /// How many elements are behind each output.
    pub(super) fn count(&self) -> usize {
        self.lengths[1] * self.lengths[3] * self.lengths[5]
    }

    /// For each output in turn, where its first element is.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> + use<> {
        let ([a, _, b, _, c, _], [i, _, j, _, k, _]) = (self.lengths, self.strides);
        (0..a).flat_map(move |x| (0..b).flat_map(move |y| (0..c).map(move |z| x * i + y * j + z * k)))
    }

    /// The contiguous parts of the run that starts at `first`, each as long as the last reduced axis.
    fn parts(&self, first: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let ([_, a, _, b, ..], [_, i, _, j, ..]) = (self.lengths, self.strides);
        (0..a).flat_map(move |x| (0..b).map(move |y| first + x * i + y * j))
    }

    /// Where the elements of the run are that starts at `first`.
    pub(super) fn run(&self, first: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let len = self.lengths[5];
        self.parts(first).flat_map(move |at| at..at + len)
    }

    /// The elements of `x` in the run that starts at `first`.
    pub(super) fn elements<'x, E: Real>(&self, x: &'x [E], first: usize) -> impl Iterator<Item = E> + use<'x, E> {
        let len = self.lengths[5];
        self.parts(first).flat_map(move |at| x.get(at..at + len).unwrap_or_default()).copied()
    }

    /// What `add` makes of the run that starts at `first`, `add` being told a partial sum and an element.
    pub(super) fn sum<B: Backend>(
        &self,
        x: &[B::Elem],
        first: usize,
        add: impl Fn(B::Elem, B::Elem) -> B::Elem,
    ) -> B::Elem {
        let [_, a, _, b, _, len] = self.lengths;
        if a == 1 && b == 1 {
            let run = x.get(first..first + len).unwrap_or_default();
            return B::sum_pairs(run, run, |sum, x, _| add(sum, x));
        }
        B::sum(&lanes(self.elements(x, first), B::Elem::ZERO, add))
    }
}

/// Eight partial results: element `i` goes to number `i % 8`.
pub(super) fn lanes<E: Real>(x: impl Iterator<Item = E>, start: E, combine: impl Fn(E, E) -> E) -> [E; 8] {
    let mut lanes = [start; 8];
    for (i, x) in x.enumerate() {
        if let Some(lane) = lanes.get_mut(i % 8) {
            *lane = combine(*lane, x);
        }
    }
    lanes
}

/// A forward kernel: each output is what `value` makes of its run, given where that starts.
#[inline(always)]
pub(super) fn forward<E: Real>(call: ForwardCall<'_, E>, value: impl Fn(&Walk, &[E], usize) -> E) {
    let walk = Walk::new(call.args);
    for (y, first) in call.y.iter_mut().zip(walk.firsts()) {
        *y = value(&walk, call.x[0], first);
    }
}

/// A run as a backward kernel sees it.
pub(super) struct Behind<'a, E> {
    pub(super) walk: &'a Walk,
    pub(super) x: &'a [E],
    pub(super) first: usize,
    /// The output of the run, where the kernel reads it.
    pub(super) y: E,
    pub(super) dy: E,
}

/// A backward kernel: `each` turns an element into its gradient, given what `prepare` made of the run.
#[inline(always)]
pub(super) fn gradient<E: Real, P>(
    call: BackwardCall<'_, E>,
    prepare: impl Fn(&Behind<'_, E>) -> P,
    each: impl Fn(&P, E) -> E,
) {
    let (walk, x) = (&Walk::new(call.args), call.x[0]);
    let mut outputs = call.y.iter().copied();
    for (&dy, first) in call.dy.iter().zip(walk.firsts()) {
        let prepared = prepare(&Behind { walk, x, first, y: outputs.next().unwrap_or_default(), dy });
        for at in walk.run(first) {
            let share = each(&prepared, x.get(at).copied().unwrap_or_default());
            if let Some(dx) = call.dx.get_mut(at) {
                *dx = if call.add { *dx + share } else { share };
            }
        }
    }
}

/// The backward kernel of the largest and the smallest element: those that equal the output share its gradient.
pub(super) fn gradient_over_ties<E: Real>(call: BackwardCall<'_, E>) {
    // A NaN equals a NaN here.
    let is_tie = |y: E, x: E| x == y || x.is_nan() && y.is_nan();
    gradient(
        call,
        |run| {
            let ties = run.walk.elements(run.x, run.first).filter(|&x| is_tie(run.y, x)).count();
            (run.y, run.dy / E::from_usize(ties))
        },
        |&(y, share), x| if is_tie(y, x) { share } else { E::ZERO },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;
    use std::vec::Vec;

    fn runs(x: &[usize], axes: &[isize]) -> (Shape, Vec<Vec<usize>>) {
        let spec = spec("sum", Shape::from_slice(x), axes, false).unwrap();
        let walk = Walk::new(&spec.args);
        assert_eq!(walk.count(), count(&spec));
        (spec.shape, walk.firsts().map(|first| walk.run(first).collect()).collect())
    }

    #[test]
    fn the_run_behind_an_output_is_in_row_major_order() {
        let x = [2, 3, 2, 2, 3];
        let at = |index: [usize; 5]| index.iter().zip(x).fold(0, |at, (i, length)| at * length + i);
        for mask in 1..32_usize {
            let axes: Vec<isize> = (0..5_isize).filter(|axis| mask >> axis & 1 == 1).collect();
            let (shape, found) = runs(&x, &axes);
            let mut want = std::vec![Vec::new(); shape.len()];
            for i in 0..72 {
                let index = [i / 36, i / 12 % 3, i / 6 % 2, i / 3 % 2, i % 3];
                let kept = (0..5).filter(|axis| mask >> axis & 1 == 0);
                want[kept.fold(0, |output, axis| output * x[axis] + index[axis])].push(at(index));
            }
            assert_eq!(found, want, "axes {axes:?}");
        }
    }

    #[test]
    fn a_sum_has_the_same_bits_wherever_its_run_lies() {
        let x: Vec<f32> = (0..21_u8).map(|i| 1.0 / f32::from(i + 1)).collect();
        let want = Strict::<f32>::sum(&x);
        for shape in [[1, 21, 1], [21, 1, 1], [3, 7, 1], [1, 3, 7]] {
            let spec = spec("sum", Shape::new(shape), &[], false).unwrap();
            let sum = Walk::new(&spec.args).sum::<Strict<f32>>(&x, 0, |sum, x| sum + x);
            assert_eq!(sum.to_bits(), want.to_bits(), "{shape:?}");
        }
        // The same numbers in the middle column of three.
        let columns: Vec<f32> = x.iter().flat_map(|&x| [9.0, x, 7.0]).collect();
        let spec = spec("sum", Shape::new([21, 3]), &[0], false).unwrap();
        let sum = Walk::new(&spec.args).sum::<Strict<f32>>(&columns, 1, |sum, x| sum + x);
        assert_eq!(sum.to_bits(), want.to_bits());
    }

    #[test]
    fn reduced_axes_go_or_stay_with_one_element() {
        let x = Shape::new([2, 1, 3]);
        let shape = |axes: &[isize], keep| spec("sum", x, axes, keep).unwrap().shape;
        assert_eq!((shape(&[-1], false), shape(&[-1], true)), (Shape::new([2, 1]), Shape::new([2, 1, 1])));
        assert_eq!((shape(&[], false), shape(&[], true)), (Shape::SCALAR, Shape::new([1, 1, 1])));
    }
}
