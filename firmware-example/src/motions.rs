//! What somebody with a smart watch does. The network has learned it from others; this one wears the watch turned around.

use slabgrad::checkpoint::Aligned;
use slabgrad::optim::Linear;
use slabgrad::prelude::*;

use crate::fine_tune::FineTuning;

/// Three axes of acceleration, three of rotation.
pub const CHANNELS: usize = 6;
/// Samples of a window: 3.2 seconds.
pub const WINDOW: usize = 32;
/// Elements of a window.
pub const LEN: usize = CHANNELS * WINDOW;

const fn net<const B: usize>(norm: BatchNorm) -> Graph {
    let mut g = Graph::new();
    let motion = g.input::<R3<B, CHANNELS, WINDOW>>("motion");
    let label = g.class_indices::<B>("label");
    let h: Var<R3<B, 8, WINDOW>> = g.conv1d("conv1", motion, Conv1d::kernel(5).padding(2));
    let h = g.batch_norm1d_with("bn1", h, norm);
    let h = g.relu(h);
    let h: Var<R3<B, 8, 16>> = g.max_pool1d(h, Window1d::size(2));
    let h: Var<R3<B, 16, 16>> = g.conv1d("conv2", h, Conv1d::kernel(5).padding(2));
    let h = g.batch_norm1d_with("bn2", h, norm);
    let h = g.relu(h);
    let h: Var<R3<B, 16, 8>> = g.avg_pool1d(h, Window1d::size(2));
    let h: Var<R2<B, 128>> = g.flatten(h);
    let logits: Var<R2<B, 4>> = g.linear("fc", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

/// What the device runs: all but the last layer is as it was trained on the host.
#[must_use]
pub const fn frozen_net() -> Graph {
    let mut g = net::<1>(BatchNorm::new().eval());
    g.freeze("conv1");
    g.freeze("bn1");
    g.freeze("conv2");
    g.freeze("bn2");
    g
}

program!(
    /// Trains the whole network, on the host.
    pub static PRETRAIN = net::<16>(BatchNorm::new()).train(Training::with::<Adam>())
);
program!(
    /// Trains the last layer, one window at a time.
    pub static TRAIN = frozen_net().train(Training::with::<Adam>())
);
program!(
    /// Says what a window shows.
    pub static INFER = frozen_net().infer()
);

/// Elements of memory: a window, and what both programs need.
pub const SLAB_LEN: usize = LEN + TRAIN.slab_len_with(&INFER);
const _: () = assert!(SLAB_LEN * size_of::<f32>() <= 32 * 1024, "more than 32 KB of RAM");

/// How the device learns.
pub static FINE_TUNING: FineTuning = FineTuning {
    train: &TRAIN,
    infer: &INFER,
    weights: &Aligned(*include_bytes!("../weights/motions.slab")),
    sample_len: LEN,
    batch: 2,
    save_every: 40,
    learning_rate: Linear::new(2e-2, 2e-3, 90),
};
