//! The matrix product, and its register tile for cores without vectors; `panel.rs` has the one for others.
//!
//! Every element of the result has one accumulator, and its `k` products are added in ascending order; the shape of the
//! tile therefore changes no bit. Strides are free, so a transposed operand is read where it lies.

#![allow(unsafe_code)]

use core::mem;

use super::dispatch::{Kernel, dispatch};
use super::panel::{self, Out};
use super::threads::{self, Columns, Each};
use super::{Backend, MatrixProduct, Real, Sums};

/// A matrix in a slice: element `(i, j)` lies at `i * row + j * col`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, E> {
    /// The elements.
    pub data: &'a [E],
    /// The distance between rows.
    pub row: usize,
    /// The distance between columns.
    pub col: usize,
}

/// What the accumulators start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero: the product is written.
    Zero,
    /// What the output holds: the product is added, its terms one after the other.
    Output,
}

impl Start {
    /// [`Start::Output`] where `add`.
    #[must_use]
    #[inline(always)]
    pub fn adding(add: bool) -> Self {
        if add { Self::Output } else { Self::Zero }
    }
}

/// Threads share the rows of a product by multiples of this: the largest tile has as many.
const ROWS_OF_A_PART: usize = 8;
/// And the columns by multiples of this, likewise.
#[cfg(feature = "rayon")]
const COLUMNS_OF_A_PART: usize = 32;
/// Terms of a panel that is copied. Unoptimized code has a place on the stack for every panel that it might copy.
const TERMS: usize = if cfg!(debug_assertions) { 16 } else { 256 };
/// Rows of a full tile.
const MR: usize = 4;
/// Columns of a full tile: two 128-bit vectors, or what a core without vectors has registers for.
const NR: usize = if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { 8 } else { 4 };

/// An operand while it is walked: `step` along `k`, `side` along its own axis of the result.
#[derive(Clone, Copy)]
pub(super) struct Walk<E> {
    pub(super) at: *const E,
    pub(super) side: usize,
    pub(super) step: usize,
}

impl<E> Walk<E> {
    /// The walk that starts `n` rows or columns further.
    ///
    /// # Safety
    /// Row or column `n` lies within the matrix.
    #[inline(always)]
    pub(super) unsafe fn skip(self, n: usize) -> Self {
        // SAFETY: the caller's promise.
        Self { at: unsafe { self.at.add(n * self.side) }, ..self }
    }
}

/// Whether the arithmetic is single precision that multiplies, rounds and adds.
#[cfg(any(
    all(target_arch = "arm", target_abi = "eabihf", target_os = "none"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
pub(super) fn is_single<B: Backend>() -> bool {
    use core::any::TypeId;
    TypeId::of::<B>() == TypeId::of::<super::Strict<f32>>() || TypeId::of::<B>() == TypeId::of::<super::Fast<f32>>()
}

/// Whether an `outer x inner` matrix lies within its elements.
#[cfg_attr(target_os = "none", inline(never))]
fn fits<E>(outer: usize, inner: usize, &Matrix { data, row, col }: &Matrix<'_, E>) -> bool {
    let last = |count: usize, stride: usize| count.checked_sub(1)?.checked_mul(stride);
    match (last(outer, row), last(inner, col)) {
        (Some(row), Some(col)) => row.checked_add(col).is_some_and(|last| last < data.len()),
        _ => false,
    }
}

/// The product that `describe` makes of the operands of a kernel, whose last act it is, as [`Backend::matmul`] does it. Where the stack
/// is small it takes the operands' place there.
// There it is not inlined: the kernel would copy its operands to a frame of its own.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
pub(crate) fn last_product<'a, B: Backend, T>(
    mut call: T,
    describe: impl FnOnce(&mut T) -> MatrixProduct<'a, B::Elem>,
) {
    const { assert!(!mem::needs_drop::<T>()) };
    let product = describe(&mut call);
    #[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
    if is_single::<B>() {
        // SAFETY: nobody reads the operands any more, so any bytes may lie there.
        return super::vfp::product(unsafe { &mut *(&raw mut call).cast::<mem::MaybeUninit<T>>() }, product);
    }
    let MatrixProduct { sizes, a, b, c, c_row, sums } = product;
    if let Sums::Row(row) = sums {
        for c in c.chunks_mut(c_row.max(1)) {
            c.iter_mut().zip(row).for_each(|(c, &x)| *c = x);
        }
    }
    B::matmul(sizes, a, b, c, c_row, Start::adding(!matches!(sums, Sums::Zero)));
}

