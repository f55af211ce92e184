//! The networks.

use slabgrad::graph::Indices;
use slabgrad::prelude::*;

/// Samples of a batch, at most.
pub(crate) const BATCH: usize = 16;
/// The same where a sample is much work for a microcontroller.
const FEW: usize = 4;
/// Pixels of a digit.
pub(crate) const PIXELS: usize = 64;
const CLASSES: usize = 10;

/// W1: two dense layers.
const fn w1() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<BATCH, PIXELS>>("x");
    let label = g.class_indices::<BATCH>("label");
    let h: Var<R2<BATCH, 32>> = g.linear("fc1", x);
    let h = g.relu(h);
    let logits: Var<R2<BATCH, CLASSES>> = g.linear("fc2", h);
    finish(g, logits, label)
}

/// The convolutional network of `examples/digits.rs`. Its second convolution is work enough for two threads.
const fn cnn() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<FEW, 1, 8, 8>>("x");
    let label = g.class_indices::<FEW>("label");
    let h: Var<R4<FEW, 16, 8, 8>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<FEW, 16, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<FEW, 32, 4, 4>> = g.conv2d("conv2", h, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R2<FEW, 512>> = g.flatten(h);
    let logits: Var<R2<FEW, CLASSES>> = g.linear("fc", h);
    finish(g, logits, label)
}

/// What sums, divides, and calls functions beside products: normalisations, activations, dropout.
const fn norms() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<BATCH, PIXELS>>("x");
    let label = g.class_indices::<BATCH>("label");
    let h: Var<R2<BATCH, 24>> = g.linear("fc1", x);
    let h = g.batch_norm1d("bn", h);
    let h = g.gelu(h);
    let h = g.dropout(h, 0.2);
    let h: Var<R2<BATCH, 24>> = g.linear("fc2", h);
    let h = g.layer_norm("ln", h);
    let h = g.tanh(h);
    let h = g.softmax(h, 1);
    let logits: Var<R2<BATCH, CLASSES>> = g.linear("fc3", h);
    finish(g, logits, label)
}

/// A recurrent network that reads a digit row by row.
const fn gru() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<BATCH, PIXELS>>("x");
    let label = g.class_indices::<BATCH>("label");
    let cell = g.gru_cell::<8, 12>("gru");
    let mut h: Var<R2<BATCH, 12>> = g.zeros();
    let mut row = 0;
    while row < 8 {
        let part: Var<R2<BATCH, 8>> = g.slice(x, &[0, row * 8], &[BATCH, row * 8 + 8]);
        h = g.gru_step(cell, part, h);
        row += 1;
    }
    let logits: Var<R2<BATCH, CLASSES>> = g.linear("fc", h);
    finish(g, logits, label)
}

const fn finish<const A: usize>(mut g: Graph, logits: Var<R2<A, CLASSES>>, label: Var<Indices<A>>) -> Graph {
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(pub(crate) static W1 = w1().train(Training::with::<Adam>().keep_outputs()));
program!(pub(crate) static CNN = cnn().train(Training::with::<Momentum>().keep_outputs()));
program!(pub(crate) static NORMS = norms().train(Training::with::<Adam>().keep_outputs()));
program!(pub(crate) static GRU = gru().train(Training::with::<RmsProp>().keep_outputs()));

/// Elements of the largest slab.
pub(crate) const SLAB_LEN: usize = {
    let lens = [W1.slab_len(), CNN.slab_len(), NORMS.slab_len(), GRU.slab_len()];
    let (mut longest, mut i) = (0, 0);
    while i < lens.len() {
        longest = if lens[i] > longest { lens[i] } else { longest };
        i += 1;
    }
    longest
};
