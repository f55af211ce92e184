//! Images that lie in memory: checking them, and using their elements in place.

use super::encode::Checksum;
use super::header::CHECKSUM_LEN;
use super::{Block, Element, Header, ImageError};
use crate::backend::Real;

/// A whole image that has been checked, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Image<'b> {
    header: Header,
    bytes: &'b [u8],
}

impl<'b> Image<'b> {
    /// Checks an image: it has to fill `bytes`, and no bit of it may have changed.
    ///
    /// # Errors
    /// When it is no image of a version that this crate reads, is cut, has something behind it, or is damaged.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, ImageError> {
        let header = Header::parse(bytes)?;
        let (expected, found) = (header.image_len(), bytes.len() as u64);
        if expected != found {
            return Err(ImageError::Length { expected, found });
        }
        let (bytes, checksum) =
            bytes.split_last_chunk::<CHECKSUM_LEN>().ok_or(ImageError::Length { expected, found })?;
        let mut found = Checksum::new();
        found.update(bytes);
        let (expected, found) = (u32::from_le_bytes(*checksum), found.finish());
        if expected == found { Ok(Self { header, bytes }) } else { Err(ImageError::Checksum { expected, found }) }
    }

    /// What it holds.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes of a block.
    #[must_use]
    pub fn block(&self, block: Block) -> &'b [u8] {
        let span = self.header.span(block);
        self.bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The elements of a block in place, without a copy: of an image in flash, for instance.
    ///
    /// # Errors
    /// When they are of another type, or the image's address is not a multiple of their size. [`Aligned`] is for images
    /// that are built into a program.
    pub fn elements<E: Real>(&self, block: Block) -> Result<&'b [E], ImageError> {
        let (expected, found) = (Element::of::<E>(), self.header.element);
        if expected != found {
            return Err(ImageError::Element { expected, found });
        }
        if cfg!(target_endian = "big") {
            return Err(ImageError::ByteOrder);
        }
        let unaligned = ImageError::Unaligned { block, align: align_of::<E>() };
        bytemuck::try_cast_slice(self.block(block)).map_err(|_| unaligned)
    }

    /// The caller's own bytes.
    #[must_use]
    pub fn user(&self) -> &'b [u8] {
        self.block(Block::User)
    }
}

/// Bytes that lie at a multiple of 8, such as an image that is built into a program:
///
/// ```
/// use slabgrad::checkpoint::Aligned;
///
/// static DIGITS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/digits.bin")));
/// assert_eq!(DIGITS.0.as_ptr() as usize % 8, 0);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Aligned<T: ?Sized>(pub T);
