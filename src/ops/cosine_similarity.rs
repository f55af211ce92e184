//! Cosine similarity along one axis, or of whole tensors: `y = Σ a b / (max(‖a‖, ε) max(‖b‖, ε))`, as PyTorch's.
//!
//! `da = dy (b / ‖b‖ - y a / ‖a‖) / ‖a‖`, the norms being no less than ε; the second term is absent where `‖a‖` is not above
//! ε. `db` is the same with `a` and `b` exchanged. Backward computes the norms again.

use super::reduce::{self, Walk};
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The ε that PyTorch takes.
pub const EPSILON: f64 = 1e-8;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let reads = Reads::input(0).and(Reads::input(1)).and(Reads::OUTPUT);
        let a = Gradient::kernel(gradient::<B, 0, 1>, reads);
        let b = Gradient::kernel(gradient::<B, 1, 0>, reads);
        &Op::new("cosine_similarity", forward::<B>, [a, b, Gradient::None])
    }
}

/// The output lacks `axis`, which counts from behind the last where negative, or is a scalar without one.
///
/// # Errors
/// When the operands' shapes differ, they have no such axis, or ε is not above 0.
pub const fn spec(a: Shape, b: Shape, axis: Option<isize>, epsilon: f64) -> Result<Spec, ShapeError> {
    let op = "cosine_similarity";
    if !a.equals(&b) {
        return Err(ShapeError::Rank { op, operand: "the right operand", expected: "that of the left one", found: b });
    }
    if epsilon.is_nan() || epsilon <= 0.0 {
        return Err(ShapeError::Setting { op, rule: "epsilon is above 0", found: epsilon });
    }
    let spec = match axis {
        Some(axis) => reduce::spec(op, a, &[axis], false),
        None => reduce::spec(op, a, &[], false),
    };
    match spec {
        Ok(spec) => Ok(spec.args(spec.args.with_scalar(reduce::WORDS, epsilon))),
        error => error,
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The cosine of the angles between `a` and `b` along `axis`, or of both as a whole without one, as the annotated shape
    /// `Y`; negative axes count from behind the last.
    ///
    /// # Panics
    /// When there is no such axis, or the annotated shape is another.
    #[track_caller]
    pub const fn cosine_similarity<S: Dims, Y: Dims>(&mut self, a: Var<S>, b: Var<S>, axis: Option<isize>) -> Var<Y> {
        self.record("", op(), &[a.id(), b.id()], spec(S::SHAPE, S::SHAPE, axis, EPSILON))
    }
}

crate::tape::methods! {
    /// The cosine of the angles between `a` and `b`, of one shape, along `axis`, or of both as a whole without one; negative
    /// axes count from behind the last. Norms are no less than `epsilon`; PyTorch's is
    /// [`EPSILON`]. A fault where the shapes differ, they have no such axis, or
    /// `epsilon` is not above 0.
    cosine_similarity(a, b)(axis: Option<isize>, epsilon: f64) => (op(), spec(a, b, axis, epsilon))
}

/// The larger of the norm and ε, and whether it is the norm.
#[inline(always)]
fn norm<B: Backend>(walk: &Walk, x: &[B::Elem], first: usize, epsilon: B::Elem) -> (B::Elem, bool) {
    let norm = walk.sum::<B>(x, first, |sum, x| B::mul_add(x, x, sum)).sqrt();
    if norm <= epsilon { (epsilon, false) } else { (norm, true) }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let (walk, epsilon) = (Walk::new(call.args), call.args.scalar::<B::Elem, { reduce::WORDS }>());
    let [a, b, _] = call.x;
    for (y, first) in call.y.iter_mut().zip(walk.firsts()) {
        let products = walk.elements(a, first).zip(walk.elements(b, first)).map(|(a, b)| a * b);
        let dot = B::sum(&reduce::lanes(products, B::Elem::ZERO, |sum, x| sum + x));
        let (a, b) = (norm::<B>(&walk, a, first, epsilon).0, norm::<B>(&walk, b, first, epsilon).0);
        // Two divisions, since the product of small or large norms would leave the range.
        *y = dot / a / b;
    }
}

fn gradient<B: Backend, const OWN: usize, const OTHER: usize>(call: BackwardCall<'_, B::Elem>) {
    const { assert!(OWN < 2 && OTHER < 2) };
    let (walk, epsilon) = (Walk::new(call.args), call.args.scalar::<B::Elem, { reduce::WORDS }>());
    let (own, other) = (call.x[OWN], call.x[OTHER]);
    for ((&y, &dy), first) in call.y.iter().zip(call.dy).zip(walk.firsts()) {
        let (own_norm, is_norm) = norm::<B>(&walk, own, first, epsilon);
        let (other_norm, _) = norm::<B>(&walk, other, first, epsilon);
        let y = if is_norm { y } else { B::Elem::ZERO };
        let scale = dy / own_norm;
        let elements = walk.elements(own, first).zip(walk.elements(other, first));
        for (at, (own, other)) in walk.run(first).zip(elements) {
            let share = scale * (other / other_norm - y * (own / own_norm));
            if let Some(dx) = call.dx.get_mut(at) {
                *dx = if call.add { *dx + share } else { share };
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
        let x = Shape::new([2, 2]);
        let (a, b) = ([3.0, 4.0, 1.0, 0.0], [4.0, 3.0, 0.0, 2.0]);
        let da = [0.8 / 5.0 - 0.96 * 0.6 / 5.0, 0.6 / 5.0 - 0.96 * 0.8 / 5.0, 0.0, 1.0];
        let db = [0.6 / 5.0 - 0.96 * 0.8 / 5.0, 0.8 / 5.0 - 0.96 * 0.6 / 5.0, 0.5, 0.0];
        check(op(), spec(x, x, Some(1), EPSILON).unwrap(), &[&a, &b], &[0.96, 0.0], &[&da, &db]);
        let y = 24.0 / (26.0 * 29.0_f64).sqrt();
        let whole = spec(x, x, None, EPSILON).unwrap();
        assert_eq!(whole.shape, Shape::SCALAR);
        let part = |own: [f64; 4], other: [f64; 4], own_sq: f64, other_sq: f64| -> [f64; 4] {
            core::array::from_fn(|i| (other[i] / other_sq.sqrt() - y * own[i] / own_sq.sqrt()) / own_sq.sqrt())
        };
        check(op(), whole, &[&a, &b], &[y], &[&part(a, b, 26.0, 29.0), &part(b, a, 29.0, 26.0)]);
    }

    #[test]
    fn a_vector_of_zeros_has_no_angle() {
        let x = Shape::new([2]);
        check(op(), spec(x, x, None, 0.5).unwrap(), &[&[0.0, 0.0], &[3.0, 4.0]], &[0.0], &[&[1.2, 1.6], &[0.0, 0.0]]);
    }
}
