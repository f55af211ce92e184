//! Linear layer: `y = x Wᵀ + b` for `x` of shape `[..., in]`, a weight `[out, in]` as PyTorch lays it out, and an optional
//! bias `[out]`; `y` has shape `[..., out]`.
//!
//! Each output starts from its bias and adds its products in ascending order of the input feature. `dx = dy W`,
//! `dW = dyᵀ x` and `db = Σ dy`, each summed in ascending order of the row. So gradients that are gathered over
//! micro-batches have the bits of the whole batch's.

use core::mem;
use core::slice::ChunksExact;

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, OverGradient, Reads, Spec, Terms, relu};
use crate::backend::dispatch::{Kernel, dispatch};
use crate::backend::{Backend, Matrix, MatrixProduct, Real, Sums, last_product};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::init::Init;
use crate::shape::{R1, R2, Shape};

/// The table; the bias is optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let weight =
            Gradient::Kernel { run: gradient_w::<B>, reads: Reads::input(0), over: OverGradient::Nothing, rows: true };
        let x = Gradient::kernel(gradient_x::<B>, Reads::input(1));
        &Op::new("linear", forward::<B>, [x, weight, Gradient::kernel(gradient_b::<B>, Reads::NONE)])
            .words(3)
            .with_relu(forward_relu::<B>)
            .behind_relu(gradient_x_behind_relu::<B>)
            .terms(Terms::Row)
    }
}

/// The output has the shape of `x` with the last axis as long as the weight's first.
///
/// # Errors
/// When the last axis of `x` and of the weight differ, the weight is no matrix, or the bias is not as long as the output's
/// last axis.
pub const fn spec(x: Shape, weight: Shape, bias: Option<Shape>) -> Result<Spec, ShapeError> {
    let op = "linear";
    if weight.rank() != 2 {
        return Err(ShapeError::Rank { op, operand: "the weight", expected: "[out, in]", found: weight });
    }
    if x.rank() == 0 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[..., in]", found: x });
    }
    let (outputs, features) = (weight.axis(0), weight.axis(1));
    let (what, against) = ("input features are", "weight expects");
    if x.axis_from_end(0) != features {
        return Err(ShapeError::Length { op, what, found: x.axis_from_end(0), against, expected: features });
    }
    if let Some(bias) = bias
        && !bias.equals(&Shape::new([outputs]))
    {
        return Err(ShapeError::Rank { op, operand: "the bias", expected: "[out], as the weight has it", found: bias });
    }
    let rows = x.product(0, x.rank() - 1);
    Ok(Spec::new(x.with_last(outputs)).args(Args::new(&[rows, features, outputs])))
}

/// What a linear layer has beside its size.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    pub(crate) bias: bool,
    pub(crate) init: Init,
}

impl Linear {
    /// With a bias that starts at 0 and a weight that starts as [`Init::HeUniform`].
    #[must_use]
    pub const fn new() -> Self {
        Self { bias: true, init: Init::HeUniform }
    }

    /// Without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Self { bias: false, ..self }
    }

    /// With a weight that starts so.
    #[must_use]
    pub const fn init(self, init: Init) -> Self {
        Self { init, ..self }
    }
}

impl Default for Linear {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A linear layer with parameters `name.weight` `[O, I]` and `name.bias` `[O]`.
    #[track_caller]
    pub const fn linear<const A: usize, const I: usize, const O: usize>(
        &mut self,
        name: &'static str,
        x: Var<R2<A, I>>,
    ) -> Var<R2<A, O>> {
        self.linear_with(name, x, Linear::new())
    }

    /// A linear layer with these settings.
    #[track_caller]
    pub const fn linear_with<const A: usize, const I: usize, const O: usize>(
        &mut self,
        name: &'static str,
        x: Var<R2<A, I>>,
        settings: Linear,
    ) -> Var<R2<A, O>> {
        let weight = self.parameter::<R2<O, I>>(name, "weight", settings.init);
        let bias = if settings.bias { Some(self.parameter::<R1<O>>(name, "bias", Init::Zeros)) } else { None };
        self.linear_from(x, weight, bias)
    }

    /// `x Wᵀ + b` with parameters or values that are there already.
    #[track_caller]
    pub const fn linear_from<const A: usize, const I: usize, const O: usize>(
        &mut self,
        x: Var<R2<A, I>>,
        weight: Var<R2<O, I>>,
        bias: Option<Var<R1<O>>>,
    ) -> Var<R2<A, O>> {
        let spec = spec(x.shape(), weight.shape(), None);
        match bias {
            Some(bias) => self.record("", op(), &[x.id(), weight.id(), bias.id()], spec),
            None => self.record("", op(), &[x.id(), weight.id()], spec),
        }
    }
}

