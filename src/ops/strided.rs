//! What permute, slice, `broadcast_to`, pad and gather share: two tensors, one dense, the other walked by strides along the
//! first one's axes.
//!
//! Neighbouring axes that are one run of memory on both sides are joined, so that a slice of rows copies whole blocks.

use super::{Args, BackwardCall, ForwardCall, axes};
use crate::backend::{Backend, Real};
use crate::shape::{MAX_RANK, Shape};

/// Words that every operation here has: lengths from the last axis without the outermost, which ends with the data;
/// strides from the last but one; the offset. Behind them stands the last axis' stride, or where that is 1, what the
/// operation needs.
pub(super) const WORDS: usize = 2 * MAX_RANK - 1;

/// Arguments for a dense tensor of shape `dense`, whose neighbours along each axis lie `strides` apart in the other tensor,
/// from `offset` on. Where `contiguous`, the last stride is 1, and the words behind [`WORDS`] are free.
pub(super) const fn args(dense: Shape, strides: [usize; MAX_RANK], offset: usize, contiguous: bool) -> Args {
    // The first group is one of no axes, which a contiguous axis joins and another replaces.
    let (mut lengths, mut steps, mut groups) = ([1_usize; MAX_RANK + 1], [0_usize; MAX_RANK + 1], 0);
    steps[0] = 1;
    let mut axis = dense.rank();
    while axis > 0 {
        axis -= 1;
        let (length, stride) = (dense.axis(axis), strides[axis]);
        if length == 1 {
            continue;
        }
        if stride == steps[groups].saturating_mul(lengths[groups]) {
            lengths[groups] = lengths[groups].saturating_mul(length);
        } else {
            if lengths[groups] != 1 || contiguous {
                groups += 1;
            }
            (lengths[groups], steps[groups]) = (length, stride);
        }
    }
    let mut args = Args::NONE;
    let mut i = 0;
    while i < MAX_RANK - 1 {
        args.0[i] = lengths[i] as u32;
        args.0[MAX_RANK - 1 + i] = steps[i + 1] as u32;
        i += 1;
    }
    args.0[WORDS - 1] = offset as u32;
    if !contiguous {
        args.0[WORDS] = steps[0] as u32;
    }
    args
}

/// As [`args`], for a tensor `x` that is walked by its own strides in another order: axis `i` of `dense` is its axis `of[i]`.
pub(super) const fn permuted(x: Shape, dense: Shape, of: [usize; MAX_RANK]) -> Args {
    let (own, mut strides, mut axis) = (axes::strides(x), [0; MAX_RANK], 0);
    while axis < dense.rank() {
        strides[axis] = own[of[axis]];
        axis += 1;
    }
    args(dense, strides, 0, false)
}

/// The rows of the dense tensor along its last axis, each with where it starts in the other tensor.
pub(super) struct Rows {
    lengths: [usize; MAX_RANK - 1],
    strides: [usize; MAX_RANK - 1],
    index: [usize; MAX_RANK - 1],
    at: usize,
    stride: usize,
}

impl Rows {
    pub(super) fn new(args: &Args) -> Self {
        let [.., stride, _, _] = args.lengths();
        Self { stride, ..Self::contiguous(args) }
    }

    /// Rows whose elements are neighbours in both tensors.
    pub(super) fn contiguous(args: &Args) -> Self {
        let [a, b, c, d, i, j, k, l, at, ..] = args.lengths();
        Self { lengths: [a, b, c, d], strides: [i, j, k, l], index: [0; MAX_RANK - 1], at, stride: 1 }
    }

    /// The length of the rows.
    pub(super) fn len(&self) -> usize {
        self.lengths[0]
    }

    /// How far apart the elements of a row lie in the other tensor.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }
}

impl Iterator for Rows {
    type Item = usize;

    /// Where the next row starts; the caller stops with the dense tensor.
    fn next(&mut self) -> Option<usize> {
        let at = self.at;
        // Index and stride of an axis are stored one before its length; the outermost has none.
        let inner = self.lengths.iter().skip(1).copied().chain([usize::MAX]);
        for ((index, &stride), length) in self.index.iter_mut().zip(&self.strides).zip(inner) {
            *index += 1;
            self.at += stride;
            if *index < length {
                break;
            }
            self.at -= stride * *index;
            *index = 0;
        }
        Some(at)
    }
}

