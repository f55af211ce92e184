//! Trains neural networks in memory that you hand over: without a heap on microcontrollers, in the browser, and on the
//! host with the same bits.
//!
//! A network is a constant: a [`Graph`](graph::Graph) that `const fn`s record, with the shapes in the types. The compiler
//! differentiates it and lays it out in memory ([`plan`]), and the program runs on slices ([`program`](mod@program)).
//!
//! ```
//! use slabgrad::prelude::*;
//!
//! // Two inputs, eight hidden units, one output, all four cases of exclusive or in a batch.
//! const fn xor() -> Graph {
//!     let mut g = Graph::new();
//!     let x = g.input::<R2<4, 2>>("x");
//!     let y = g.input::<R2<4, 1>>("y");
//!     let h: Var<R2<4, 8>> = g.linear("hidden", x);
//!     let h = g.tanh(h);
//!     let p: Var<R2<4, 1>> = g.linear("out", h);
//!     let p = g.sigmoid(p);
//!     g.output("p", p);
//!     let loss = g.mse(p, y);
//!     g.loss(loss);
//!     g
//! }
//!
//! program!(static TRAIN = xor().train(Training::with::<Adam>().keep_outputs()));
//!
//! let mut slab = [0.0; TRAIN.slab_len()];
//! let mut memory = TRAIN.memory(&mut slab)?;
//! TRAIN.init(&mut memory, 1)?;
//! let (x, y) = ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
//! let mut adam = Adam::new(0.1);
//! for _ in 0..200 {
//!     TRAIN.step(&mut memory, &[&x, &y], &mut adam)?;
//! }
//! let p = TRAIN.output(&memory, "p").unwrap();
//! assert!(p.iter().zip(y).all(|(p, y)| (p - y).abs() < 0.1), "{p:?}");
//! # Ok::<(), slabgrad::program::RunError>(())
//! ```
//!
//! # Features
//!
//! Without features the crate needs neither `std` nor an allocator. `alloc` and `std` (the default) add to it and change no
//! result; `rayon` shares large products, convolutions and updates among the threads of its pool, with the same bits, which
//! costs least where the loop of steps runs within that pool (`rayon::scope(|_| ...)`);
//! `defmt` adds `defmt::Format` to the error types, `progress` a progress bar for training loops. `flash` and
//! `flash-async` keep checkpoints in flash behind the drivers' traits of `embedded-storage`; `safetensors` (with `alloc`) loads
//! and saves PyTorch's `state_dict`s; `cbor` (with `alloc`) keeps models with their structure in files, and reads and writes
//! nanograd's checkpoints.

#![no_std]
#![deny(unsafe_code)]
// Tests compare with literal values, and with the functions of std as independent references.
#![cfg_attr(test, allow(clippy::float_cmp, clippy::type_complexity, clippy::disallowed_methods))]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(any(feature = "alloc", test))]
extern crate alloc;

pub mod backend;
pub mod checkpoint;
#[cfg(feature = "alloc")]
pub mod compiled;
pub mod diagnostics;
pub mod error;
pub mod graph;
pub mod init;
#[cfg(feature = "alloc")]
pub mod layer;
pub mod metrics;
pub mod ops;
pub mod optim;
pub mod plan;
pub mod program;
mod random;
pub mod shape;
pub mod tape;
#[cfg(any(feature = "alloc", test))]
pub mod testing;
#[cfg(feature = "alloc")]
pub mod train;

/// The README's programs run as written.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// What most programs that use this crate name.
pub mod prelude {
    pub use crate::backend::{Backend, Real, Strict};
    pub use crate::graph::{Attention, Graph, GruCell, IndexTensor, Indices, LstmCell, LstmState, Var};
    pub use crate::init::Init;
    pub use crate::ops::avg_pool2d::CountPadding;
    pub use crate::ops::batch_norm::BatchNorm;
    pub use crate::ops::conv_transpose2d::ConvTranspose2d;
    pub use crate::ops::conv1d::Conv1d;
    pub use crate::ops::conv2d::Conv2d;
    pub use crate::ops::cross_entropy::CrossEntropy;
    pub use crate::ops::dropout::Dropout;
    pub use crate::ops::group_norm::GroupNorm;
    pub use crate::ops::layer_norm::LayerNorm;
    pub use crate::ops::linear::Linear;
    pub use crate::ops::rms_norm::RmsNorm;
    pub use crate::ops::{Reduction, Window1d, Window2d};
    pub use crate::optim::{Adagrad, AmsGrad, ParamGroup, RmsProp, Schedule};
    pub use crate::optim::{Adam, Momentum, Sgd};
    pub use crate::plan::{NotFinite, Plan, Training};
    pub use crate::program;
    pub use crate::program::{Memory, Program, RunError};
    pub use crate::shape::{Dims, R0, R1, R2, R3, R4, R5, Shape};
}
