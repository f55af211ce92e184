//! The matrix product whose left operand is read through tables: element `(i, t)` lies at the place of row `i` plus the place of term
//! `t`. So a convolution multiplies windows of an image where they lie, without columns that repeat each pixel for every tap. The
//! right operand is a panel of neighbours, a vector or two to a term.
//!
//! Each sum has one accumulator and takes its terms in ascending order, as everywhere.

#![allow(unsafe_code)]

use core::arch::x86_64;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::dispatch::{Kernel, dispatch};
use super::vector::Vector;
use super::{Backend, Real, is_fused, is_ours};

/// Elements of a vector of the machine that products here are written for; 0 where there is none, or where the backend has products
/// of its own.
#[inline]
pub(crate) fn lanes<B: Backend>() -> usize {
    if is_ours::<B>() { dispatch::<B, _>(Lanes(PhantomData)) } else { 0 }
}

struct Lanes<E>(PhantomData<E>);

impl<E: Real> Kernel<E> for Lanes<E> {
    type Output = usize;

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) -> usize {
        VECTOR / size_of::<E>()
    }
}

/// Where a row of the left operand lies, and which row of the result is its.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Rows of the left operand.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    places: &'a [Row],
    /// The furthest places of all.
    from: usize,
    to: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(rows: &'a [Row]) -> Self {
        let (from, to) = rows.iter().fold((0, 0), |(from, to), row| (row.from.max(from), row.to.max(to)));
        Self { places: rows, from: from as usize, to: to as usize }
    }

    pub(crate) fn first(self, count: usize) -> Self {
        Self { places: self.places.get(..count).unwrap_or(self.places), ..self }
    }

    pub(crate) fn len(self) -> usize {
        self.places.len()
    }
}

/// Terms: their places from those of the rows on.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    places: &'a [u32],
    furthest: usize,
}

impl<'a> Terms<'a> {
    pub(crate) fn new(places: &'a [u32]) -> Self {
        Self { places, furthest: places.iter().fold(0, |most, &place| place.max(most)) as usize }
    }

    pub(crate) fn first(self, count: usize) -> Self {
        Self { places: self.places.get(..count).unwrap_or(self.places), ..self }
    }

    pub(crate) fn len(self) -> usize {
        self.places.len()
    }
}

/// What happens to the sums of a row.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sums<'a, E> {
    /// They start from these, one for each column, and are written.
    From(&'a [E]),
    /// They go on from what the result holds.
    Continue,
    /// They start from zero, and are added to the result when they are complete.
    Add,
}

/// A product, see the module. `panel` has a row of `width` elements for each term, `result` rows of the same width, which is
/// [`lanes`] or twice that.
pub(crate) struct Product<'a, E> {
    pub(crate) left: &'a [E],
    pub(crate) rows: Rows<'a>,
    pub(crate) terms: Terms<'a>,
    pub(crate) panel: &'a [E],
    pub(crate) width: usize,
    pub(crate) result: &'a mut [E],
    pub(crate) sums: Sums<'a, E>,
}

impl<E: Real> Product<'_, E> {
    /// Multiplies. Nothing is done where a place lies outside of its slice, which is a fault of the caller.
    pub(crate) fn run<B: Backend<Elem = E>>(self) {
        if self.rows.len() == 0 {
            return;
        }
        let fits = self.rows.from + self.terms.furthest < self.left.len()
            && self.terms.len() * self.width <= self.panel.len()
            && (self.rows.to + 1) * self.width <= self.result.len()
            && !matches!(self.sums, Sums::From(start) if start.len() < self.width);
        debug_assert!(fits, "{} rows of {} terms do not fit their slices", self.rows.len(), self.terms.len());
        if fits {
            dispatch::<B, _>(self);
        }
    }

    /// # Safety
    /// All places lie within their slices, `W` vectors are as wide as the panel, and the machine has them.
    #[inline(always)]
    unsafe fn tiles<V: Vector, const M: usize, const MORE: usize, const W: usize>(self, is_fused: bool) {
        let mut rows = self.rows.places;
        let operands: [*const V::Elem; 2] = [self.left.as_ptr().cast(), self.panel.as_ptr().cast()];
        let result = self.result.as_mut_ptr().cast();
        // SAFETY: the caller's promise.
        unsafe {
            let (terms, zero) = (self.terms.places, [V::zero(); W]);
            let (start, add) = match self.sums {
                Sums::From(start) => (Some(vectors(start.as_ptr().cast())), false),
                Sums::Continue => (None, false),
                Sums::Add => (Some(zero), true),
            };
            // A row by itself takes as long as four.
            if rows.len() % M == MORE - M
                && let Some((tile_rows, rest)) = rows.split_first_chunk::<MORE>()
            {
                tile::<V, MORE, W>(is_fused, operands, tile_rows, terms, result, start, add);
                rows = rest;
            }
            while let Some((tile_rows, rest)) = rows.split_first_chunk::<M>() {
                tile::<V, M, W>(is_fused, operands, tile_rows, terms, result, start, add);
                rows = rest;
            }
            while let Some((tile_rows, rest)) = rows.split_first_chunk::<4>() {
                tile::<V, 4, W>(is_fused, operands, tile_rows, terms, result, start, add);
                rows = rest;
            }
            if let Some((tile_rows, rest)) = rows.split_first_chunk::<2>() {
                tile::<V, 2, W>(is_fused, operands, tile_rows, terms, result, start, add);
                rows = rest;
            }
            if let Some((tile_rows, _)) = rows.split_first_chunk::<1>() {
                tile::<V, 1, W>(is_fused, operands, tile_rows, terms, result, start, add);
            }
        }
    }
}