/// Calls `each` with every element of the dense tensor and its partner in `x`.
#[inline(always)]
fn gather<E: Real>(rows: Rows, x: &[E], dense: &mut [E], each: impl Fn(&mut E, E)) {
    let (len, stride) = (rows.len(), rows.stride());
    for (row, at) in dense.chunks_mut(len.max(1)).zip(rows) {
        let x = x.get(at..).unwrap_or_default();
        match (stride, x.first()) {
            (1, _) => row.iter_mut().zip(x).for_each(|(y, &x)| each(y, x)),
            (0, Some(&x)) => row.iter_mut().for_each(|y| each(y, x)),
            _ => row.iter_mut().zip(x.iter().step_by(stride.max(1))).for_each(|(y, &x)| each(y, x)),
        }
    }
}

/// Calls `each` with the partner in `x` of every element of the dense tensor, and that element, in ascending order.
#[inline(always)]
fn scatter<E: Real>(rows: Rows, x: &mut [E], dense: &[E], each: impl Fn(&mut E, E)) {
    let (len, stride) = (rows.len(), rows.stride());
    for (row, at) in dense.chunks(len.max(1)).zip(rows) {
        let x = x.get_mut(at..).unwrap_or_default();
        match (stride, x.first_mut()) {
            (0, Some(x)) => row.iter().for_each(|&y| each(x, y)),
            (1, _) => x.iter_mut().zip(row).for_each(|(x, &y)| each(x, y)),
            _ => x.iter_mut().step_by(stride.max(1)).zip(row).for_each(|(x, &y)| each(x, y)),
        }
    }
}

/// A forward kernel: each output is its partner in `x`.
pub(super) fn copy<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    gather(Rows::new(call.args), call.x[0], call.y, |y, x| *y = x);
}

/// The backward kernel of [`copy`] where each element of `x` has one partner.
pub(super) fn gradient_of_all<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let add = call.add;
    scatter(Rows::new(call.args), call.dx, call.dy, |dx, dy| *dx = if add { *dx + dy } else { dy });
}

/// The same where each has one partner or none.
pub(super) fn gradient_of_some<B: Backend>(mut call: BackwardCall<'_, B::Elem>) {
    start(&mut call);
    gradient_of_all::<B>(call);
}

/// The same where each has any number of partners; their gradients are added in ascending order.
pub(super) fn gradient_of_any<B: Backend>(mut call: BackwardCall<'_, B::Elem>) {
    start(&mut call);
    scatter(Rows::new(call.args), call.dx, call.dy, |dx, dy| *dx += dy);
}

/// Clears a gradient that nothing has been written to.
pub(super) fn start<E: Real>(call: &mut BackwardCall<'_, E>) {
    if !call.add {
        call.dx.fill(E::ZERO);
    }
}

/// A forward kernel the other way round: each input goes to its partner in `y`. The last stride is 1.
pub(super) fn spread<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    scatter(Rows::contiguous(call.args), call.y, call.x[0], |y, x| *y = x);
}

/// The backward kernel of [`spread`].
pub(super) fn gradient_of_spread<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let add = call.add;
    gather(Rows::contiguous(call.args), call.dy, call.dx, |dx, dy| *dx = if add { *dx + dy } else { dy });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn walk(dense: &[usize], strides: &[usize], contiguous: bool) -> (Vec<usize>, usize) {
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        let dense = Shape::from_slice(dense);
        let args = args(dense, all, 3, contiguous);
        let rows = if contiguous { Rows::contiguous(&args) } else { Rows::new(&args) };
        let (len, stride) = (rows.len(), rows.stride());
        (rows.take(dense.len() / len).flat_map(|at| (0..len).map(move |i| at + i * stride)).collect(), len)
    }

    #[test]
    fn the_other_tensor_is_walked_in_the_order_of_the_dense_one() {
        let cases: [(&[usize], &[usize], bool, usize); 7] = [
            (&[2, 3, 2, 2, 3], &[400, 100, 20, 7, 2], false, 3),
            (&[2, 3, 2, 2, 3], &[400, 100, 20, 7, 1], true, 3),
            (&[2, 3, 2, 2, 1], &[400, 100, 20, 7, 1], true, 1),
            (&[2, 3, 2, 2, 1], &[400, 100, 20, 7, 1], false, 2),
            (&[2, 3, 4], &[100, 4, 1], false, 12),
            (&[2, 3, 4], &[0, 0, 1], false, 4),
            (&[4, 1, 3], &[0, 0, 0], false, 12),
        ];
        for (lengths, strides, contiguous, len) in cases {
            let dense = Shape::from_slice(lengths);
            let at = |i: usize| {
                let index = |axis: usize| i / dense.product(axis + 1, dense.rank()) % dense.axis(axis);
                3 + strides.iter().enumerate().map(|(axis, stride)| index(axis) * stride).sum::<usize>()
            };
            let want = ((0..dense.len()).map(at).collect(), len);
            assert_eq!(
                walk(lengths, strides, contiguous),
                want,
                "{lengths:?} by {strides:?}, contiguous: {contiguous}"
            );
        }
    }
}
