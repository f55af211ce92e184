//! What the operations of two operands share: walking an operand in the order of the output that it is broadcast to.

use super::Args;
use crate::shape::{MAX_RANK, Shape};

/// Arguments of a kernel with operands `a` and `b` that are broadcast to `y`. Words: the lengths of `y` from the last axis,
/// then for each operand a bit for every axis that it is stretched along.
pub(super) const fn args(a: Shape, b: Shape, y: Shape) -> Args {
    let mut args = Args::NONE;
    let mut axis = 0;
    while axis < MAX_RANK {
        let length = y.axis_from_end(axis);
        args.0[axis] = length as u32;
        args.0[MAX_RANK] |= ((a.axis_from_end(axis) != length) as u32) << axis;
        args.0[MAX_RANK + 1] |= ((b.axis_from_end(axis) != length) as u32) << axis;
        axis += 1;
    }
    args
}

/// Rows of the output along its last axis, each with where the operand's row starts.
pub(super) struct Rows {
    lengths: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
    index: [usize; MAX_RANK],
    at: usize,
}

impl Rows {
    /// The rows of operand `OPERAND`: 0 for `a`, 1 for `b`.
    pub(super) fn new<const OPERAND: usize>(args: &Args) -> Self {
        const { assert!(OPERAND < 2) };
        let stretched = args.0[MAX_RANK + OPERAND];
        let mut lengths = [1; MAX_RANK];
        let mut strides = [0; MAX_RANK];
        let mut stride = 1;
        for axis in 0..MAX_RANK {
            lengths[axis] = args.0[axis] as usize;
            if stretched >> axis & 1 == 0 {
                strides[axis] = stride;
                stride *= lengths[axis];
            }
        }
        Self { lengths, strides, index: [0; MAX_RANK], at: 0 }
    }

    /// The length of the output's rows; at least 1, so that it can split a slice.
    pub(super) fn len(&self) -> usize {
        self.lengths[0].max(1)
    }

    /// The distance between the operand's elements along a row: 0 where it is stretched.
    pub(super) fn stride(&self) -> usize {
        self.strides[0]
    }
}

impl Iterator for Rows {
    type Item = usize;

    /// Where the operand's next row starts; the caller stops with the output.
    fn next(&mut self) -> Option<usize> {
        let at = self.at;
        for axis in 1..MAX_RANK {
            self.index[axis] += 1;
            self.at += self.strides[axis];
            if self.index[axis] < self.lengths[axis] {
                break;
            }
            self.at -= self.strides[axis] * self.index[axis];
            self.index[axis] = 0;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::broadcast;

    #[test]
    fn an_operand_is_walked_in_the_order_of_the_output() {
        let (a, b) = (Shape::new([2, 3, 1, 5]), Shape::new([3, 4, 1]));
        let args = args(a, b, broadcast(a, b).unwrap());
        let rows: std::vec::Vec<_> = Rows::new::<0>(&args).take(24).collect();
        let want: std::vec::Vec<_> =
            (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |_| (i * 3 + j) * 5))).collect();
        assert_eq!(rows, want);
        let rows: std::vec::Vec<_> = Rows::new::<1>(&args).take(24).collect();
        let want: std::vec::Vec<_> = (0..2).flat_map(|_| (0..3).flat_map(|j| (0..4).map(move |k| j * 4 + k))).collect();
        assert_eq!(rows, want);
        assert_eq!((Rows::new::<0>(&args).stride(), Rows::new::<1>(&args).stride()), (1, 0));
    }
}
