//! What softmax and its kin share: walking the runs of elements along one axis.

use super::{Args, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::shape::Shape;

/// The spec of an operation along `axis` that keeps the shape.
pub(super) const fn spec(op: &'static str, x: Shape, axis: usize) -> Result<Spec, ShapeError> {
    if axis >= x.rank() {
        let (what, against) = ("the axis is", "the number of axes");
        return Err(ShapeError::Length { op, what, found: axis, against, expected: x.rank() });
    }
    Ok(Spec::new(x).args(Args::new(&[x.axis(axis), x.product(axis + 1, x.rank())])))
}

/// One run: `len` elements that lie `stride` apart from `first` on.
pub(super) struct Run<'a, E> {
    data: &'a mut [E],
    first: usize,
    len: usize,
    stride: usize,
}

/// Calls `each` for every run of `data` along the axis of [`spec`].
#[inline(always)]
pub(super) fn for_each_run<E: Real>(args: &Args, data: &mut [E], mut each: impl FnMut(&mut Run<'_, E>)) {
    let [len, stride, ..] = args.lengths();
    let block = (len * stride).max(1);
    for start in 0..data.len() / block {
        for inner in 0..stride {
            each(&mut Run { data, first: start * block + inner, len, stride });
        }
    }
}

// Steps are at least 1 where they are taken, so that no panic is left in a function that is not inlined.
impl<E: Real> Run<'_, E> {
    #[inline(always)]
    fn iter<'x>(&self, x: &'x [E]) -> impl Iterator<Item = E> + use<'x, E> {
        x.get(self.first..).unwrap_or_default().iter().step_by(self.stride.max(1)).take(self.len).copied()
    }

    /// The largest element; NaN where there is one.
    #[inline(always)]
    pub(super) fn largest(&self) -> E {
        self.iter(self.data).fold(-E::INFINITY, E::maximum)
    }

    /// The sum of `f` over the run and the same run of `other`, in the order of [`Backend::sum_pairs`].
    #[inline(always)]
    pub(super) fn sum<B: Backend<Elem = E>>(&self, f: impl Fn(E, E) -> E, other: &[E]) -> E {
        let mut lanes = [E::ZERO; 8];
        let mut others = self.iter(other);
        for (i, x) in self.iter(self.data).enumerate() {
            if let Some(lane) = lanes.get_mut(i % 8) {
                *lane += f(x, others.next().unwrap_or_default());
            }
        }
        B::sum(&lanes)
    }

    /// Replaces every element.
    #[inline(always)]
    pub(super) fn map(&mut self, f: impl Fn(E) -> E) {
        let run = self.data.get_mut(self.first..).unwrap_or_default();
        run.iter_mut().step_by(self.stride.max(1)).take(self.len).for_each(|x| *x = f(*x));
    }

    /// Replaces every element, in a loop over neighbours where there are vectors of so many bytes: for functions that take a
    /// while.
    #[inline(always)]
    pub(super) fn map_on<const VECTOR: usize>(&mut self, f: impl Fn(E) -> E) {
        if VECTOR == 0 || self.stride != 1 {
            return self.map(f);
        }
        let run = self.data.get_mut(self.first..self.first + self.len).unwrap_or_default();
        let (blocks, rest) = run.as_chunks_mut::<8>();
        for block in blocks {
            *block = core::array::from_fn(|i| f(block[i]));
        }
        // What is left is a block with zeros behind it, rather than one element after the other.
        let block: [E; 8] = core::array::from_fn(|i| f(rest.get(i).copied().unwrap_or_default()));
        rest.iter_mut().zip(block).for_each(|(x, y)| *x = y);
    }

    /// Calls `each` with every element and its place in the run.
    #[inline(always)]
    pub(super) fn for_each(&mut self, mut each: impl FnMut(usize, &mut E)) {
        let run = self.data.get_mut(self.first..).unwrap_or_default();
        run.iter_mut().step_by(self.stride.max(1)).take(self.len).enumerate().for_each(|(i, x)| each(i, x));
    }

    /// Replaces every element, given the same one of `other`.
    #[inline(always)]
    pub(super) fn map_with(&mut self, other: &[E], f: impl Fn(E, E) -> E) {
        let others = self.iter(other);
        let run = self.data.get_mut(self.first..).unwrap_or_default();
        run.iter_mut().step_by(self.stride.max(1)).take(self.len).zip(others).for_each(|(x, other)| *x = f(*x, other));
    }
}
