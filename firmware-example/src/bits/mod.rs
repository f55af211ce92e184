//! The project's test of bits: one training run, the same on every target. A firmware of your own has no use for it.
//!
//! [`run`] hands out what it computes as pairs of a label and the bits of an `f32`, so that two targets can be
//! compared bit for bit. How such a pair gets out is the program's business: semihosting on a board (`bin/bits/`),
//! standard output on the host.

pub mod pretrained;
mod products;
mod tape;
mod workload;

use static_cell::ConstStaticCell;

/// All memory that training uses. A static, so that the linker says when it does not fit into the RAM.
static SLAB: ConstStaticCell<[f32; SLAB_LEN]> = ConstStaticCell::new([0.0; SLAB_LEN]);
/// The networks run one after the other.
const SLAB_LEN: usize = if workload::SLAB_LEN > tape::SLAB_LEN { workload::SLAB_LEN } else { tape::SLAB_LEN };

/// Trains, and calls `emit` with a label and the bits of a value for every value worth comparing.
///
/// # Errors
///
/// What went wrong, in words: the slab is in use (`run` was called before), or a training step failed.
pub fn run(emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    let slab = SLAB.try_take().ok_or("the slab is taken: `run` was called a second time")?;
    #[cfg(feature = "provoke-panic")]
    emit("provoked", slab[core::hint::black_box(slab.len())].to_bits());
    products::multiply(emit);
    workload::train(slab.first_chunk_mut().ok_or("the slab is too short")?, emit)?;
    tape::train(slab, emit)?;
    pretrained::train(slab, emit)
}

/// How many parameters [`update_by_adam`] updates.
pub const ADAM_UPDATES: u64 = 256 * 64;

/// Updates 256 parameters 64 times, for counting instructions.
pub fn update_by_adam() {
    use core::hint::black_box;
    use slabgrad::optim::{Group, Optimizer};
    use slabgrad::prelude::*;

    let (mut p, g, mut m, mut v) = ([0.5_f32; 256], [1e-3; 256], [0.0; 256], [0.0; 256]);
    let (adam, mut own) = (Adam::new(1e-3), [0.0; 4]);
    for _ in 0..64 {
        let coefficients = Optimizer::<Strict<f32>>::begin(&adam, &mut own);
        let moments = [black_box(&mut m[..]), black_box(&mut v[..]), &mut []];
        let (p, g) = (black_box(&mut p[..]), black_box(&g[..]));
        <Adam as Optimizer<Strict<f32>>>::update(&coefficients, &Group::default(), p, g, moments);
    }
}
