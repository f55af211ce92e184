//! Images of a program's memory.

use core::convert::Infallible;

use super::header::{CHECKSUM_LEN, Fingerprint, HEADER_LEN};
use super::target::{copy_into, load};
use super::{Block, Element, Encoder, Header, Image, ImageError, SaveError, Sink, Target};
use crate::backend::Backend;
use crate::optim;
use crate::program::{Memory, Program, RunError, Space, at_least, exactly};

/// What an image is to hold: parameters and state always, the rest as asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents<'u> {
    pub(super) frozen: bool,
    pub(super) moments: bool,
    pub(super) user: &'u [u8],
}

impl<'u> Contents<'u> {
    /// Parameters and state: what a model needs.
    #[must_use]
    pub const fn weights() -> Self {
        Self { frozen: false, moments: false, user: &[] }
    }

    /// Parameters, state and moments: what training needs to go on.
    #[must_use]
    pub const fn training() -> Self {
        Self { frozen: false, moments: true, user: &[] }
    }

    /// The frozen parameters too: for an image that a firmware uses in place.
    #[must_use]
    pub const fn with_frozen(self) -> Self {
        Self { frozen: true, ..self }
    }

    /// Bytes of the caller's own, such as the state of a generator that shuffles data.
    #[must_use]
    pub const fn with_user(self, user: &'u [u8]) -> Self {
        Self { user, ..self }
    }
}

/// What of an image is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Weights,
}

/// The memory of a program, as what an image is loaded into.
pub struct ProgramTarget<'p, 'm, 'a, B: Backend> {
    program: &'p Program<'p, B>,
    memory: &'m mut Memory<'a, B::Elem>,
    part: Part,
}

impl<B: Backend> ProgramTarget<'_, '_, '_, B> {
    fn takes_moments(&self) -> bool {
        self.part == Part::All && self.program.moments_len() > 0
    }
}

impl<B: Backend> Target for ProgramTarget<'_, '_, '_, B> {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        let program = self.program;
        program.check_spaces(self.memory, self.takes_moments())?;
        header.check::<B::Elem>(program.fingerprint())?;
        header.check_len(Block::Params, program.params_len())?;
        header.check_len(Block::State, program.state_len())?;
        if self.takes_moments() { header.check_len(Block::Moments, program.moments_len()) } else { Ok(()) }
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        let elements = match block {
            Block::Params => &mut *self.memory.params,
            Block::State => &mut *self.memory.state,
            Block::Moments if self.takes_moments() => &mut *self.memory.moments,
            _ => return,
        };
        copy_into(elements, start, bytes);
    }
}

