//! slabgrad in the browser: models of layers that JavaScript puts together, trains, saves and loads.
//!
//! `cargo xtask wasm` makes the npm package of it; `README.md` describes that. Here is what crosses the border: descriptions
//! become layers (`layers.rs`), optimizers and losses (`settings.rs`); a [`Model`] (`model.rs`) keeps compiled steps; a loop over
//! data is cut into steps (`fit.rs`), so that the page decides when to go on. Errors are JavaScript's `Error`s with the
//! library's text.

#![no_std]
// Who calls is JavaScript: a `Result` is what it throws, and it does not know `must_use`.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

extern crate alloc;

mod description;
mod failure;
mod fit;
mod js;
mod layers;
mod model;
mod settings;
mod types;

pub use failure::Failure;
pub use fit::{EvaluationSession, FitSession};
pub use js::Array;
pub use model::Model;