/// See [`Backend::matmul`]. Slices that are too short for the sizes are a fault of the caller, on which nothing is
/// written. One copy of it serves all operations: inlined, it would be the larger part of every one.
#[inline(never)]
pub(crate) fn matmul<B: Backend>(
    sizes: [usize; 3],
    a: Matrix<'_, B::Elem>,
    b: Matrix<'_, B::Elem>,
    c: &mut [B::Elem],
    c_row: usize,
    start: Start,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if start == Start::Zero {
            let zeros = Matrix { data: &[B::Elem::ZERO], row: 0, col: 0 };
            matmul::<B>([m, n, 1], zeros, zeros, c, c_row, start);
        }
        return;
    }
    let all_fit = fits(m, k, &a)
        && fits(k, n, &b)
        && fits(m, n, &Matrix { data: c, row: c_row, col: 1 })
        && (m == 1 || c_row >= n);
    debug_assert!(all_fit, "matmul: {m} x {n} x {k} does not fit its slices");
    if !all_fit {
        return;
    }
    #[cfg(feature = "std")]
    if let Some(kernel) = super::registry::matmul_kernel() {
        kernel([m, n, k], a, b, c, c_row, start);
        return;
    }
    let keep = start == Start::Output;
    let parts = threads::parts(m * n * k);
    // Each thread reads the whole of the operand that is not cut. Where `b` is the largest of the three, as weights are, its
    // columns are.
    #[cfg(feature = "rayon")]
    if parts > 1 && n > m && k > m {
        let c = Columns::new(c, n, c_row);
        return threads::share(parts, COLUMNS_OF_A_PART, 0..n, c, &|columns, c| {
            let b = Matrix { data: b.data.get(columns.start * b.col..).unwrap_or_default(), ..b };
            dispatch::<B, _>(Product { sizes: [m, columns.len(), k], a, b, c, keep });
        });
    }
    threads::share(parts, ROWS_OF_A_PART, 0..m, (Each(a.data, a.row), Each(c, c_row)), &|rows, (a_rows, c_rows)| {
        let (a, c) = (Matrix { data: a_rows.0, ..a }, Columns::new(c_rows.0, n, c_row));
        dispatch::<B, _>(Product { sizes: [rows.len(), n, k], a, b, c, keep });
    });
}

/// A product whose three matrices lie within their slices.
struct Product<'a, E> {
    sizes: [usize; 3],
    a: Matrix<'a, E>,
    b: Matrix<'a, E>,
    c: Columns<'a, E>,
    keep: bool,
}

impl<E: Real> Kernel<E> for Product<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let Self { sizes, a, b, mut c, keep } = self;
        let lengths = [a.data.len(), b.data.len()];
        let a = Walk { at: a.data.as_ptr(), side: a.row, step: a.col };
        let b = Walk { at: b.data.as_ptr(), side: b.col, step: b.row };
        let out = Out { at: c.as_mut_ptr(), row: c.distance(), col: 1, keep };
        // SAFETY: all three matrices lie within their slices, and `c` is borrowed exclusively.
        unsafe {
            // A single row by a transposed matrix needs every element of a panel once, which is worth it where blocks are
            // transposed in vectors.
            let in_vectors = cfg!(target_arch = "wasm32") || cfg!(target_arch = "x86_64") && size_of::<E>() == 4;
            let once = sizes[0] == 1 && b.side != 1 && !in_vectors;
            let vectors = if once { 0 } else { VECTOR };
            match (vectors, size_of::<E>()) {
                (64, 4) => panel::product::<C, 8, 32, 16, TERMS>(sizes, a, b, lengths, out),
                (64, 8) => panel::product::<C, 8, 16, 8, TERMS>(sizes, a, b, lengths, out),
                (32, 4) => panel::product::<C, 6, 16, 8, TERMS>(sizes, a, b, lengths, out),
                (16, 4) if cfg!(target_arch = "wasm32") => {
                    panel::product::<C, 4, 8, 4, TERMS>(sizes, a, b, lengths, out);
                }
                (32, 8) | (16, 4) => panel::product::<C, 6, 8, 4, TERMS>(sizes, a, b, lengths, out),
                (16, 8) => panel::product::<C, 6, 4, 2, TERMS>(sizes, a, b, lengths, out),
                _ => all_columns::<C>(sizes, a, b, out.at, out.row, keep),
            }
        }
    }
}

