//! The header of an image, and the fingerprint of a layout.

use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::ImageError;
use super::encode::Checksum;
use crate::backend::Real;
use crate::graph::Name;
use crate::program::Space;
use crate::shape::Shape;

/// Bytes from the start of an image to its first block.
pub const HEADER_LEN: usize = 64;
/// Bytes of the CRC-32 at the end of an image.
pub(super) const CHECKSUM_LEN: usize = 4;
/// The first eight bytes. The first is no text in any encoding; the line ends show whether a transfer changed some.
pub(super) const MAGIC: [u8; 8] = *b"\x8aSLAB\r\n\x1a";
/// The version of the format that is written.
pub const VERSION: u16 = 1;

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Element {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

impl Element {
    /// That of a backend's elements.
    #[must_use]
    pub const fn of<E: Real>() -> Self {
        if size_of::<E>() == Self::F64.size() { Self::F64 } else { Self::F32 }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Block {
    /// Parameters that are not trained.
    Frozen,
    /// Trained parameters.
    Params,
    /// Running statistics and the like.
    State,
    /// The optimizer's state, its count of steps included.
    Moments,
    /// The caller's own bytes.
    User,
}

impl Block {
    /// All, in the order in which they follow one another.
    pub const ALL: [Self; 5] = [Self::Frozen, Self::Params, Self::State, Self::Moments, Self::User];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Params => "params",
            Self::State => "state",
            Self::Moments => "moments",
            Self::User => "user",
        }
    }
}

/// What precedes everything else in any version.
#[derive(Serialize, Deserialize)]
struct Prefix {
    magic: [u8; 8],
    version: u16,
}

/// What an image holds, and for which model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub(super) element: Element,
    /// Little-endian, and no varint: the bits are random.
    fingerprint: [u8; 4],
    pub(super) steps: u64,
    /// Elements of the first four blocks, then bytes of the caller's.
    lengths: [u32; 5],
}

impl Header {
    pub(super) const fn new(element: Element, fingerprint: u32, steps: u64, lengths: [u32; 5]) -> Self {
        Self { element, fingerprint: fingerprint.to_le_bytes(), steps, lengths }
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When there are fewer than [`HEADER_LEN`] bytes, or they are no header of a version that this crate reads.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        let too_short = ImageError::Length { expected: HEADER_LEN as u64, found: bytes.len() as u64 };
        let bytes = bytes.first_chunk::<HEADER_LEN>().ok_or(too_short)?;
        let mut magic = [0; 8];
        magic.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        if magic != MAGIC {
            return Err(ImageError::Magic { found: magic });
        }
        let (prefix, rest) = postcard::take_from_bytes::<Prefix>(bytes).map_err(|_| ImageError::Header)?;
        if prefix.version != VERSION {
            return Err(ImageError::Version { newest: VERSION, found: prefix.version });
        }
        let (header, _) = postcard::take_from_bytes::<Self>(rest).map_err(|_| ImageError::Header)?;
        // One header has one encoding: that finds numbers with needless bytes, and anything but zeros behind.
        if header.encode() == *bytes { Ok(header) } else { Err(ImageError::Header) }
    }

    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        // It fits: the longest is 51 bytes. Were it not so, no image could be read back, which the tests would find.
        let _ = postcard::to_slice(&(Prefix { magic: MAGIC, version: VERSION }, self), &mut bytes);
        bytes
    }

    /// The type of the elements.
    #[must_use]
    pub const fn element(&self) -> Element {
        self.element
    }

    /// The fingerprint of the layout: of the names, shapes, spaces and order of parameters and state.
    #[must_use]
    pub const fn fingerprint(&self) -> u32 {
        u32::from_le_bytes(self.fingerprint)
    }

    /// How many updates the model had had.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Elements of a block; bytes of [`Block::User`].
    #[must_use]
    pub const fn len(&self, block: Block) -> usize {
        let [frozen, params, state, moments, user] = self.lengths;
        let len = match block {
            Block::Frozen => frozen,
            Block::Params => params,
            Block::State => state,
            Block::Moments => moments,
            Block::User => user,
        };
        len as usize
    }

    fn block_bytes(&self, block: Block) -> u64 {
        let size = if matches!(block, Block::User) { 1 } else { self.element.size() };
        self.len(block) as u64 * size as u64
    }

    /// Where a block lies, in bytes from the start of the image.
    pub(super) fn span(&self, block: Block) -> Range<u64> {
        let before = Block::ALL.iter().take_while(|&&other| other != block);
        let start = HEADER_LEN as u64 + before.map(|&other| self.block_bytes(other)).sum::<u64>();
        start..start + self.block_bytes(block)
    }

    /// Bytes of the whole image.
    #[must_use]
    pub fn image_len(&self) -> u64 {
        self.span(Block::User).end.next_multiple_of(4) + CHECKSUM_LEN as u64
    }

    /// Zeros between the last block and the checksum.
    pub(super) fn padding(&self) -> u64 {
        self.image_len() - CHECKSUM_LEN as u64 - self.span(Block::User).end
    }

    /// That it was made for this layout and these elements.
    pub(super) fn check<E: Real>(&self, fingerprint: u32) -> Result<(), ImageError> {
        let (expected, found) = (Element::of::<E>(), self.element);
        if expected != found {
            return Err(ImageError::Element { expected, found });
        }
        let (expected, found) = (fingerprint, self.fingerprint());
        if expected == found { Ok(()) } else { Err(ImageError::Layout { expected, found }) }
    }

    /// That a block is as long as `expected`.
    pub(super) fn check_len(&self, block: Block, expected: usize) -> Result<(), ImageError> {
        let found = self.len(block);
        if expected == found { Ok(()) } else { Err(ImageError::Block { block, expected, found }) }
    }
}

