//! Softmax of scaled scores `x` `[..., t, s]` over their last axis, optionally causal: `y = e^(α x - m) / Σ e^(α x - m)`, where
//! `m` is the largest of the row's `α x`. Where it is causal, row `i` takes the elements up to `i` only and the others are 0,
//! as with PyTorch's `is_causal`. In place where nothing else reads `x`.
//!
//! `dx = α y (dy - Σ dy y)`. It is what scaled dot-product attention does between its two products (Vaswani et al., *Attention
//! Is All You Need*, 2017), in one pass.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient::<B>, Reads::OUTPUT);
        &Op::new("scaled_softmax", forward::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// The output has the shape of `x`.
///
/// # Errors
/// When `x` has less than two axes, or the scale is not finite.
pub const fn spec(x: Shape, scale: f64, causal: bool) -> Result<Spec, ShapeError> {
    let op = "scaled_softmax";
    if x.rank() < 2 {
        return Err(ShapeError::Rank { op, operand: "the scores", expected: "[..., t, s]", found: x });
    }
    if !scale.is_finite() {
        return Err(ShapeError::Setting { op, rule: "the scale is finite", found: scale });
    }
    let args = Args::new(&[x.axis_from_end(0), x.axis_from_end(1), causal as usize]);
    Ok(Spec::new(x).args(args.with_scalar(3, scale)))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The softmax of `scale x` over the last axis; where `causal`, row `i` of a matrix takes its first `i + 1` elements.
    ///
    /// # Panics
    /// When `x` has less than two axes, or the scale is not finite.
    #[track_caller]
    pub const fn scaled_softmax<S: Dims>(&mut self, x: Var<S>, scale: f64, causal: bool) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, scale, causal))
    }
}

crate::tape::methods! {
    /// The softmax of `scale x` over the last axis; where `causal`, row `i` of a matrix takes its first `i + 1` elements. A
    /// fault where `x` has less than two axes, or the scale is not finite.
    scaled_softmax(x)(scale: f64, causal: bool) => (op(), spec(x, scale, causal))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [columns, rows, causal, ..] = call.args.lengths();
    let scale = call.args.scalar::<B::Elem, 3>();
    for matrix in call.y.chunks_exact_mut((rows * columns).max(1)) {
        for (i, row) in matrix.chunks_exact_mut(columns.max(1)).enumerate() {
            let seen = if causal == 1 { columns.min(i + 1) } else { columns };
            let Some((row, hidden)) = row.split_at_mut_checked(seen) else { return };
            hidden.fill(B::Elem::ZERO);
            row.iter_mut().for_each(|x| *x *= scale);
            let largest = row.iter().copied().fold(-B::Elem::INFINITY, B::Elem::maximum);
            row.iter_mut().for_each(|x| *x = B::exp(*x - largest));
            let share = B::Elem::ONE / B::sum(row);
            row.iter_mut().for_each(|y| *y *= share);
        }
    }
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [columns, ..] = call.args.lengths();
    let scale = call.args.scalar::<B::Elem, 3>();
    for (dx, y) in call.dx.chunks_exact_mut(columns.max(1)).zip(call.y.chunks_exact(columns.max(1))) {
        let dot = B::dot(dx, y);
        dx.iter_mut().zip(y).for_each(|(dx, &y)| *dx = scale * y * (*dx - dot));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    const Y: [f64; 3] = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8];

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([2, 3]), 0.5, false).unwrap();
        let both = [Y[0], Y[1], Y[2], Y[0], Y[1], Y[2]];
        let x = [2.0, 4.0, 6.0, 2002.0, 2004.0, 2006.0];
        check(op(), spec, &[&x], &both, &[&[0.0; 6]]);
        let (_, dx) = gradient(op::<Strict<f64>>(), spec, &[&x], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 0);
        let want = [-Y[0] * Y[2] / 2.0, -Y[1] * Y[2] / 2.0, Y[2] * (1.0 - Y[2]) / 2.0, 0.0, 0.0, 0.0];
        assert!(dx.iter().zip(want).all(|(d, w)| (d - w).abs() < 1e-15), "{dx:?}");
    }

    #[test]
    fn a_causal_row_ignores_what_comes_later() {
        let spec = spec(Shape::new([3, 3]), 1.0, true).unwrap();
        let x = [5.0, f64::NAN, f64::INFINITY, 1.0, 1.0, f64::NAN, 1.0, 2.0, 3.0];
        let y = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, Y[0], Y[1], Y[2]];
        check(op(), spec, &[&x], &y, &[&[0.0; 9]]);
    }
}