/// # Safety
/// The `m x k`, `k x n` and `m x n` matrices lie within memory that `a` and `b` may read and `c` may write.
#[inline(always)]
unsafe fn all_columns<B: Backend>(
    [m, n, k]: [usize; 3],
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    c: *mut B::Elem,
    c_row: usize,
    keep: bool,
) {
    let mut j = 0;
    // SAFETY: tiles stay within the first `n` columns.
    unsafe {
        while j + NR <= n {
            all_rows::<B, NR>(m, k, a, b.skip(j), c.add(j), c_row, keep);
            j += NR;
        }
        if NR > 4 && j + 4 <= n {
            all_rows::<B, 4>(m, k, a, b.skip(j), c.add(j), c_row, keep);
            j += 4;
        }
        while j < n {
            all_rows::<B, 1>(m, k, a, b.skip(j), c.add(j), c_row, keep);
            j += 1;
        }
    }
}

/// # Safety
/// As [`all_columns`], for `N` columns.
#[inline(always)]
unsafe fn all_rows<B: Backend, const N: usize>(
    m: usize,
    k: usize,
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    c: *mut B::Elem,
    c_row: usize,
    keep: bool,
) {
    let mut i = 0;
    // SAFETY: tiles stay within the first `m` rows.
    unsafe {
        while i + MR <= m {
            either_stride::<B, MR, N>(k, a.skip(i), b, c.add(i * c_row), c_row, keep);
            i += MR;
        }
        while i < m {
            either_stride::<B, 1, N>(k, a.skip(i), b, c.add(i * c_row), c_row, keep);
            i += 1;
        }
    }
}

/// The tile; where there are vectors, a second copy knows that `b`'s columns are neighbours and loads them at once.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn either_stride<B: Backend, const M: usize, const N: usize>(
    k: usize,
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    c: *mut B::Elem,
    c_row: usize,
    keep: bool,
) {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        if NR > 4 && N > 1 && b.side == 1 {
            tile::<B, M, N>(k, a, Walk { side: 1, ..b }, c, c_row, keep);
        } else {
            tile::<B, M, N>(k, a, b, c, c_row, keep);
        }
    }
}

