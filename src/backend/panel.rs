//! The matrix product on machines with vectors: a register tile of `M` rows by one or two vectors of columns.
//!
//! The tile reads one element of `a` for each row, and runs of neighbours of `b`. Where `b`'s columns are no neighbours, as
//! in `x Wᵀ`, a panel of one of the operands is transposed on the stack, `K` terms at a time: `b`'s, or, if that is less
//! work, `a`'s, and the transposed product is computed. Each element of the result has one accumulator, which lies in `c`
//! between two runs of terms; so none of this changes a bit.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use super::tile::Walk;
use super::transpose::copy_matrix;
#[cfg(target_arch = "x86_64")]
use super::vector::Vector;
use super::{Backend, Real, is_fused};

/// Builds without optimization do with fewer copies of the tile: every crate compiles the product for itself.
const UNOPTIMIZED: bool = cfg!(debug_assertions);

/// Whether what is around the tile is there once, with distances as variables. WebAssembly's code is loaded before it runs.
const ONCE: bool = UNOPTIMIZED || cfg!(target_arch = "wasm32");

/// Where a product goes: element `(i, j)` at `i * row + j * col`.
#[derive(Clone, Copy)]
pub(super) struct Out<E> {
    pub(super) at: *mut E,
    pub(super) row: usize,
    pub(super) col: usize,
    /// Whether the product is added to what is there.
    pub(super) keep: bool,
}

impl<E> Out<E> {
    /// # Safety
    /// Element `(i, j)` lies within the matrix.
    #[inline(always)]
    pub(super) unsafe fn skip(self, i: usize, j: usize) -> Self {
        // SAFETY: the caller's promise.
        Self { at: unsafe { self.at.add(i * self.row + j * self.col) }, ..self }
    }
}

/// Vectors of it are not split between lines of the cache.
#[repr(align(64))]
struct Aligned<T>(T);

/// A panel of `b`: `width` columns, of which a tile may read `N`.
#[derive(Clone, Copy)]
struct Panel<E> {
    at: *const E,
    step: usize,
    width: usize,
}

/// The product of `m x k` and `k x n`. `M` rows of two vectors of `V` elements, `N` in all, are a full tile.
///
/// # Safety
/// The matrices lie within memory that `a` and `b` may read, of `b` the first `b_len` elements, and `out` may write.
#[inline(always)]
pub(super) unsafe fn product<B: Backend, const M: usize, const N: usize, const V: usize, const K: usize>(
    [m, n, k]: [usize; 3],
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    [a_len, b_len]: [usize; 2],
    out: Out<B::Elem>,
) {
    // In half instructions for each term, roughly: five for a vector of a row, three to transpose an element of a panel.
    let work = |rows: usize, columns: usize, panel: Walk<B::Elem>| {
        5 * rows * columns.div_ceil(V) + if panel.side == 1 { 0 } else { 3 * columns }
    };
    // An element of the result takes ten to get to a column.
    let columns_of_out = 10 * m * n / k.min(K);
    let transposed = work(n, m, a) + columns_of_out < work(m, n, b);
    let straight = ([m, n, k], a, b, b_len, out);
    let turned = ([n, m, k], b, a, a_len, Out { row: out.col, col: out.row, ..out });
    // SAFETY: the caller's promise; the transposed product has the transposed operands.
    unsafe {
        // Two copies of all that is called here know which distances are 1.
        if ONCE {
            columns::<B, M, N, V, K>(if transposed { turned } else { straight });
        } else if transposed {
            columns::<B, M, N, V, K>(turned);
        } else {
            columns::<B, M, N, V, K>(straight);
        }
    }
}

/// The arguments of [`columns`]: sizes, operands, the length of `b`, and the result.
type Operands<E> = ([usize; 3], Walk<E>, Walk<E>, usize, Out<E>);

/// # Safety
/// As [`product`].
#[inline(always)]
unsafe fn columns<B: Backend, const M: usize, const N: usize, const V: usize, const K: usize>(
    ([m, n, k], a, b, b_len, out): Operands<B::Elem>,
) {
    let mut j = 0;
    // SAFETY: panels stay within the first `n` columns.
    unsafe {
        while n - j > V {
            let width = N.min(n - j);
            terms::<B, M, N, V, K>([m, width, k], a, b.skip(j), b_len - j * b.side, out.skip(0, j));
            j += width;
        }
        if j < n {
            terms::<B, M, V, V, K>([m, n - j, k], a, b.skip(j), b_len - j * b.side, out.skip(0, j));
        }
    }
}

