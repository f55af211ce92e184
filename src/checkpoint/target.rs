//! Reading images: what takes the blocks in, piece by piece.

use core::ops::Range;

use super::encode::native;
use super::{Block, Header, Image, ImageError};

/// What an image is loaded into: a program's memory ([`Program::target`](crate::program::Program::target)) or a tape
/// ([`Tape::target`](crate::tape::Tape::target)).
pub trait Target {
    /// Whether an image with this header fits. It is asked when the image is known to be whole, and before anything is placed.
    ///
    /// # Errors
    /// What does not fit.
    fn check(&self, header: &Header) -> Result<(), ImageError>;

    /// Takes bytes of a block in, from the byte `start` of the block on. It is called for every byte of every block, in order.
    fn place(&mut self, block: Block, start: usize, bytes: &[u8]);
}

impl<T: Target> Target for &mut T {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        (**self).check(header)
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        (**self).place(block, start, bytes);
    }
}

/// Both: a program's memory and the caller's own bytes, for instance.
impl<T: Target, U: Target> Target for (T, U) {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        self.0.check(header)?;
        self.1.check(header)
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        self.0.place(block, start, bytes);
        self.1.place(block, start, bytes);
    }
}

/// The caller's own bytes in an image, as what it is loaded into.
#[derive(Debug)]
pub struct UserBytes<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> UserBytes<'b> {
    /// Takes the bytes into this buffer.
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Those that were loaded.
    #[must_use]
    pub fn get(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

impl Target for UserBytes<'_> {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        let (found, room) = (header.len(Block::User), self.buffer.len());
        let error = ImageError::Block { block: Block::User, expected: room, found };
        if found <= room { Ok(()) } else { Err(error) }
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        if block == Block::User {
            let room = self.buffer.get_mut(start..).unwrap_or_default();
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.len = start + bytes.len();
        }
    }
}

/// Loads an image.
///
/// # Errors
/// When it does not fit; the target is as it was then.
pub fn load<T: Target>(image: &Image<'_>, target: &mut T) -> Result<(), ImageError> {
    target.check(image.header())?;
    for block in Block::ALL {
        target.place(block, 0, image.block(block));
    }
    Ok(())
}

/// Hands the parts of blocks that lie in `bytes`, which start at byte `start` of the image, to the target.
#[cfg_attr(not(feature = "flash"), allow(dead_code))]
pub(super) fn place_stream<T: Target>(header: &Header, start: u64, bytes: &[u8], target: &mut T) {
    let end = start + bytes.len() as u64;
    for block in Block::ALL {
        let span = header.span(block);
        let (from, to) = (span.start.max(start), span.end.min(end));
        if from < to {
            let part = bytes.get((from - start) as usize..(to - start) as usize).unwrap_or_default();
            target.place(block, (from - span.start) as usize, part);
        }
    }
}

/// Copies little-endian `bytes` into elements, from the byte `start` of these on; what does not fit is left out.
pub(super) fn copy_into<E: bytemuck::Pod>(elements: &mut [E], start: usize, bytes: &[u8]) {
    let memory: &mut [u8] = bytemuck::must_cast_slice_mut(elements);
    if cfg!(target_endian = "little") {
        let memory = memory.get_mut(start..).unwrap_or_default();
        memory.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        return;
    }
    for (at, byte) in (start..).zip(bytes) {
        if let Some(to) = memory.get_mut(native::<E>(at)) {
            *to = *byte;
        }
    }
}

/// The part of `bytes`, which start at byte `start`, that lies within `range`, and where it starts in the range.
pub(super) fn part_within(range: Range<usize>, start: usize, bytes: &[u8]) -> (usize, &[u8]) {
    let (from, to) = (range.start.max(start), range.end.min(start.saturating_add(bytes.len())));
    let part = bytes.get(from.saturating_sub(start)..to.saturating_sub(start)).unwrap_or_default();
    (from.saturating_sub(range.start), part)
}
