//! Work that threads share, with the feature `rayon`. It is split by what is written, so that every element is computed as one
//! thread computes it, to the bit.

#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::Range;

use super::Real;

/// Multiply-adds that are worth a thread: it takes as long to wake one.
#[cfg(feature = "rayon")]
const WORTH_A_THREAD: usize = 1 << 19;

/// Multiply-adds that take as long as an element of an element-wise function.
pub(crate) const ELEMENT: usize = 8;

/// Multiply-adds that take as long as an element of an update.
pub(crate) const UPDATE: usize = 16;

/// Threads share elements by multiples of this: no vector is torn, and no line of the cache.
pub(crate) const ELEMENTS_OF_A_PART: usize = 64;

/// In how many parts so many multiply-adds are done; one where there are no threads.
#[inline(always)]
pub(crate) fn parts(work: usize) -> usize {
    #[cfg(feature = "rayon")]
    let parts = if work < 2 * WORTH_A_THREAD { 1 } else { rayon::current_num_threads().min(work / WORTH_A_THREAD) };
    #[cfg(not(feature = "rayon"))]
    let parts = work.min(1);
    parts
}

/// What threads work on.
pub(crate) trait Cut: Send + Sized {
    /// What belongs to the first so many outputs, and to the others.
    #[cfg_attr(not(feature = "rayon"), allow(dead_code))]
    fn cut(self, outputs: usize) -> (Self, Self);
}

/// Does work for a range of outputs in so many parts, each with a multiple of `grain` outputs but for the last: `run` is called with
/// their range and their data.
#[inline(always)]
pub(crate) fn share<D: Cut>(
    parts: usize,
    grain: usize,
    outputs: Range<usize>,
    data: D,
    run: &(impl Fn(Range<usize>, D) + Sync),
) {
    #[cfg(feature = "rayon")]
    if parts > 1 {
        return halves(parts, grain, outputs, data, run);
    }
    let _ = (parts, grain);
    run(outputs, data);
}

#[cfg(feature = "rayon")]
fn halves<D: Cut>(parts: usize, grain: usize, outputs: Range<usize>, data: D, run: &(impl Fn(Range<usize>, D) + Sync)) {
    let first = (outputs.len() * (parts / 2) / parts).next_multiple_of(grain);
    if parts < 2 || first == 0 || first >= outputs.len() {
        return run(outputs, data);
    }
    let middle = outputs.start + first;
    let (left, right) = data.cut(first);
    rayon::join(
        || halves(parts / 2, grain, outputs.start..middle, left, run),
        || halves(parts - parts / 2, grain, middle..outputs.end, right, run),
    );
}

/// Elements of a slice, so many for each output.
pub(crate) struct Each<S>(pub(crate) S, pub(crate) usize);

impl<E: Real> Cut for Each<&[E]> {
    fn cut(self, outputs: usize) -> (Self, Self) {
        let Self(data, each) = self;
        let (first, rest) = data.split_at(data.len().min(outputs * each));
        (Self(first, each), Self(rest, each))
    }
}

impl<E: Real> Cut for Each<&mut [E]> {
    fn cut(self, outputs: usize) -> (Self, Self) {
        let Self(data, each) = self;
        let (first, rest) = data.split_at_mut(data.len().min(outputs * each));
        (Self(first, each), Self(rest, each))
    }
}

/// Columns of a matrix of so many rows, which lie so far apart. The columns beside them may belong to other threads.
pub(crate) struct Columns<'a, E> {
    at: *mut E,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    rows: usize,
    row: usize,
    width: usize,
    matrix: PhantomData<&'a mut [E]>,
}

// SAFETY: it is an exclusive borrow of elements that can be sent.
unsafe impl<E: Send> Send for Columns<'_, E> {}

