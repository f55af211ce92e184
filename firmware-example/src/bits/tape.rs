//! The multi-layer perceptron of `workload.rs` once more, on a tape: the graph is decided while it runs.

use slabgrad::graph::Name;
use slabgrad::optim::HEADER_LEN;
use slabgrad::prelude::*;
use slabgrad::tape::{FixedTape, TapeError};

use super::workload::{BATCH, BATCH_LEN, PIXELS, STEPS, load};

const HIDDEN: usize = 32;
const CLASSES: usize = 10;
const PARAMETERS: usize = HIDDEN * PIXELS + HIDDEN + CLASSES * HIDDEN + CLASSES;
const MOMENTS: usize = HEADER_LEN + 2 * PARAMETERS;
/// Values and gradients beside the parameters', as `Tape::work_len` says after a step.
const WORK: usize = 3570;
/// How many `f32` the run needs.
pub(crate) const SLAB_LEN: usize = BATCH_LEN + 2 * PARAMETERS + WORK + MOMENTS;

/// Emits the loss of every step, then the sum of all parameters.
pub(crate) fn train(slab: &mut [f32], emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    let refused = |_: TapeError| "the tape has a fault";
    let (batch, slab) = slab.split_at_mut_checked(BATCH_LEN).ok_or("the slab is too short")?;
    let (moments, slab) = slab.split_at_mut_checked(MOMENTS).ok_or("the slab is too short")?;
    moments.fill(0.0);
    let mut tape: FixedTape<16> = FixedTape::in_slab(slab, PARAMETERS).map_err(|_| "the slab is too short")?;
    let w1 = tape.init_parameter(Name::new("fc1", "weight"), [HIDDEN, PIXELS], Init::HeUniform, 42);
    let b1 = tape.parameter([HIDDEN], &[0.0; HIDDEN]);
    let w2 = tape.init_parameter(Name::new("fc2", "weight"), [CLASSES, HIDDEN], Init::HeUniform, 42);
    let b2 = tape.parameter([CLASSES], &[0.0; CLASSES]);
    let mark = tape.mark();
    let adam = Adam::new(0.01);
    for step in 0..STEPS {
        let (images, labels) = load(batch, step * BATCH);
        let (x, label) = (tape.constant([BATCH, PIXELS], images), tape.constant([BATCH], labels));
        let h = tape.linear(x, w1, Some(b1));
        let h = tape.relu(h);
        let logits = tape.linear(h, w2, Some(b2));
        let loss = tape.cross_entropy(logits, label, CrossEntropy::new());
        tape.backward(loss).map_err(refused)?;
        tape.update(&adam, moments).map_err(refused)?;
        emit("mlp tape", tape.item(loss).to_bits());
        tape.reset_to(mark);
    }
    emit("params", <Strict<f32> as Backend>::sum(tape.params()).to_bits());
    Ok(())
}
