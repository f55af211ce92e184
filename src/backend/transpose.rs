//! Copies of matrices whose rows become columns, or stay rows: what products and convolutions bring into place for vectors.

#![allow(unsafe_code)]

use super::Real;
use super::panel::Out;
#[cfg(target_arch = "x86_64")]
use super::{
    Backend,
    dispatch::{Kernel, dispatch},
    threads::Columns,
};

#[cfg(target_arch = "x86_64")]
mod avx;

/// Copies `rows x columns` elements: row `i`, which begins at `i * from_row`, becomes column `i`, and element `j` of it lies at
/// `j * to_row + i`. Nothing is done where they do not fit, which is a fault of the caller.
#[cfg(target_arch = "x86_64")]
pub(crate) fn transpose<B: Backend>(
    [rows, columns]: [usize; 2],
    from: &[B::Elem],
    from_row: usize,
    to: &mut [B::Elem],
    to_row: usize,
) {
    if fits([rows, columns], from, from_row) && fits([columns, rows], to, to_row) {
        let from = Out { at: from.as_ptr().cast_mut(), row: from_row, col: 1, keep: false };
        let to = Out { at: to.as_mut_ptr(), row: 1, col: to_row, keep: false };
        dispatch::<B, _>(Transpose { sizes: [rows, columns], from, to });
    }
}

/// The same from columns of a matrix, from an element on.
#[cfg(target_arch = "x86_64")]
pub(crate) fn transpose_from<B: Backend>(
    [rows, columns]: [usize; 2],
    from: &mut Columns<'_, B::Elem>,
    at: [usize; 2],
    to: &mut [B::Elem],
    to_row: usize,
) {
    let (row, from) = (from.distance(), from.block(at, [rows, columns]));
    if let Some(from) = from
        && fits([columns, rows], to, to_row)
    {
        let from = Out { at: from, row, col: 1, keep: false };
        let to = Out { at: to.as_mut_ptr(), row: 1, col: to_row, keep: false };
        dispatch::<B, _>(Transpose { sizes: [rows, columns], from, to });
    }
}

/// The same to columns of a matrix: its row `j`, from an element on, becomes column `j`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn transpose_to<B: Backend>(
    [rows, columns]: [usize; 2],
    from: &[B::Elem],
    from_row: usize,
    to: &mut Columns<'_, B::Elem>,
    at: [usize; 2],
) {
    let (col, to) = (to.distance(), to.block(at, [columns, rows]));
    if let Some(to) = to
        && fits([rows, columns], from, from_row)
    {
        let from = Out { at: from.as_ptr().cast_mut(), row: from_row, col: 1, keep: false };
        dispatch::<B, _>(Transpose { sizes: [rows, columns], from, to: Out { at: to, row: 1, col, keep: false } });
    }
}

/// Whether an `outer x inner` matrix, whose rows lie so far apart, lies within its elements.
#[cfg(target_arch = "x86_64")]
fn fits<E>([outer, inner]: [usize; 2], data: &[E], row: usize) -> bool {
    let fits = outer == 0 || inner == 0 || (outer - 1) * row + inner <= data.len();
    debug_assert!(fits, "{outer} x {inner} elements, {row} apart, do not fit {}", data.len());
    fits
}

/// Two matrices that lie within their slices; `from` is only read.
#[cfg(target_arch = "x86_64")]
struct Transpose<E> {
    sizes: [usize; 2],
    from: Out<E>,
    to: Out<E>,
}

#[cfg(target_arch = "x86_64")]
impl<E: Real> Kernel<E> for Transpose<E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let Self { sizes, from, to } = self;
        // SAFETY: both lie within their slices, and do not overlap.
        unsafe { copy_matrix(sizes, from, to, VECTOR >= 32) };
    }
}