impl<E: Real> Kernel<E> for Product<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let is_fused = is_fused::<C>();
        // SAFETY: the caller has looked at all places; the machine has vectors of so many bytes.
        unsafe {
            match (VECTOR, size_of::<E>(), self.width * size_of::<E>() / VECTOR.max(1)) {
                (64, 4, 1) => self.tiles::<x86_64::__m512, 8, 9, 1>(is_fused),
                (64, 4, _) => self.tiles::<x86_64::__m512, 8, 9, 2>(is_fused),
                (64, _, 1) => self.tiles::<x86_64::__m512d, 8, 9, 1>(is_fused),
                (64, _, _) => self.tiles::<x86_64::__m512d, 8, 9, 2>(is_fused),
                (32, 4, 1) => self.tiles::<x86_64::__m256, 8, 9, 1>(is_fused),
                (32, 4, _) => self.tiles::<x86_64::__m256, 6, 6, 2>(is_fused),
                (32, _, 1) => self.tiles::<x86_64::__m256d, 8, 9, 1>(is_fused),
                (32, _, _) => self.tiles::<x86_64::__m256d, 6, 6, 2>(is_fused),
                _ => {}
            }
        }
    }
}

/// `M` rows of the result in registers. The sums start from `start`, or go on from what the result holds; they are written, or added to
/// it.
///
/// # Safety
/// The places of all rows and terms lie within `left` and `result`, and `panel` has `W` vectors for each term.
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const W: usize>(
    is_fused: bool,
    [left, mut panel]: [*const V::Elem; 2],
    rows: &[Row; M],
    terms: &[u32],
    result: *mut V::Elem,
    start: Option<[V; W]>,
    add: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut from = [left; M];
        let mut to = [result; M];
        let mut sums = [[V::zero(); W]; M];
        for i in 0..M {
            from[i] = left.add(rows[i].from as usize);
            to[i] = result.add(rows[i].to as usize * W * V::LANES);
            sums[i] = start.unwrap_or_else(|| vectors(to[i]));
        }
        for &place in terms {
            let right: [V; W] = vectors(panel);
            for (sums, from) in sums.iter_mut().zip(from) {
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = V::mul_add(is_fused, from.add(place as usize), right, *sum);
                }
            }
            panel = panel.wrapping_add(W * V::LANES);
        }
        for (sums, to) in sums.into_iter().zip(to) {
            for (j, sum) in sums.into_iter().enumerate() {
                let to = to.add(j * V::LANES);
                V::store(to, if add { V::add(V::load(to), sum) } else { sum });
            }
        }
    }
}

/// `W` vectors of neighbours.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn vectors<V: Vector, const W: usize>(from: *const V::Elem) -> [V; W] {
    // SAFETY: the caller's promise.
    core::array::from_fn(|j| unsafe { V::load(from.add(j * V::LANES)) })
}

/// Memory on the stack for up to `LEN` items, of which none is set before it is needed. Vectors are not split between lines of
/// the cache.
#[repr(align(64))]
pub(crate) struct Buffer<T, const LEN: usize>([MaybeUninit<T>; LEN]);

impl<T: Copy, const LEN: usize> Buffer<T, LEN> {
    /// A constant, since unoptimized code keeps a copy for each time that a value is handed on.
    pub(crate) const NEW: Self = Self([const { MaybeUninit::uninit() }; LEN]);

    /// The first `LEN` of these items.
    #[inline(always)]
    pub(crate) fn collect(&mut self, items: impl Iterator<Item = T>) -> &mut [T] {
        let mut len = 0;
        for (place, item) in self.0.iter_mut().zip(items) {
            place.write(item);
            len += 1;
        }
        // SAFETY: so many items have been written.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    type F = Strict<f32>;

    #[test]
    fn rows_and_terms_come_from_their_places() {
        let left: std::vec::Vec<f32> = (0..40_u16).map(|i| f32::from(i * 7 % 31)).collect();
        let terms = [0, 3, 9];
        let lanes = lanes::<F>();
        for width in [lanes, 2 * lanes] {
            if width == 0 {
                return;
            }
            let panel: std::vec::Vec<f32> = (0..3 * width).map(|i| (i * 5 % 13) as f32).collect();
            let start: std::vec::Vec<f32> = (0..width).map(|i| i as f32).collect();
            for count in 1..=19_u32 {
                let rows: std::vec::Vec<Row> = (0..count).map(|i| Row { from: i + 11, to: count - 1 - i }).collect();
                for sums in [Sums::From(&start), Sums::Continue, Sums::Add] {
                    let before = std::vec![0.5_f32; count as usize * width];
                    let (mut result, mut want) = (before.clone(), before);
                    for row in &rows {
                        for j in 0..width {
                            let want = &mut want[row.to as usize * width + j];
                            let first = match sums {
                                Sums::From(start) => start[j],
                                Sums::Continue => *want,
                                Sums::Add => 0.0,
                            };
                            let place = |t: usize| (row.from + terms[t]) as usize;
                            let sum = (0..3).fold(first, |sum, t| sum + left[place(t)] * panel[t * width + j]);
                            *want = if sums == Sums::Add { *want + sum } else { sum };
                        }
                    }
                    let (rows, terms, panel) = (Rows::new(&rows), Terms::new(&terms), &panel[..]);
                    Product { left: &left, rows, terms, panel, width, result: &mut result, sums }.run::<F>();
                    assert_eq!(result, want, "{count} rows of {width}");
                }
            }
        }
    }
}
