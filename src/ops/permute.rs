//! Permute and transpose: the axes of `x` in another order; axis `i` of the output is axis `axes[i]` of `x`.
//!
//! `dx` is `dy` with its axes put back.

use super::{Gradient, Op, Reads, Spec, axes, strided};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, MAX_RANK, Shape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(strided::gradient_of_all::<B>, Reads::NONE);
        &Op::new("permute", strided::copy::<B>, [x, Gradient::None, Gradient::None])
    }
}

/// The output has the axes of `x` in this order; negative ones count from behind the last.
///
/// # Errors
/// When not every axis of `x` is named once.
pub const fn spec(x: Shape, order: &[isize]) -> Result<Spec, ShapeError> {
    let op = "permute";
    if let Err(error) = axes::mask(op, x, order) {
        return Err(error);
    }
    if order.len() != x.rank() {
        let (what, against) = ("axes named are", "those of the input");
        return Err(ShapeError::Length { op, what, found: order.len(), against, expected: x.rank() });
    }
    let (mut of, mut shape, mut i) = ([0; MAX_RANK], Shape::SCALAR, 0);
    while i < order.len() {
        of[i] = match axes::find(op, x, order[i]) {
            Ok(axis) => axis,
            Err(error) => return Err(error),
        };
        shape = shape.push(x.axis(of[i]));
        i += 1;
    }
    Ok(Spec::new(shape).args(strided::permuted(x, shape, of)))
}

/// The same with two axes exchanged.
///
/// # Errors
/// When `x` has no such axis.
pub const fn spec_transpose(x: Shape, a: isize, b: isize) -> Result<Spec, ShapeError> {
    let op = "transpose";
    let (a, b) = match (axes::find(op, x, a), axes::find(op, x, b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let mut of = [0, 1, 2, 3, 4];
    (of[a], of[b]) = (b, a);
    let shape = axes::replace(axes::replace(x, a, x.axis(b)), b, x.axis(a));
    Ok(Spec::new(shape).args(strided::permuted(x, shape, of)))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `x` with its axes in this order, as the annotated shape `Y`; negative ones count from behind the last.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R4<1, 3, 8, 6>>("channels first");
    ///     let y: Var<R4<1, 8, 6, 3>> = g.permute(x, &[0, 2, 3, 1]);
    ///     g.output("channels last", y);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// ```
    ///
    /// # Panics
    /// When not every axis of `x` is named once, or the annotated shape is another.
    #[track_caller]
    pub const fn permute<S: Dims, Y: Dims>(&mut self, x: Var<S>, axes: &[isize]) -> Var<Y> {
        self.record("", op(), &[x.id()], spec(S::SHAPE, axes))
    }

    /// `x` with axes `a` and `b` exchanged, as the annotated shape `Y`; negative ones count from behind the last.
    ///
    /// # Panics
    /// When `x` has no such axis, or the annotated shape is another.
    #[track_caller]
    pub const fn transpose<S: Dims, Y: Dims>(&mut self, x: Var<S>, a: isize, b: isize) -> Var<Y> {
        self.record("", op(), &[x.id()], spec_transpose(S::SHAPE, a, b))
    }
}

crate::tape::methods! {
    /// `x` with its axes in this order; negative ones count from behind the last. A fault where not every axis is named once.
    permute(x)(axes: &[isize]) => (op(), spec(x, axes));
    /// `x` with axes `a` and `b` exchanged; negative ones count from behind the last, so -2 and -1 transpose matrices. A fault
    /// where there is no such axis.
    transpose(x)(a: isize, b: isize) => (op(), spec_transpose(x, a, b))
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient;
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        for spec in [spec(Shape::new([2, 3]), &[-1, 0]), spec_transpose(Shape::new([2, 3]), 0, 1)] {
            let spec = spec.unwrap();
            assert_eq!(spec.shape, Shape::new([3, 2]));
            let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&x], &x, 0);
            assert_eq!((&y[..], &dx[..]), (&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0][..], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0][..]));
        }
    }

    #[test]
    fn every_axis_is_named_once() {
        let error = |axes: &[isize]| std::format!("{}", spec(Shape::new([2, 3]), axes).unwrap_err());
        assert_eq!(error(&[0, 0]), "permute: axis 0 is named twice");
        assert_eq!(error(&[1]), "permute: axes named are 1, those of the input 2");
    }
}
