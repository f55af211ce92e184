//! Normalisation to a Euclidean norm of 1, along one axis or of the whole tensor: `y = x / max(‖x‖, ε)`, as PyTorch's
//! `normalize`. In place where nothing else reads `x`.
//!
//! `dx = (dy - y Σ dy y) / ‖x‖` where the norm is above ε, else `dy / ε`. Forward keeps one number for each run: what it
//! divided by, negative where that was ε.

use super::runs::{self, for_each_run};
use super::{Args, BackwardCall, Forward, ForwardCall, Gradient, Op, Over, Reads, Spec, axes};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The ε that nanograd takes.
pub const EPSILON: f64 = 1e-8;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient::<B>, Reads::OUTPUT.and(Reads::SAVED));
        let infer = Some(forward::<B> as Forward<B>);
        let op = Op::new("l2_normalize", forward::<B>, [x, Gradient::None, Gradient::None]);
        &Op { infer, ..op }.over(Over::Output)
    }
}

/// The output has the shape of `x`. Negative axes count from behind the last; without one, the whole tensor is one vector.
///
/// # Errors
/// When `x` has no such axis, or ε is not above 0.
pub const fn spec(x: Shape, axis: Option<isize>, epsilon: f64) -> Result<Spec, ShapeError> {
    let op = "l2_normalize";
    if epsilon.is_nan() || epsilon <= 0.0 {
        return Err(ShapeError::Setting { op, rule: "epsilon is above 0", found: epsilon });
    }
    let (args, runs) = match axis {
        None => (Args::new(&[x.len(), 1]), 1),
        Some(axis) => match axes::find(op, x, axis) {
            Ok(axis) => match runs::spec(op, x, axis) {
                Ok(spec) => (spec.args, axes::replace(x, axis, 1).len()),
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        },
    };
    Ok(Spec { saved: runs, ..Spec::new(x).args(args.with_scalar(2, epsilon)) })
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` with a Euclidean norm of 1 along `axis`, or as a whole without one; negative axes count from behind the last.
    ///
    /// # Panics
    /// When `x` has no such axis.
    #[track_caller]
    pub const fn l2_normalize<S: Dims>(&mut self, x: Var<S>, axis: Option<isize>) -> Var<S> {
        self.l2_normalize_with(x, axis, EPSILON)
    }

    /// The same with this lower bound for the norm that is divided by.
    ///
    /// # Panics
    /// When `x` has no such axis, or `epsilon` is not above 0.
    #[track_caller]
    pub const fn l2_normalize_with<S: Dims>(&mut self, x: Var<S>, axis: Option<isize>, epsilon: f64) -> Var<S> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axis, epsilon))
    }
}

crate::tape::methods! {
    /// `x / max(‖x‖, epsilon)` along `axis`, or as a whole without one; negative axes count from behind the last. See
    /// [`EPSILON`]. A fault where `x` has no such axis, or `epsilon` is not above 0.
    l2_normalize(x)(axis: Option<isize>, epsilon: f64) => (op(), spec(x, axis, epsilon))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let epsilon: B::Elem = call.args.scalar::<B::Elem, 2>();
    let mut saved = call.saved.iter_mut();
    for_each_run(call.args, call.y, |y| {
        let norm = y.sum(|y, _| y * y, &[]).sqrt();
        let is_small = norm <= epsilon;
        let divisor = if is_small { epsilon } else { norm };
        y.map(|y| y / divisor);
        if let Some(saved) = saved.next() {
            *saved = if is_small { -divisor } else { divisor };
        }
    });
}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let mut saved = call.saved.iter();
    for_each_run(call.args, call.dx, |dx| {
        let divisor = saved.next().copied().unwrap_or(B::Elem::ONE);
        if divisor < B::Elem::ZERO {
            dx.map(|dy| dy / -divisor);
        } else {
            let dot = dx.sum(|dy, y| dy * y, call.y);
            dx.map_with(call.y, |dy, y| (dy - y * dot) / divisor);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [3.0, 4.0, 0.0, 5.0];
        let rows = spec(Shape::new([2, 2]), Some(-1), EPSILON).unwrap();
        check(op(), rows, &[&x], &[0.6, 0.8, 0.0, 1.0], &[&[0.032, -0.024, 0.2, 0.0]]);
        let whole = spec(Shape::new([2, 2]), None, EPSILON).unwrap();
        let y = x.map(|x| x / 50.0_f64.sqrt());
        let dx = y.map(|y| (1.0 - y * 12.0 / 50.0_f64.sqrt()) / 50.0_f64.sqrt());
        check(op(), whole, &[&x], &y, &[&dx]);
    }

    #[test]
    fn a_vector_of_zeros_stays_and_a_nan_goes_through() {
        let spec = spec(Shape::new([2]), Some(0), 0.5).unwrap();
        check(op(), spec, &[&[0.0, 0.0]], &[0.0, 0.0], &[&[2.0, 2.0]]);
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&[f64::NAN, 1.0]], &[1.0; 2], 0);
        assert!(y.iter().chain(&dx).all(|x| x.is_nan()), "{y:?} {dx:?}");
    }
}
