//! Runs of neighbours, at equal distances in two directions: how convolutions move pixels between an image and columns. Most
//! runs are short, a row of the output, so what they cost is what is done around the loop over a run.

#![allow(unsafe_code)]

use super::dispatch::{Kernel, dispatch};
use super::{Backend, Real, Strict};

/// `count[0] x count[1]` runs of `len` elements, in dense memory and in an image, of which a run takes every `stride`-th element.
pub(crate) struct Runs {
    pub(crate) count: [usize; 2],
    pub(crate) len: usize,
    pub(crate) dense: Place,
    pub(crate) image: Place,
    pub(crate) stride: usize,
    /// Elements before and after each run in dense memory that [`Runs::gather`] sets to zero.
    pub(crate) zeros: [usize; 2],
}

/// Where the first run begins, and how far the next ones lie from it in both directions.
pub(crate) struct Place {
    pub(crate) at: usize,
    pub(crate) step: [usize; 2],
}

impl Place {
    /// Whether the runs, of which each reaches over `extent` elements, lie within `len` elements.
    fn fits(&self, count: [usize; 2], extent: usize, len: usize) -> bool {
        let reach = |axis: usize| (count[axis] - 1).checked_mul(self.step[axis]);
        let end = || self.at.checked_add(reach(0)?)?.checked_add(reach(1)?)?.checked_add(extent);
        end().is_some_and(|end| end <= len)
    }
}

impl Runs {
    /// Copies from the image. Nothing is done where the runs do not fit, which is a fault of the caller.
    #[inline(never)]
    pub(crate) fn gather<E: Real>(&self, image: &[E], dense: &mut [E]) {
        if self.fit(image.len(), dense.len()) {
            // Nothing is computed, in any arithmetic.
            dispatch::<Strict<E>, _>(Gather { runs: self, image: image.as_ptr(), dense: dense.as_mut_ptr() });
        }
    }

    /// Adds to the image, in the order of the runs; see [`Runs::gather`].
    #[inline(never)]
    pub(crate) fn scatter<E: Real>(&self, dense: &[E], image: &mut [E]) {
        if !self.fit(image.len(), dense.len()) {
            return;
        }
        let (from, to, len) = (dense.as_ptr(), image.as_mut_ptr(), self.len);
        // SAFETY: all runs fit.
        unsafe {
            match self.stride {
                1 => self.each(|dense, image| add::<E, 1>(from.add(dense), to.add(image), len)),
                2 => self.each(|dense, image| add::<E, 2>(from.add(dense), to.add(image), len)),
                stride => self.each(|dense, image| {
                    (0..len).for_each(|i| *to.add(image + i * stride) += *from.add(dense + i));
                }),
            }
        }
    }

    fn fit(&self, image: usize, dense: usize) -> bool {
        if self.len == 0 || self.count.contains(&0) {
            return false;
        }
        let extent = (self.len - 1).checked_mul(self.stride).and_then(|last| last.checked_add(1));
        let [before, after] = self.zeros;
        let fit = extent.is_some_and(|extent| self.image.fits(self.count, extent, image))
            && before <= self.dense.at
            && self.len.checked_add(after).is_some_and(|len| self.dense.fits(self.count, len, dense));
        debug_assert!(fit, "runs do not fit: {:?} of {} elements", self.count, self.len);
        fit
    }

    /// Calls `run` with the places of every run.
    #[inline(always)]
    fn each(&self, run: impl Fn(usize, usize)) {
        let (mut dense, mut image) = (self.dense.at, self.image.at);
        for _ in 0..self.count[0] {
            let (mut dense_run, mut image_run) = (dense, image);
            for _ in 0..self.count[1] {
                run(dense_run, image_run);
                dense_run += self.dense.step[1];
                image_run += self.image.step[1];
            }
            dense += self.dense.step[0];
            image += self.image.step[0];
        }
    }
}

/// Runs that fit.
struct Gather<'a, E> {
    runs: &'a Runs,
    image: *const E,
    dense: *mut E,
}

impl<E: Real> Kernel<E> for Gather<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let Self { runs, image: from, dense: to } = self;
        let (len, [before, after]) = (runs.len, runs.zeros);
        // SAFETY: all runs fit, and what becomes zero around them.
        unsafe {
            if before + after > 0 {
                runs.each(|dense, _| {
                    zero(to.add(dense - before), before);
                    zero(to.add(dense + len), after);
                });
            }
            match runs.stride {
                1 if VECTOR >= 32 && len >= 16 => {
                    runs.each(|dense, image| copy::<E, 1, 16>(from.add(image), to.add(dense), len));
                }
                1 if VECTOR >= 32 && len >= 8 => {
                    runs.each(|dense, image| copy::<E, 1, 8>(from.add(image), to.add(dense), len));
                }
                1 => runs.each(|dense, image| copy::<E, 1, 4>(from.add(image), to.add(dense), len)),
                2 => runs.each(|dense, image| copy::<E, 2, 4>(from.add(image), to.add(dense), len)),
                stride => runs.each(|dense, image| {
                    (0..len).for_each(|i| *to.add(dense + i) = *from.add(image + i * stride));
                }),
            }
        }
    }
}

