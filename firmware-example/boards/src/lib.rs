//! What is the same on every board: samples come in through a serial port, progress goes out through `defmt`, and checkpoints go to
//! the chip's flash. The programs in `bin/` hold what is not.

#![no_std]

use core::ops::Range;

use defmt::{error, info};
use embedded_storage::nor_flash::NorFlash;
use firmware_example::digits::{FINE_TUNING, LEN};
use firmware_example::fine_tune::{Event, Fault, Samples};
use slabgrad::checkpoint::Slots;

/// Elements of memory.
pub const SLAB_LEN: usize = FINE_TUNING.slab_len();
const _: () = assert!(FINE_TUNING.ram_bytes() <= 64 * 1024, "more than 64 KB of RAM");

/// Samples as a function gets them: the values, then the class, each as a little-endian `f32`. A class below 0 ends them.
struct Bytes<R> {
    read: R,
    bytes: [u8; 4 * (LEN + 1)],
}

impl<R: FnMut(&mut [u8]) -> bool> Samples for Bytes<R> {
    fn next(&mut self, values: &mut [f32]) -> Option<f32> {
        if !(self.read)(&mut self.bytes) {
            return None;
        }
        let mut numbers = self.bytes.chunks_exact(4).map(|bytes| bytes.try_into().map_or(-1.0, f32::from_le_bytes));
        for value in values {
            *value = numbers.next()?;
        }
        numbers.next().filter(|&class| class >= 0.0)
    }
}

/// Learns from samples that `read` fills in, until it returns `false`, with two slots for checkpoints in these bytes of the flash.
pub fn run<F: NorFlash>(slab: &mut [f32], flash: F, slots: Range<u32>, read: impl FnMut(&mut [u8]) -> bool) {
    match learn(slab, flash, slots, read) {
        Ok(()) => info!("done"),
        Err(Fault::Weights(error)) => error!("the weights: {}", error),
        Err(Fault::Run(error)) => error!("a step was refused: {}", error),
        Err(Fault::Save(error)) => error!("no image was made: {}", error),
        Err(Fault::Flash(error)) => error!("the flash: {}", defmt::Debug2Format(&error)),
    }
}

fn learn<F: NorFlash>(
    slab: &mut [f32],
    flash: F,
    slots: Range<u32>,
    read: impl FnMut(&mut [u8]) -> bool,
) -> Result<(), Fault<F::Error>> {
    let mut learner = FINE_TUNING.start(slab)?;
    let mut slots = Slots::new(flash, slots, 2)?;
    if learner.resume(&mut slots)? {
        info!("resumed after {=u32} samples", learner.seen());
    } else {
        learner.forget();
    }
    let mut samples = Bytes { read, bytes: [0; 4 * (LEN + 1)] };
    learner.learn(&mut samples, &mut slots, |event| match event {
        Event::Updated { seen, loss } => info!("{=u32} samples, loss {=f32}", seen, loss),
        Event::Saved { seen } => info!("saved after {=u32} samples", seen),
    })
}
