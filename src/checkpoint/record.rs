//! Records: how an image lies in a slot of flash, and the plan of reading and writing one. What is here reads and writes
//! nothing itself, so that it serves blocking and asynchronous drivers alike.

use core::ops::Range;

use embedded_storage::nor_flash::NorFlashError;

use super::encode::Checksum;
use super::target::place_stream;
use super::{Encoder, HEADER_LEN, Header, ImageError, Target};
use crate::backend::Real;

const MAGIC: [u8; 4] = *b"SLOT";
/// Magic, length, sequence number. The image behind them lies at a multiple of its elements' size.
const PREFIX_LEN: usize = 16;
const CHECKSUM_LEN: usize = 4;
/// The smallest page buffer: the prefix and the image's header lie in the first page.
pub(super) const MIN_PAGE: usize = 128;

/// What goes wrong with slots.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum FlashError<E> {
    /// The driver's error.
    Flash(E),
    /// The range does not hold two or more slots that start at multiples of the erase size.
    Geometry {
        /// Where the range starts.
        start: u32,
        /// Where it ends.
        end: u32,
        /// How many slots it should hold.
        slots: usize,
        /// The flash's erase size.
        erase_size: usize,
        /// The flash's size.
        capacity: usize,
    },
    /// The image does not fit a slot.
    TooLong {
        /// Bytes that a slot would have to have.
        needed: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// No slot holds a whole image.
    Empty,
    /// A slot does not hold what was written to it: its flash is worn out. The images before are still there; with more than
    /// two slots, the next attempt goes to another.
    NotKept {
        /// Which slot, counted from 0.
        slot: usize,
    },
    /// The image changed while it was read. What it was loaded into holds damaged data: load again.
    Changed {
        /// Which slot, counted from 0.
        slot: usize,
    },
    /// The newest image is whole, but not what was asked for. Nothing was changed.
    Image(ImageError),
}

impl<E: core::fmt::Debug> core::fmt::Display for FlashError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Flash(error) => write!(f, "the flash driver says {error:?}"),
            Self::Geometry { start, end, slots, erase_size, capacity } => write!(
                f,
                "the flash from {start:#x} to {end:#x} does not hold {slots} slots: two or more are needed that start at \
                 multiples of the erase size {erase_size}, within {capacity} bytes"
            ),
            Self::TooLong { needed, found } => write!(f, "a slot has {found} bytes, the image needs {needed}"),
            Self::Empty => f.write_str("no slot holds a whole image"),
            Self::NotKept { slot } => write!(f, "slot {slot} does not hold what was written to it"),
            Self::Changed { slot } => write!(f, "slot {slot} changed while it was read"),
            Self::Image(error) => core::fmt::Display::fmt(error, f),
        }
    }
}

impl<E: core::fmt::Debug> core::error::Error for FlashError<E> {}

impl<E: NorFlashError> From<E> for FlashError<E> {
    fn from(error: E) -> Self {
        Self::Flash(error)
    }
}

/// Where the slots lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    start: u32,
    slot_len: u32,
    count: usize,
    write_size: u32,
    erase_size: u32,
    /// How many slots in a row did not keep what was written to them.
    failed: usize,
}

impl Geometry {
    pub(super) fn new<E>(
        range: Range<u32>,
        count: usize,
        capacity: usize,
        write_size: usize,
        erase_size: usize,
    ) -> Result<Self, FlashError<E>> {
        let Range { start, end } = range;
        let error = FlashError::Geometry { start, end, slots: count, erase_size, capacity };
        let erase = u32::try_from(erase_size).ok().filter(|&erase| erase > 0);
        let (Some(erase), Ok(slots)) = (erase, u32::try_from(count)) else { return Err(error) };
        let slot_len = end.saturating_sub(start).checked_div(slots).unwrap_or_default() / erase * erase;
        let fits = start.is_multiple_of(erase) && end as usize <= capacity;
        if !fits || count < 2 || slot_len < MIN_PAGE as u32 {
            return Err(error);
        }
        Ok(Self { start, slot_len, count, write_size: write_size as u32, erase_size: erase, failed: 0 })
    }

    pub(super) fn slots(&self) -> Range<usize> {
        0..self.count
    }

    /// Bytes of the largest image.
    pub(super) fn room(&self) -> usize {
        (self.slot_len as usize).saturating_sub(PREFIX_LEN + CHECKSUM_LEN)
    }

    /// The address of a byte of a slot.
    pub(super) fn address(&self, slot: usize, at: u32) -> u32 {
        self.start + slot as u32 * self.slot_len + at
    }

