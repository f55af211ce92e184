//! Learning from samples that arrive one at a time, and going on after a loss of power with the same bits.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
use slabgrad::checkpoint::{Aligned, Contents, FlashError, Image, ImageError, SaveError, Sink, Slots, UserBytes};
use slabgrad::metrics::argmax;
use slabgrad::optim::{Linear, Schedule};
use slabgrad::prelude::*;

/// Where samples come from.
pub trait Samples {
    /// The next sample's values, in their order, into `values`, and its class, a whole number as programs take it; `None` when
    /// there are no more.
    fn next(&mut self, values: &mut [f32]) -> Option<f32>;
}

/// A network, and how it learns on the device.
pub struct FineTuning {
    /// Trains on one sample.
    pub train: &'static Program<'static>,
    /// Infers from one sample; its output is called `logits`.
    pub infer: &'static Program<'static>,
    /// The image of the weights, frozen ones included.
    pub weights: &'static Aligned<[u8]>,
    /// Parameters that start from zero: what they know is of no use for samples that differ much.
    pub forget: &'static [&'static str],
    /// Elements of a sample.
    pub sample_len: usize,
    /// Samples whose gradients are gathered for an update.
    pub batch: usize,
    /// Samples between two checkpoints: a multiple of `batch`, for gathered gradients are not kept.
    pub save_every: usize,
    /// The learning rate of each update.
    pub learning_rate: Linear,
}

/// How often the network was right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accuracy {
    /// How many samples it was right about.
    pub right: u32,
    /// How many there were.
    pub of: u32,
}

impl Accuracy {
    /// In percent.
    #[must_use]
    pub fn percent(self) -> f32 {
        100.0 * self.right as f32 / self.of.max(1) as f32
    }
}

/// What happened, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// An update by samples up to this one, with the loss of the last.
    Updated {
        /// Samples seen.
        seen: u32,
        /// The loss of the last one before the update.
        loss: f32,
    },
    /// A checkpoint is in flash.
    Saved {
        /// Samples seen.
        seen: u32,
    },
}

/// Why learning ended early.
#[derive(Debug)]
pub enum Fault<E> {
    /// The weights that are built in are those of another network, or damaged.
    Weights(ImageError),
    /// A step was refused.
    Run(RunError),
    /// The memory is not what an image is made of.
    Save(SaveError<Infallible>),
    /// The flash failed.
    Flash(FlashError<E>),
}

impl<E> From<RunError> for Fault<E> {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl<E> From<SaveError<Infallible>> for Fault<E> {
    fn from(error: SaveError<Infallible>) -> Self {
        Self::Save(error)
    }
}

impl<E> From<ImageError> for Fault<E> {
    fn from(error: ImageError) -> Self {
        Self::Weights(error)
    }
}

impl<E> From<FlashError<E>> for Fault<E> {
    fn from(error: FlashError<E>) -> Self {
        Self::Flash(error)
    }
}

/// A network at work.
pub struct Learner<'s> {
    setup: &'static FineTuning,
    memory: Memory<'s, f32>,
    sample: &'s mut [f32],
    seen: u32,
}

impl FineTuning {
    /// Bytes of RAM: a sample, and what both programs need.
    #[must_use]
    pub const fn ram_bytes(&self) -> usize {
        self.slab_len() * size_of::<f32>()
    }

    /// Elements of the slab.
    #[must_use]
    pub const fn slab_len(&self) -> usize {
        self.sample_len + self.train.slab_len_with(self.infer)
    }

    /// The network as it was trained on the host, in a slab of `sample_len` elements more than its programs need.
    ///
    /// # Errors
    /// When the slab is too short, or the weights that are built in are not this network's.
    pub fn start<'s, E>(&'static self, slab: &'s mut [f32]) -> Result<Learner<'s>, Fault<E>> {
        let (sample, slab) = slab.split_at_mut_checked(self.sample_len).unwrap_or_default();
        let image = Image::parse(&self.weights.0)?;
        let mut memory = self.train.memory_with(slab, self.train.frozen_in(&image)?)?;
        self.train.init(&mut memory, 0)?;
        self.train.load_weights(&mut memory, &image)?;
        Ok(Learner { setup: self, memory, sample, seen: 0 })
    }
}

