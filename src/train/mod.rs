//! Training loops: data in batches, and [`Trainer::fit`], which goes through them with compiled steps.
//!
//! ```
//! use slabgrad::layer::{Model, Sequential};
//! use slabgrad::metrics::EarlyStopping;
//! use slabgrad::prelude::*;
//! use slabgrad::train::{Dataset, Trainer, evaluate, predict};
//!
//! // Points in a square, which a circle divides.
//! let points: Vec<f32> = (0..800).map(|i| (i * 389 % 1000) as f32 / 500.0 - 1.0).collect();
//! let labels = points.chunks(2).map(|p| usize::from(p[0] * p[0] + p[1] * p[1] < 0.6)).collect::<Vec<_>>();
//! let data = Dataset::with_labels([2], points, 2, labels)?;
//! let (training, validation) = data.split(0.2, 1)?;
//! assert_eq!((training.len(), validation.len()), (320, 80));
//!
//! let mut model: Model = Model::new(Sequential::new().linear("fc1", 2, 16).relu().linear("fc2", 16, 2), [2], 1)?;
//! let loss = |tape: &mut slabgrad::tape::GrowingTape, logits, label| {
//!     tape.cross_entropy(logits, label, CrossEntropy::new())
//! };
//! let history = Trainer::new(60, 32)
//!     .validation(&validation)
//!     .early_stopping(EarlyStopping::new(10, 0.0))
//!     .keep_best()
//!     .fit(&mut model, &training, &mut Adam::new(0.02), loss)?;
//! assert!(history.last().unwrap().loss < 0.2 * history.epochs[0].loss);
//!
//! let evaluation = evaluate(&mut model, &validation, 32, loss)?;
//! assert!(evaluation.accuracy.unwrap() > 0.9);
//! let logits = predict(&mut model, &[0.0, 0.0, 0.9, -0.9], 32)?;
//! assert!(logits[0] < logits[1] && logits[2] > logits[3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What changes from one run to the next is the seeds alone: the order of the samples is a function of the seed and the epoch,
//! and the same on every target.

mod batches;
mod callback;
mod dataset;
mod error;
mod evaluation;
#[cfg(feature = "progress")]
mod progress;
mod trainer;

pub use batches::{Batch, Batches, LastBatch};
pub use callback::{BatchReport, Callback, EpochReport};
pub use dataset::{Dataset, DatasetError};
pub use error::FitError;
pub use evaluation::{Evaluation, evaluate, predict};
#[cfg(feature = "progress")]
pub use progress::ProgressBar;
pub use trainer::{History, Stop, Trainer};
