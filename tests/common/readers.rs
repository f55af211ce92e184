//! All readers of bytes from outside, each with what has to hold whatever the bytes are: no panic, and a memory that is as it
//! was after an error. For the mutations in `tests/mutations.rs` and the targets in `fuzz/`.

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
use slabgrad::checkpoint::{CborError, Image, Slots, StateDict, UserBytes};
use slabgrad::layer::{Activation, Model, Residual, Sequential};
use slabgrad::prelude::*;
use slabgrad::shape::Shape;
use slabgrad::tape::FixedTape;

const fn net<T: Backend>() -> Graph<T> {
    let mut g = Graph::new();
    let x = g.input::<R2<2, 3>>("x");
    let y = g.input::<R2<2, 1>>("y");
    let h: Var<R2<2, 2>> = g.linear("fc1", x);
    let h = g.batch_norm1d("bn", h);
    let h = g.dropout(h, 0.5);
    let p: Var<R2<2, 1>> = g.linear("fc2", h);
    g.freeze("fc1");
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(pub(crate) static NET = net().train(Training::with::<Adam>()));
program!(pub(crate) static DOUBLE: Program<Strict<f64>> = net::<Strict<f64>>().train(Training::with::<Adam>()));

/// What a memory holds before anything is loaded.
const BEFORE: f32 = -7.5;

/// Runs `load` on a fresh memory of a program, which has to be as it was if that fails.
fn on_memory<B: Backend, T, E>(
    program: &Program<'_, B>,
    load: impl FnOnce(&mut Memory<'_, B::Elem>) -> Result<T, E>,
) -> Result<T, E> {
    let before = B::Elem::choose(BEFORE, f64::from(BEFORE));
    let frozen = vec![before; program.frozen_len()];
    let mut slab = vec![before; program.slab_len()];
    let result = load(&mut program.memory_with(&mut slab, &frozen).expect("the slab is long enough"));
    assert!(result.is_ok() || slab.iter().all(|&x| x == before), "an error, and the memory has changed");
    result
}

/// With the checksum that belongs to it, so that what lies behind that check is reached.
pub(crate) fn sealed(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.len().saturating_sub(4);
    let mut crc = !0_u32;
    for byte in &bytes[..end] {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    [&bytes[..end], &(!crc).to_le_bytes()].concat()
}

/// Whether the bytes are an image that some model takes.
pub(crate) fn image(bytes: &[u8]) -> bool {
    let Ok(image) = Image::parse(bytes) else { return false };
    let _ = (image.user(), NET.frozen_in(&image), DOUBLE.frozen_in(&image));
    let single = on_memory(&NET, |memory| NET.load(memory, &image)).is_ok();
    let weights = on_memory(&NET, |memory| NET.load_weights(memory, &image)).is_ok();
    let double = on_memory(&DOUBLE, |memory| DOUBLE.load(memory, &image)).is_ok();
    let double_weights = on_memory(&DOUBLE, |memory| DOUBLE.load_weights(memory, &image)).is_ok();
    let tape = tape(&image);
    single || weights || double || double_weights || tape
}

fn tape(image: &Image<'_>) -> bool {
    let (mut slab, mut moments) = ([BEFORE; 32], [BEFORE; 14]);
    let mut tape: FixedTape<4> = FixedTape::in_slab(&mut slab, 3).expect("the slab is long enough");
    let (w, s) = (tape.parameter([3], &[BEFORE; 3]), tape.state([2], &[BEFORE; 2]));
    let result = tape.load(&mut moments, image);
    let mut values = tape.value(w).iter().chain(tape.value(s)).chain(&moments);
    assert!(result.is_ok() || values.all(|&x| x == BEFORE), "an error, and the tape has changed");
    result.is_ok()
}

/// An image that the tape in [`image`] takes.
pub(crate) fn image_of_a_tape() -> Vec<u8> {
    let (mut slab, moments) = ([0.0; 32], [0.0; 14]);
    let mut tape: FixedTape<4> = FixedTape::in_slab(&mut slab, 3).expect("the slab is long enough");
    tape.parameter([3], &[1.0; 3]);
    tape.state([2], &[2.0; 2]);
    let mut bytes = vec![0; 1024];
    let written = tape.image(&moments, b"tape").map(|mut image| image.read(&mut bytes));
    bytes.truncate(written.unwrap_or_default());
    bytes
}

/// A flash with these bytes in it, and 0 behind.
pub(crate) struct Flash(pub(crate) Vec<u8>);

impl Flash {
    pub(crate) const LEN: usize = 2048;

    pub(crate) fn with(bytes: &[u8]) -> Self {
        let mut flash = bytes.to_vec();
        flash.resize(Self::LEN, 0);
        Self(flash)
    }
}

impl ErrorType for Flash {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, at: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let from = self.0.get(at as usize..at as usize + bytes.len()).ok_or(NorFlashErrorKind::OutOfBounds)?;
        bytes.copy_from_slice(from);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 512;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.0[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// Whether flash with these bytes holds an image that the model takes. Whatever it holds, an image can be saved there.
pub(crate) fn slots(bytes: &[u8]) -> bool {
    let mut slots: Slots<_, 128> = Slots::new(Flash::with(bytes), 0..Flash::LEN as u32, 2).expect("a good geometry");
    let loaded = on_memory(&NET, |memory| slots.load(&mut (NET.target(memory), UserBytes::new(&mut [0; 16])))).is_ok();
    let saved = on_memory(&NET, |memory| {
        let image = NET.image(memory, slabgrad::checkpoint::Contents::training()).expect("a good memory");
        slots.save(image)
    });
    assert_eq!(on_memory(&NET, |memory| slots.load(&mut NET.target(memory))), saved);
    assert!(saved.is_ok(), "{saved:?}");
    loaded
}

/// Whether the bytes are a `state_dict` that some model takes.
pub(crate) fn state_dict(bytes: &[u8]) -> bool {
    let Ok(dict) = StateDict::parse(bytes) else { return false };
    let dict = dict.rename("module", "").rename("", "");
    let single = on_memory(&NET, |memory| NET.load_state_dict(memory, &dict)).is_ok();
    let double = on_memory(&DOUBLE, |memory| DOUBLE.load_state_dict(memory, &dict)).is_ok();
    let mut frozen = vec![BEFORE; NET.frozen_len()];
    let loaded = NET.load_frozen_state_dict(&mut frozen, &dict);
    assert!(loaded.is_ok() || frozen.iter().all(|&x| x == BEFORE), "an error, and the frozen parameters have changed");
    assert_eq!(NET.pack(&dict).is_ok(), single && loaded.is_ok());
    single || double
}

/// Whether the bytes are a model with its structure.
pub(crate) fn model(bytes: &[u8]) -> bool {
    let single = same_again(bytes, Model::<Strict<f32>>::from_cbor, Model::to_cbor);
    let double = same_again(bytes, Model::<Strict<f64>>::from_cbor, Model::to_cbor);
    single || double
}

/// Whether the bytes are a checkpoint of nanograd's.
pub(crate) fn nanograd(bytes: &[u8]) -> bool {
    [None, Some(Shape::new([1, 4, 4])), Some(Shape::new([3]))].into_iter().any(|sample| {
        let single = same_again(bytes, |bytes| Model::<Strict<f32>>::from_nanograd(bytes, sample), Model::to_nanograd);
        let double = same_again(bytes, |bytes| Model::<Strict<f64>>::from_nanograd(bytes, sample), Model::to_nanograd);
        single || double
    })
}

/// Whether the bytes are a model. It is no larger than they are, and comes back from what it is written to.
fn same_again<B: Backend>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<Model<B>, CborError>,
    write: impl Fn(&Model<B>) -> Result<Vec<u8>, CborError>,
) -> bool {
    fn data<B: Backend>(model: &Model<B>) -> Vec<u8> {
        model.tensors().flat_map(|tensor| bytemuck::cast_slice::<_, u8>(tensor.data).to_vec()).collect()
    }
    let Ok(model) = read(bytes) else { return false };
    assert!(data(&model).len() <= bytes.len(), "more numbers than there are bytes");
    let again = write(&model).and_then(|bytes| read(&bytes)).expect("a model that was read can be written and read");
    assert_eq!(data(&again), data(&model), "the numbers changed on the way");
    true
}

/// A model whose layers have settings, children, state and a frozen parameter.
pub(crate) fn small_model<B: Backend>() -> Model<B> {
    let block = Sequential::new().conv2d("conv", 1, 1, Conv2d::kernel(3).padding(1)).batch_norm2d("bn", 1);
    let net = Sequential::new().named("block", Residual::new(block)).activation(Activation::Elu(0.5)).dropout(0.2);
    let mut model = Model::new(net.flatten().linear("fc", 16, 2), [1, 4, 4], 3).expect("the layers fit");
    model.freeze("fc.weight").expect("it is there");
    model
}

/// A model of the layers that nanograd has.
pub(crate) fn small_nanograd<B: Backend>() -> Model<B> {
    let net = Sequential::new().conv2d("conv", 1, 1, Conv2d::kernel(2).stride(2)).relu().flatten();
    let net = net.linear("fc1", 4, 3).activation(Activation::Tanh).linear("fc2", 3, 2);
    Model::new(net, [1, 4, 4], 3).expect("the layers fit")
}
