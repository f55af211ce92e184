//! Slots of flash behind an asynchronous driver.

use core::ops::Range;

use embedded_storage_async::nor_flash::NorFlash;

use super::record::{FlashError, Found, Geometry, Loader, MIN_PAGE, Record};
use super::{Encoder, Target};
use crate::backend::Real;

/// [`Slots`](super::Slots) for an asynchronous driver: the same records at the same places. To drop a future that saves is no
/// more than a loss of power; one that loads can leave the target half loaded.
#[derive(Debug)]
pub struct AsyncSlots<F, const PAGE: usize = 256> {
    flash: F,
    geometry: Geometry,
}

impl<F: NorFlash, const PAGE: usize> AsyncSlots<F, PAGE> {
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

    /// Saves an image, and returns its sequence number. Once this returns, [`AsyncSlots::load`] finds it or a newer one.
    ///
    /// # Errors
    /// When the image does not fit a slot, the driver fails, or the flash does not keep what was written. The newest image is
    /// the one before then.
    pub async fn save<'a, E, I>(&mut self, image: Encoder<'a, E, I>) -> Result<u64, FlashError<F::Error>>
    where
        E: Real,
        I: Iterator<Item = &'a [E]>,
    {
        let newest = self.newest().await?;
        let plan = self.geometry.plan(newest, image.image_len())?;
        self.flash.erase(plan.erase.start, plan.erase.end).await?;
        let mut writer = plan.writer(image, F::WRITE_SIZE);
        let mut page = [0; PAGE];
        while let Some((at, len)) = writer.next(&mut page) {
            self.flash.write(self.geometry.address(plan.slot, at), page.get(..len).unwrap_or_default()).await?;
        }
        let found = self.check(plan.slot).await?;
        self.geometry.learn(&plan, found)
    }

    /// Loads the newest whole image, and returns its sequence number.
    ///
    /// # Errors
    /// When there is none, or it does not fit the target, which is as it was then; when the driver fails or the flash changes
    /// between the check and the reading, which can leave the target half loaded.
    pub async fn load<T: Target>(&mut self, target: &mut T) -> Result<u64, FlashError<F::Error>> {
        let found = self.newest().await?.ok_or(FlashError::Empty)?;
        let mut loader = Loader::new(&self.geometry, found);
        let mut page = [0; PAGE];
        while let Some((at, len)) = loader.next(PAGE) {
            let bytes = page.get_mut(..len).unwrap_or_default();
            self.flash.read(self.geometry.address(found.slot, at), bytes).await?;
            loader.feed(bytes, target).map_err(FlashError::Image)?;
        }
        loader.finish()
    }

    async fn newest(&mut self) -> Result<Option<Found>, FlashError<F::Error>> {
        let mut newest = None;
        for slot in self.geometry.slots() {
            if let Some(record) = self.check(slot).await? {
                newest = Some(Found { slot, record }.newer(newest));
            }
        }
        Ok(newest)
    }

    /// The record in a slot, if it is whole.
    async fn check(&mut self, slot: usize) -> Result<Option<Record>, FlashError<F::Error>> {
        let mut scan = self.geometry.scan();
        let mut page = [0; PAGE];
        while let Some((at, len)) = scan.next(PAGE) {
            let bytes = page.get_mut(..len).unwrap_or_default();
            self.flash.read(self.geometry.address(slot, at), bytes).await?;
            scan.feed(bytes);
        }
        Ok(scan.finish())
    }
}
