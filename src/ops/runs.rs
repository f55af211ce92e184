//! What softmax and its kin share: walking the runs of elements along one axis.

use super::{Args, Spec};
use crate::backend::{Real, no_sums, tree};
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

/// Replaces every element, in blocks that become vectors.
#[inline(always)]
pub(super) fn map_in_blocks<E: Real, const N: usize>(x: &mut [E], f: impl Fn(E) -> E) {
    let (blocks, rest) = x.as_chunks_mut::<N>();
    for block in blocks {
        *block = core::array::from_fn(|i| f(block[i]));
    }
    // What is left is a block with zeros behind it, rather than one element after the other.
    let block: [E; N] = core::array::from_fn(|i| f(rest.get(i).copied().unwrap_or_default()));
    rest.iter_mut().zip(block).for_each(|(x, y)| *x = y);
}

/// One run: `len` elements that lie `stride` apart.
pub(super) struct Run<'a, E> {
    data: &'a mut [E],
    len: usize,
    stride: usize,
    /// Where its first element lies.
    pub(super) first: usize,
    /// Which run this is, among all.
    pub(super) index: usize,
}

/// How many runs along the axis of [`spec`] so many elements are.
#[inline(always)]
pub(super) fn runs_of(args: &Args, elements: usize) -> usize {
    let [len, stride, ..] = args.lengths();
    elements / (len * stride).max(1) * stride
}

/// Calls `each` for every run of `data` along the axis of [`spec`].
#[inline(always)]
pub(super) fn for_each_run<E: Real>(args: &Args, data: &mut [E], mut each: impl FnMut(&mut Run<'_, E>)) {
    let [len, stride, ..] = args.lengths();
    let (mut first, mut inner) = (0, 0);
    for index in 0..runs_of(args, data.len()) {
        each(&mut Run { data, len, stride, first, index });
        first += 1;
        inner += 1;
        if inner == stride {
            first += len * stride - stride;
            inner = 0;
        }
    }
}

/// Where run `index` along the axis of [`spec`] begins.
#[inline(always)]
pub(super) fn first_of(args: &Args, index: usize) -> usize {
    let [len, stride, ..] = args.lengths();
    index + index / stride.max(1) * (len * stride - stride)
}

impl<'a, E: Real> Run<'a, E> {
    /// Run `index` of `data`, which begins at `first`.
    #[inline(always)]
    pub(super) fn new(args: &Args, data: &'a mut [E], first: usize, index: usize) -> Self {
        let [len, stride, ..] = args.lengths();
        Self { data, len, stride, first, index }
    }
}

// Elements are looked for place by place, so that no panic is left, and a loop is small.
impl<E: Real> Run<'_, E> {
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = usize> + use<E> {
        let (first, stride) = (self.first, self.stride);
        (0..self.len).map(move |i| first + i * stride)
    }

    #[inline(always)]
    fn iter<'x>(&self, x: &'x [E]) -> impl Iterator<Item = E> + use<'x, E> {
        self.places().filter_map(|place| x.get(place).copied())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Element `i`, of those that there are.
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> E {
        self.data.get(self.first + i * self.stride).copied().unwrap_or_default()
    }

    /// Element `i`, if it is one.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, i: usize) -> Option<&mut E> {
        if i < self.len { self.data.get_mut(self.first + i * self.stride) } else { None }
    }

    /// The largest element. Where there is a NaN it may be another one: what is added up over the run is NaN then anyway.
    #[inline(always)]
    pub(super) fn largest(&self) -> E {
        self.iter(self.data).fold(-E::INFINITY, |largest, x| if x <= largest { largest } else { x })
    }

    /// The sum of `f` over the run and the same run of `other`, in the order of [`Backend::sum_pairs`].
    ///
    /// [`Backend::sum_pairs`]: crate::backend::Backend::sum_pairs
    #[inline(always)]
    pub(super) fn sum(&self, f: impl Fn(E, E) -> E, other: &[E]) -> E {
        let mut lanes = no_sums();
        for (i, place) in self.places().enumerate() {
            if let (Some(lane), Some(&x)) = (lanes.get_mut(i % 8), self.data.get(place)) {
                *lane += f(x, other.get(place).copied().unwrap_or_default());
            }
        }
        tree(lanes)
    }

    /// Replaces every element.
    #[inline(always)]
    pub(super) fn map(&mut self, f: impl Fn(E) -> E) {
        self.for_each(|_, x| *x = f(*x));
    }

    /// Replaces every element, in a loop over neighbours where there are vectors of so many bytes: for functions that take a
    /// while.
    #[inline(always)]
    pub(super) fn map_on<const VECTOR: usize>(&mut self, f: impl Fn(E) -> E) {
        if VECTOR == 0 || self.stride != 1 {
            return self.map(f);
        }
        let first = self.first;
        map_in_blocks::<E, 8>(self.data.get_mut(first..first + self.len).unwrap_or_default(), f);
    }

    /// Calls `each` with every element and its place in the run.
    #[inline(always)]
    pub(super) fn for_each(&mut self, mut each: impl FnMut(usize, &mut E)) {
        for (i, place) in self.places().enumerate() {
            if let Some(x) = self.data.get_mut(place) {
                each(i, x);
            }
        }
    }

    /// Replaces every element, given the same one of `other`.
    #[inline(always)]
    pub(super) fn map_with(&mut self, other: &[E], f: impl Fn(E, E) -> E) {
        for place in self.places() {
            if let (Some(x), Some(&other)) = (self.data.get_mut(place), other.get(place)) {
                *x = f(*x, other);
            }
        }
    }
}