/// Sets few elements to zero.
///
/// # Safety
/// `len` elements can be written.
#[inline(always)]
unsafe fn zero<E: Real>(to: *mut E, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        // Nearly always one, for which a call is long.
        match len {
            0 => {}
            1 => *to = E::ZERO,
            _ => (0..len).for_each(|i| *to.add(i) = E::ZERO),
        }
    }
}

/// Copies every `S`-th element, one or two, of `from`; in blocks, of which the last two may overlap.
///
/// # Safety
/// `len` elements can be read so, and written. Blocks are of four elements where they are of every second one.
#[inline(always)]
unsafe fn copy<E: Real, const S: usize, const BLOCK: usize>(from: *const E, to: *mut E, len: usize) {
    // SAFETY: the caller's promise; the elements that a block takes lie between the first and the last.
    unsafe {
        if len < BLOCK {
            // No more than three where blocks are of four, which keeps the compiler from making vectors of them.
            (0..len & (BLOCK - 1)).for_each(|i| *to.add(i) = *from.add(i * S));
            return;
        }
        let block = |i: usize| {
            if S == 1 {
                *to.add(i).cast::<[E; BLOCK]>() = *from.add(i).cast();
            } else {
                *to.add(i).cast() = every_second(from.add(2 * i));
            }
        };
        let mut i = 0;
        while i < len - BLOCK {
            block(i);
            i += BLOCK;
        }
        block(len - BLOCK);
    }
}

/// The elements 0, 2, 4 and 6.
///
/// # Safety
/// The seven from the first to the last can be read.
#[inline(always)]
unsafe fn every_second<E: Real>(from: *const E) -> [E; 4] {
    // SAFETY: the caller's promise; an element of four bytes can be moved as an `f32`, of any bits, by instructions that
    // every machine of the architecture has.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if size_of::<E>() == 4 {
            use core::arch::x86_64::{_mm_loadu_ps, _mm_shuffle_ps, _mm_storeu_ps};

            let mut four = [E::ZERO; 4];
            let (low, high) = (_mm_loadu_ps(from.cast()), _mm_loadu_ps(from.add(3).cast()));
            _mm_storeu_ps(four.as_mut_ptr().cast(), _mm_shuffle_ps::<0b11_01_10_00>(low, high));
            return four;
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if size_of::<E>() == 4 {
            use core::arch::wasm32::{i32x4_shuffle, v128_load, v128_store};

            let mut four = [E::ZERO; 4];
            let (low, high) = (v128_load(from.cast()), v128_load(from.add(3).cast()));
            v128_store(four.as_mut_ptr().cast(), i32x4_shuffle::<0, 2, 5, 7>(low, high));
            return four;
        }
        [*from, *from.add(2), *from.add(4), *from.add(6)]
    }
}

/// Adds to every `S`-th element of `to`, one or two.
///
/// # Safety
/// `len` elements can be read, and as many written so.
#[inline(always)]
unsafe fn add<E: Real, const S: usize>(from: *const E, to: *mut E, len: usize) {
    // SAFETY: the caller's promise.
    let block = |i: usize, len: usize| (i..i + len).for_each(|i| unsafe { *to.add(i * S) += *from.add(i) });
    let mut i = 0;
    while i + 4 <= len {
        block(i, 4);
        i += 4;
    }
    // In known numbers, which keeps the compiler from making vectors of what is no more than three.
    if len & 2 > 0 {
        block(i, 2);
        i += 2;
    }
    if len & 1 > 0 {
        block(i, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_every_length_and_stride() {
        let image: std::vec::Vec<f32> = (0..400_u16).map(f32::from).collect();
        for len in 1..=19 {
            for stride in 1..=3 {
                let runs = Runs {
                    count: [2, 3],
                    len,
                    dense: Place { at: 2, step: [70, 23] },
                    image: Place { at: 5, step: [180, 58] },
                    stride,
                    zeros: [2, 1],
                };
                let places = |each: &mut dyn FnMut(usize, usize)| {
                    for (i, j) in (0..2).flat_map(|i| (0..3).map(move |j| (i, j))) {
                        (0..len).for_each(|l| each(2 + 70 * i + 23 * j + l, 5 + 180 * i + 58 * j + l * stride));
                    }
                };
                let (mut dense, mut want) = ([-1.0; 138], [-1.0; 138]);
                for run in [0, 23, 46, 70, 93, 116] {
                    want[run..run + 2].fill(0.0);
                    want[run + 2 + len] = 0.0;
                }
                places(&mut |to, from| want[to] = image[from]);
                runs.gather(&image, &mut dense);
                assert_eq!(dense, want, "{len} elements, stride {stride}");
                let (mut sums, mut want) = (image.clone(), image.clone());
                places(&mut |from, to| want[to] += dense[from]);
                runs.scatter(&dense, &mut sums);
                assert_eq!(sums, want, "{len} elements, stride {stride}");
            }
        }
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "runs do not fit"))]
    fn nothing_is_done_beyond_the_end() {
        let place = || Place { at: 1, step: [4, 4] };
        let runs = Runs { count: [1, 2], len: 4, dense: place(), image: place(), stride: 1, zeros: [0; 2] };
        let mut dense = [7.0_f32; 8];
        runs.gather(&[1.0; 9], &mut dense);
        assert_eq!(dense, [7.0; 8]);
    }
}
