//! What the element-wise operations of one operand share: `y = f(x)` in place where nothing else reads `x`, and
//! `dx = dy f'(x)` in place of `dy`.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads};
use crate::backend::{Backend, Real};

/// An element-wise function. Its settings are scalars in the node's arguments.
pub(super) trait Unary<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;
    /// What the derivative is told from: the output unless this says [`Reads::input`] of 0, or [`Reads::NONE`]. With the
    /// output or nothing, `f` overwrites its input.
    const READS: Reads = Reads::OUTPUT;
    /// Whether `dx` is `dy` as it stands.
    const PASSES: bool = false;

    /// `y = f(x)`.
    fn value(x: B::Elem, args: &Args) -> B::Elem;

    /// `dy f'(x)`, from what is read: `y`, `x`, or 0.
    fn gradient(read: B::Elem, dy: B::Elem, args: &Args) -> B::Elem;
}

/// The table of `F`.
pub(super) const fn op<B: Backend, F: Unary<B>>() -> &'static Op<B> {
    const {
        let x = if F::PASSES { Gradient::Pass } else { Gradient::over_dy(backward::<B, F>, F::READS) };
        &Op::new(F::NAME, forward::<B, F>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// The number as an element.
#[inline(always)]
pub(super) fn number<E: Real>(number: f64) -> E {
    E::choose(number as f32, number)
}

fn forward<B: Backend, F: Unary<B>>(call: ForwardCall<'_, B::Elem>) {
    // A copy, so that the loop need not read them again after every element that it writes.
    let args = *call.args;
    call.y.iter_mut().for_each(|y| *y = F::value(*y, &args));
}

fn backward<B: Backend, F: Unary<B>>(call: BackwardCall<'_, B::Elem>) {
    let args = *call.args;
    if F::READS == Reads::NONE {
        call.dx.iter_mut().for_each(|dx| *dx = F::gradient(B::Elem::ZERO, *dx, &args));
        return;
    }
    let read = if F::READS.has(Reads::OUTPUT) { call.y } else { call.x[0] };
    for (dx, &read) in call.dx.iter_mut().zip(read) {
        *dx = F::gradient(read, *dx, &args);
    }
}
