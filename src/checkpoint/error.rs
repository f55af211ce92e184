//! What can be wrong with an image, or go wrong when one is written.

use super::{Block, Element, HEADER_LEN};
use crate::program::RunError;

/// Why an image was not read. Nothing was changed then.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ImageError {
    /// It is too short for a header, or not as long as its header says: it was cut, or something follows it.
    Length {
        /// Bytes of the header, or of the image that the header describes.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// It starts with other bytes: it is no slab image.
    Magic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// It has a version that this crate does not read.
    Version {
        /// The newest version that is read.
        newest: u16,
        /// The image's version.
        found: u16,
    },
    /// The header cannot be decoded, or it is not encoded as it has to be.
    Header,
    /// Bits have changed since it was written.
    Checksum {
        /// The checksum at its end.
        expected: u32,
        /// The checksum of its bytes.
        found: u32,
    },
    /// It holds another type of elements.
    Element {
        /// The model's.
        expected: Element,
        /// The image's.
        found: Element,
    },
    /// It was made for another model: names, shapes, order of the parameters and of the state, or what of them is frozen, differ.
    Layout {
        /// The model's fingerprint.
        expected: u32,
        /// The image's.
        found: u32,
    },
    /// A block has another length, or is not there: an image of the weights alone has no moments.
    Block {
        /// Which block.
        block: Block,
        /// Elements that are needed.
        expected: usize,
        /// Elements that it has.
        found: usize,
    },
    /// The image lies where its elements cannot be used in place.
    Unaligned {
        /// Which block.
        block: Block,
        /// Of how many bytes the block's address has to be a multiple.
        align: usize,
    },
    /// Elements are little-endian, and this machine is not: they cannot be used in place.
    ByteOrder,
    /// The memory is not one of this program.
    Memory(RunError),
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Length { expected, found } if found < HEADER_LEN as u64 => {
                write!(f, "the image has {found} bytes, its header alone has {expected}")
            }
            Self::Length { expected, found } => {
                write!(f, "the image has {found} bytes, its header says that it has {expected}")
            }
            Self::Magic { found } => {
                write!(f, "this is no slab image: it starts with \"{}\"", found.escape_ascii())
            }
            Self::Version { newest, found } => {
                write!(f, "the image has version {found} of the format, the newest that can be read is {newest}")
            }
            Self::Header => f.write_str("the image's header is damaged: it cannot be decoded"),
            Self::Checksum { expected, found } => write!(
                f,
                "the image is damaged: its bytes have the checksum {found:08x}, at its end stands {expected:08x}"
            ),
            Self::Element { expected, found } => {
                write!(f, "the image holds {}, the model has {}", found.name(), expected.name())
            }
            Self::Layout { expected, found } => write!(
                f,
                "the image is one of another model: the fingerprint of its parameters' names and shapes is {found:08x}, the \
                 model's {expected:08x}"
            ),
            Self::Block { block, expected, found } => {
                let unit = if matches!(block, Block::User) { "bytes" } else { "elements" };
                write!(f, "the image's {} block has {found} {unit}, {expected} are needed", block.name())
            }
            Self::Unaligned { block, align } => write!(
                f,
                "the image's {} block cannot be used in place: its address is not a multiple of {align}",
                block.name()
            ),
            Self::ByteOrder => f.write_str("the image cannot be used in place: this machine is big-endian"),
            Self::Memory(error) => core::fmt::Display::fmt(&error, f),
        }
    }
}

impl core::error::Error for ImageError {}

impl From<RunError> for ImageError {
    fn from(error: RunError) -> Self {
        Self::Memory(error)
    }
}

/// Why an image was not written.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SaveError<E> {
    /// The memory is not one of this program.
    Memory(RunError),
    /// A block is longer than the format can say.
    TooLong {
        /// Which block.
        block: Block,
        /// Elements that it has.
        found: usize,
    },
    /// The bytes could not be written.
    Sink(E),
}

impl<E> SaveError<E> {
    /// The same with another error of the sink.
    pub fn map_sink<F>(self, map: impl FnOnce(E) -> F) -> SaveError<F> {
        match self {
            Self::Memory(error) => SaveError::Memory(error),
            Self::TooLong { block, found } => SaveError::TooLong { block, found },
            Self::Sink(error) => SaveError::Sink(map(error)),
        }
    }
}

impl<E: core::fmt::Display> core::fmt::Display for SaveError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Memory(error) => core::fmt::Display::fmt(error, f),
            Self::TooLong { block, found } => {
                write!(f, "the {} block has {found} elements, at most {} are possible", block.name(), u32::MAX)
            }
            Self::Sink(error) => core::fmt::Display::fmt(error, f),
        }
    }
}

impl<E: core::error::Error> core::error::Error for SaveError<E> {}

impl<E> From<RunError> for SaveError<E> {
    fn from(error: RunError) -> Self {
        Self::Memory(error)
    }
}