/// Checkpoints; see [`crate::checkpoint`].
impl<B: Backend> Program<'_, B> {
    /// A number that tells layouts apart: the CRC-32 of the spaces, names and shapes of parameters and state, in their order.
    /// All programs of a network have the same, whatever their batch sizes.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut fingerprint = Fingerprint::new();
        for tensor in self.tensors() {
            fingerprint.tensor(tensor.space, tensor.name, tensor.shape);
        }
        fingerprint.finish()
    }

    /// Bytes of an image.
    #[must_use]
    pub const fn image_len(&self, contents: &Contents<'_>) -> usize {
        let frozen = if contents.frozen { self.frozen_len() } else { 0 };
        let moments = if contents.moments { self.moments_len() } else { 0 };
        let elements = frozen + self.params_len() + self.state_len() + moments;
        let blocks = elements * Element::of::<B::Elem>().size() + contents.user.len();
        HEADER_LEN + blocks.next_multiple_of(4) + CHECKSUM_LEN
    }

    /// An image of the memory, to be written piece by piece.
    ///
    /// # Errors
    /// When a space of `memory` is too short.
    pub fn image<'m>(
        &self,
        memory: &'m Memory<'_, B::Elem>,
        contents: Contents<'m>,
    ) -> Result<Encoder<'m, B::Elem>, SaveError<Infallible>> {
        self.check_spaces(memory, contents.moments)?;
        let frozen = if contents.frozen { self.frozen_len() } else { 0 };
        at_least(Space::Frozen, frozen, memory.frozen.len())?;
        let moments = if contents.moments { self.moments_len() } else { 0 };
        let blocks = [
            memory.frozen.get(..frozen).unwrap_or_default(),
            memory.params.get(..self.params_len()).unwrap_or_default(),
            memory.state.get(..self.state_len()).unwrap_or_default(),
            memory.moments.get(..moments).unwrap_or_default(),
        ];
        let lengths = super::lengths(blocks.map(<[_]>::len), contents.user.len())?;
        let steps = optim::steps_done(memory.moments.get(..self.moments_len()).unwrap_or_default());
        let header = Header::new(Element::of::<B::Elem>(), self.fingerprint(), steps as u64, lengths);
        Ok(Encoder::new(header, blocks.into_iter(), contents.user))
    }

    /// Writes an image of the memory to a sink, and returns its length. A slice is a sink, and with `alloc` a `&mut Vec<u8>`.
    ///
    /// # Errors
    /// When a space of `memory` is too short, and those of the sink.
    pub fn save<S: Sink>(
        &self,
        memory: &Memory<'_, B::Elem>,
        contents: Contents<'_>,
        sink: S,
    ) -> Result<usize, SaveError<S::Error>> {
        let mut image = self.image(memory, contents).map_err(|error| error.map_sink(|never| match never {}))?;
        image.write_to(sink)
    }

    /// Loads an image of all that this program has: a program that trains needs moments in it, one that infers leaves those
    /// alone that there are. Frozen parameters are not loaded, but used in place: [`Program::frozen_in`].
    ///
    /// # Errors
    /// When the image is not one of this network or has not all that is needed; the memory is as it was then.
    pub fn load(&self, memory: &mut Memory<'_, B::Elem>, image: &Image<'_>) -> Result<(), ImageError> {
        load(image, &mut self.target(memory))
    }

    /// Loads parameters and state, and leaves the moments as they are: for fine-tuning what was trained elsewhere, after
    /// [`Program::init`].
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn load_weights(&self, memory: &mut Memory<'_, B::Elem>, image: &Image<'_>) -> Result<(), ImageError> {
        load(image, &mut self.weights_target(memory))
    }

    /// What [`Program::load`] loads into, for images that come from elsewhere than a slice.
    pub fn target<'m, 'a>(&'m self, memory: &'m mut Memory<'a, B::Elem>) -> ProgramTarget<'m, 'm, 'a, B> {
        ProgramTarget { program: self, memory, part: Part::All }
    }

    /// What [`Program::load_weights`] loads into.
    pub fn weights_target<'m, 'a>(&'m self, memory: &'m mut Memory<'a, B::Elem>) -> ProgramTarget<'m, 'm, 'a, B> {
        ProgramTarget { program: self, memory, part: Part::Weights }
    }

    /// The frozen parameters in an image, in place: what a [`Memory`] takes as its frozen space.
    ///
    /// # Errors
    /// When the image is not one of this network, has no frozen parameters, or is not aligned.
    pub fn frozen_in<'b>(&self, image: &Image<'b>) -> Result<&'b [B::Elem], ImageError> {
        image.header().check::<B::Elem>(self.fingerprint())?;
        image.header().check_len(Block::Frozen, self.frozen_len())?;
        image.elements(Block::Frozen)
    }

    /// That the spaces which are saved or loaded are there.
    fn check_spaces(&self, memory: &Memory<'_, B::Elem>, moments: bool) -> Result<(), RunError> {
        exactly(Space::Params, self.params_len(), memory.params.len())?;
        at_least(Space::State, self.state_len(), memory.state.len())?;
        at_least(Space::Moments, if moments { self.moments_len() } else { 0 }, memory.moments.len())
    }
}
