//! Transposes in the vectors of x86-64.

use core::arch::x86_64 as x86;

/// Transposes a matrix of four or more rows and columns: row `i` of `from` becomes column `i` of `to`. It is done in blocks, of which
/// the last two in each direction may overlap.
///
/// # Safety
/// The machine has AVX. All elements can be read, and written.
#[inline(always)]
pub(crate) unsafe fn transpose(
    [rows, columns]: [usize; 2],
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    let blocks = match (rows >= 8, columns >= 8) {
        (true, true) => transpose_blocks::<8, 8>,
        (true, false) => transpose_blocks::<8, 4>,
        (false, true) => transpose_blocks::<4, 8>,
        (false, false) => transpose_blocks::<4, 4>,
    };
    // SAFETY: the caller's promise.
    unsafe { blocks([rows, columns], from, from_stride, to, to_stride) };
}

/// # Safety
/// As [`transpose`], for at least `R` rows and `C` columns.
#[inline(never)]
#[target_feature(enable = "avx")]
unsafe fn transpose_blocks<const R: usize, const C: usize>(
    [rows, columns]: [usize; 2],
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    to_stride: usize,
) {
    let mut j = 0;
    while j < columns {
        j = j.min(columns - C);
        let mut i = 0;
        while i < rows {
            // So the compiler does not keep a pointer to every line of a block, for which there are no registers.
            i = i.min(rows - R);
            // SAFETY: the caller's promise; the block lies within the matrix.
            unsafe {
                let (from, to) = (from.add(i * from_stride + j), to.add(j * to_stride + i));
                if R == 4 && C == 8 {
                    transpose_4_by_8(from, from_stride, to, to_stride);
                } else if R == 4 {
                    transpose_4(from, from_stride, to, to_stride);
                } else {
                    (0..C).step_by(4).for_each(|half| {
                        transpose_8_by_4(from.add(half), from_stride, to.add(half * to_stride), to_stride);
                    });
                }
            }
            i += R;
        }
        j += C;
    }
}

/// Four vectors whose halves are transposed each.
///
/// # Safety
/// The machine has AVX.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn transpose_halves([a, b, c, d]: [x86::__m256; 4]) -> [x86::__m256; 4] {
    use x86::{_mm256_shuffle_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps};

    let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
    let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
    [
        _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
        _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
        _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
        _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
    ]
}

/// # Safety
/// As [`transpose`], for these sizes.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn transpose_8_by_4(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use x86::{_mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_storeu_ps};

    // SAFETY: the caller's promise.
    unsafe {
        // Lines `i` and `i + 4` share a vector: halves need not be exchanged later.
        let lines = [0, 1, 2, 3].map(|i| {
            let at = |i: usize| _mm_loadu_ps(from.add(i * from_stride));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(at(i)), at(i + 4))
        });
        for (i, column) in transpose_halves(lines).into_iter().enumerate() {
            _mm256_storeu_ps(to.add(i * to_stride), column);
        }
    }
}

/// # Safety
/// As [`transpose`], for these sizes.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn transpose_4_by_8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use x86::{_mm_storeu_ps, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_loadu_ps};

    // SAFETY: the caller's promise.
    unsafe {
        let lines = [0, 1, 2, 3].map(|i| _mm256_loadu_ps(from.add(i * from_stride)));
        for (i, column) in transpose_halves(lines).into_iter().enumerate() {
            _mm_storeu_ps(to.add(i * to_stride), _mm256_castps256_ps128(column));
            _mm_storeu_ps(to.add((i + 4) * to_stride), _mm256_extractf128_ps::<1>(column));
        }
    }
}

/// Transposes a block of `4 x 4`, on every machine of the architecture.
///
/// # Safety
/// Four lines of four neighbours can be read, and written.
#[inline(always)]
pub(crate) unsafe fn transpose_4(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    use x86::{_mm_loadu_ps, _mm_movehl_ps, _mm_movelh_ps, _mm_storeu_ps, _mm_unpackhi_ps, _mm_unpacklo_ps};

    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| _mm_loadu_ps(from.add(i * from_stride)));
        let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
        _mm_storeu_ps(to, _mm_movelh_ps(ab, cd));
        _mm_storeu_ps(to.add(to_stride), _mm_movehl_ps(cd, ab));
        _mm_storeu_ps(to.add(2 * to_stride), _mm_movelh_ps(ab_high, cd_high));
        _mm_storeu_ps(to.add(3 * to_stride), _mm_movehl_ps(cd_high, ab_high));
    }
}
