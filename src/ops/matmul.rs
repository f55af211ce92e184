//! Matrix product with NumPy's rules: `[..., m, k]` by `[..., k, n]` gives `[..., m, n]` with the leading axes broadcast to
//! one another; a vector on the left stands for one row, on the right for one column, and its axis is dropped.
//!
//! `da = dy bᵀ` and `db = aᵀ dy`, summed over the matrices that the operand was broadcast to. Every element has one
//! accumulator, to which products are added in ascending order of `k`.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec, Terms};
use crate::backend::{Backend, Matrix, Real, Start};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R2, R3, Shape, broadcast};

/// Leading axes at the most.
const LEADING: usize = 3;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &table::<B, false>() }
}

/// The table of `a bᵀ`, for a `b` that lies transposed in memory: `[..., n, k]`.
#[must_use]
pub const fn op_nt<B: Backend>() -> &'static Op<B> {
    const { &table::<B, true>() }
}

const fn table<B: Backend, const T: bool>() -> Op<B> {
    let a = Gradient::kernel(gradient_a::<B, T>, Reads::input(1));
    let b = Gradient::kernel(gradient_b::<B, T>, Reads::input(0));
    Op::new("matmul", forward::<B, T>, [a, b, Gradient::None]).terms(Terms::Row)
}

/// See the module for the output's shape.
///
/// # Errors
/// When an operand is a scalar, the inner lengths differ, or the leading axes do not broadcast to one another.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    let op = "matmul";
    if a.rank() == 0 || b.rank() == 0 {
        let (operand, found) = if a.rank() == 0 { ("the left operand", a) } else { ("the right operand", b) };
        return Err(ShapeError::Rank { op, operand, expected: "at least one axis", found });
    }
    let (m, k) = if a.rank() == 1 { (1, a.axis(0)) } else { (a.axis_from_end(1), a.axis_from_end(0)) };
    let (b_rows, n) = if b.rank() == 1 { (b.axis(0), 1) } else { (b.axis_from_end(1), b.axis_from_end(0)) };
    if k != b_rows {
        let (what, against) = ("columns of the left operand are", "rows of the right operand");
        return Err(ShapeError::Length { op, what, found: k, against, expected: b_rows });
    }
    let a_leading = a.prefix(a.rank().saturating_sub(2));
    let b_leading = b.prefix(b.rank().saturating_sub(2));
    let Some(leading) = broadcast(a_leading, b_leading) else {
        return Err(ShapeError::Broadcast { op, a, b });
    };
    let mut shape = leading;
    if a.rank() > 1 {
        shape = shape.push(m);
    }
    if b.rank() > 1 {
        shape = shape.push(n);
    }
    // Words: m, k, n; the leading lengths of the output from the last; for each operand a bit for every stretched one.
    let mut args = Args::new(&[m, k, n]);
    let mut axis = 0;
    while axis < LEADING {
        let length = leading.axis_from_end(axis);
        args.0[3 + axis] = length as u32;
        args.0[6] |= ((a_leading.axis_from_end(axis) != length) as u32) << axis;
        args.0[7] |= ((b_leading.axis_from_end(axis) != length) as u32) << axis;
        axis += 1;
    }
    Ok(Spec::new(shape).args(args))
}