/// Copies a matrix: in fours of neighbours, or, where rows become columns, in blocks of `4 x 4`, or of up to `8 x 8` with AVX. The
/// last two in each direction may overlap.
///
/// # Safety
/// Both are there, and they do not overlap. The machine has AVX if that is said.
// Inlined into loops over tiles, it is given more pointers than there are registers.
#[inline(never)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "AVX is x86-64's"))]
pub(super) unsafe fn copy_matrix<E: Real>([rows, columns]: [usize; 2], from: Out<E>, to: Out<E>, has_avx: bool) {
    // If columns become rows, rows of the transposed matrices become columns.
    let turned = |matrix: Out<E>| Out { row: matrix.col, col: matrix.row, ..matrix };
    let ([rows, columns], from, to) = if from.row == 1 && to.col == 1 && from.col != 1 {
        ([columns, rows], turned(from), turned(to))
    } else {
        ([rows, columns], from, to)
    };
    // SAFETY: the caller's promise.
    unsafe {
        if from.col == 1 && to.row == 1 && rows >= 4 && columns >= 4 {
            #[cfg(target_arch = "x86_64")]
            if has_avx && size_of::<E>() == 4 {
                avx::transpose([rows, columns], from.at.cast(), from.row, to.at.cast(), to.col);
                return;
            }
            let mut j = 0;
            while j < columns {
                j = j.min(columns - 4);
                let mut i = 0;
                while i < rows {
                    i = i.min(rows - 4);
                    transpose_4(from.skip(i, j).at, from.row, to.skip(i, j).at, to.col);
                    i += 4;
                }
                j += 4;
            }
            return;
        }
        if from.col == 1 && to.col == 1 && columns >= 4 {
            for i in 0..rows {
                let mut j = 0;
                while j < columns {
                    j = j.min(columns - 4);
                    *to.skip(i, j).at.cast::<[E; 4]>() = *from.skip(i, j).at.cast::<[E; 4]>();
                    j += 4;
                }
            }
            return;
        }
        for i in 0..rows {
            for j in 0..columns {
                *to.skip(i, j).at = *from.skip(i, j).at;
            }
        }
    }
}

/// Transposes a block of `4 x 4`: line `i` of `from` becomes column `i` of `to`.
///
/// # Safety
/// Four lines of four neighbours can be read, and written.
#[inline(always)]
unsafe fn transpose_4<E: Copy>(from: *const E, from_stride: usize, to: *mut E, to_stride: usize) {
    // SAFETY: the caller's promise; an element of four bytes can be moved as an `f32`, of any bits.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if size_of::<E>() == 4 {
            avx::transpose_4(from.cast(), from_stride, to.cast(), to_stride);
            return;
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if size_of::<E>() == 4 {
            use core::arch::wasm32::{i32x4_shuffle, v128_load, v128_store};

            let [a, b, c, d] = [0, 1, 2, 3].map(|i| v128_load(from.add(i * from_stride).cast()));
            let (ab, cd) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<0, 4, 1, 5>(c, d));
            let (ab_high, cd_high) = (i32x4_shuffle::<2, 6, 3, 7>(a, b), i32x4_shuffle::<2, 6, 3, 7>(c, d));
            v128_store(to.cast(), i32x4_shuffle::<0, 1, 4, 5>(ab, cd));
            v128_store(to.add(to_stride).cast(), i32x4_shuffle::<2, 3, 6, 7>(ab, cd));
            v128_store(to.add(2 * to_stride).cast(), i32x4_shuffle::<0, 1, 4, 5>(ab_high, cd_high));
            v128_store(to.add(3 * to_stride).cast(), i32x4_shuffle::<2, 3, 6, 7>(ab_high, cd_high));
            return;
        }
        for j in 0..4 {
            for i in 0..4 {
                *to.add(j * to_stride + i) = *from.add(i * from_stride + j);
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::backend::Strict;

    type F = Strict<f32>;

    #[test]
    fn rows_become_columns() {
        let from: std::vec::Vec<f32> = (0..21 * 19_u16).map(f32::from).collect();
        for [rows, columns] in [[1, 1], [3, 5], [8, 8], [9, 17], [17, 9], [20, 16]] {
            let mut to = [-1.0; 19 * 21];
            transpose::<F>([rows, columns], &from, 19, &mut to, 21);
            for (i, j) in (0..19).flat_map(|i| (0..21).map(move |j| (i, j))) {
                let want = if i < columns && j < rows { from[j * 19 + i] } else { -1.0 };
                assert!(to[i * 21 + j] == want, "{rows} x {columns}: {i}, {j}");
            }
        }
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "do not fit"))]
    fn nothing_is_done_beyond_the_end() {
        let mut to = [7.0_f32; 6];
        transpose::<F>([2, 3], &[1.0; 6], 3, &mut to, 3);
        assert_eq!(to, [7.0; 6]);
    }
}