/// `M x N` elements of the product in registers.
///
/// # Safety
/// `k` columns of `M` rows of `a`, `k` rows of `N` columns of `b`, and `M` rows of `N` columns of `c` lie within their
/// slices.
#[inline(always)]
unsafe fn tile<B: Backend, const M: usize, const N: usize>(
    k: usize,
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    c: *mut B::Elem,
    c_row: usize,
    keep: bool,
) {
    let mut sums = [[B::Elem::ZERO; N]; M];
    let (mut a_at, mut b_at) = (a.at, b.at);
    // SAFETY: every access is one of those that the caller promised; the pointers move past the last element at most
    // once, and by `wrapping_add`.
    unsafe {
        if keep {
            for (i, row) in sums.iter_mut().enumerate() {
                for (j, sum) in row.iter_mut().enumerate() {
                    *sum = *c.add(i * c_row + j);
                }
            }
        }
        for _ in 0..k {
            let mut b_row = [B::Elem::ZERO; N];
            for (j, b_value) in b_row.iter_mut().enumerate() {
                *b_value = *b_at.add(j * b.side);
            }
            for (i, row) in sums.iter_mut().enumerate() {
                let a_value = *a_at.add(i * a.side);
                for (sum, &b_value) in row.iter_mut().zip(&b_row) {
                    *sum = B::mul_add(a_value, b_value, *sum);
                }
            }
            a_at = a_at.wrapping_add(a.step);
            b_at = b_at.wrapping_add(b.step);
        }
        for (i, row) in sums.iter().enumerate() {
            for (j, &sum) in row.iter().enumerate() {
                *c.add(i * c_row + j) = sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    /// The definition: one accumulator, ascending k.
    fn reference(
        [m, n, k]: [usize; 3],
        a: Matrix<'_, f32>,
        b: Matrix<'_, f32>,
        c: &mut [f32],
        c_row: usize,
        start: Start,
    ) {
        for i in 0..m {
            for j in 0..n {
                let mut sum = if start == Start::Output { c[i * c_row + j] } else { 0.0 };
                for l in 0..k {
                    sum += a.data[i * a.row + l * a.col] * b.data[l * b.row + j * b.col];
                }
                c[i * c_row + j] = sum;
            }
        }
    }

    /// Whether tiles for vectors of so many bytes can run here: but on x86-64 they are loops over arrays, whatever the machine.
    fn has_vectors(bytes: usize) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let (has_avx2, has_avx512) = (std::is_x86_feature_detected!("avx2"), std::is_x86_feature_detected!("avx512f"));
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let [has_avx2, has_avx512] = [cfg!(any(not(target_arch = "x86_64"), target_feature = "avx2")); 2];
        match bytes {
            64 => has_avx512,
            32 => has_avx2,
            _ => true,
        }
    }

    fn values(n: usize, seed: u32) -> std::vec::Vec<f32> {
        (0..n as u32).map(|i| ((i * 7919 + seed) % 1009) as f32 / 97.0 - 5.0).collect()
    }

    /// Compares the product on every kind of vectors with the definition, for operands as they are and transposed.
    fn check([m, n, k]: [usize; 3]) {
        let (a, b, c_row) = (values(m * k, 3), values(k * n, 5), n + 3);
        let c = values(m * c_row, 7);
        for (a_row, a_col) in [(k, 1), (1, m)] {
            for (b_row, b_col) in [(n, 1), (1, k)] {
                for start in [Start::Zero, Start::Output] {
                    let a = Matrix { data: &a[..], row: a_row, col: a_col };
                    let b = Matrix { data: &b[..], row: b_row, col: b_col };
                    let mut want = c.clone();
                    reference([m, n, k], a, b, &mut want, c_row, start);
                    let same = |what: &str, got: &[f32]| {
                        assert!(
                            want.iter().zip(got).all(|(w, g)| w.to_bits() == g.to_bits()),
                            "{m} x {n} x {k}, strides {a_row} {a_col} {b_row} {b_col}, {start:?}, {what}"
                        );
                    };
                    let mut got = c.clone();
                    matmul::<Strict<f32>>([m, n, k], a, b, &mut got, c_row, start);
                    same("this machine's", &got);
                    if m * n * k == 0 {
                        continue;
                    }
                    let keep = start == Start::Output;
                    let run = |what: &str, run: fn(Product<'_, f32>)| {
                        let mut got = c.clone();
                        run(Product { sizes: [m, n, k], a, b, c: Columns::new(&mut got, n, c_row), keep });
                        same(what, &got);
                    };
                    run("no vectors", |product| product.run::<Strict<f32>, 0>());
                    run("16 bytes", |product| product.run::<Strict<f32>, 16>());
                    if has_vectors(32) {
                        run("32 bytes", |product| product.run::<Strict<f32>, 32>());
                    }
                    if has_vectors(64) {
                        run("64 bytes", |product| product.run::<Strict<f32>, 64>());
                    }
                }
            }
        }
    }

    #[test]
    fn every_tile_and_stride_gives_the_bits_of_the_definition() {
        let sizes: &[usize] = if cfg!(miri) { &[1, 5, 9] } else { &[0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17] };
        for &m in sizes {
            for &n in sizes {
                for k in [0, 1, 2, 11] {
                    check([m, n, k]);
                }
            }
        }
        // More than one panel, and more terms than a panel has.
        let large: &[[usize; 3]] = if cfg!(miri) {
            &[[3, 35, 9], [19, 2, 130]]
        } else {
            &[[40, 70, 300], [70, 40, 130], [1, 70, 300], [35, 9, 600], [16, 32, 64], [32, 28, 144]]
        };
        large.iter().for_each(|&sizes| check(sizes));
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "does not fit its slices"))]
    fn short_slices_are_never_read_beyond_their_end() {
        let (a, b, mut c) = ([1.0_f32; 5], [1.0; 6], [7.0; 4]);
        let (a, b) = (Matrix { data: &a[..], row: 3, col: 1 }, Matrix { data: &b[..], row: 2, col: 1 });
        matmul::<Strict<f32>>([2, 2, 3], a, b, &mut c, 2, Start::Zero);
        assert_eq!(c, [7.0; 4]);
    }
}