    pub(super) fn scan(&self) -> Scan {
        Scan {
            slot_len: self.slot_len,
            at: 0,
            record: None,
            checksum: Checksum::new(),
            stored: [0; CHECKSUM_LEN],
            ended: false,
        }
    }

    /// Where the record after `newest` goes, and what has to be erased there.
    pub(super) fn plan<E>(&self, newest: Option<Found>, image_len: u64) -> Result<Plan, FlashError<E>> {
        let len = (PREFIX_LEN + CHECKSUM_LEN) as u64 + image_len;
        let needed = len.next_multiple_of(u64::from(self.write_size.max(1)));
        let found = u64::from(self.slot_len);
        if needed > found {
            return Err(FlashError::TooLong { needed, found });
        }
        // Round and round, which spreads the wear; never over the newest.
        let slot = newest
            .map_or(self.failed, |newest| newest.slot + 1 + self.failed % self.count.saturating_sub(1).max(1))
            % self.count.max(1);
        let sequence = newest.map_or(0, |newest| newest.record.sequence).wrapping_add(1);
        let record = Record { sequence, len: image_len as u32 };
        let erase = self.address(slot, 0)..self.address(slot, (needed as u32).next_multiple_of(self.erase_size));
        Ok(Plan { slot, record, erase })
    }

    /// Takes down how a slot did.
    pub(super) fn learn<E>(&mut self, plan: &Plan, found: Option<Record>) -> Result<u64, FlashError<E>> {
        if found == Some(plan.record) {
            self.failed = 0;
            return Ok(plan.record.sequence);
        }
        self.failed = self.failed.wrapping_add(1);
        Err(FlashError::NotKept { slot: plan.slot })
    }
}

/// What is to be written, and where.
pub(super) struct Plan {
    pub(super) slot: usize,
    record: Record,
    /// Addresses.
    pub(super) erase: Range<u32>,
}

impl Plan {
    pub(super) fn writer<'a, E: Real, I: Iterator<Item = &'a [E]>>(
        &self,
        image: Encoder<'a, E, I>,
        write_size: usize,
    ) -> Writer<'a, E, I> {
        let part = Part::Prefix(self.record.prefix());
        Writer { image, write_size, part, done: 0, at: 0, checksum: Checksum::new() }
    }
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u64,
    /// Bytes of the image.
    len: u32,
}

impl Record {
    fn prefix(self) -> [u8; PREFIX_LEN] {
        let mut prefix = [0; PREFIX_LEN];
        let bytes = MAGIC.into_iter().chain(self.len.to_le_bytes()).chain(self.sequence.to_le_bytes());
        prefix.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        prefix
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (sequence, _) = rest.split_first_chunk::<8>()?;
        let record = Self { sequence: u64::from_le_bytes(*sequence), len: u32::from_le_bytes(*len) };
        (*magic == MAGIC).then_some(record)
    }

    fn end_of_image(self) -> u32 {
        PREFIX_LEN as u32 + self.len
    }
}

/// A whole record, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) slot: usize,
    pub(super) record: Record,
}

impl Found {
    /// The newer of the two. Numbers go round, so that no number is the last.
    pub(super) fn newer(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.record.sequence.wrapping_sub(self.record.sequence) < 1 << 63 => other,
            _ => self,
        }
    }
}

/// The check of one slot, page by page.
pub(super) struct Scan {
    slot_len: u32,
    at: u32,
    record: Option<Record>,
    checksum: Checksum,
    stored: [u8; CHECKSUM_LEN],
    /// Whether there is nothing more to read.
    ended: bool,
}

impl Scan {
    /// The part of the slot to read next, at most `page` bytes of it.
    pub(super) fn next(&self, page: usize) -> Option<(u32, usize)> {
        (!self.ended).then(|| (self.at, page.min((self.slot_len - self.at) as usize)))
    }

    /// Takes in what was read there.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.at == 0 {
            let room = u64::from(self.slot_len);
            let fits = |record: &Record| u64::from(record.len) + (PREFIX_LEN + CHECKSUM_LEN) as u64 <= room;
            self.record = Record::parse(bytes).filter(fits);
        }
        let Some(record) = self.record else {
            self.ended = true;
            return;
        };
        let end = record.end_of_image();
        let of_image = (end.saturating_sub(self.at) as usize).min(bytes.len());
        let (image, behind) = bytes.split_at_checked(of_image).unwrap_or_default();
        self.checksum.update(image);
        let already = self.at.saturating_sub(end) as usize;
        let stored = self.stored.get_mut(already..).unwrap_or_default();
        stored.iter_mut().zip(behind).for_each(|(to, from)| *to = *from);
        self.at = self.at.saturating_add(bytes.len() as u32);
        self.ended = self.at >= end + CHECKSUM_LEN as u32 || bytes.is_empty();
    }

    /// The record, if it is whole.
    pub(super) fn finish(self) -> Option<Record> {
        let found = self.checksum.finish();
        self.record.filter(|_| found == u32::from_le_bytes(self.stored))
    }
}

