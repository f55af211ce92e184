//! The products of others.

use gemm::Parallelism;

/// Sizes `m`, `n` and `k`; both operands with the distances between their rows and columns; what the output is multiplied by before
/// the product is added, which is 0 or 1; and the output, in rows.
pub(crate) type Their = fn([usize; 3], &[f32], [usize; 2], &[f32], [usize; 2], f32, &mut [f32]);

pub(crate) const THEIRS: [Their; 2] = [by_gemm, by_matrixmultiply];

fn check([m, n, k]: [usize; 3], a: &[f32], b: &[f32], c: &[f32]) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "operands fit the sizes");
}

fn signed(distances: [usize; 2]) -> [isize; 2] {
    distances.map(usize::cast_signed)
}

fn by_gemm(
    [m, n, k]: [usize; 3],
    a: &[f32],
    a_step: [usize; 2],
    b: &[f32],
    b_step: [usize; 2],
    keep: f32,
    c: &mut [f32],
) {
    check([m, n, k], a, b, c);
    let ([a_row, a_col], [b_row, b_col]) = (signed(a_step), signed(b_step));
    let (dst, row) = (c.as_mut_ptr(), n.cast_signed());
    let (a, b, add) = (a.as_ptr(), b.as_ptr(), keep != 0.0);
    // SAFETY: the operands are dense, in rows or in columns, and as long as the sizes say.
    unsafe {
        #[rustfmt::skip]
        gemm::gemm(
            m, n, k, dst, 1, row, add, a, a_col, a_row, b, b_col, b_row, keep, 1.0, false, false, false, Parallelism::None,
        );
    }
}

fn by_matrixmultiply(
    [m, n, k]: [usize; 3],
    a: &[f32],
    a_step: [usize; 2],
    b: &[f32],
    b_step: [usize; 2],
    keep: f32,
    c: &mut [f32],
) {
    check([m, n, k], a, b, c);
    let ([a_row, a_col], [b_row, b_col]) = (signed(a_step), signed(b_step));
    let (dst, row) = (c.as_mut_ptr(), n.cast_signed());
    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: as above.
    unsafe {
        matrixmultiply::sgemm(m, k, n, 1.0, a, a_row, a_col, b, b_row, b_col, keep, dst, row, 1);
    }
}
