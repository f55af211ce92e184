//! Concatenation of up to three tensors along one axis, and of more by chaining.
//!
//! The gradient for each is its part of `dy`.

use core::ops::Range;

use super::{Args, BackwardCall, ForwardCall, Gradient, MAX_INPUTS, Op, Reads, Spec, axes};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};
use crate::tape::{self, Call, Expr, Storage, Tape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &table("concat") }
}

pub(super) const fn table<B: Backend>(name: &'static str) -> Op<B> {
    let a = Gradient::kernel(gradient::<B, 0>, Reads::NONE);
    let b = Gradient::kernel(gradient::<B, 1>, Reads::NONE);
    let c = Gradient::kernel(gradient::<B, 2>, Reads::NONE);
    Op::new(name, forward::<B>, [a, b, c])
}

/// The output is as long as all operands together along `axis`, which counts from behind the last where negative.
///
/// # Errors
/// When there are not one to three operands, they have no such axis, or their other axes differ.
pub const fn spec(operands: &[Shape], axis: isize) -> Result<Spec, ShapeError> {
    let op = "concat";
    if operands.is_empty() || operands.len() > MAX_INPUTS {
        let (what, against) = ("operands are", "at least one, and at most");
        return Err(ShapeError::Length { op, what, found: operands.len(), against, expected: MAX_INPUTS });
    }
    let first = operands[0];
    let axis = match axes::find(op, first, axis) {
        Ok(axis) => axis,
        Err(error) => return Err(error),
    };
    // Words: the elements of a block of the output, then of each operand's.
    let (mut args, mut length, mut i) = (Args::NONE, 0, 0);
    while i < operands.len() {
        let operand = operands[i];
        if !axes::replace(operand, axis, 0).equals(&axes::replace(first, axis, 0)) {
            let (operand, expected) = ("an operand", "the same as the first but for the axis");
            return Err(ShapeError::Rank { op, operand, expected, found: operands[i] });
        }
        length = usize::saturating_add(length, operand.axis(axis));
        args.0[1 + i] = operand.product(axis, operand.rank()) as u32;
        i += 1;
    }
    let shape = axes::replace(first, axis, length);
    args.0[0] = shape.product(axis, shape.rank()) as u32;
    Ok(Spec::new(shape).args(args))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a`, then `b` along `axis`, as the annotated shape `Y`; negative axes count from behind the last.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let a = g.input::<R2<4, 3>>("a");
    ///     let b = g.input::<R2<4, 2>>("b");
    ///     let y: Var<R2<4, 5>> = g.concat(a, b, -1);
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// ```
    ///
    /// # Panics
    /// When there is no such axis, the others differ, or the annotated shape is another.
    #[track_caller]
    pub const fn concat<S: Dims, T: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<T>, axis: isize) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id()], spec(&[S::SHAPE, T::SHAPE], axis))
    }

    /// As [`Graph::concat`], of three.
    ///
    /// # Panics
    /// As [`Graph::concat`].
    #[track_caller]
    pub const fn concat3<S: Dims, T: Dims, U: Dims, Y: Dims>(
        &mut self,
        a: Var<S>,
        b: Var<T>,
        c: Var<U>,
        axis: isize,
    ) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id(), c.id()], spec(&[S::SHAPE, T::SHAPE, U::SHAPE], axis))
    }
}

impl<S: Storage> Tape<S> {
    /// All of `xs`, one after the other along `axis`; negative axes count from behind the last. Up to three are one node, more
    /// are three parts, each of which is joined likewise: `n` elements are copied about log₃ n times.
    ///
    /// A fault where there is none, they have no such axis, or their other axes differ.
    #[track_caller]
    pub fn concat(&mut self, xs: &[tape::Handle], axis: isize) -> tape::Handle {
        self.concat_of(&|i| xs.get(i).copied(), 0..xs.len(), axis)
    }

    /// Those of the operands that are in this range.
    #[track_caller]
    fn concat_of(&mut self, operand: &Operands<'_>, range: Range<usize>, axis: isize) -> tape::Handle {
        let mut joined = [None; MAX_INPUTS];
        for (joined, part) in joined.iter_mut().zip(thirds(range)) {
            *joined = match part.len() {
                0 => None,
                1 => operand(part.start),
                _ => Some(self.concat_of(operand, part, axis)),
            };
        }
        self.concat_parts(joined, axis)
    }

