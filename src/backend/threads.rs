//! Work that threads share, with the feature `rayon`. It is split by what is written, so that every element is computed as one
//! thread computes it, to the bit.

use core::ops::Range;

use super::Real;

/// Multiply-adds, or elements of an update, that are worth a thread.
#[cfg(feature = "rayon")]
const WORTH_A_THREAD: usize = 1 << 17;

/// In how many parts so much work is done; one where there are no threads.
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