/// The product for one panel of at most `N` columns.
///
/// # Safety
/// As [`product`].
#[inline(always)]
unsafe fn terms<B: Backend, const M: usize, const N: usize, const V: usize, const K: usize>(
    [m, width, k]: [usize; 3],
    a: Walk<B::Elem>,
    b: Walk<B::Elem>,
    b_len: usize,
    out: Out<B::Elem>,
) {
    // How many rows of `b` hold `N` elements from the panel's first column on, be they the panel's or the next row's.
    let whole = if b.side == 1 && b_len >= N { k.min((b_len - N) / b.step.max(1) + 1) } else { 0 };
    // They are read in place unless so few that turning to the result twice costs more than a copy of them all.
    let in_place = whole >= K || 8 * (k - whole) <= whole;
    // SAFETY: tiles read `N` elements of the first `whole` rows in place, and of the others from the copy.
    unsafe {
        let mut done = 0;
        if in_place {
            rows::<B, M, N, V>(m, whole, a, Panel { at: b.at, step: b.step, width }, out);
            done = whole;
        }
        let mut copy = Aligned([const { MaybeUninit::<[B::Elem; N]>::uninit() }; K]);
        let copy = &mut copy.0;
        while done < k {
            // A panel that is used once only shares the cache with what it is made of.
            let count = (if m > M { K } else { K / 2 }).min(k - done);
            transpose(b.at.add(done * b.step), b, width, copy.get_unchecked_mut(..count), has_avx::<B, V>());
            let a = Walk { at: a.at.add(done * a.step), ..a };
            let keep = out.keep || done > 0;
            rows::<B, M, N, V>(m, count, a, Panel { at: copy.as_ptr().cast(), step: N, width }, Out { keep, ..out });
            done += count;
        }
    }
}

/// Copies `width` columns of `b` from the row at `from` on, as many rows as there is room for, with zeros behind them.
///
/// # Safety
/// They lie within memory that `b` may read. The machine has AVX if that is said.
#[inline(always)]
unsafe fn transpose<E: Real, const N: usize>(
    from: *const E,
    b: Walk<E>,
    width: usize,
    to: &mut [MaybeUninit<[E; N]>],
    has_avx: bool,
) {
    if width < N {
        to.iter_mut().for_each(|row| *row = MaybeUninit::new([E::ZERO; N]));
    }
    let from = Out { at: from.cast_mut(), row: b.step, col: b.side, keep: false };
    let to_matrix = Out { at: to.as_mut_ptr().cast(), row: N, col: 1, keep: false };
    // SAFETY: the caller's promise; `to` has rows of `N` elements.
    unsafe { copy_matrix([to.len(), width], from, to_matrix, has_avx) };
}

/// Whether the machine of a tile with vectors of `V` elements has AVX.
#[inline(always)]
fn has_avx<B: Backend, const V: usize>() -> bool {
    cfg!(target_arch = "x86_64") && V * size_of::<B::Elem>() >= 32
}

/// The product for one panel, whose `k` rows of `N` elements can be read.
///
/// # Safety
/// As [`product`].
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn rows<B: Backend, const M: usize, const N: usize, const V: usize>(
    m: usize,
    k: usize,
    a: Walk<B::Elem>,
    b: Panel<B::Elem>,
    out: Out<B::Elem>,
) {
    let mut i = 0;
    // SAFETY: tiles stay within the first `m` rows.
    unsafe {
        // A row by itself takes as long as four.
        if M == 8 && m > 8 && m % 8 == 1 {
            either_tile::<B, 9, N, V>(k, a, b, out);
            i = 9;
        }
        while i + M <= m {
            either_tile::<B, M, N, V>(k, a.skip(i), b, out.skip(i, 0));
            i += M;
        }
        if i + 4 <= m {
            either_tile::<B, 4, N, V>(k, a.skip(i), b, out.skip(i, 0));
            i += 4;
        }
        if i + 2 <= m {
            either_tile::<B, 2, N, V>(k, a.skip(i), b, out.skip(i, 0));
            i += 2;
        }
        if i < m {
            either_tile::<B, 1, N, V>(k, a.skip(i), b, out.skip(i, 0));
        }
    }
}

/// The tile, by way of a copy of the result where it is no `M x N` elements in rows.
///
/// # Safety
/// As [`tile`], for `b.width` columns of the result.
#[inline(always)]
unsafe fn either_tile<B: Backend, const M: usize, const N: usize, const V: usize>(
    k: usize,
    a: Walk<B::Elem>,
    b: Panel<B::Elem>,
    out: Out<B::Elem>,
) {
    // SAFETY: the caller's promise; the copy has `M x N` elements.
    unsafe {
        if b.width == N && out.col == 1 {
            return strided_tile::<B, M, N, V>(k, a, b, out);
        }
        let mut copy = Aligned([[B::Elem::ZERO; N]; M]);
        let copy = &mut copy.0;
        let in_copy = Out { at: copy.as_mut_ptr().cast(), row: N, col: 1, keep: out.keep };
        if out.keep {
            copy_matrix([M, b.width], out, in_copy, has_avx::<B, V>());
        }
        strided_tile::<B, M, N, V>(k, a, b, in_copy);
        copy_matrix([M, b.width], in_copy, out, has_avx::<B, V>());
    }
}