/// Loads the image of a record into a target while its slot is read a second time.
pub(super) struct Loader {
    scan: Scan,
    found: Found,
    header: Option<Header>,
}

impl Loader {
    pub(super) fn new(geometry: &Geometry, found: Found) -> Self {
        Self { scan: geometry.scan(), found, header: None }
    }

    pub(super) fn next(&self, page: usize) -> Option<(u32, usize)> {
        self.scan.next(page)
    }

    /// Takes in what was read. The first page holds the header, so that the target is asked before anything is placed.
    pub(super) fn feed<T: Target>(&mut self, bytes: &[u8], target: &mut T) -> Result<(), ImageError> {
        let at = self.scan.at;
        self.scan.feed(bytes);
        let header = match self.header {
            Some(header) => header,
            None => *self.header.insert(self.accept(bytes, target)?),
        };
        let skipped = (PREFIX_LEN as u32).saturating_sub(at) as usize;
        let start = u64::from((at + skipped as u32).saturating_sub(PREFIX_LEN as u32));
        place_stream(&header, start, bytes.get(skipped..).unwrap_or_default(), target);
        Ok(())
    }

    fn accept<T: Target>(&self, bytes: &[u8], target: &T) -> Result<Header, ImageError> {
        let len = (self.found.record.len as usize).min(HEADER_LEN);
        let header = Header::parse(bytes.get(PREFIX_LEN..PREFIX_LEN + len).unwrap_or_default())?;
        let (expected, found) = (header.image_len(), u64::from(self.found.record.len));
        if expected != found {
            return Err(ImageError::Length { expected, found });
        }
        target.check(&header)?;
        Ok(header)
    }

    pub(super) fn finish<E>(self) -> Result<u64, FlashError<E>> {
        let Found { slot, record } = self.found;
        if self.scan.finish() == Some(record) { Ok(record.sequence) } else { Err(FlashError::Changed { slot }) }
    }
}

/// A record that is being written, in units of the flash's write size.
pub(super) struct Writer<'a, E, I> {
    image: Encoder<'a, E, I>,
    write_size: usize,
    part: Part,
    /// Bytes of the part that are out.
    done: usize,
    at: u32,
    checksum: Checksum,
}

enum Part {
    Prefix([u8; PREFIX_LEN]),
    Image,
    Checksum([u8; CHECKSUM_LEN]),
    End,
}

impl<'a, E: Real, I: Iterator<Item = &'a [E]>> Writer<'a, E, I> {
    /// Fills the buffer, whose length is a multiple of the write size, as far as there is something to write, and returns where
    /// that goes in the slot and how much it is, likewise a multiple.
    pub(super) fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, usize)> {
        let mut filled = 0;
        while let Some(room @ [_, ..]) = buffer.get_mut(filled..) {
            let count = match &self.part {
                Part::Prefix(bytes) => copy(bytes, self.done, room),
                Part::Image => self.image.read(room),
                Part::Checksum(bytes) => copy(bytes, self.done, room),
                Part::End => break,
            };
            if count == 0 {
                self.done = 0;
                self.part = match self.part {
                    Part::Prefix(_) => Part::Image,
                    Part::Image => Part::Checksum(self.checksum.clone().finish().to_le_bytes()),
                    Part::Checksum(_) | Part::End => Part::End,
                };
                continue;
            }
            if !matches!(self.part, Part::Checksum(_)) {
                self.checksum.update(room.get(..count).unwrap_or_default());
            }
            self.done += count;
            filled += count;
        }
        let padded = filled.next_multiple_of(self.write_size.max(1)).min(buffer.len());
        buffer.get_mut(filled..padded).unwrap_or_default().fill(0xff);
        let at = self.at;
        self.at = at.saturating_add(padded as u32);
        (padded > 0).then_some((at, padded))
    }
}

fn copy(bytes: &[u8], start: usize, room: &mut [u8]) -> usize {
    let bytes = bytes.get(start..).unwrap_or_default();
    room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    bytes.len().min(room.len())
}
