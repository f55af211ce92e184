//! Fine-tuning: a network that PyTorch trained (`tests/pytorch/cnn.py`), whose convolutions stay in flash, and whose last layer
//! learns on the device.
//!
//! `cargo xtask pack` makes the image of its weights:
//!
//! ```text
//! cargo xtask pack tests/pytorch/cnn.safetensors --model pretrained --out firmware-example/weights/pretrained.slab \
//!     --rename features.0=conv1 --rename features.1=bn1 --rename features.4=conv2 --rename features.5=bn2 \
//!     --rename classifier=fc
//! ```

use slabgrad::checkpoint::{Aligned, Contents, Image};
use slabgrad::prelude::*;

use crate::fine_tune::LastWord;

use super::workload::{BATCH, BATCH_LEN, SLAB_LEN, load};

const STEPS: usize = 10;

/// The weights, where they can be used in place.
static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../../weights/pretrained.slab"));

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 4, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d_with("bn1", h, BatchNorm::new().eval());
    let h = g.relu(h);
    let h: Var<R4<B, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 8, 2, 2>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.batch_norm2d_with("bn2", h, BatchNorm::new().eval());
    let h = g.relu(h);
    let h: Var<R2<B, 32>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g.freeze("conv1");
    g.freeze("bn1");
    g.freeze("conv2");
    g.freeze("bn2");
    g
}

program!(
    /// Trains the last layer.
    pub static TRAIN = net::<BATCH>().train(Training::with::<Adam>())
);

/// Emits the loss of every step, then the checksum of an image of what was learned.
pub(crate) fn train(slab: &mut [f32], emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    const { assert!(BATCH_LEN + TRAIN.slab_len() <= SLAB_LEN, "the slab is too short") };
    let (batch, slab) = slab.split_at_mut_checked(BATCH_LEN).ok_or("the slab is too short")?;
    let image = Image::parse(&WEIGHTS.0).map_err(|_| "the image of the weights is damaged")?;
    let frozen = TRAIN.frozen_in(&image).map_err(|_| "the image has no frozen parameters of this network")?;
    let mut memory = TRAIN.memory_with(slab, frozen).map_err(|_| "the slab is too short")?;
    TRAIN.init(&mut memory, 0).map_err(|_| "the start was refused")?;
    TRAIN.load_weights(&mut memory, &image).map_err(|_| "the weights were refused")?;
    let mut adam = Adam::new(0.01);
    for step in 0..STEPS {
        let (images, labels) = load(batch, step * BATCH);
        let loss = TRAIN.step(&mut memory, &[images, labels], &mut adam).map_err(|_| "a step was refused")?;
        emit("fine-tuned", loss.to_bits());
    }
    let mut last = LastWord(0);
    TRAIN.save(&memory, Contents::training(), &mut last).map_err(|_| "the image was not written")?;
    emit("image", last.0);
    Ok(())
}
