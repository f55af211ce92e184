//! Slots of flash: checkpoints that outlive a loss of power at any moment.

use core::ops::Range;

use embedded_storage::nor_flash::NorFlash;

use super::record::{FlashError, Found, Geometry, Loader, MIN_PAGE, Record};
use super::{Encoder, Target};
use crate::backend::Real;

/// Two or more slots of flash, which take images in turn.
///
/// An image goes to the slot after that of the newest whole one, with the next sequence number; its checksum is written last.
/// So whatever happens while it is written, the one before is still there, and a slot that lost bits, or was cut, is passed over. Every
/// slot is erased equally often. An image that is saved is read back before [`Slots::save`] returns.
///
/// `PAGE` is the length of a buffer on the stack: a multiple of the flash's read and write sizes, and at least 128.
///
/// ```
/// use slabgrad::checkpoint::{Contents, Slots};
/// use slabgrad::prelude::*;
/// # use embedded_storage::nor_flash::*;
/// # struct Flash(Vec<u8>);
/// # impl ErrorType for Flash { type Error = NorFlashErrorKind; }
/// # impl ReadNorFlash for Flash {
/// #     const READ_SIZE: usize = 1;
/// #     fn read(&mut self, at: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
/// #         bytes.copy_from_slice(&self.0[at as usize..][..bytes.len()]);
/// #         Ok(())
/// #     }
/// #     fn capacity(&self) -> usize { self.0.len() }
/// # }
/// # impl NorFlash for Flash {
/// #     const WRITE_SIZE: usize = 4;
/// #     const ERASE_SIZE: usize = 4096;
/// #     fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
/// #         self.0[from as usize..to as usize].fill(0xff);
/// #         Ok(())
/// #     }
/// #     fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
/// #         self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
/// #         Ok(())
/// #     }
/// # }
/// # const fn net() -> Graph {
/// #     let mut g = Graph::new();
/// #     let x = g.input::<R2<1, 2>>("x");
/// #     let p: Var<R2<1, 1>> = g.linear("out", x);
/// #     g.output("p", p);
/// #     g
/// # }
/// # program!(static TRAIN = net().infer());
/// # let mut slab = [0.0; TRAIN.slab_len()];
/// # let mut memory = TRAIN.memory(&mut slab).unwrap();
/// # let flash = Flash(vec![0xff; 8192]);
///
/// let mut slots: Slots<_> = Slots::new(flash, 0..8192, 2)?;
/// slots.save(TRAIN.image(&memory, Contents::training()).unwrap())?;
/// // After a restart:
/// slots.load(&mut TRAIN.target(&mut memory))?;
/// # Ok::<(), slabgrad::checkpoint::FlashError<NorFlashErrorKind>>(())
/// ```
#[derive(Debug)]
pub struct Slots<F, const PAGE: usize = 256> {
    flash: F,
    geometry: Geometry,
}

impl<F: NorFlash, const PAGE: usize> Slots<F, PAGE> {
    /// Takes `range` of the flash for as many slots. Nothing is read or written yet.
    ///
    /// # Errors
    /// When the range does not hold two or more slots at multiples of the erase size.
    pub fn new(flash: F, range: Range<u32>, slots: usize) -> Result<Self, FlashError<F::Error>> {
        const {
            assert!(PAGE >= MIN_PAGE, "a page buffer has at least 128 bytes");
            assert!(PAGE.is_multiple_of(F::WRITE_SIZE), "the page buffer is no multiple of the write size");
            assert!(PAGE.is_multiple_of(F::READ_SIZE), "the page buffer is no multiple of the read size");
            assert!(F::ERASE_SIZE.is_multiple_of(F::WRITE_SIZE), "the erase size is no multiple of the write size");
        }
        let geometry = Geometry::new(range, slots, flash.capacity(), F::WRITE_SIZE, F::ERASE_SIZE)?;
        Ok(Self { flash, geometry })
    }

    /// Bytes of the largest image that a slot holds.
    #[must_use]
    pub fn room(&self) -> usize {
        self.geometry.room()
    }

    /// Gives the flash back.
    pub fn into_inner(self) -> F {
        self.flash
    }

    /// Saves an image, and returns its sequence number. Once this returns, [`Slots::load`] finds it or a newer one.
    ///
    /// # Errors
    /// When the image does not fit a slot, the driver fails, or the flash does not keep what was written. The newest image is
    /// the one before then.
    pub fn save<'a, E, I>(&mut self, image: Encoder<'a, E, I>) -> Result<u64, FlashError<F::Error>>
    where
        E: Real,
        I: Iterator<Item = &'a [E]>,
    {
        let newest = self.newest()?;
        let plan = self.geometry.plan(newest, image.image_len())?;
        self.flash.erase(plan.erase.start, plan.erase.end)?;
        let mut writer = plan.writer(image, F::WRITE_SIZE);
        let mut page = [0; PAGE];
        while let Some((at, len)) = writer.next(&mut page) {
            self.flash.write(self.geometry.address(plan.slot, at), page.get(..len).unwrap_or_default())?;
        }
        let found = self.check(plan.slot)?;
        self.geometry.learn(&plan, found)
    }

    /// Loads the newest whole image, and returns its sequence number.
    ///
    /// # Errors
    /// When there is none, or it does not fit the target, which is as it was then; when the driver fails or the flash changes
    /// between the check and the reading, which can leave the target half loaded.
    pub fn load<T: Target>(&mut self, target: &mut T) -> Result<u64, FlashError<F::Error>> {
        let found = self.newest()?.ok_or(FlashError::Empty)?;
        let mut loader = Loader::new(&self.geometry, found);
        let mut page = [0; PAGE];
        while let Some((at, len)) = loader.next(PAGE) {
            let bytes = page.get_mut(..len).unwrap_or_default();
            self.flash.read(self.geometry.address(found.slot, at), bytes)?;
            loader.feed(bytes, target).map_err(FlashError::Image)?;
        }
        loader.finish()
    }

    fn newest(&mut self) -> Result<Option<Found>, FlashError<F::Error>> {
        let mut newest = None;
        for slot in self.geometry.slots() {
            if let Some(record) = self.check(slot)? {
                newest = Some(Found { slot, record }.newer(newest));
            }
        }
        Ok(newest)
    }

    /// The record in a slot, if it is whole.
    fn check(&mut self, slot: usize) -> Result<Option<Record>, FlashError<F::Error>> {
        let mut scan = self.geometry.scan();
        let mut page = [0; PAGE];
        while let Some((at, len)) = scan.next(PAGE) {
            let bytes = page.get_mut(..len).unwrap_or_default();
            self.flash.read(self.geometry.address(slot, at), bytes)?;
            scan.feed(bytes);
        }
        Ok(scan.finish())
    }
}
