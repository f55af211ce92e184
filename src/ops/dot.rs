//! Dot product of two vectors: `y = Σ aᵢ bᵢ`, a scalar, in the order of [`Backend::dot`].
//!
//! `da = dy b` and `db = dy a`.

use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{R0, R1, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let a = Gradient::kernel(gradient::<B, 1>, Reads::input(1));
        let b = Gradient::kernel(gradient::<B, 0>, Reads::input(0));
        &Op::new("dot", forward::<B>, [a, b, Gradient::None])
    }
}

/// The output is a scalar.
///
/// # Errors
/// When an operand is no vector, or their lengths differ.
pub const fn spec(a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    let op = "dot";
    if a.rank() != 1 || b.rank() != 1 {
        let (operand, found) = if a.rank() == 1 { ("the right operand", b) } else { ("the left operand", a) };
        return Err(ShapeError::Rank { op, operand, expected: "[n]", found });
    }
    if a.len() != b.len() {
        let (what, against) = ("elements of the left operand are", "those of the right one");
        return Err(ShapeError::Length { op, what, found: a.len(), against, expected: b.len() });
    }
    Ok(Spec::new(Shape::SCALAR))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The dot product of two vectors.
    #[track_caller]
    pub const fn dot<const A: usize>(&mut self, a: Var<R1<A>>, b: Var<R1<A>>) -> Var<R0> {
        self.record("", op(), &[a.id(), b.id()], spec(a.shape(), b.shape()))
    }
}

crate::tape::methods! {
    /// The dot product of two vectors. A fault where an operand is no vector, or their lengths differ.
    dot(a, b)() => (op(), spec(a, b))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    call.y.fill(B::dot(call.x[0], call.x[1]));
}

fn gradient<B: Backend, const OTHER: usize>(call: BackwardCall<'_, B::Elem>) {
    const { assert!(OTHER < 2) };
    let dy = call.dy.first().copied().unwrap_or_default();
    for (dx, &other) in call.dx.iter_mut().zip(call.x[OTHER]) {
        *dx = if call.add { B::mul_add(dy, other, *dx) } else { dy * other };
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([3]), Shape::new([3])).unwrap();
        let (a, b) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
        check(op(), spec, &[&a, &b], &[32.0], &[&b, &a]);
    }

    #[test]
    fn vectors_of_different_lengths_are_an_error() {
        let error = spec(Shape::new([3]), Shape::new([2])).unwrap_err();
        assert_eq!(std::format!("{error}"), "dot: elements of the left operand are 3, those of the right one 2");
    }
}