impl Learner<'_> {
    /// Samples learned from.
    #[must_use]
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// Goes on from the newest checkpoint. `false` when there is none, or only another network's.
    ///
    /// # Errors
    /// When the flash fails.
    pub fn resume<F: NorFlash>(&mut self, slots: &mut Slots<F>) -> Result<bool, Fault<F::Error>> {
        let mut seen = [0; 4];
        let target = self.setup.train.target(&mut self.memory);
        match slots.load(&mut (target, UserBytes::new(&mut seen))) {
            Ok(_) => self.seen = u32::from_le_bytes(seen),
            Err(FlashError::Empty | FlashError::Image(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// How often the network is right about these samples.
    ///
    /// # Errors
    /// When a run is refused.
    pub fn accuracy<E>(&mut self, samples: &mut impl Samples) -> Result<Accuracy, Fault<E>> {
        let mut accuracy = Accuracy::default();
        while let Some(class) = samples.next(self.sample) {
            self.setup.infer.run(&mut self.memory, &[self.sample])?;
            let logits = self.setup.infer.output(&self.memory, "logits").unwrap_or_default();
            let found = argmax(logits).and_then(|class| u16::try_from(class).ok());
            accuracy.right += u32::from(found.map(f32::from) == Some(class));
            accuracy.of += 1;
        }
        Ok(accuracy)
    }

    /// Starts anew what is to be forgotten.
    pub fn forget(&mut self) {
        for name in self.setup.forget {
            if let Some(parameter) = self.setup.train.tensor_mut(&mut self.memory, name) {
                parameter.fill(0.0);
            }
        }
    }

    /// Learns from each sample once, and keeps a checkpoint now and then. Samples that it has learned from before it resumed are
    /// passed over.
    ///
    /// # Errors
    /// When a step is refused, or the flash fails.
    pub fn learn<F: NorFlash>(
        &mut self,
        samples: &mut impl Samples,
        slots: &mut Slots<F>,
        mut watch: impl FnMut(Event),
    ) -> Result<(), Fault<F::Error>> {
        let FineTuning { train, batch, save_every, learning_rate, .. } = self.setup;
        let mut adam = Adam::new(0.0);
        let mut position = 0;
        while let Some(class) = samples.next(self.sample) {
            position += 1;
            if position <= self.seen {
                continue;
            }
            let loss = train.accumulate(&mut self.memory, &[self.sample, &[class]], 1.0 / *batch as f32)?;
            self.seen = position;
            if (position as usize).is_multiple_of(*batch) {
                adam.set_learning_rate(learning_rate.lr(train.steps_done(&self.memory)));
                train.update(&mut self.memory, &mut adam)?;
                watch(Event::Updated { seen: position, loss });
            }
            if (position as usize).is_multiple_of(*save_every) {
                let seen = position.to_le_bytes();
                slots.save(train.image(&self.memory, Contents::training().with_user(&seen))?)?;
                watch(Event::Saved { seen: position });
            }
        }
        Ok(())
    }

    /// The checksum of an image of all that was learned: two devices with the same one have the same bits.
    ///
    /// # Errors
    /// When the memory is not one of this program.
    pub fn checksum(&self) -> Result<u32, SaveError<Infallible>> {
        let mut last = LastWord(0);
        self.setup.train.save(&self.memory, Contents::training(), &mut last)?;
        Ok(last.0)
    }
}

/// A sink that keeps the last four bytes: of an image, that is the checksum of all others.
pub(crate) struct LastWord(pub(crate) u32);

impl Sink for LastWord {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        for &byte in bytes {
            self.0 = self.0 >> 8 | u32::from(byte) << 24;
        }
        Ok(())
    }
}