impl<'a, E> Columns<'a, E> {
    /// All columns of a matrix; of as many rows as there are whole.
    pub(crate) fn new(data: &'a mut [E], width: usize, row: usize) -> Self {
        let row = row.max(width);
        let rows =
            if data.len() < width { 0 } else { (data.len() - width).checked_div(row).map_or(1, |rows| rows + 1) };
        Self { at: data.as_mut_ptr(), rows, row, width, matrix: PhantomData }
    }

    /// Where they begin.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut E {
        self.at
    }

    /// The distance between rows.
    pub(crate) fn distance(&self) -> usize {
        self.row
    }

    /// Where so many rows and columns begin, from this element on, if they lie within.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn block(&mut self, [i, j]: [usize; 2], [rows, columns]: [usize; 2]) -> Option<*mut E> {
        let is_inside = i + rows <= self.rows && j + columns <= self.width;
        debug_assert!(is_inside, "{rows} x {columns} from ({i}, {j}) on do not lie in {} x {}", self.rows, self.width);
        is_inside.then(|| self.at.wrapping_add(i * self.row + j))
    }
}

impl<E: Send> Cut for Columns<'_, E> {
    fn cut(self, outputs: usize) -> (Self, Self) {
        let first = outputs.min(self.width);
        // No further than one past the matrix: rows are as wide as both.
        let rest = self.at.wrapping_add(first);
        (Self { width: first, ..self }, Self { at: rest, width: self.width - first, ..self })
    }
}

/// Scratch: what the plan has for the first part, memory of their own for the others.
pub(crate) struct Scratch<'a, E> {
    planned: Option<&'a mut [E]>,
    #[cfg_attr(not(feature = "rayon"), allow(dead_code))]
    len: usize,
}

impl<'a, E: Real> Scratch<'a, E> {
    pub(crate) fn new(planned: &'a mut [E]) -> Self {
        Self { len: planned.len(), planned: Some(planned) }
    }

    #[inline(always)]
    pub(crate) fn lend(self, to: impl FnOnce(&mut [E])) {
        match self.planned {
            Some(planned) => to(planned),
            #[cfg(feature = "rayon")]
            None => to(&mut std::vec![E::ZERO; self.len]),
            #[cfg(not(feature = "rayon"))]
            None => {}
        }
    }
}

impl<E: Real> Cut for Scratch<'_, E> {
    fn cut(self, _: usize) -> (Self, Self) {
        let other = Self { planned: None, len: self.len };
        (self, other)
    }
}

impl<A: Cut, B: Cut> Cut for (A, B) {
    fn cut(self, outputs: usize) -> (Self, Self) {
        let ((a, a_rest), (b, b_rest)) = (self.0.cut(outputs), self.1.cut(outputs));
        ((a, b), (a_rest, b_rest))
    }
}

impl<A: Cut, B: Cut, C: Cut> Cut for (A, B, C) {
    fn cut(self, outputs: usize) -> (Self, Self) {
        let (a, b, c) = self;
        let ((a, (b, c)), (a_rest, (b_rest, c_rest))) = (a, (b, c)).cut(outputs);
        ((a, b, c), (a_rest, b_rest, c_rest))
    }
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::*;

    #[test]
    fn every_output_is_written_once_in_parts_of_the_grain() {
        for (parts, grain, len) in [(1, 1, 5), (2, 1, 5), (2, 8, 40), (3, 8, 40), (4, 1, 2), (5, 4, 0), (7, 16, 100)] {
            let mut outputs = std::vec![0.0_f32; 2 * len];
            share(parts, grain, 0..len, Each(&mut outputs[..], 2), &|range: Range<usize>, Each(data, each)| {
                assert!(range.start.is_multiple_of(grain) && range.len() * each == data.len());
                data.iter_mut().zip(2 * range.start..).for_each(|(output, i)| *output += i as f32);
            });
            let want = (0..2 * len).map(|i| i as f32);
            assert!(outputs.iter().copied().eq(want), "{parts} parts of {len}: {outputs:?}");
        }
    }
}
