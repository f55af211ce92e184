//! The networks of the standard workloads. The firmware that measures a step on a microcontroller takes them from here too.

use slabgrad::prelude::*;

/// MLP of two layers, for `B` samples of 64 features.
pub(crate) const fn w1<B: Backend, const N: usize>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R2<N, 64>>("x");
    let label = g.class_indices::<N>("label");
    let h: Var<R2<N, 32>> = g.linear("fc1", x);
    let h = g.relu(h);
    let logits: Var<R2<N, 10>> = g.linear("fc2", h);
    finish(g, logits, label)
}

/// MLP of three layers.
pub(crate) const fn w2<B: Backend, const N: usize>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R2<N, 784>>("x");
    let label = g.class_indices::<N>("label");
    let h: Var<R2<N, 256>> = g.linear("fc1", x);
    let h = g.relu(h);
    let h: Var<R2<N, 128>> = g.linear("fc2", h);
    let h = g.relu(h);
    let logits: Var<R2<N, 10>> = g.linear("fc3", h);
    finish(g, logits, label)
}

/// CNN on images of 28 x 28.
pub(crate) const fn w3<B: Backend, const N: usize>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R4<N, 1, 28, 28>>("x");
    let label = g.class_indices::<N>("label");
    let h: Var<R4<N, 16, 28, 28>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<N, 32, 14, 14>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.relu(h);
    let h: Var<R2<N, 6272>> = g.flatten(h);
    let h: Var<R2<N, 64>> = g.linear("fc1", h);
    let h = g.relu(h);
    let logits: Var<R2<N, 4>> = g.linear("fc2", h);
    finish(g, logits, label)
}

const fn finish<B: Backend, const N: usize, const C: usize>(
    mut g: Graph<B>,
    logits: Var<R2<N, C>>,
    label: Var<slabgrad::graph::Indices<N>>,
) -> Graph<B> {
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}
