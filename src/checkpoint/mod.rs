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
//! Reading checks everything before it changes anything. What does not belong to the model, or is damaged, is an
//! [`ImageError`], and the memory is as it was.

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
mod program;
#[cfg(feature = "flash")]
mod record;
#[cfg(feature = "safetensors")]
mod state_dict;
mod tape;
mod target;

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
