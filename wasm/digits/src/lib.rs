//! A convolutional network for digits of 8 x 8 pixels, compiled at build time: what a static model in the browser takes.

#![cfg_attr(target_family = "wasm", no_std)]
// On other targets nothing is exported.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 16, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<B, 16, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 32, 4, 4>> = g.conv2d("conv2", h, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R2<B, 512>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static TRAIN = net::<16>().train(Training::with::<Adam>()));
program!(static INFER = net::<1>().infer());
slabgrad_static::export!(TRAIN, INFER, Adam::new(1e-3));