/// Three copies of the tile: where `a`'s rows are neighbours their places are constants, where its columns are, four terms
/// share the steps to the next.
///
/// # Safety
/// As [`tile`].
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
unsafe fn strided_tile<B: Backend, const M: usize, const N: usize, const V: usize>(
    k: usize,
    a: Walk<B::Elem>,
    b: Panel<B::Elem>,
    out: Out<B::Elem>,
) {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        if M < 4 || ONCE {
            tile::<B, M, N, V, 1, M>(k, a, b, out);
        } else if a.side == 1 && multiplies_in_memory::<B, V>() {
            tile::<B, M, N, V, 2, 3>(k, Walk { side: 1, ..a }, b, out);
        } else if a.side == 1 {
            tile::<B, M, N, V, 2, M>(k, Walk { side: 1, ..a }, b, out);
        } else if a.step == 1 {
            tile::<B, M, N, V, 4, 3>(k, Walk { step: 1, ..a }, b, out);
        } else {
            tile::<B, M, N, V, 1, 3>(k, a, b, out);
        }
    }
}

/// Whether each product of a tile takes its element of `a` from memory, so that there has to be a pointer to it. Of fewer pointers than
/// one for three rows the compiler computes these in vectors, which takes the place of sums.
#[inline(always)]
fn multiplies_in_memory<B: Backend, const V: usize>() -> bool {
    V * size_of::<B::Elem>() == 64 && !is_fused::<B>()
}

/// `M x N` elements of the product in registers, `U` terms in each turn of the loop. `S` rows of `a` share a pointer, since an
/// instruction can add once or twice the distance between rows to it.
///
/// # Safety
/// `k` columns of `M` rows of `a`, `k` rows of `N` neighbours of `b`, and `M` rows of `N` neighbours of `out` lie within
/// their memory.
#[inline(always)]
unsafe fn tile<B: Backend, const M: usize, const N: usize, const V: usize, const U: usize, const S: usize>(
    k: usize,
    a: Walk<B::Elem>,
    b: Panel<B::Elem>,
    out: Out<B::Elem>,
) {
    let mut sums = [[B::Elem::ZERO; N]; M];
    let mut at: ([_; M], _) = (core::array::from_fn(|row| a.at.wrapping_add(row / S * S * a.side)), b.at);
    // SAFETY: every access is one of those that the caller promised.
    unsafe {
        if out.keep {
            for (i, row) in sums.iter_mut().enumerate() {
                *row = *out.at.add(i * out.row).cast();
            }
        }
        let mut left = k;
        while left >= U {
            at = terms_from::<B, M, N, V, U, S>(&mut sums, at, a, b.step);
            left -= U;
        }
        if U > 1 {
            for _ in 0..left {
                at = terms_from::<B, M, N, V, 1, S>(&mut sums, at, a, b.step);
            }
        }
        for (i, row) in sums.iter().enumerate() {
            *out.at.add(i * out.row).cast() = *row;
        }
    }
}

/// The places in `a` of every `S`-th row, and in `b`.
type Places<E, const M: usize> = ([*const E; M], *const E);

/// `U` terms from these places on; returns those of the next term. The pointers move past the last element at most once, and by
/// `wrapping_add`.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn terms_from<B: Backend, const M: usize, const N: usize, const V: usize, const U: usize, const S: usize>(
    sums: &mut [[B::Elem; N]; M],
    (mut a_at, b_at): Places<B::Elem, M>,
    a: Walk<B::Elem>,
    b_step: usize,
) -> Places<B::Elem, M> {
    let b_at = opaque(b_at);
    a_at.iter_mut().step_by(S).for_each(|at| *at = opaque(*at));
    for u in 0..U {
        let a_at = core::array::from_fn(|row| a_at[row / S * S].wrapping_add(row % S * a.side + u * a.step));
        // SAFETY: the caller's promise.
        unsafe { term::<B, M, N, V>(sums, a_at, b_at.wrapping_add(u * b_step)) };
    }
    (a_at.map(|at| at.wrapping_add(U * a.step)), b_at.wrapping_add(U * b_step))
}

