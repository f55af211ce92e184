//! A NOR flash with a power supply that fails.

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};

/// `WRITE` bytes are written at once and only after an erase, `ERASE` bytes are erased at once; bits only clear otherwise.
#[derive(Clone)]
pub(crate) struct Mock<const WRITE: usize, const ERASE: usize> {
    pub(crate) bytes: Vec<u8>,
    /// Units that were written since they were erased, or that an erase did not get done with.
    used: Vec<bool>,
    /// What can still be done until the power fails: each byte that is written or erased is one, and each call that reads.
    pub(crate) power: Option<usize>,
    pub(crate) written: usize,
    /// By page.
    pub(crate) erases: Vec<usize>,
    random: u64,
}

/// There is no power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NoPower;

impl NorFlashError for NoPower {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl<const WRITE: usize, const ERASE: usize> Mock<WRITE, ERASE> {
    /// Full of what was there before.
    pub(crate) fn new(len: usize, seed: u64) -> Self {
        let mut mock = Self {
            bytes: vec![0; len],
            used: vec![true; len / WRITE],
            power: None,
            written: 0,
            erases: vec![0; len / ERASE],
            random: seed | 1,
        };
        (0..len).for_each(|i| mock.bytes[i] = mock.random());
        mock
    }

    fn random(&mut self) -> u8 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u8
    }

    fn spend(&mut self) -> Result<(), NoPower> {
        match &mut self.power {
            Some(0) => Err(NoPower),
            Some(power) => {
                *power -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn erase_page(&mut self, page: usize) -> Result<(), NoPower> {
        let range = page * ERASE..(page + 1) * ERASE;
        self.used[range.start / WRITE..range.end / WRITE].fill(true);
        self.erases[page] += 1;
        for _ in range.clone() {
            if let Err(error) = self.spend() {
                // Cells are on their way: some are as they were, some are erased, some are neither.
                for i in range {
                    let random = self.random();
                    self.bytes[i] = match self.random() % 4 {
                        0 => self.bytes[i],
                        1 => 0xff,
                        2 => self.bytes[i] | random,
                        _ => random,
                    };
                }
                return Err(error);
            }
        }
        self.bytes[range.clone()].fill(0xff);
        self.used[range.start / WRITE..range.end / WRITE].fill(false);
        Ok(())
    }
}

impl<const WRITE: usize, const ERASE: usize> ErrorType for Mock<WRITE, ERASE> {
    type Error = NoPower;
}

impl<const WRITE: usize, const ERASE: usize> ReadNorFlash for Mock<WRITE, ERASE> {
    const READ_SIZE: usize = WRITE;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NoPower> {
        let offset = offset as usize;
        assert!(offset.is_multiple_of(WRITE) && bytes.len().is_multiple_of(WRITE), "an unaligned read");
        self.spend()?;
        bytes.copy_from_slice(&self.bytes[offset..offset + bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl<const WRITE: usize, const ERASE: usize> NorFlash for Mock<WRITE, ERASE> {
    const WRITE_SIZE: usize = WRITE;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NoPower> {
        let (from, to) = (from as usize, to as usize);
        assert!(from.is_multiple_of(ERASE) && to.is_multiple_of(ERASE), "an unaligned erase");
        (from / ERASE..to / ERASE).try_for_each(|page| self.erase_page(page))
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NoPower> {
        let offset = offset as usize;
        assert!(offset.is_multiple_of(WRITE) && bytes.len().is_multiple_of(WRITE), "an unaligned write");
        for (i, &byte) in (offset..).zip(bytes) {
            if i.is_multiple_of(WRITE) {
                assert!(!self.used[i / WRITE], "address {i} is written twice without an erase between");
                self.used[i / WRITE] = true;
            }
            if let Err(error) = self.spend() {
                // Some bits of this byte are through.
                self.bytes[i] &= byte | self.random();
                return Err(error);
            }
            self.bytes[i] &= byte;
            self.written += 1;
        }
        Ok(())
    }
}
