//! What the element-wise operations of one operand share: `y = f(x)` in place, and `dx = dy f'`, with the derivative
//! written in terms of the output.

use super::{BackwardCall, ForwardCall, Gradient, Op, Over, Reads};
use crate::backend::Backend;

/// An element-wise function whose derivative can be told from its value.
pub(super) trait Unary<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;

    /// `y = f(x)`.
    fn value(x: B::Elem) -> B::Elem;

    /// `dy` times f'(x), from `y`.
    fn gradient(y: B::Elem, dy: B::Elem) -> B::Elem;
}

/// The table of `F`.
pub(super) const fn op<B: Backend, F: Unary<B>>() -> &'static Op<B> {
    const {
        &Op::new(
            F::NAME,
            forward::<B, F>,
            [Gradient::over_dy(backward::<B, F>, Reads::OUTPUT), Gradient::None, Gradient::None],
        )
        .over(Over::Output)
    }
}

fn forward<B: Backend, F: Unary<B>>(call: ForwardCall<'_, B::Elem>) {
    call.y.iter_mut().for_each(|y| *y = F::value(*y));
}

fn backward<B: Backend, F: Unary<B>>(call: BackwardCall<'_, B::Elem>) {
    for (dx, &y) in call.dx.iter_mut().zip(call.y) {
        *dx = F::gradient(y, *dx);
    }
}
