//! Writing images: the bytes one after the other, in pieces of any length, and where they can go.

use core::marker::PhantomData;

use crc::{CRC_32_ISO_HDLC, Crc, Digest};

use super::header::CHECKSUM_LEN;
use super::{HEADER_LEN, Header, SaveError};
use crate::backend::Real;

/// With a table of 1 KB: eight times as fast as without.
static CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// A CRC-32 of bytes that come one after the other.
#[derive(Clone)]
pub(super) struct Checksum(Digest<'static, u32>);

impl Checksum {
    pub(super) fn new() -> Self {
        Self(CRC_32.digest())
    }

    /// The loop is unrolled: once is enough.
    #[inline(never)]
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> u32 {
        self.0.finalize()
    }
}

/// Where an image is written.
pub trait Sink {
    /// What can go wrong.
    type Error;

    /// Takes the next bytes, all of them.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// A slice is shorter than what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SliceTooShort {
    /// Bytes that were to be written next.
    pub needed: usize,
    /// Bytes that were left.
    pub left: usize,
}

impl core::fmt::Display for SliceTooShort {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { needed, left } = self;
        write!(f, "the slice is too short: {needed} bytes were to be written when {left} were left")
    }
}

impl core::error::Error for SliceTooShort {}

/// Writes to the start of the slice, which then is what is left of it.
impl Sink for &mut [u8] {
    type Error = SliceTooShort;

    fn write(&mut self, bytes: &[u8]) -> Result<(), SliceTooShort> {
        let error = SliceTooShort { needed: bytes.len(), left: self.len() };
        let (start, left) = core::mem::take(self).split_at_mut_checked(bytes.len()).ok_or(error)?;
        start.copy_from_slice(bytes);
        *self = left;
        Ok(())
    }
}

impl<S: Sink> Sink for &mut S {
    type Error = S::Error;

    fn write(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        (**self).write(bytes)
    }
}

#[cfg(feature = "alloc")]
impl Sink for alloc::vec::Vec<u8> {
    type Error = core::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Anything that implements [`std::io::Write`], as a [`Sink`].
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Io<W>(pub W);

#[cfg(feature = "std")]
impl<W: std::io::Write> Sink for Io<W> {
    type Error = std::io::Error;

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// An image that is being written: its bytes come out one after the other, in pieces of any length, straight from the
/// memory of the model. Made by [`Program::image`](crate::program::Program::image) and [`Tape::image`](crate::tape::Tape::image).
#[derive(Clone)]
pub struct Encoder<'a, E, I = core::array::IntoIter<&'a [E], 4>> {
    header: Header,
    /// The elements of all blocks, piece by piece.
    elements: I,
    user: &'a [u8],
    part: Part<'a>,
    /// How many bytes of the part are out.
    done: usize,
    checksum: Checksum,
    element: PhantomData<E>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Header([u8; HEADER_LEN]),
    Elements(&'a [u8]),
    User,
    Padding,
    Checksum([u8; CHECKSUM_LEN]),
    End,
}

impl<'a, E: Real, I: Iterator<Item = &'a [E]>> Encoder<'a, E, I> {
    pub(super) fn new(header: Header, elements: I, user: &'a [u8]) -> Self {
        let part = Part::Header(header.encode());
        Self { header, elements, user, part, done: 0, checksum: Checksum::new(), element: PhantomData }
    }

    /// What the image says about itself.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the whole image.
    #[must_use]
    pub fn image_len(&self) -> u64 {
        self.header.image_len()
    }

    /// Fills `buffer` with the next bytes of the image. Returns how many these are: fewer than there is room for at its end,
    /// and then 0.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(room @ [_, ..]) = buffer.get_mut(filled..) {
            let count = match &self.part {
                Part::Header(bytes) => copy(bytes, self.done, room),
                Part::Elements(bytes) => copy_elements::<E>(bytes, self.done, room),
                Part::User => copy(self.user, self.done, room),
                Part::Padding => {
                    let zeros = [0; 4];
                    copy(zeros.get(..self.header.padding() as usize).unwrap_or_default(), self.done, room)
                }
                Part::Checksum(bytes) => copy(bytes, self.done, room),
                Part::End => break,
            };
            if count == 0 {
                self.part = self.next_part();
                self.done = 0;
                continue;
            }
            if !matches!(self.part, Part::Checksum(_)) {
                self.checksum.update(room.get(..count).unwrap_or_default());
            }
            self.done += count;
            filled += count;
        }
        filled
    }

    fn next_part(&mut self) -> Part<'a> {
        match self.part {
            Part::Header(_) | Part::Elements(_) => match self.elements.next() {
                Some(elements) => Part::Elements(bytemuck::must_cast_slice(elements)),
                None => Part::User,
            },
            Part::User => Part::Padding,
            Part::Padding => Part::Checksum(self.checksum.clone().finish().to_le_bytes()),
            Part::Checksum(_) | Part::End => Part::End,
        }
    }

    /// Writes what is left of the image. Returns the number of bytes.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write_to<S: Sink>(&mut self, mut sink: S) -> Result<usize, SaveError<S::Error>> {
        let mut buffer = [0; 128];
        let mut written = 0;
        loop {
            let count = self.read(&mut buffer);
            if count == 0 {
                return Ok(written);
            }
            sink.write(buffer.get(..count).unwrap_or_default()).map_err(SaveError::Sink)?;
            written += count;
        }
    }
}

/// Copies what there is of `bytes` from `start` on, and returns how many they are.
fn copy(bytes: &[u8], start: usize, room: &mut [u8]) -> usize {
    let bytes = bytes.get(start..).unwrap_or_default();
    room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    bytes.len().min(room.len())
}

/// The same for the bytes of elements, which are stored little-endian.
fn copy_elements<E>(bytes: &[u8], start: usize, room: &mut [u8]) -> usize {
    if cfg!(target_endian = "little") {
        return copy(bytes, start, room);
    }
    let order = (start..bytes.len()).filter_map(|at| bytes.get(native::<E>(at)));
    room.iter_mut().zip(order).map(|(to, from)| *to = *from).count()
}

/// Where the byte that is stored at `at` of a block lies in the memory of this machine.
pub(super) const fn native<E>(at: usize) -> usize {
    if cfg!(target_endian = "little") { at } else { at ^ (size_of::<E>() - 1) }
}
