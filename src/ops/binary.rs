//! What the element-wise operations of two operands share: NumPy's broadcasting, and three tables that have the same
//! kernels. One is for equal shapes and one for a `b` that broadcasts to `a`; both work in place of `a`. One is for the rest.
//!
//! The gradient of an operand that is stretched is summed along each row of the output in the order of
//! [`Backend::sum_pairs`], and over the rows in ascending order. That of the others takes the place of `dy`.

use super::broadcast::{self, Operand, Rows};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::shape::{self, Shape};

/// An element-wise function of two operands.
pub(super) trait Binary<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;
    /// What the gradient with respect to each operand reads. A derivative that reads the output gets it as its `a`.
    const READS: [Reads; 2];
    /// Whether the gradient with respect to each operand is `dy` as it stands.
    const PASSES: [bool; 2] = [false; 2];

    /// `y = f(a, b)`.
    fn value(a: B::Elem, b: B::Elem, args: &Args) -> B::Elem;

    /// `dy ∂f/∂a`; what is not read is 0.
    fn gradient_a(a: B::Elem, b: B::Elem, dy: B::Elem, args: &Args) -> B::Elem;

    /// `dy ∂f/∂b`; what is not read is 0.
    fn gradient_b(a: B::Elem, b: B::Elem, dy: B::Elem, args: &Args) -> B::Elem;
}

/// The table of `F` for equal shapes.
pub(super) const fn op_same<B: Backend, F: Binary<B>>() -> &'static Op<B> {
    const {
        &Op::new(F::NAME, forward::<B, F>, [in_place::<B, F, 0>(), in_place::<B, F, 1>(), Gradient::None])
            .over(Over::Output)
    }
}

/// The table of `F` for a `b` that broadcasts to the shape of `a`.
pub(super) const fn op_into<B: Backend, F: Binary<B>>() -> &'static Op<B> {
    const {
        &Op::new(F::NAME, forward::<B, F>, [in_place::<B, F, 0>(), summed::<B, F, 1>(), Gradient::None])
            .over(Over::Output)
    }
}

/// The table of `F` for any two shapes that broadcast.
pub(super) const fn op_any<B: Backend, F: Binary<B>>() -> &'static Op<B> {
    const { &Op::new(F::NAME, forward_any::<B, F>, [summed::<B, F, 0>(), summed::<B, F, 1>(), Gradient::None]) }
}

/// The table of `F` that suits these shapes.
pub(super) const fn op<B: Backend, F: Binary<B>>(a: Shape, b: Shape) -> &'static Op<B> {
    match shape::broadcast(a, b) {
        Some(_) if a.equals(&b) => op_same::<B, F>(),
        Some(y) if a.equals(&y) => op_into::<B, F>(),
        _ => op_any::<B, F>(),
    }
}

/// The output has the shape of both, broadcast. Words 8 to 11 of the arguments are free for a scalar.
pub(super) const fn spec(op: &'static str, a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    match shape::broadcast(a, b) {
        Some(y) => Ok(Spec::new(y).args(broadcast::args(&[a, b], y))),
        None => Err(ShapeError::Broadcast { op, a, b }),
    }
}

const fn in_place<B: Backend, F: Binary<B>, const OPERAND: usize>() -> Gradient<B> {
    if F::PASSES[OPERAND] {
        Gradient::Pass
    } else {
        Gradient::over_dy(gradient_in_place::<B, F, OPERAND>, F::READS[OPERAND])
    }
}

const fn summed<B: Backend, F: Binary<B>, const OPERAND: usize>() -> Gradient<B> {
    Gradient::kernel(gradient_summed::<B, F, OPERAND>, F::READS[OPERAND])
}

/// With `a` in `y`.
fn forward<B: Backend, F: Binary<B>>(call: ForwardCall<'_, B::Elem>) {
    // A copy, so that the loops need not read them again after every element that they write.
    let args = *call.args;
    let b = Operand::new::<1>(&args, call.x[1]);
    broadcast::replace(call.y, b, Operand::none(&args), |b, _, a| F::value(a, b, &args));
}