/// The pointer, but the compiler does not see that: it would keep another one for each row and each term, of which there are more than
/// registers.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction, so no access")]
fn opaque<T>(mut pointer: *const T) -> *const T {
    // SAFETY: the pointer is what it was.
    unsafe { core::arch::asm!("/* {} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags)) };
    pointer
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn opaque<T>(pointer: *const T) -> *const T {
    pointer
}

/// One term of all elements of the tile.
///
/// # Safety
/// An element of each of `M` rows of `a` can be read, and `N` neighbours of `b`.
#[inline(always)]
unsafe fn term<B: Backend, const M: usize, const N: usize, const V: usize>(
    sums: &mut [[B::Elem; N]; M],
    a: [*const B::Elem; M],
    b: *const B::Elem,
) {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if super::tile::is_single::<B>() && N.is_multiple_of(4) {
        use core::arch::wasm32::{f32x4_add, f32x4_mul, v128_load, v128_load32_splat, v128_store};

        // SAFETY: the caller's promise. Vectors need not be aligned.
        unsafe {
            let vectors = core::array::from_fn::<_, N, _>(|j| v128_load(b.add(j / 4 * 4).cast()));
            for (row, a) in sums.iter_mut().zip(a) {
                let a_value = v128_load32_splat(a.cast());
                for (sum, &b_values) in row.as_chunks_mut::<4>().0.iter_mut().zip(vectors.iter().step_by(4)) {
                    let sum = core::ptr::from_mut(sum).cast();
                    v128_store(sum, f32x4_add(v128_load(sum), f32x4_mul(a_value, b_values)));
                }
            }
        }
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's promise; tiles for vectors of so many elements run on machines that have them.
    unsafe {
        use core::arch::x86_64 as x86;

        match (super::is_ours::<B>(), size_of::<B::Elem>(), V) {
            (true, 4, 16) => return vector_term::<x86::__m512, B, M, N>(sums, a, b),
            (true, 4, 8) => return vector_term::<x86::__m256, B, M, N>(sums, a, b),
            (true, 8, 8) => return vector_term::<x86::__m512d, B, M, N>(sums, a, b),
            (true, 8, 4) => return vector_term::<x86::__m256d, B, M, N>(sums, a, b),
            _ => {}
        }
    }
    // SAFETY: the caller's promise.
    let b_row: [B::Elem; N] = unsafe { *b.cast() };
    for (row, a) in sums.iter_mut().zip(a) {
        // SAFETY: the caller's promise.
        let a_value = unsafe { *a };
        for (sum, &b_value) in row.iter_mut().zip(&b_row) {
            *sum = B::mul_add(a_value, b_value, *sum);
        }
    }
}

/// The same in vectors. Of arrays the compiler makes them, too, but it loads more at a time than there are registers for.
///
/// # Safety
/// As [`term`]; the machine has the vectors, of elements of this size.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn vector_term<X: Vector, B: Backend, const M: usize, const N: usize>(
    sums: &mut [[B::Elem; N]; M],
    a: [*const B::Elem; M],
    b: *const B::Elem,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let b_row: [X; 2] =
            core::array::from_fn(|j| if j * X::LANES < N { X::load(b.add(j * X::LANES).cast()) } else { X::zero() });
        for (row, a) in sums.iter_mut().zip(a) {
            for (sum, b_value) in row.chunks_exact_mut(X::LANES).zip(b_row) {
                let sum = sum.as_mut_ptr().cast();
                X::store(sum, X::mul_add(is_fused::<B>(), a.cast(), b_value, X::load(sum)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    /// The copies of the tile that only optimized builds have.
    #[test]
    fn terms_in_turns_are_terms_one_by_one() {
        let values = |n: u32| -> std::vec::Vec<f32> { (0..n).map(|i| (i * 7919 % 1009) as f32 / 97.0).collect() };
        let (a, b) = (values(4 * 11), values(11 * 8));
        for k in [1, 2, 3, 4, 7, 8, 11] {
            for (side, step) in [(11, 1), (1, 4)] {
                let run = |tile: unsafe fn(usize, Walk<f32>, Panel<f32>, Out<f32>)| {
                    let mut c = [0.5_f32; 32];
                    let a = Walk { at: a.as_ptr(), side, step };
                    let b = Panel { at: b.as_ptr(), step: 8, width: 8 };
                    // SAFETY: `a` has 4 x 11 elements either way, `b` 11 x 8, `c` 4 x 8.
                    unsafe { tile(k, a, b, Out { at: c.as_mut_ptr(), row: 8, col: 1, keep: true }) };
                    c.map(f32::to_bits)
                };
                let one_by_one = run(|k, a, b, c| unsafe { tile::<Strict<f32>, 4, 8, 4, 1, 1>(k, a, b, c) });
                assert_eq!(
                    one_by_one,
                    run(|k, a, b, c| unsafe { tile::<Strict<f32>, 4, 8, 4, 2, 4>(k, a, b, c) }),
                    "{k}"
                );
                assert_eq!(
                    one_by_one,
                    run(|k, a, b, c| unsafe { tile::<Strict<f32>, 4, 8, 4, 4, 3>(k, a, b, c) }),
                    "{k}"
                );
            }
        }
    }
}
