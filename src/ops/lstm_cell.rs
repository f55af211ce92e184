//! The element-wise part of a long short-term memory cell, in three operations (Hochreiter and Schmidhuber, 1997; with the
//! forget gate of Gers et al., 2000), as PyTorch's `LSTMCell` has it. The gates `[..., 4 h]` are those of the input, the
//! forget gate, the cell and the output, in this order.
//!
//! - [`op_gates`]: `i, f, o = σ(x)` and `g = tanh(x)`, in place; `dx = dy y (1 - y)` and `dy (1 - y²)`.
//! - [`op_cell`]: `c' = f c + i g`; `dc = dc' f`, `di = dc' g`, `df = dc' c`, `dg = dc' i`.
//! - [`op_hidden`]: `h = o tanh(c')`; `dc' = dh o (1 - tanh² c')`, `do = dh tanh(c')`.
//!
//! They are three because an operation has one output, and few because every one keeps what it computes: a step keeps
//! the activated gates, `c'` and `h` for backward, six times the hidden size.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::shape::Shape;

/// The table that activates the gates.
#[must_use]
pub const fn op_gates<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient_activation::<B>, Reads::OUTPUT);
        &Op::new("lstm_gates", activate::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output)
    }
}

/// The table of the new cell, from the old one and the activated gates.
#[must_use]
pub const fn op_cell<B: Backend>() -> &'static Op<B> {
    const {
        let c = Gradient::over_dy(cell_gradient_c::<B>, Reads::input(1));
        let gates = Gradient::kernel(cell_gradient_gates::<B>, Reads::input(0).and(Reads::input(1)));
        &Op::new("lstm_cell", cell::<B>, [c, gates, Gradient::None]).over(Over::Output)
    }
}

/// The table of the hidden state, from the new cell and the activated gates.
#[must_use]
pub const fn op_hidden<B: Backend>() -> &'static Op<B> {
    const {
        let c = Gradient::over_dy(hidden_gradient_c::<B>, Reads::input(0).and(Reads::input(1)));
        let gates = Gradient::kernel(hidden_gradient_gates::<B>, Reads::input(0));
        &Op::new("lstm_hidden", hidden::<B>, [c, gates, Gradient::None]).over(Over::Output)
    }
}

/// Of [`op_gates`]: the output has the shape of the gates.
///
/// # Errors
/// When the last axis cannot be divided by four.
pub const fn spec_gates(gates: Shape) -> Result<Spec, ShapeError> {
    if gates.rank() == 0 || !gates.axis_from_end(0).is_multiple_of(4) {
        let (op, operand) = ("lstm_gates", "the gates");
        return Err(ShapeError::Rank { op, operand, expected: "[..., 4 hidden]", found: gates });
    }
    Ok(Spec::new(gates).args(Args::new(&[gates.axis_from_end(0) / 4])))
}

/// Of [`op_cell`] and [`op_hidden`]: the output has the shape of the cell `[..., h]`.
///
/// # Errors
/// When the gates are not four times the cell along the last axis.
pub const fn spec(cell: Shape, gates: Shape) -> Result<Spec, ShapeError> {
    let op = "lstm_cell";
    if cell.rank() == 0 {
        return Err(ShapeError::Rank { op, operand: "the cell", expected: "[..., hidden]", found: cell });
    }
    let hidden = cell.axis_from_end(0);
    if !gates.equals(&cell.with_last(4 * hidden)) {
        let expected = "that of the cell with a last axis four times as long";
        return Err(ShapeError::Rank { op, operand: "the gates", expected, found: gates });
    }
    Ok(Spec::new(cell).args(Args::new(&[hidden])))
}

crate::tape::methods! {
    /// The activated gates of a long short-term memory, from `W_ih x + b_ih + W_hh h + b_hh` `[..., 4 h]`. A fault where the
    /// last axis cannot be divided by four.
    lstm_gates(gates)() => (op_gates(), spec_gates(gates));
    /// The new cell of a long short-term memory, from the old one `[..., h]` and the activated gates `[..., 4 h]`. A fault
    /// where the shapes do not fit.
    lstm_cell(cell, gates)() => (op_cell(), spec(cell, gates));
    /// The hidden state of a long short-term memory, from the new cell `[..., h]` and the activated gates `[..., 4 h]`. A
    /// fault where the shapes do not fit.
    lstm_hidden(cell, gates)() => (op_hidden(), spec(cell, gates))
}

/// A row's gates, one after the other.
struct Gates<'g, E> {
    i: &'g [E],
    f: &'g [E],
    g: &'g [E],
    o: &'g [E],
}

/// The gates of every row.
fn rows<E: Real>(gates: &[E], hidden: usize) -> impl Iterator<Item = Gates<'_, E>> {
    gates.chunks_exact((4 * hidden).max(1)).map(move |row| {
        let mut parts = row.chunks_exact(hidden.max(1));
        let mut next = || parts.next().unwrap_or_default();
        Gates { i: next(), f: next(), g: next(), o: next() }
    })
}