fn forward_any<B: Backend, F: Binary<B>>(call: ForwardCall<'_, B::Elem>) {
    let a = Operand::new::<0>(call.args, call.x[0]);
    broadcast::replace(call.y, a, Operand::none(call.args), |a, _, _| a);
    forward::<B, F>(call);
}

fn gradient_in_place<B: Backend, F: Binary<B>, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    let args = *call.args;
    let (own, other) = operands::<_, OPERAND>(&args, call.x, call.y);
    broadcast::replace(call.dx, own, other, |own, other, dy| gradient::<B, F, OPERAND>(own, other, dy, &args));
}

fn gradient_summed<B: Backend, F: Binary<B>, const OPERAND: usize>(call: BackwardCall<'_, B::Elem>) {
    let args = *call.args;
    let (own, other) = operands::<_, OPERAND>(&args, call.x, call.y);
    let rows = Rows::new::<OPERAND>(&args);
    let f = |own, other, dy| gradient::<B, F, OPERAND>(own, other, dy, &args);
    broadcast::sum::<B>((call.dy, call.dx), call.add, rows, own, other, f);
}

/// The operand whose gradient is computed, and the other one.
fn operands<'a, E: Real, const OPERAND: usize>(
    args: &Args,
    x: [&'a [E]; super::MAX_INPUTS],
    y: &'a [E],
) -> (Operand<'a, E>, Operand<'a, E>) {
    let a = if y.is_empty() { Operand::new::<0>(args, x[0]) } else { Operand::output(args, y) };
    let b = Operand::new::<1>(args, x[1]);
    if OPERAND == 0 { (a, b) } else { (b, a) }
}

#[inline(always)]
fn gradient<B: Backend, F: Binary<B>, const OPERAND: usize>(
    own: B::Elem,
    other: B::Elem,
    dy: B::Elem,
    args: &Args,
) -> B::Elem {
    if OPERAND == 0 { F::gradient_a(own, other, dy, args) } else { F::gradient_b(other, own, dy, args) }
}

#[cfg(test)]
mod tests {
    use super::super::{maximum, mul, pow};
    use super::*;
    use crate::backend::Strict;

    /// Programs have no empty tensors, other front ends may.
    #[test]
    fn empty_axes_are_left_alone() {
        let cases: [(&[usize], &[usize]); 4] = [(&[0], &[0]), (&[2, 0], &[1]), (&[0, 3], &[3]), (&[1], &[2, 0])];
        for (a, b) in cases {
            let (a, b) = (Shape::from_slice(a), Shape::from_slice(b));
            let (x, z) = (std::vec![2.0; a.len()], std::vec![3.0; b.len()]);
            for op in [mul::op::<Strict<f32>>(a, b), maximum::op(a, b), pow::op(a, b)] {
                let args = &spec(op.name, a, b).unwrap().args;
                let x = [&x[..], &z, &[]];
                let (y, saved, scratch, state) = (&mut [][..], &mut [][..], &mut [][..], &[][..]);
                (op.forward)(ForwardCall { x, y, saved, scratch, state, args });
                for (gradient, len) in op.backward.iter().zip([a.len(), b.len()]) {
                    let Gradient::Kernel { run, .. } = gradient else { panic!("{} has a kernel", op.name) };
                    let mut dx = std::vec![7.0; len];
                    let (y, saved, dy, scratch) = (&[][..], &[][..], &[][..], &mut [][..]);
                    run(BackwardCall { args, x, y, saved, dy, dx: &mut dx, add: false, scratch, first_row: 0 });
                    assert!(dx.iter().all(|&dx| dx == 0.0), "{} of {a} and {b}: {dx:?}", op.name);
                }
            }
        }
    }
}