crate::tape::methods! {
    /// `x Wᵀ + b` for `x` `[..., in]`, a weight `[out, in]` and a bias `[out]`; the output is `[..., out]`. A fault where the
    /// shapes do not fit.
    linear(x, weight; bias)() => (op(), spec(x, weight, bias))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    last_product::<B, _>(call, |call| {
        let [rows, features, outputs, ..] = call.args.lengths();
        let [x, weight, bias] = call.x;
        let a = Matrix { data: x, row: features, col: 1 };
        let b = Matrix { data: weight, row: 1, col: features };
        let (sizes, sums) = ([rows, outputs, features], Sums::from_row(bias));
        MatrixProduct { sizes, a, b, c: mem::take(&mut call.y), c_row: outputs, sums }
    });
}

/// The same with a rectified linear unit.
fn forward_relu<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let ForwardCall { args, x, y, saved, scratch, state } = call;
    forward::<B>(ForwardCall { args, x, y: &mut *y, saved, scratch, state });
    relu::in_place::<B>(y);
}

fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    last_product::<B, _>(call, |call| {
        let [rows, features, outputs, ..] = call.args.lengths();
        let a = Matrix { data: call.dy, row: outputs, col: 1 };
        let b = Matrix { data: call.x[1], row: features, col: 1 };
        let (sizes, sums) = ([rows, features, outputs], Sums::adding(call.add));
        MatrixProduct { sizes, a, b, c: mem::take(&mut call.dx), c_row: features, sums }
    });
}

/// The same, and that of a rectified linear unit in front.
fn gradient_x_behind_relu<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let BackwardCall { args, x, y, saved, dy, dx, add, scratch, first_row } = call;
    gradient_x::<B>(BackwardCall { args, x, y, saved, dy, dx: &mut *dx, add, scratch, first_row });
    relu::gradient_in_place::<B>(dx, x[0]);
}

fn gradient_w<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    last_product::<B, _>(call, |call| {
        let [rows, features, outputs, ..] = call.args.lengths();
        let a = Matrix { data: call.dy.get(call.first_row..).unwrap_or_default(), row: 1, col: outputs };
        let b = Matrix { data: call.x[0], row: features, col: 1 };
        let c = mem::take(&mut call.dx);
        let (sizes, sums) = ([c.len() / features.max(1), features, rows], Sums::adding(call.add));
        MatrixProduct { sizes, a, b, c, c_row: features, sums }
    });
}

fn gradient_b<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if cfg!(target_os = "none") {
        // A product with a row of ones, which is one number: code that a microcontroller has anyway.
        let one = [B::Elem::ONE];
        return last_product::<B, _>(call, |call| {
            let [rows, _, outputs, ..] = call.args.lengths();
            let a = Matrix { data: &one, row: 0, col: 0 };
            let b = Matrix { data: call.dy, row: outputs, col: 1 };
            let (sizes, sums) = ([1, outputs, rows], Sums::adding(call.add));
            MatrixProduct { sizes, a, b, c: mem::take(&mut call.dx), c_row: outputs, sums }
        });
    }
    let [_, _, outputs, ..] = call.args.lengths();
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    dispatch::<B, _>(AddRows { rows: call.dy.chunks_exact(outputs.max(1)), to: call.dx });
}

struct AddRows<'a, E> {
    rows: ChunksExact<'a, E>,
    to: &'a mut [E],
}

impl<E: Real> Kernel<E> for AddRows<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let Self { rows, to } = self;
        rows.for_each(|row| to.iter_mut().zip(row).for_each(|(to, &x)| *to += x));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        // Two rows, W = [[1, 2], [3, 4], [5, 6]].
        let (x, w, b) = ([1.0, 2.0, -1.0, 0.5], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5, -0.5, 0.0]);
        let spec = spec(Shape::new([2, 2]), Shape::new([3, 2]), Some(Shape::new([3]))).unwrap();
        let y = [5.5, 10.5, 17.0, 0.5, -1.5, -2.0];
        let dx = [9.0, 12.0, 9.0, 12.0];
        let dw = [0.0, 2.5, 0.0, 2.5, 0.0, 2.5];
        check(op(), spec, &[&x, &w, &b], &y, &[&dx, &dw, &[2.0; 3]]);
    }

    #[test]
    fn the_error_names_both_lengths() {
        let error = spec(Shape::new([16, 63]), Shape::new([32, 64]), None).unwrap_err();
        let text = error.message("fc1");
        assert_eq!(text.as_str(), "linear `fc1`: input features are 63, weight expects 64");
    }
}
