//! Global average pooling: the mean of each plane of `x` `[n, c, h, w]`, as `[n, c, 1, 1]`.
//!
//! `dx = dy / (h w)` at every element of the plane.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R4, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B>, Reads::NONE);
        &Op::new("global_avg_pool2d", forward::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has shape `[n, c, 1, 1]`.
///
/// # Errors
/// When `x` has another number of axes.
pub const fn spec(x: Shape) -> Result<Spec, ShapeError> {
    if x.rank() != 4 {
        let (op, operand, expected) = ("global_avg_pool2d", "the input", "[n, c, h, w]");
        return Err(ShapeError::Rank { op, operand, expected, found: x });
    }
    let args = Args::new(&[x.product(2, 4)]);
    Ok(Spec::new(Shape::new([x.axis(0), x.axis(1), 1, 1])).args(args))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of each plane.
    #[track_caller]
    pub const fn global_avg_pool2d<const A: usize, const C: usize, const H: usize, const W: usize>(
        &mut self,
        x: Var<R4<A, C, H, W>>,
    ) -> Var<R4<A, C, 1, 1>> {
        self.record("", op(), &[x.id()], spec(x.shape()))
    }
}

crate::tape::methods! {
    /// The mean of each plane of `x` `[n, c, h, w]`, as `[n, c, 1, 1]`. A fault where `x` has another number of axes.
    global_avg_pool2d(x)() => (op(), spec(x))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [plane, ..] = call.args.lengths();
    let count = B::Elem::from_usize(plane);
    for (y, x) in call.y.iter_mut().zip(call.x[0].chunks_exact(plane.max(1))) {
        *y = B::sum(x) / count;
    }
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [plane, ..] = call.args.lengths();
    let count = B::Elem::from_usize(plane);
    for (dx, &dy) in call.dx.chunks_exact_mut(plane.max(1)).zip(call.dy) {
        let share = dy / count;
        dx.iter_mut().for_each(|dx| *dx = if call.add { *dx + share } else { share });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        check(op(), spec(Shape::new([1, 2, 2, 2])).unwrap(), &[&x], &[2.5, 6.5], &[&[0.25; 8]]);
    }
}
