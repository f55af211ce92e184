//! Checkpoints: train in one place, continue in another, lose nothing.
//!
//! A **slab image** is a header, the blocks of a model's memory as they are, and a checksum: parameters, state, and, where
//! training is to go on, moments with the count of steps. It can hold bytes of the caller's own, such as the state of a
//! generator that shuffles data. `docs/FORMAT.md` describes it byte for byte. Neither writing nor reading needs an allocator.
//!
//! ```
//! use slabgrad::checkpoint::{Contents, Image};
//! use slabgrad::prelude::*;
//!
//! const fn net() -> Graph {
//!     let mut g = Graph::new();
//!     let x = g.input::<R2<4, 2>>("x");
//!     let y = g.input::<R2<4, 1>>("y");
//!     let p: Var<R2<4, 1>> = g.linear("out", x);
//!     let loss = g.mse(p, y);
//!     g.loss(loss);
//!     g
//! }
//! program!(static TRAIN = net().train(Training::with::<Adam>()));
//! const WHOLE: Contents = Contents::training();
//!
//! let (x, y) = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 4.0]);
//! let mut slab = [0.0; TRAIN.slab_len()];
//! let mut memory = TRAIN.memory(&mut slab)?;
//! TRAIN.init(&mut memory, 1)?;
//! TRAIN.step(&mut memory, &[&x, &y], &mut Adam::new(0.1))?;
//!
//! let mut bytes = [0; TRAIN.image_len(&WHOLE)];
//! TRAIN.save(&memory, WHOLE, &mut bytes[..]).unwrap();
//!
//! let mut other = [0.0; TRAIN.slab_len()];
//! let mut other = TRAIN.memory(&mut other)?;
//! TRAIN.load(&mut other, &Image::parse(&bytes).unwrap()).unwrap();
//! assert_eq!(TRAIN.steps_done(&other), 1);
//! assert_eq!(other.params, memory.params);
//! # Ok::<(), RunError>(())
//! ```
//!
//! # Weights in flash
//!
//! Frozen parameters are used where they lie. `cargo xtask pack` makes the image from a PyTorch file; [`Aligned`] puts it where
//! elements can be read. `firmware-example/` fine-tunes such networks on a microcontroller.
//!
//! ```
//! use slabgrad::checkpoint::{Aligned, Image};
//! # use slabgrad::prelude::*;
//! # const fn net() -> Graph {
//! #     let mut g = Graph::new();
//! #     let image = g.input::<R4<1, 1, 8, 8>>("image");
//! #     let h: Var<R4<1, 4, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
//! #     let h = g.batch_norm2d("bn1", h);
//! #     let h = g.relu(h);
//! #     let h: Var<R4<1, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
//! #     let h: Var<R4<1, 8, 2, 2>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
//! #     let h = g.batch_norm2d("bn2", h);
//! #     let h = g.relu(h);
//! #     let h: Var<R2<1, 32>> = g.flatten(h);
//! #     let logits: Var<R2<1, 10>> = g.linear("fc", h);
//! #     g.output("logits", logits);
//! #     g.freeze("conv1");
//! #     g.freeze("bn1");
//! #     g.freeze("conv2");
//! #     g.freeze("bn2");
//! #     g
//! # }
//! # program!(static INFER = net().infer());
//!
//! # macro_rules! include_bytes { ($_:literal) => { core::include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/firmware-example/weights/pretrained.slab")) } }
//! static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../weights/pretrained.slab"));
//!
//! let image = Image::parse(&WEIGHTS.0).unwrap();
//! let frozen: &'static [f32] = INFER.frozen_in(&image).unwrap();
//! let mut slab = [0.0; INFER.slab_len()];
//! let mut memory = INFER.memory_with(&mut slab, frozen)?;
//! INFER.load(&mut memory, &image).unwrap();
//! INFER.run(&mut memory, &[&[0.5; 64]])?;
//! # assert!(INFER.output(&memory, "logits").unwrap().iter().all(|x| x.is_finite()));
//! # Ok::<(), RunError>(())
//! ```
//!
//! # Where images are kept
//!
//! In a slice or any [`Sink`]; with the feature `flash` in slots of flash (`Slots`), which outlive a loss of
//! power at any moment; with `std` in files that are replaced as a whole (`Program::save_file`).
//! The feature `safetensors` reads and writes PyTorch's files; `cbor` keeps whole models, structure included, in files
//! (`Model::save_model`), and reads and writes nanograd's checkpoints (`Model::from_nanograd`, `Model::to_nanograd`).
//!
//! # Faults
//!
//! Reading checks everything before it changes anything. What does not belong to the model, or is damaged, is an
//! [`ImageError`], and the memory is as it was.

#[cfg(feature = "cbor")]
mod cbor;
mod encode;
mod error;
#[cfg(feature = "std")]
mod file;
#[cfg(feature = "flash")]
mod flash;
#[cfg(feature = "flash-async")]
mod flash_async;
mod header;
mod image;
#[cfg(feature = "alloc")]
mod layers;
#[cfg(feature = "cbor")]
mod model;
#[cfg(feature = "cbor")]
mod nanograd;
mod program;
#[cfg(feature = "flash")]
mod record;
#[cfg(feature = "safetensors")]
mod state_dict;
mod tape;
mod target;

#[cfg(feature = "cbor")]
pub use cbor::CborError;
#[cfg(feature = "std")]
pub use encode::Io;
pub use encode::{Encoder, Sink, SliceTooShort};
pub use error::{ImageError, SaveError};
#[cfg(feature = "std")]
pub use file::{FileError, write_file};
#[cfg(feature = "flash")]
pub use flash::Slots;
#[cfg(feature = "flash-async")]
pub use flash_async::AsyncSlots;
pub use header::{Block, Element, HEADER_LEN, Header, VERSION};
pub use image::{Aligned, Image};
#[cfg(feature = "alloc")]
pub use layers::ModelTarget;
#[cfg(all(feature = "cbor", feature = "std"))]
pub use model::ModelFileError;
pub use program::{Contents, ProgramTarget};
#[cfg(feature = "flash")]
pub use record::FlashError;
#[cfg(feature = "safetensors")]
pub use state_dict::{Report, ShapeDiffers, StateDict, StateDictError};
pub use tape::TapeTarget;
pub use target::{Target, UserBytes, load};

/// The lengths of all blocks as a header has them.
fn lengths<E>(elements: [usize; 4], user: usize) -> Result<[u32; 5], SaveError<E>> {
    let [frozen, params, state, moments] = elements;
    let mut lengths = [0; 5];
    for ((to, from), block) in lengths.iter_mut().zip([frozen, params, state, moments, user]).zip(Block::ALL) {
        *to = u32::try_from(from).map_err(|_| SaveError::TooLong { block, found: from })?;
    }
    Ok(lengths)
}
