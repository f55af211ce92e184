//! NOR flash for boards that QEMU emulates without one: in RAM that a reset leaves alone, with the rules of the real thing. Where
//! your chip's driver is, this is not.

use core::mem::MaybeUninit;
use core::ptr::addr_of_mut;

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash, check_erase, check_write};
use semihosting::{fs::File, io::Read};

const PAGE: usize = 4096;
const PAGES: usize = 24;
const WORD: usize = 4;

/// What marks memory that has been set up: after power-up, there is anything in it.
const MAGIC: u64 = 0x6d65_6d6f_7279_2121;

struct Cells {
    magic: u64,
    /// How often the machine has been reset since.
    resets: usize,
    bytes: [u8; PAGES * PAGE],
    /// The words that have been written since they were erased.
    written: [bool; PAGES * PAGE / WORD],
}

#[unsafe(link_section = ".uninit.FLASH")]
static mut CELLS: MaybeUninit<Cells> = MaybeUninit::uninit();

/// The flash. The file `power-cuts` on the host, of little-endian `u32`, can say after how many bytes that are written or erased
/// the power fails: the first time, the second time, and so on.
pub struct RamFlash {
    cells: &'static mut Cells,
    power: Option<u32>,
}

impl RamFlash {
    pub const LEN: u32 = (PAGES * PAGE) as u32;

    /// To be called once after each reset.
    pub fn take() -> Self {
        // SAFETY: called once, so there is one reference; all of the bytes are of types that any bits are a value of, but for
        // `written`, which is looked at when the magic number says that it has been set up.
        let cells = unsafe {
            let cells: *mut Cells = addr_of_mut!(CELLS).cast();
            if (*cells).magic == MAGIC {
                (*cells).resets += 1;
            } else {
                addr_of_mut!((*cells).bytes).write_bytes(0xff, 1);
                addr_of_mut!((*cells).written).write_bytes(0, 1);
                (*cells).resets = 0;
                (*cells).magic = MAGIC;
            }
            &mut *cells
        };
        let power = power_cut(cells.resets);
        Self { cells, power }
    }

    fn spend(&mut self) {
        match &mut self.power {
            Some(0) => super::reset(),
            Some(power) => *power -= 1,
            None => {}
        }
    }
}

fn power_cut(index: usize) -> Option<u32> {
    let mut file = File::open(c"power-cuts").ok()?;
    let mut bytes = [0; 4];
    for _ in 0..=index {
        file.read_exact(&mut bytes).ok()?;
    }
    Some(u32::from_le_bytes(bytes))
}

impl ErrorType for RamFlash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for RamFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let cells = self.cells.bytes.get(offset as usize..).and_then(|cells| cells.get(..bytes.len()));
        bytes.copy_from_slice(cells.ok_or(NorFlashErrorKind::OutOfBounds)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        PAGES * PAGE
    }
}

impl NorFlash for RamFlash {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        check_erase(&*self, from, to)?;
        for at in from as usize..to as usize {
            self.spend();
            self.cells.bytes[at] = 0xff;
            self.cells.written[at / WORD] = false;
        }
        Ok(())
    }

    /// A bit that is 0 stays 0, and a word takes one write.
    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        check_write(&*self, offset, bytes.len())?;
        let words = offset as usize / WORD..(offset as usize + bytes.len()) / WORD;
        if self.cells.written[words].iter().any(|&written| written) {
            return Err(NorFlashErrorKind::Other);
        }
        for (at, byte) in (offset as usize..).zip(bytes) {
            self.spend();
            self.cells.bytes[at] &= byte;
            self.cells.written[at / WORD] = true;
        }
        Ok(())
    }
}
