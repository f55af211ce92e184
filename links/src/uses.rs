//! A use of each part.

use slabgrad::checkpoint::{Contents, Image};
use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<4, 2>>("x");
    let y = g.input::<R2<4, 1>>("y");
    let h: Var<R2<4, 8>> = g.linear("hidden", x);
    let h = g.tanh(h);
    let p: Var<R2<4, 1>> = g.linear("out", h);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

const X: [f32; 8] = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
const Y: [f32; 4] = [0.0, 1.0, 1.0, 0.0];

/// Everything that there is with these features; nothing where some of it fails.
pub(crate) fn all() -> Option<()> {
    let mut slab = [0.0; TRAIN.slab_len()];
    let mut memory = TRAIN.memory(&mut slab).ok()?;
    TRAIN.init(&mut memory, 1).ok()?;
    let step = TRAIN.step(&mut memory, &[&X, &Y], &mut Adam::new(0.1));
    #[cfg(all(feature = "defmt", target_os = "none"))]
    if let Err(error) = step {
        defmt::error!("{}", error);
    }
    step.ok()?;

    let mut bytes = [0; 1024];
    let len = TRAIN.save(&memory, Contents::training(), &mut bytes[..]).ok()?;
    TRAIN.load(&mut memory, &Image::parse(bytes.get(..len)?).ok()?).ok()?;
    #[cfg(feature = "flash")]
    flash::slots(&mut memory)?;
    #[cfg(feature = "safetensors")]
    {
        let bytes = TRAIN.save_state_dict(&memory).ok()?;
        TRAIN.load_state_dict(&mut memory, &slabgrad::checkpoint::StateDict::parse(&bytes).ok()?).ok()?;
    }
    #[cfg(feature = "alloc")]
    heap::model()?;
    #[cfg(feature = "std")]
    TRAIN.save_file(&memory, Contents::training(), "image.slab").ok()?;
    Some(())
}

#[cfg(feature = "flash")]
mod flash {
    use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
    use slabgrad::checkpoint::{Contents, Slots};
    use slabgrad::prelude::*;

    use super::TRAIN;

    const LEN: u32 = 0x2000;

    /// Memory that stands for flash.
    struct Flash([u8; LEN as usize]);

    impl Flash {
        fn part(&mut self, from: u32, len: usize) -> Result<&mut [u8], NorFlashErrorKind> {
            self.0.get_mut(from as usize..from as usize + len).ok_or(NorFlashErrorKind::OutOfBounds)
        }
    }

    impl ErrorType for Flash {
        type Error = NorFlashErrorKind;
    }

    impl ReadNorFlash for Flash {
        const READ_SIZE: usize = 1;

        fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
            self.part(offset, bytes.len()).map(|part| bytes.copy_from_slice(part))
        }

        fn capacity(&self) -> usize {
            self.0.len()
        }
    }

    impl NorFlash for Flash {
        const WRITE_SIZE: usize = 4;
        const ERASE_SIZE: usize = 4096;

        fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
            self.part(from, (to - from) as usize).map(|part| part.fill(0xff))
        }

        fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
            self.part(offset, bytes.len()).map(|part| part.copy_from_slice(bytes))
        }
    }

    pub(super) fn slots(memory: &mut Memory<'_, f32>) -> Option<()> {
        let mut flash = Flash([0; LEN as usize]);
        let mut slots: Slots<_> = Slots::new(&mut flash, 0..LEN, 2).ok()?;
        slots.save(TRAIN.image(memory, Contents::training()).ok()?).ok()?;
        slots.load(&mut TRAIN.target(memory)).ok()?;
        #[cfg(feature = "flash-async")]
        asynchronous::slots(flash, memory)?;
        Some(())
    }

    #[cfg(feature = "flash-async")]
    mod asynchronous {
        use core::future::Future;
        use core::pin::pin;
        use core::task::{Context, Poll, Waker};

        use embedded_storage::nor_flash::{self as blocking, NorFlashErrorKind};
        use embedded_storage_async::nor_flash::{NorFlash, ReadNorFlash};
        use slabgrad::checkpoint::{AsyncSlots, Contents};
        use slabgrad::prelude::*;

        use super::{Flash, LEN, TRAIN};

        impl ReadNorFlash for Flash {
            const READ_SIZE: usize = <Self as blocking::ReadNorFlash>::READ_SIZE;

            async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
                blocking::ReadNorFlash::read(self, offset, bytes)
            }

            fn capacity(&self) -> usize {
                self.0.len()
            }
        }

        impl NorFlash for Flash {
            const WRITE_SIZE: usize = <Self as blocking::NorFlash>::WRITE_SIZE;
            const ERASE_SIZE: usize = <Self as blocking::NorFlash>::ERASE_SIZE;

            async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
                blocking::NorFlash::erase(self, from, to)
            }

            async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
                blocking::NorFlash::write(self, offset, bytes)
            }
        }

        pub(super) fn slots(flash: Flash, memory: &mut Memory<'_, f32>) -> Option<()> {
            let used = pin!(async {
                let mut slots: AsyncSlots<_> = AsyncSlots::new(flash, 0..LEN, 2).ok()?;
                slots.save(TRAIN.image(memory, Contents::training()).ok()?).await.ok()?;
                slots.load(&mut TRAIN.target(memory)).await.ok()
            });
            match used.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(done) => done.map(|_| ()),
                Poll::Pending => None,
            }
        }
    }
}

#[cfg(feature = "alloc")]
mod heap {
    extern crate alloc;

    use alloc::vec::Vec;

    use slabgrad::layer::{Model, Sequential};
    use slabgrad::prelude::*;
    use slabgrad::tape::{GrowingTape, Handle};
    use slabgrad::train::{Dataset, Trainer, predict};

    use super::{X, Y};

    fn loss(tape: &mut GrowingTape, p: Handle, y: Handle) -> Handle {
        tape.mse(p, y, slabgrad::ops::Reduction::Mean)
    }

    /// On a tape, and compiled.
    pub(super) fn model() -> Option<()> {
        let layers = Sequential::new().linear("hidden", 2, 8).relu().linear("out", 8, 1);
        let mut model: Model = Model::new(layers, [2], 1).ok()?;
        let x = model.tape().constant([4, 2], &X);
        let y = model.tape().constant([4, 1], &Y);
        let p = model.forward(x).ok()?;
        let of = loss(model.tape(), p, y);
        model.backward(of).ok()?;
        model.update(&Adam::new(0.1)).ok()?;
        model.zero_grad();

        let data = Dataset::new([2], Vec::from(X), [1], Vec::from(Y)).ok()?;
        let trainer = Trainer::new(1, 4);
        #[cfg(feature = "progress")]
        let mut bar = slabgrad::train::ProgressBar::new();
        #[cfg(feature = "progress")]
        let trainer = trainer.callback(&mut bar);
        trainer.fit(&mut model, &data, &mut Adam::new(0.1), loss).ok()?;
        predict(&mut model, &X, 1).ok()?;
        #[cfg(feature = "cbor")]
        {
            Model::<Strict<f32>>::from_cbor(&model.to_cbor().ok()?).ok()?;
            Model::<Strict<f32>>::from_nanograd(&model.to_nanograd().ok()?, None).ok()?;
        }
        Some(())
    }
}
