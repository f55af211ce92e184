//! Unsqueeze: `x` with another axis, of one element. A view: no kernel runs, and input and output are the same memory.

use super::{Op, Spec, axes, reshape};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &Op { name: "unsqueeze", ..*reshape::op::<B>() } }
}

/// The output has an axis of one element as its axis `axis`, which counts from behind the last where negative.
///
/// # Errors
/// When the output has no such axis, or would have more axes than there can be.
pub const fn spec(x: Shape, axis: isize) -> Result<Spec, ShapeError> {
    match axes::insert("unsqueeze", x, axis, 1) {
        Ok((shape, _)) => Ok(Spec::new(shape)),
        Err(error) => Err(error),
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` with an axis of one element as axis `axis` of the annotated shape `Y`; negative ones count from behind the last.
    ///
    /// # Panics
    /// When the annotated shape is another, or there would be more than five axes.
    #[track_caller]
    pub const fn unsqueeze<S: Dims, Y: Dims>(&mut self, x: Var<S>, axis: isize) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axis))
    }
}

crate::tape::methods! {
    /// `x` with an axis of one element as axis `axis` of the output: a view. Negative ones count from behind the output's last.
    /// A fault where it has no such axis, or would have more axes than there can be.
    unsqueeze(x)(axis: isize) => (op(), spec(x, axis))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn an_axis_comes_in_between() {
        let shape = |axis| spec(Shape::new([2, 3]), axis).unwrap().shape;
        assert_eq!([shape(0), shape(-3)], [Shape::new([1, 2, 3]); 2]);
        assert_eq!([shape(1), shape(-2)], [Shape::new([2, 1, 3]); 2]);
        assert_eq!([shape(2), shape(-1)], [Shape::new([2, 3, 1]); 2]);
        check(op(), spec(Shape::new([2]), -1).unwrap(), &[&[3.0, 4.0]], &[3.0, 4.0], &[&[1.0, 1.0]]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let error = |x, axis| std::format!("{}", spec(x, axis).unwrap_err());
        assert_eq!(error(Shape::new([2]), 2), "unsqueeze: there is no axis 2, the number of axes is 2");
        assert_eq!(error(Shape::new([1; 5]), 0), "unsqueeze: axes of the output are 6, at most there are 5");
    }
}
