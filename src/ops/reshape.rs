//! Reshape and flatten: the same elements under another shape. Both are views: no kernel runs, and input and output are the
//! same memory, gradients too.

use super::{ForwardCall, Gradient, Op, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table of reshape.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &view("reshape") }
}

/// The table of flatten: reshape under its own name, for errors.
#[must_use]
pub const fn op_flatten<B: Backend>() -> &'static Op<B> {
    const { &view("flatten") }
}

const fn view<B: Backend>(name: &'static str) -> Op<B> {
    Op { view: true, ..Op::new(name, nothing::<B>, [Gradient::Pass, Gradient::None, Gradient::None]) }
}

fn nothing<B: Backend>(_: ForwardCall<'_, B::Elem>) {}

/// The output has shape `to`.
///
/// # Errors
/// When it has another number of elements than `x`.
pub const fn spec(x: Shape, to: Shape) -> Result<Spec, ShapeError> {
    if x.len() == to.len() {
        Ok(Spec::new(to))
    } else {
        Err(ShapeError::Length {
            op: "reshape",
            what: "the elements of the input are",
            found: x.len(),
            against: "those of the new shape",
            expected: to.len(),
        })
    }
}

/// All axes but the first as one.
const fn flat(x: Shape) -> Shape {
    // Where that is too long for an axis, the shape has another number of elements, which the spec refuses.
    let behind = x.product(1, x.rank());
    Shape::new([x.axis(0), if behind > u32::MAX as usize { 0 } else { behind }])
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` under the annotated shape `Y`.
    ///
    /// # Panics
    /// When `Y` has another number of elements.
    #[track_caller]
    pub const fn reshape<S: Dims, Y: Dims>(&mut self, x: Var<S>) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, Y::SHAPE))
    }

    /// `x` with all axes but the first joined into one: what a linear layer takes after convolutions.
    ///
    /// # Panics
    /// When the annotated shape is not the one that this gives.
    #[track_caller]
    pub const fn flatten<S: Dims, Y: Dims>(&mut self, x: Var<S>) -> Var<Y> {
        self.record("", op_flatten(), &[x.id()], spec(S::SHAPE, flat(S::SHAPE)))
    }
}

crate::tape::methods! {
    /// `x` under another shape: a view. A fault where that has another number of elements.
    reshape(x)(shape: impl Into<Shape>) => (op(), spec(x, shape.into()));
    /// `x` with all axes but the first joined into one, whatever their number: a view.
    flatten(x)() => (op_flatten(), spec(x, flat(x)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn elements_and_gradients_keep_their_order() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let spec = spec(Shape::new([2, 3]), Shape::new([3, 2])).unwrap();
        check(op(), spec, &[&x], &x, &[&[1.0; 6]]);
    }

    #[test]
    fn another_number_of_elements_is_an_error() {
        let error = spec(Shape::new([2, 3]), Shape::new([4])).unwrap_err();
        let text = "reshape: the elements of the input are 6, those of the new shape 4";
        assert_eq!(std::format!("{error}"), text);
    }
}
