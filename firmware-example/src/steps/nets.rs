//! The standard workloads, and data for them.

#![allow(dead_code)]

use slabgrad::prelude::*;

/// MLP of two layers.
pub const fn w1<B: Backend>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R2<16, 64>>("x");
    let label = g.class_indices::<16>("label");
    let h: Var<R2<16, 32>> = g.linear("fc1", x);
    let h = g.relu(h);
    let logits: Var<R2<16, 10>> = g.linear("fc2", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

/// MLP of three layers.
pub const fn w2<B: Backend>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R2<32, 784>>("x");
    let label = g.class_indices::<32>("label");
    let h: Var<R2<32, 256>> = g.linear("fc1", x);
    let h = g.relu(h);
    let h: Var<R2<32, 128>> = g.linear("fc2", h);
    let h = g.relu(h);
    let logits: Var<R2<32, 10>> = g.linear("fc3", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

/// CNN on images of 28 x 28.
pub const fn w3<B: Backend>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R4<32, 1, 28, 28>>("x");
    let label = g.class_indices::<32>("label");
    let h: Var<R4<32, 16, 28, 28>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<32, 32, 14, 14>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.relu(h);
    let h: Var<R2<32, 6272>> = g.flatten(h);
    let h: Var<R2<32, 64>> = g.linear("fc1", h);
    let h = g.relu(h);
    let logits: Var<R2<32, 4>> = g.linear("fc2", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

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
