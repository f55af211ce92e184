//! What somebody with a smart watch does. The network has learned it from others; this one wears the watch turned around.

use slabgrad::checkpoint::Aligned;
use slabgrad::optim::Linear;
use slabgrad::prelude::*;

use crate::choice::{Choice, Layers};
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
    pub static PRETRAIN = net::<16>(BatchNorm::new()).train(Training::with::<Adam>())
);
program!(
    /// Trains what was chosen, one window at a time.
    pub static TRAIN = tuned_net(TRAINED).train(Training::with::<Adam>())
);
program!(
    /// Says what a window shows.
    pub static INFER = tuned_net(TRAINED).infer()
);

/// How the device learns.
pub static FINE_TUNING: FineTuning = FineTuning {
    train: &TRAIN,
    infer: &INFER,
    weights: &Aligned(*include_bytes!("../weights/motions.slab")),
    forget: &["fc.weight", "fc.bias"],
    sample_len: LEN,
    batch: 2,
    save_every: 40,
    learning_rate: Linear::new(2e-2, 2e-3, 90),
};

/// A network that trains what `$trained` says, and the image of its weights, `weights/motions-NAME.slab`.
macro_rules! choice {
    ($name:literal, $trained:expr, $learning_rate:expr) => {{
        program!(static TRAIN = tuned_net($trained).train(Training::with::<Adam>()));
        program!(static INFER = tuned_net($trained).infer());
        static CHOICE: FineTuning = FineTuning {
            train: &TRAIN,
            infer: &INFER,
            weights: &Aligned(*include_bytes!(concat!("../weights/motions-", $name, ".slab"))),
            forget: &[],
            learning_rate: $learning_rate,
            ..FINE_TUNING
        };
        ($name, &CHOICE)
    }};
}

/// The other choices, by name, with what goes for how fast they learn. The program `choices` tries them one after the other.
pub static CHOICES: &[(&str, &FineTuning)] = &[
    choice!("last-2", Choice::last(2), Linear::new(2e-2, 2e-3, 90)),
    choice!("all", Choice::last(3), Linear::new(2e-2, 2e-3, 90)),
    choice!("biases", Choice::biases(), Linear::new(0.16, 1.6e-2, 90)),
    choice!("norms", Choice::norms(), Linear::new(8e-2, 8e-3, 90)),
    choice!("biases-and-last", Choice::biases().and_last(), Linear::new(2e-2, 2e-3, 90)),
    choice!("norms-and-last", Choice::norms().and_last(), Linear::new(2e-2, 2e-3, 90)),
];

/// Elements of memory that are enough for each of them.
pub const CHOICES_SLAB_LEN: usize = {
    let (mut most, mut i) = (0, 0);
    while i < CHOICES.len() {
        let len = CHOICES[i].1.slab_len();
        most = if len > most { len } else { most };
        i += 1;
    }
    most
};