/// Of [`op_nt`]: as [`spec`] with the last two axes of `b` exchanged.
///
/// # Errors
/// As [`spec`], and when `b` has less than two axes.
pub const fn spec_nt(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    if b.rank() < 2 {
        let (op, operand, expected) = ("matmul", "the transposed operand", "at least two axes");
        return Err(ShapeError::Rank { op, operand, expected, found: b });
    }
    let (rows, columns) = (b.axis_from_end(0), b.axis_from_end(1));
    spec(a, b.prefix(b.rank() - 2).push(rows).push(columns))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a b` of two matrices.
    #[track_caller]
    pub const fn matmul<const M: usize, const K: usize, const O: usize>(
        &mut self,
        a: Var<R2<M, K>>,
        b: Var<R2<K, O>>,
    ) -> Var<R2<M, O>> {
        self.record("", op(), &[a.id(), b.id()], spec(a.shape(), b.shape()))
    }

    /// `a bᵀ` of two matrices.
    #[track_caller]
    pub const fn matmul_nt<const M: usize, const K: usize, const O: usize>(
        &mut self,
        a: Var<R2<M, K>>,
        b: Var<R2<O, K>>,
    ) -> Var<R2<M, O>> {
        self.record("", op_nt(), &[a.id(), b.id()], spec_nt(a.shape(), b.shape()))
    }

    /// `a b` of each of `A` pairs of matrices.
    #[track_caller]
    pub const fn bmm<const A: usize, const M: usize, const K: usize, const O: usize>(
        &mut self,
        a: Var<R3<A, M, K>>,
        b: Var<R3<A, K, O>>,
    ) -> Var<R3<A, M, O>> {
        self.record("", op(), &[a.id(), b.id()], spec(a.shape(), b.shape()))
    }
}

crate::tape::methods! {
    /// The matrix product, by NumPy's rules: of vectors, matrices, batches.
    matmul(a, b)() => (op(), spec(a, b));
    /// `a bᵀ`: as `matmul`, of a `b` whose last two axes, of at least two, are exchanged.
    matmul_nt(a, b)() => (op_nt(), spec_nt(a, b))
}

/// The matrix `b` of `k` rows and `n` columns, as it is or transposed in memory.
fn right<E, const T: bool>(data: &[E], k: usize, n: usize) -> Matrix<'_, E> {
    if T { Matrix { data, row: 1, col: k } } else { Matrix { data, row: n, col: 1 } }
}

/// Calls `each` with the indices of the matrices of `a`, `b` and `y` that belong together.
fn for_each_pair(args: &Args, mut each: impl FnMut(usize, usize, usize)) {
    let [_, _, _, last, middle, first, a_stretched, b_stretched, ..] = args.lengths();
    let strides = |stretched: usize| {
        let along = |axis: usize, length: usize| {
            if stretched >> axis & 1 == 1 { 1 } else { length }
        };
        let step = |axis: usize, stride: usize| {
            if stretched >> axis & 1 == 1 { 0 } else { stride }
        };
        let (l, m) = (along(0, last), along(1, middle));
        [step(2, l * m), step(1, l), step(0, 1)]
    };
    let ([a2, a1, a0], [b2, b1, b0]) = (strides(a_stretched), strides(b_stretched));
    let mut y = 0;
    for i in 0..first {
        for j in 0..middle {
            for l in 0..last {
                each(i * a2 + j * a1 + l * a0, i * b2 + j * b1 + l * b0, y);
                y += 1;
            }
        }
    }
}

/// The slice of matrix `i` of `len` elements each.
fn part<E>(x: &[E], i: usize, len: usize) -> &[E] {
    x.get(i * len..(i + 1) * len).unwrap_or_default()
}

fn part_mut<E>(x: &mut [E], i: usize, len: usize) -> &mut [E] {
    x.get_mut(i * len..(i + 1) * len).unwrap_or_default()
}

fn forward<B: Backend, const T: bool>(call: ForwardCall<'_, B::Elem>) {
    let [m, k, n, ..] = call.args.lengths();
    let [a, b, _] = call.x;
    for_each_pair(call.args, |i, j, l| {
        let a = Matrix { data: part(a, i, m * k), row: k, col: 1 };
        let b = right::<_, T>(part(b, j, k * n), k, n);
        B::matmul([m, n, k], a, b, part_mut(call.y, l, m * n), n, Start::Zero);
    });
}

fn gradient_a<B: Backend, const T: bool>(call: BackwardCall<'_, B::Elem>) {
    let [m, k, n, ..] = call.args.lengths();
    let (b, dy) = (call.x[1], call.dy);
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    for_each_pair(call.args, |i, j, l| {
        let dy = Matrix { data: part(dy, l, m * n), row: n, col: 1 };
        let Matrix { data, row, col } = right::<_, T>(part(b, j, k * n), k, n);
        let b = Matrix { data, row: col, col: row };
        B::matmul([m, k, n], dy, b, part_mut(call.dx, i, m * k), k, Start::Output);
    });
}

fn gradient_b<B: Backend, const T: bool>(call: BackwardCall<'_, B::Elem>) {
    let [m, k, n, ..] = call.args.lengths();
    let (a, dy) = (call.x[0], call.dy);
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    for_each_pair(call.args, |i, j, l| {
        let (a, dy) = (part(a, i, m * k), part(dy, l, m * n));
        let db = part_mut(call.dx, j, k * n);
        if T {
            let (dy, a) = (Matrix { data: dy, row: 1, col: n }, Matrix { data: a, row: k, col: 1 });
            B::matmul([n, k, m], dy, a, db, k, Start::Output);
        } else {
            let (a, dy) = (Matrix { data: a, row: 1, col: k }, Matrix { data: dy, row: n, col: 1 });
            B::matmul([k, n, m], a, dy, db, n, Start::Output);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([2, 2]), Shape::new([2, 2])).unwrap();
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let gradients: [&[f64]; 2] = [&[11.0, 15.0, 11.0, 15.0], &[4.0, 4.0, 6.0, 6.0]];
        check(op(), spec, &[&a, &b], &[19.0, 22.0, 43.0, 50.0], &gradients);
    }

    #[test]
    fn a_transposed_operand_gives_what_it_gives_as_it_is() {
        let spec = spec_nt(Shape::new([2, 2]), Shape::new([2, 2])).unwrap();
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 7.0, 6.0, 8.0]);
        let gradients: [&[f64]; 2] = [&[11.0, 15.0, 11.0, 15.0], &[4.0, 6.0, 4.0, 6.0]];
        check(op_nt(), spec, &[&a, &b], &[19.0, 22.0, 43.0, 50.0], &gradients);
    }

    #[test]
    fn shapes_follow_numpy() {
        let cases: [(&[usize], &[usize], &[usize]); 6] = [
            (&[5], &[5, 3], &[3]),
            (&[7], &[7], &[]),
            (&[2, 3], &[3], &[2]),
            (&[2, 3, 4], &[4, 5], &[2, 3, 5]),
            (&[3, 4], &[2, 4, 5], &[2, 3, 5]),
            (&[2, 3, 1, 5], &[1, 3, 5, 2], &[2, 3, 1, 2]),
        ];
        for (a, b, y) in cases {
            let spec = spec(Shape::from_slice(a), Shape::from_slice(b)).unwrap();
            assert_eq!(spec.shape, Shape::from_slice(y), "{a:?} by {b:?}");
        }
        let error = spec(Shape::new([2, 3]), Shape::new([4, 2])).unwrap_err();
        let text = "matmul: columns of the left operand are 3, rows of the right operand 4";
        assert_eq!(std::format!("{error}"), text);
    }
}
