//! The element-wise part of a gated recurrent unit (Cho et al., 2014), as PyTorch's `GRUCell` has it: from the hidden state
//! `h` `[..., n]` and, each `[..., 3 n]`, `a = W_ih x + b_ih` and `b = W_hh h + b_hh`, whose parts are those of the reset gate,
//! the update gate and the candidate,
//!
//! `r = σ(a_r + b_r)`, `z = σ(a_z + b_z)`, `n = tanh(a_n + r b_n)`, `h' = (1 - z) n + z h`.
//!
//! With `dm = dh' (1 - z) (1 - n²)`: `dh = dh' z`, `da_n = dm`, `db_n = dm r`, `da_r = db_r = dm b_n r (1 - r)`, and
//! `da_z = db_z = dh' (h - n) z (1 - z)`. Forward keeps `r`, `z`, `n` and `b_n`.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::shape::Shape;

/// The table: `h`, `a` and `b`.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let reads = Reads::input(0).and(Reads::SAVED);
        let h = Gradient::over_dy(gradient_h::<B>, Reads::SAVED);
        let a = Gradient::kernel(gradient_gates::<B, false>, reads);
        let b = Gradient::kernel(gradient_gates::<B, true>, reads);
        &Op { infer: Some(infer::<B>), ..Op::new("gru_cell", forward::<B>, [h, a, b]).over(Over::Output) }
    }
}

/// The output has the shape of `h`.
///
/// # Errors
/// When `a` or `b` is not three times `h` along the last axis.
pub const fn spec(h: Shape, a: Shape, b: Shape) -> Result<Spec, ShapeError> {
    let op = "gru_cell";
    if h.rank() == 0 {
        return Err(ShapeError::Rank { op, operand: "the hidden state", expected: "[..., hidden]", found: h });
    }
    let hidden = h.axis_from_end(0);
    let gates = h.with_last(3 * hidden);
    if !a.equals(&gates) || !b.equals(&gates) {
        let (operand, found) = if a.equals(&gates) { ("the recurrent part", b) } else { ("the input's part", a) };
        let expected = "that of the hidden state with a last axis three times as long";
        return Err(ShapeError::Rank { op, operand, expected, found });
    }
    Ok(Spec { saved: 4 * h.len(), ..Spec::new(h).args(Args::new(&[hidden])) })
}

crate::tape::methods! {
    /// A gated recurrent unit's new hidden state, from the old one `[..., n]`, `a = W_ih x + b_ih` and `b = W_hh h + b_hh`, each
    /// `[..., 3 n]`. A fault where the shapes do not fit.
    gru_cell(h, a, b)() => (op(), spec(h, a, b))
}

/// The parts of a row, each of `hidden` elements: three gates, or what forward keeps, with nothing beyond the last.
fn parts<E>(row: &[E], hidden: usize) -> [&[E]; 4] {
    let mut parts = row.chunks_exact(hidden.max(1));
    [(); 4].map(|()| parts.next().unwrap_or_default())
}

/// Of one unit `r`, `z`, `n` and `h'`.
#[inline(always)]
fn unit<B: Backend>(h: B::Elem, a: [B::Elem; 3], b: [B::Elem; 3]) -> [B::Elem; 4] {
    let ([a_r, a_z, a_n], [b_r, b_z, b_n]) = (a, b);
    let (r, z) = (B::sigmoid(a_r + b_r), B::sigmoid(a_z + b_z));
    let n = B::tanh(B::mul_add(r, b_n, a_n));
    [r, z, n, B::mul_add(z, h, (B::Elem::ONE - z) * n)]
}

