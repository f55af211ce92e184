//! One training run, the same on every target: microcontrollers, WebAssembly and the host.
//!
//! [`run`] hands out what it computes as pairs of a label and the bits of an `f32`, so that two targets can be
//! compared bit for bit. How such a pair gets out is the program's business: semihosting on a board (`main.rs`),
//! standard output on the host (`main.rs`), an imported function in WebAssembly (`wasm.rs`).

#![no_std]

mod workload;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod wasm;

use static_cell::ConstStaticCell;

/// All memory that training uses. A static, so that the linker says when it does not fit into the RAM.
static SLAB: ConstStaticCell<[f32; workload::SLAB_LEN]> = ConstStaticCell::new([0.0; workload::SLAB_LEN]);

/// Trains, and calls `emit` with a label and the bits of a value for every value worth comparing.
///
/// # Errors
///
/// What went wrong, in words: the slab is in use (`run` was called before), or a training step failed.
pub fn run(emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    let slab = SLAB.try_take().ok_or("the slab is taken: `run` was called a second time")?;
    #[cfg(feature = "provoke-panic")]
    emit("provoked", slab[core::hint::black_box(slab.len())].to_bits());
    workload::train(slab, emit)
}