fn activate<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    for (part, y) in call.y.chunks_exact_mut(hidden.max(1)).enumerate() {
        if part % 4 == 2 {
            y.iter_mut().for_each(|y| *y = B::tanh(*y));
        } else {
            y.iter_mut().for_each(|y| *y = B::sigmoid(*y));
        }
    }
}

fn gradient_activation<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let (hidden, one) = (hidden.max(1), B::Elem::ONE);
    for (part, (dx, y)) in call.dx.chunks_exact_mut(hidden).zip(call.y.chunks_exact(hidden)).enumerate() {
        if part % 4 == 2 {
            dx.iter_mut().zip(y).for_each(|(dx, &y)| *dx *= one - y * y);
        } else {
            dx.iter_mut().zip(y).for_each(|(dx, &y)| *dx *= y * (one - y));
        }
    }
}

fn cell<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    for (c, gates) in call.y.chunks_exact_mut(hidden.max(1)).zip(rows(call.x[1], hidden)) {
        for (((c, &f), &i), &g) in c.iter_mut().zip(gates.f).zip(gates.i).zip(gates.g) {
            *c = B::mul_add(i, g, f * *c);
        }
    }
}

fn cell_gradient_c<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    for (dc, gates) in call.dx.chunks_exact_mut(hidden.max(1)).zip(rows(call.x[1], hidden)) {
        dc.iter_mut().zip(gates.f).for_each(|(dc, &f)| *dc *= f);
    }
}

fn cell_gradient_gates<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let cells = call.x[0].chunks_exact(hidden.max(1)).zip(call.dy.chunks_exact(hidden.max(1)));
    for ((dx, (c, dc)), gates) in call.dx.chunks_exact_mut((4 * hidden).max(1)).zip(cells).zip(rows(call.x[1], hidden))
    {
        // By each gate's place: the gradient for the output gate is 0.
        let factors = [gates.g, c, gates.i];
        write_gates(dx, hidden, call.add, |gate, k| match (factors.get(gate).and_then(|f| f.get(k)), dc.get(k)) {
            (Some(&factor), Some(&dc)) => dc * factor,
            _ => B::Elem::ZERO,
        });
    }
}

fn hidden<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    for (h, gates) in call.y.chunks_exact_mut(hidden.max(1)).zip(rows(call.x[1], hidden)) {
        h.iter_mut().zip(gates.o).for_each(|(h, &o)| *h = o * B::tanh(*h));
    }
}

fn hidden_gradient_c<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let cells = call.x[0].chunks_exact(hidden.max(1));
    for ((dc, c), gates) in call.dx.chunks_exact_mut(hidden.max(1)).zip(cells).zip(rows(call.x[1], hidden)) {
        for ((dc, &c), &o) in dc.iter_mut().zip(c).zip(gates.o) {
            let tanh = B::tanh(c);
            *dc *= o * (B::Elem::ONE - tanh * tanh);
        }
    }
}

fn hidden_gradient_gates<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let cells = call.x[0].chunks_exact(hidden.max(1)).zip(call.dy.chunks_exact(hidden.max(1)));
    for (dx, (c, dh)) in call.dx.chunks_exact_mut((4 * hidden).max(1)).zip(cells) {
        write_gates(dx, hidden, call.add, |gate, k| match (gate, c.get(k), dh.get(k)) {
            (3, Some(&c), Some(&dh)) => dh * B::tanh(c),
            _ => B::Elem::ZERO,
        });
    }
}

/// Writes or adds the gradient of a row of gates, told by gate and place.
fn write_gates<E: Real>(dx: &mut [E], hidden: usize, add: bool, gradient: impl Fn(usize, usize) -> E) {
    for (gate, dx) in dx.chunks_exact_mut(hidden.max(1)).enumerate() {
        for (k, dx) in dx.iter_mut().enumerate() {
            let gradient = gradient(gate, k);
            *dx = if add { *dx + gradient } else { gradient };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (cell, gates) = (Shape::new([1, 1]), Shape::new([1, 4]));
        let y2 = 0.880_797_077_977_882_4;
        let (y, dx) = ([0.5, y2, 0.0, 0.5], [0.25, y2 * (1.0 - y2), 1.0, 0.25]);
        check(op_gates(), spec_gates(gates).unwrap(), &[&[0.0, 2.0, 0.0, 0.0]], &y, &[&dx]);

        // i, f, g, o, and c = 4.
        let activated = [0.5, 0.25, -1.0, 0.75];
        let spec = spec(cell, gates).unwrap();
        check(op_cell(), spec, &[&[4.0], &activated], &[0.5], &[&[0.25], &[-1.0, 4.0, 0.5, 0.0]]);
        let tanh = libm::tanh(0.5);
        let dc = [0.75 * (1.0 - tanh * tanh)];
        check(op_hidden(), spec, &[&[0.5], &activated], &[0.75 * tanh], &[&dc, &[0.0, 0.0, 0.0, tanh]]);
    }

    #[test]
    fn gates_are_four_times_the_cell() {
        let error = spec(Shape::new([2, 5]), Shape::new([2, 15])).unwrap_err();
        let text =
            "lstm_cell: the gates has shape [2, 15], expected that of the cell with a last axis four times as long";
        assert_eq!(std::format!("{error}"), text);
    }
}
