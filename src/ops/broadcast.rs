//! What the operations of several operands share: walking each operand in the order of the output that it is broadcast to.

use super::Args;
use crate::backend::{Backend, Real};
use crate::shape::{MAX_RANK, Shape};

/// Arguments of a kernel with up to three operands that are broadcast to `y`. Words: the lengths of `y` from the last axis,
/// then for each operand a bit for every axis that it is stretched along. Words 8 to 11 are free for scalars.
///
/// Where nothing is stretched there is one row with all elements.
pub(super) const fn args(operands: &[Shape], y: Shape) -> Args {
    let mut args = Args::NONE;
    let mut whole = y.len() <= u32::MAX as usize;
    let mut i = 0;
    while i < operands.len() {
        whole = whole && operands[i].len() == y.len();
        i += 1;
    }
    let mut axis = 0;
    while axis < MAX_RANK {
        let length = if !whole {
            y.axis_from_end(axis)
        } else if axis == 0 {
            y.len()
        } else {
            1
        };
        args.0[axis] = length as u32;
        let mut i = 0;
        while i < operands.len() {
            args.0[MAX_RANK + i] |= ((!whole && operands[i].axis_from_end(axis) != length) as u32) << axis;
            i += 1;
        }
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
    /// The rows of operand `OPERAND`: 0 for the first.
    pub(super) fn new<const OPERAND: usize>(args: &Args) -> Self {
        const { assert!(OPERAND < 3) };
        Self::stretched(args, args.0[MAX_RANK + OPERAND])
    }

    /// The rows of an operand that is stretched along the axes that have a bit.
    fn stretched(args: &Args, stretched: u32) -> Self {
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

/// What an operand holds beside one row of the output.
#[derive(Clone, Copy)]
pub(super) enum Row<'a, E> {
    /// An element for each of the output's.
    Run(&'a [E]),
    /// One element for all of them.
    Same(E),
}

impl<E: Real> Row<'_, E> {
    fn first(self) -> E {
        match self {
            Self::Run(run) => run.first().copied().unwrap_or_default(),
            Self::Same(x) => x,
        }
    }
}

/// An operand in the order of the output; zeros where a kernel does not read it, so that its data is empty.
pub(super) struct Operand<'a, E> {
    data: &'a [E],
    rows: Rows,
}

impl<'a, E: Real> Operand<'a, E> {
    /// Operand `OPERAND`: 0 for the first.
    pub(super) fn new<const OPERAND: usize>(args: &Args, data: &'a [E]) -> Self {
        Self { data, rows: Rows::new::<OPERAND>(args) }
    }

    /// The output, which is not stretched.
    pub(super) fn output(args: &Args, data: &'a [E]) -> Self {
        Self { data, rows: Rows::stretched(args, 0) }
    }

    /// None.
    pub(super) fn none(args: &Args) -> Self {
        Self::output(args, &[])
    }
}

impl<'a, E: Real> Iterator for Operand<'a, E> {
    type Item = Row<'a, E>;

    fn next(&mut self) -> Option<Row<'a, E>> {
        let at = self.rows.next()?;
        let run = self.data.get(at..at + self.rows.len());
        Some(match run {
            Some(run) if self.rows.stride() > 0 => Row::Run(run),
            _ => Row::Same(self.data.get(at).copied().unwrap_or_default()),
        })
    }
}

/// Calls `f` for every item with the elements of two operands beside it.
#[inline(always)]
fn each<T, E: Copy>(items: impl Iterator<Item = T>, a: Row<'_, E>, b: Row<'_, E>, mut f: impl FnMut(T, E, E)) {
    match (a, b) {
        (Row::Run(a), Row::Run(b)) => items.zip(a).zip(b).for_each(|((item, &a), &b)| f(item, a, b)),
        (Row::Run(a), Row::Same(b)) => items.zip(a).for_each(|(item, &a)| f(item, a, b)),
        (Row::Same(a), Row::Run(b)) => items.zip(b).for_each(|(item, &b)| f(item, a, b)),
        (Row::Same(a), Row::Same(b)) => items.for_each(|item| f(item, a, b)),
    }
}

/// Replaces every element `x` of `data`, which has the shape of the output, by `f(a, b, x)`.
#[inline(always)]
pub(super) fn replace<E: Real>(data: &mut [E], a: Operand<'_, E>, b: Operand<'_, E>, f: impl Fn(E, E, E) -> E) {
    let len = a.rows.len();
    for ((data, a), b) in data.chunks_exact_mut(len).zip(a).zip(b) {
        each(data.iter_mut(), a, b, |x, a, b| *x = f(a, b, *x));
    }
}

/// Writes to (or with `add` adds to) the gradient of an operand the values `f(own, other, dy)`, summed over the axes that the
/// operand is stretched along: along a row as [`Backend::sum_pairs`] does, and row by row in ascending order. `rows` are the
/// operand's, and `own` holds its elements where they are read.
#[inline(always)]
pub(super) fn sum<B: Backend>(
    (dy, dx): (&[B::Elem], &mut [B::Elem]),
    add: bool,
    rows: Rows,
    own: Operand<'_, B::Elem>,
    other: Operand<'_, B::Elem>,
    f: impl Fn(B::Elem, B::Elem, B::Elem) -> B::Elem,
) {
    if !add {
        dx.fill(B::Elem::ZERO);
    }
    let stretched = rows.stride() == 0;
    for (((dy, at), own), other) in dy.chunks_exact(rows.len()).zip(rows).zip(own).zip(other) {
        let dx = dx.get_mut(at..).unwrap_or_default();
        if !stretched {
            each(dx.iter_mut().zip(dy), own, other, |(dx, &dy), own, other| *dx += f(own, other, dy));
        } else if let Some(dx) = dx.first_mut() {
            let own = own.first();
            *dx += match other {
                Row::Run(other) => B::sum_pairs(dy, other, |sum, dy, other| sum + f(own, other, dy)),
                Row::Same(other) => B::sum_pairs(dy, dy, |sum, dy, _| sum + f(own, other, dy)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::broadcast;

    #[test]
    fn an_operand_is_walked_in_the_order_of_the_output() {
        let (a, b) = (Shape::new([2, 3, 1, 5]), Shape::new([3, 4, 1]));
        let args = args(&[a, b], broadcast(a, b).unwrap());
        let rows: std::vec::Vec<_> = Rows::new::<0>(&args).take(24).collect();
        let want: std::vec::Vec<_> =
            (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |_| (i * 3 + j) * 5))).collect();
        assert_eq!(rows, want);
        let rows: std::vec::Vec<_> = Rows::new::<1>(&args).take(24).collect();
        let want: std::vec::Vec<_> = (0..2).flat_map(|_| (0..3).flat_map(|j| (0..4).map(move |k| j * 4 + k))).collect();
        assert_eq!(rows, want);
        assert_eq!((Rows::new::<0>(&args).stride(), Rows::new::<1>(&args).stride()), (1, 0));
    }

    #[test]
    fn equal_shapes_are_one_row() {
        let shape = Shape::new([2, 3, 4]);
        let args = args(&[shape, shape], shape);
        assert_eq!((Rows::new::<0>(&args).len(), Rows::new::<1>(&args).stride()), (24, 1));
    }
}
