//! Handwritten digits. The network has learned them as people write them; the device's camera sees them mirrored.

use slabgrad::checkpoint::Aligned;
use slabgrad::optim::Linear;
use slabgrad::prelude::*;

use crate::choice::{Choice, Layers};
use crate::fine_tune::FineTuning;

/// Elements of an image.
pub const LEN: usize = 64;

/// The network for batches of `B` images; in `eval` mode, its batch norms use their running statistics.
const fn net<const B: usize>(norm: BatchNorm) -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 8, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d_with("bn1", h, norm);
    let h = g.relu(h);
    let h: Var<R4<B, 16, 8, 8>> = g.conv2d("conv2", h, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d_with("bn2", h, norm);
    let h = g.relu(h);
    let h: Var<R4<B, 16, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R2<B, 256>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

/// The network's layers, by name.
pub const LAYERS: Layers = Layers { layers: &[&["conv1", "bn1"], &["conv2", "bn2"], &["fc"]], norms: &["bn1", "bn2"] };

/// What the device trains: the last layer. Another choice needs its own image of the weights: `cargo xtask pretrain` makes it.
pub const TRAINED: Choice = Choice::last(1);

/// What the device runs: all but what it trains is as it was trained on the host.
#[must_use]
pub const fn tuned_net(trained: Choice) -> Graph {
    trained.apply_to(net::<1>(BatchNorm::new().eval()), &LAYERS)
}

program!(
    /// Trains the whole network, on the host.
    pub static PRETRAIN = net::<24>(BatchNorm::new()).train(Training::with::<Adam>())
);
program!(
    /// Trains what was chosen, one image at a time.
    pub static TRAIN = tuned_net(TRAINED).train(Training::with::<Adam>())
);
program!(
    /// Says what an image shows.
    pub static INFER = tuned_net(TRAINED).infer()
);

/// How the device learns.
pub static FINE_TUNING: FineTuning = FineTuning {
    train: &TRAIN,
    infer: &INFER,
    weights: &Aligned(*include_bytes!("../weights/digits.slab")),
    forget: &["fc.weight", "fc.bias"],
    sample_len: LEN,
    batch: 2,
    save_every: 40,
    learning_rate: Linear::new(7e-3, 2e-4, 100),
};