/// Calls `each` with every unit of a row: its hidden state and its three parts of `a` and of `b`.
#[inline(always)]
fn for_each_unit<E: Real>(h: &mut [E], a: &[E], b: &[E], mut each: impl FnMut(usize, &mut E, [E; 3], [E; 3])) {
    let len = h.len();
    let ([a_r, a_z, a_n, _], [b_r, b_z, b_n, _]) = (parts(a, len), parts(b, len));
    let parts = a_r.iter().zip(b_r).zip(a_z.iter().zip(b_z)).zip(a_n.iter().zip(b_n));
    for (i, (h, (((&a_r, &b_r), (&a_z, &b_z)), (&a_n, &b_n)))) in h.iter_mut().zip(parts).enumerate() {
        each(i, h, [a_r, a_z, a_n], [b_r, b_z, b_n]);
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let gates = (3 * hidden).max(1);
    let rows = call.y.chunks_exact_mut(hidden.max(1)).zip(call.saved.chunks_exact_mut((4 * hidden).max(1)));
    let inputs = call.x[1].chunks_exact(gates).zip(call.x[2].chunks_exact(gates));
    for ((h, saved), (a, b)) in rows.zip(inputs) {
        for_each_unit(h, a, b, |i, h, a, b| {
            let [r, z, n, next] = unit::<B>(*h, a, b);
            let kept = saved.get_mut(i..).unwrap_or_default().iter_mut().step_by(hidden.max(1));
            kept.zip([r, z, n, b[2]]).for_each(|(kept, value)| *kept = value);
            *h = next;
        });
    }
}

fn infer<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let gates = (3 * hidden).max(1);
    let inputs = call.x[1].chunks_exact(gates).zip(call.x[2].chunks_exact(gates));
    for (h, (a, b)) in call.y.chunks_exact_mut(hidden.max(1)).zip(inputs) {
        for_each_unit(h, a, b, |_, h, a, b| {
            let [.., next] = unit::<B>(*h, a, b);
            *h = next;
        });
    }
}

fn gradient_h<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    for (dh, saved) in call.dx.chunks_exact_mut(hidden.max(1)).zip(call.saved.chunks_exact((4 * hidden).max(1))) {
        let [_, z, ..] = parts(saved, hidden);
        dh.iter_mut().zip(z).for_each(|(dh, &z)| *dh *= z);
    }
}

fn gradient_gates<B: Backend, const RECURRENT: bool>(call: BackwardCall<'_, B::Elem>) {
    let [hidden, ..] = call.args.lengths();
    let (len, one) = (hidden.max(1), B::Elem::ONE);
    let rows = call.dx.chunks_exact_mut((3 * hidden).max(1)).zip(call.saved.chunks_exact((4 * hidden).max(1)));
    for ((dx, saved), (h, dy)) in rows.zip(call.x[0].chunks_exact(len).zip(call.dy.chunks_exact(len))) {
        let [r, z, n, m] = parts(saved, hidden);
        let mut gates = dx.chunks_exact_mut(len);
        let [dr, dz, dn] = [(); 3].map(|()| gates.next().unwrap_or_default());
        let put = |dx: &mut B::Elem, gradient| *dx = if call.add { *dx + gradient } else { gradient };
        let kept = r.iter().zip(z).zip(n).zip(m).zip(h.iter().zip(dy));
        for (((dr, dz), dn), ((((&r, &z), &n), &m), (&h, &dy))) in dr.iter_mut().zip(dz).zip(dn).zip(kept) {
            let candidate = dy * (one - z) * (one - n * n);
            put(dr, candidate * m * (r * (one - r)));
            put(dz, dy * (h - n) * (z * (one - z)));
            put(dn, if RECURRENT { candidate * r } else { candidate });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        let (h, gates) = (Shape::new([1, 1]), Shape::new([1, 3]));
        // r = z = 1/2, n = tanh(1 + 2 / 2).
        let (a, b) = ([1.0, 0.5, 1.0], [-1.0, -0.5, 2.0]);
        let n = libm::tanh(2.0);
        let dm = 0.5 * (1.0 - n * n);
        let dz = (3.0 - n) * 0.25;
        let gradients: [&[f64]; 3] = [&[0.5], &[dm * 2.0 * 0.25, dz, dm], &[dm * 2.0 * 0.25, dz, dm * 0.5]];
        check(op(), spec(h, gates, gates).unwrap(), &[&[3.0], &a, &b], &[0.5 * n + 1.5], &gradients);
    }

    #[test]
    fn both_parts_are_three_times_the_hidden_state() {
        let error = spec(Shape::new([2, 5]), Shape::new([2, 15]), Shape::new([2, 20])).unwrap_err();
        let text = "gru_cell: the recurrent part has shape [2, 20], expected that of the hidden state with a last axis \
                    three times as long";
        assert_eq!(std::format!("{error}"), text);
    }
}
