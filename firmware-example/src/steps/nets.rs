//! The standard workloads, and data for them.

#![allow(dead_code)]

use slabgrad::prelude::*;

#[path = "../../../benches/steps/nets.rs"]
pub(crate) mod workloads;

/// Exclusive or, by eight hidden units.
pub const fn xor() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<4, 2>>("x");
    let y = g.input::<R2<4, 1>>("y");
    let h: Var<R2<4, 8>> = g.linear("hidden", x);
    let h = g.tanh(h);
    let p: Var<R2<4, 1>> = g.linear("out", h);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

/// The four samples of the exclusive or.
pub fn fill_xor(x: &mut [f32], y: &mut [f32]) {
    for (i, (x, y)) in x.chunks_exact_mut(2).zip(y).enumerate() {
        let bits = [i >> 1 & 1, i & 1];
        x.iter_mut().zip(bits).for_each(|(x, bit)| *x = bit as f32);
        *y = (bits[0] ^ bits[1]) as f32;
    }
}

/// Samples of classes: a prototype for each, and noise.
pub fn fill(x: &mut [f32], labels: &mut [f32], classes: u32) {
    let mut state = 12345_u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let features = x.len() / labels.len().max(1);
    for (x, label) in x.chunks_exact_mut(features.max(1)).zip(labels) {
        let class = random() % classes;
        *label = class as f32;
        for (i, x) in (0..).zip(x) {
            let hash = (class * 7919 + i * 104_729 + 17).wrapping_mul(2_654_435_761);
            let prototype = if hash & 0xffff < 0x5000 { (hash >> 16 & 0xff) as f32 / 255.0 } else { 0.0 };
            *x = 0.7 * prototype + 0.3 * (random() as f32 / 16_777_216.0);
        }
    }
}
