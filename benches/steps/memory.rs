//! What memory allows an optimizer: also `benches/adam.rs` measures by it.

/// Moves the bytes of a step of Adam, 28 for each parameter, and does next to nothing with them.
#[inline(never)]
pub(crate) fn move_bytes(p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
    for (((p, &g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
        *m += g;
        *v += g;
        *p += g;
    }
}