    /// One node.
    #[track_caller]
    pub(super) fn concat_parts(&mut self, parts: [Option<tape::Handle>; MAX_INPUTS], axis: isize) -> tape::Handle {
        let (shapes, count) = self.shapes(parts);
        self.record(Call::new(op(), spec(shapes.get(..count).unwrap_or_default(), axis)), parts)
    }

    /// The shapes of the operands that are there, and how many these are.
    pub(super) fn shapes(&self, operands: [Option<tape::Handle>; MAX_INPUTS]) -> ([Shape; MAX_INPUTS], usize) {
        let mut shapes = [Shape::SCALAR; MAX_INPUTS];
        let given = shapes.iter_mut().zip(operands.into_iter().flatten());
        let count = given.map(|(shape, operand)| *shape = self.shape(operand)).count();
        (shapes, count)
    }
}

impl<S: Storage> Expr<'_, S> {
    /// This, then `others` along `axis`; see [`Tape::concat`].
    #[track_caller]
    #[must_use]
    pub fn concat(self, others: &[Self], axis: isize) -> Self {
        let var = self.tape().concat_of(&|i| self.operand(others, i), 0..others.len() + 1, axis);
        self.with(var)
    }

    /// Operand `i` of this and `others`.
    pub(super) fn operand(self, others: &[Self], i: usize) -> Option<tape::Handle> {
        match i.checked_sub(1) {
            None => Some(self.handle()),
            Some(i) => others.get(i).map(|other| other.handle()),
        }
    }
}

/// Operand `i` of any number.
pub(super) type Operands<'a> = dyn Fn(usize) -> Option<tape::Handle> + 'a;

/// A range of operands in three parts, of which the last ones may be empty; up to three operands have one each.
pub(super) fn thirds(range: Range<usize>) -> [Range<usize>; MAX_INPUTS] {
    let len = range.len().div_ceil(MAX_INPUTS);
    core::array::from_fn(|part| {
        let start = range.end.min(range.start + part * len);
        start..range.end.min(start + len)
    })
}

/// For each operand where its part of a block starts, and how long it is; and the block's length.
fn parts(args: &Args) -> ([(usize, usize); MAX_INPUTS], usize) {
    let [block, a, b, c, ..] = args.lengths();
    ([(0, a), (a, b), (a + b, c)], block)
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let (parts, block) = parts(call.args);
    for ((start, len), x) in parts.into_iter().zip(call.x) {
        for (y, x) in call.y.chunks_exact_mut(block.max(1)).zip(x.chunks_exact(len.max(1))) {
            y.iter_mut().skip(start).zip(x).for_each(|(y, &x)| *y = x);
        }
    }
}

fn gradient<B: Backend, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    const { assert!(OPERAND < MAX_INPUTS) };
    let (parts, block) = parts(call.args);
    let (start, len) = parts[OPERAND];
    for (dx, dy) in call.dx.chunks_exact_mut(len.max(1)).zip(call.dy.chunks_exact(block.max(1))) {
        for (dx, &dy) in dx.iter_mut().zip(dy.iter().skip(start)) {
            *dx = if call.add { *dx + dy } else { dy };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let (a, b, c) = (Shape::new([2, 1]), Shape::new([2, 2]), Shape::new([2, 1]));
        let spec = spec(&[a, b, c], 1).unwrap();
        let operands: [&[f64]; 3] = [&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0], &[7.0, 8.0]];
        let y = [1.0, 3.0, 4.0, 7.0, 2.0, 5.0, 6.0, 8.0];
        check(op(), spec, &operands, &y, &[&[1.0; 2], &[1.0; 4], &[1.0; 2]]);
        for (i, operand) in operands.iter().enumerate() {
            assert_eq!(gradient(op::<Strict<f64>>(), spec, &operands, &y, i).1, *operand);
        }
    }

    #[test]
    fn operands_that_differ_elsewhere_are_an_error() {
        let error = spec(&[Shape::new([2, 3]), Shape::new([3, 3])], -1).unwrap_err();
        let text = "concat: an operand has shape [3, 3], expected the same as the first but for the axis";
        assert_eq!(std::format!("{error}"), text);
        let error = spec(&[Shape::new([2]); 4], 0).unwrap_err();
        assert_eq!(std::format!("{error}"), "concat: operands are 4, at least one, and at most 3");
    }
}
