//! Stacking of up to three tensors of one shape along a new axis. The kernels are those of [`concat`](mod@crate::ops::concat).

use core::ops::Range;

use super::concat::{self, Operands, thirds};
use super::{Args, MAX_INPUTS, Op, Spec, axes};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};
use crate::tape::{self, Call, Expr, Storage, Tape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &concat::table("stack") }
}

/// The output has the operands one after the other along its axis `axis`, which counts from behind the last where negative.
///
/// # Errors
/// When there are not one to three operands, the output has no such axis, or would have more axes than there can be.
pub const fn spec(x: Shape, operands: usize, axis: isize) -> Result<Spec, ShapeError> {
    let op = "stack";
    if operands == 0 || operands > MAX_INPUTS {
        let (what, against) = ("operands are", "at least one, and at most");
        return Err(ShapeError::Length { op, what, found: operands, against, expected: MAX_INPUTS });
    }
    let (shape, axis) = match axes::insert(op, x, axis, operands) {
        Ok(inserted) => inserted,
        Err(error) => return Err(error),
    };
    let (mut args, mut i) = (Args::new(&[shape.product(axis, shape.rank())]), 0);
    while i < operands {
        args.0[1 + i] = x.product(axis, x.rank()) as u32;
        i += 1;
    }
    Ok(Spec::new(shape).args(args))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `a` and `b` as the two elements along axis `axis` of the annotated shape `Y`; negative axes count from behind the
    /// last.
    ///
    /// # Panics
    /// When the annotated shape is another, or there would be more than five axes.
    #[track_caller]
    pub const fn stack<S: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<S>, axis: isize) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id()], spec(S::SHAPE, 2, axis))
    }

    /// As [`Graph::stack`], of three.
    ///
    /// # Panics
    /// As [`Graph::stack`].
    #[track_caller]
    pub const fn stack3<S: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<S>, c: Var<S>, axis: isize) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id(), c.id()], spec(S::SHAPE, 3, axis))
    }
}

impl<S: Storage> Tape<S> {
    /// All of `xs`, of one shape, as the elements along axis `axis` of the output; negative axes count from behind the last.
    /// Up to three are one node, more are three parts that are stacked likewise and then joined.
    ///
    /// A fault where there is none, their shapes differ, or the output has no such axis or would have more than there can be.
    #[track_caller]
    pub fn stack(&mut self, xs: &[tape::Handle], axis: isize) -> tape::Handle {
        self.stack_of(&|i| xs.get(i).copied(), 0..xs.len(), axis)
    }

    /// Those of the operands that are in this range.
    #[track_caller]
    fn stack_of(&mut self, operand: &Operands<'_>, range: Range<usize>, axis: isize) -> tape::Handle {
        let (mut stacked, count) = ([None; MAX_INPUTS], range.len());
        for (stacked, part) in stacked.iter_mut().zip(thirds(range)) {
            *stacked = match (operand(part.start), part.len()) {
                (_, 0) => None,
                (one, 1) if count <= MAX_INPUTS => one,
                (Some(one), 1) => Some(self.unsqueeze(one, axis)),
                _ => Some(self.stack_of(operand, part, axis)),
            };
        }
        if count > MAX_INPUTS {
            return self.concat_parts(stacked, axis);
        }
        let (shapes, count) = self.shapes(stacked);
        self.record(Call::new(op(), spec_of(shapes.get(..count).unwrap_or_default(), axis)), stacked)
    }
}

impl<S: Storage> Expr<'_, S> {
    /// This and `others`, of one shape, as the elements along axis `axis` of the output; see [`Tape::stack`].
    #[track_caller]
    #[must_use]
    pub fn stack(self, others: &[Self], axis: isize) -> Self {
        let var = self.tape().stack_of(&|i| self.operand(others, i), 0..others.len() + 1, axis);
        self.with(var)
    }
}

/// [`spec`] of operands whose shapes may differ, which is an error.
fn spec_of(operands: &[Shape], axis: isize) -> Result<Spec, ShapeError> {
    let first = operands.first().copied().unwrap_or(Shape::SCALAR);
    match operands.iter().find(|operand| !operand.equals(&first)) {
        Some(&found) => {
            Err(ShapeError::Rank { op: "stack", operand: "an operand", expected: "that of the first", found })
        }
        None => spec(first, operands.len(), axis),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (x, a, b) = (Shape::new([2]), [1.0, 2.0], [3.0, 4.0]);
        check(op(), spec(x, 2, 0).unwrap(), &[&a, &b], &[1.0, 2.0, 3.0, 4.0], &[&[1.0; 2], &[1.0; 2]]);
        check(op(), spec(x, 2, -1).unwrap(), &[&a, &b], &[1.0, 3.0, 2.0, 4.0], &[&[1.0; 2], &[1.0; 2]]);
    }
}