/// Takes in a layout, tensor by tensor.
pub(super) struct Fingerprint(Checksum);

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self(Checksum::new())
    }

    /// Takes in a tensor: its space, its name with its length, its shape with its rank.
    pub(super) fn tensor(&mut self, space: Space, name: Name<'_>, shape: Shape) {
        let space = match space {
            Space::Frozen => 0,
            Space::Params => 1,
            _ => 2,
        };
        self.0.update(&[space]);
        self.0.update(&(name.len() as u32).to_le_bytes());
        name.bytes().for_each(|byte| self.0.update(&[byte]));
        self.0.update(&[shape.rank() as u8]);
        (0..shape.rank()).for_each(|axis| self.0.update(&(shape.axis(axis) as u32).to_le_bytes()));
    }

    pub(super) fn finish(self) -> u32 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_header_fits() {
        let header = Header::new(Element::F64, u32::MAX, u64::MAX, [u32::MAX; 5]);
        let bytes = header.encode();
        assert_eq!(Header::parse(&bytes), Ok(header));
        let mut longest = [0; 128];
        let len =
            postcard::to_slice(&(Prefix { magic: MAGIC, version: u16::MAX }, header), &mut longest).unwrap().len();
        assert_eq!(len, 8 + 3 + 1 + 4 + 10 + 5 * 5);
        assert!(len <= HEADER_LEN);
        assert_eq!(header.image_len(), 64 + 4 * 8 * u64::from(u32::MAX) + (1 << 32) + 4);
    }

    #[test]
    fn a_number_with_needless_bytes_and_bytes_behind_the_header_are_refused() {
        let bytes = Header::new(Element::F32, 1, 5, [0; 5]).encode();
        assert_eq!(bytes[14], 5, "the count of steps");
        let mut longer = bytes;
        longer[14] = 0x85;
        longer[15..].copy_from_slice(&bytes[14..63]);
        longer[15] = 0;
        assert_eq!(Header::parse(&longer), Err(ImageError::Header));
        let mut behind = bytes;
        behind[63] = 1;
        assert_eq!(Header::parse(&behind), Err(ImageError::Header));
        assert!(Header::parse(&bytes).is_ok());
    }
}
