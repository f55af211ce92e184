//! Nearest upsampling by whole factors: every element of `x` `[n, c, h, w]` becomes a block of so many rows and columns of
//! the output `[n, c, h rows, w columns]`.
//!
//! `dx` is the sum of `dy` over the element's block, added in row-major order.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec, axes};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R4, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("upsample_nearest2d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, h factors[0], w factors[1]]`.
///
/// # Errors
/// When `x` has another number of axes, or a factor is 0.
pub const fn spec(x: Shape, factors: [usize; 2]) -> Result<Spec, ShapeError> {
    let op = "upsample_nearest2d";
    if x.rank() != 4 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, h, w]", found: x });
    }
    if factors[0] == 0 || factors[1] == 0 {
        return Err(ShapeError::Setting { op, rule: "the factors are at least 1", found: 0.0 });
    }
    let [height, width] = [x.axis(2).saturating_mul(factors[0]), x.axis(3).saturating_mul(factors[1])];
    let shape = axes::replace(axes::replace(x, 2, height), 3, width);
    Ok(Spec::new(shape).args(Args::new(&[x.axis(3), factors[0], factors[1]])))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// Every element as a block of `factors` (rows, columns). Height and width of the output are annotated.
    ///
    /// # Panics
    /// When height and width are not the input's times the factors.
    #[track_caller]
    pub const fn upsample_nearest2d<
        const A: usize,
        const C: usize,
        const H: usize,
        const W: usize,
        const OH: usize,
        const OW: usize,
    >(
        &mut self,
        x: Var<R4<A, C, H, W>>,
        factors: [usize; 2],
    ) -> Var<R4<A, C, OH, OW>> {
        self.record("", op(), &[x.id()], spec(x.shape(), factors))
    }
}

crate::tape::methods! {
    /// Every element of `x` `[n, c, h, w]` as a block of `factors` (rows, columns). A fault where `x` has another number of
    /// axes, or a factor is 0.
    upsample_nearest2d(x)(factors: [usize; 2]) => (op(), spec(x, factors))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [width, rows, columns, ..] = call.args.lengths();
    let row = (width * columns).max(1);
    for (block, x) in call.y.chunks_exact_mut((row * rows).max(1)).zip(call.x[0].chunks_exact(width.max(1))) {
        for y in block.chunks_exact_mut(row) {
            for (y, &x) in y.chunks_exact_mut(columns.max(1)).zip(x) {
                y.fill(x);
            }
        }
    }
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [width, rows, columns, ..] = call.args.lengths();
    let row = (width * columns).max(1);
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    for (dx, block) in call.dx.chunks_exact_mut(width.max(1)).zip(call.dy.chunks_exact((row * rows).max(1))) {
        for dy in block.chunks_exact(row) {
            for (dx, dy) in dx.iter_mut().zip(dy.chunks_exact(columns.max(1))) {
                dy.iter().for_each(|&dy| *dx += dy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([1, 1, 2, 2]), [2, 3]).unwrap();
        let y = [
            [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
            [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
            [3.0, 3.0, 3.0, 4.0, 4.0, 4.0],
            [3.0, 3.0, 3.0, 4.0, 4.0, 4.0],
        ];
        check(op(), spec, &[&[1.0, 2.0, 3.0, 4.0]], y.as_flattened(), &[&[6.0; 4]]);
    }
}
