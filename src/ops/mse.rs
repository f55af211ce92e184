//! Mean squared error: the mean, the sum, or each of `(p - t)²`, without a factor 1/2.
//!
//! Forward keeps the difference `d = p - t`, where the prediction was if nothing else reads it; `dp = 2 d dy / n` (without
//! `n` unless it is the mean), and `dt = -dp`.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, OverGradient, Reads, Reduction, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        &Op::new(
            "mse",
            forward::<B>,
            [over_saved(gradient::<B, false>), over_saved(gradient::<B, true>), Gradient::None],
        )
        .over(Over::Saved)
    }
}

const fn over_saved<B: Backend>(run: super::Backward<B>) -> Gradient<B> {
    Gradient::Kernel { run, reads: Reads::SAVED, over: OverGradient::Saved, rows: false }
}

/// The output is a scalar, or has the shape of the operands where nothing is reduced.
///
/// # Errors
/// When the shapes differ.
pub const fn spec(prediction: Shape, target: Shape, reduction: Reduction) -> Result<Spec, ShapeError> {
    if !prediction.equals(&target) {
        let (op, operand, expected) = ("mse", "the target", "the shape of the prediction");
        return Err(ShapeError::Rank { op, operand, expected, found: target });
    }
    let args = Args::new(&[reduction.code()]);
    Ok(Spec { saved: prediction.len(), ..Spec::new(reduction.shape(prediction)).args(args) })
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The mean of the squared differences.
    #[track_caller]
    pub const fn mse<S: Dims>(&mut self, prediction: Var<S>, target: Var<S>) -> Var<R0> {
        self.mse_with(prediction, target, Reduction::Mean)
    }

    /// The squared differences, reduced so; the annotated output is a scalar, or `S` where nothing is reduced.
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn mse_with<S: Dims, Y: Dims>(
        &mut self,
        prediction: Var<S>,
        target: Var<S>,
        reduction: Reduction,
    ) -> Var<Y> {
        self.record("", op(), &[prediction.id(), target.id()], spec(S::SHAPE, S::SHAPE, reduction))
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [reduction, ..] = call.args.lengths();
    let reduction = Reduction::of_code(reduction);
    for (d, &t) in call.saved.iter_mut().zip(call.x[1]) {
        *d -= t;
    }
    match (reduction, call.y.first_mut()) {
        (Reduction::Mean, Some(y)) => *y = B::dot(call.saved, call.saved) / B::Elem::from_usize(call.saved.len()),
        (Reduction::Sum, Some(y)) => *y = B::dot(call.saved, call.saved),
        _ => call.y.iter_mut().zip(call.saved).for_each(|(y, &mut d)| *y = d * d),
    }
}

fn gradient<B: Backend, const TARGET: bool>(call: BackwardCall<'_, B::Elem>) {
    let [reduction, ..] = call.args.lengths();
    let reduction = Reduction::of_code(reduction);
    let count = call.dx.len();
    for (i, d) in call.dx.iter_mut().enumerate() {
        let share = reduction.share(call.dy, i, count);
        let twice = *d + *d;
        *d = if TARGET { -twice } else { twice } * share;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient as run};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let shape = Shape::new([3]);
        let spec = |reduction| spec(shape, shape, reduction).unwrap();
        let (p, t) = ([1.0, 2.0, 3.0], [0.0, 0.0, 1.0]);
        let dp = [2.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0];
        check(op(), spec(Reduction::Mean), &[&p, &t], &[3.0], &[&dp, &dp.map(|d: f64| -d)]);
        check(op(), spec(Reduction::Sum), &[&p, &t], &[9.0], &[&[2.0, 4.0, 4.0], &[-2.0, -4.0, -4.0]]);
        let (y, dx) = run(op::<Strict<f64>>(), spec(Reduction::None), &[&p, &t], &[1.0, 10.0, 100.0], 0);
        assert_eq!((y, dx), (std::vec![1.0, 4.0, 4.0], std::vec![2.0, 40.0, 400.0]));
    }
}
