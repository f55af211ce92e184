//! What a training loop tells while it runs.

use core::ops::ControlFlow;

use crate::backend::Backend;
use crate::layer::Model;

/// What is called while a model trains. Each method may end the training with [`ControlFlow::Break`].
///
/// ```
/// use core::ops::ControlFlow;
/// use slabgrad::layer::Model;
/// use slabgrad::prelude::*;
/// use slabgrad::train::{Callback, EpochReport};
///
/// /// Stops when the loss is small enough.
/// struct Until(f32);
///
/// impl Callback<Strict<f32>> for Until {
///     fn on_epoch(&mut self, report: &EpochReport<f32>, _: &Model) -> ControlFlow<()> {
///         if report.loss < self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
///     }
/// }
/// ```
pub trait Callback<B: Backend> {
    /// A step has been taken. An epoch that is ended here is neither evaluated nor in the history.
    fn on_batch(&mut self, report: &BatchReport<B::Elem>) -> ControlFlow<()> {
        let _ = report;
        ControlFlow::Continue(())
    }

    /// An epoch has ended, and was evaluated.
    fn on_epoch(&mut self, report: &EpochReport<B::Elem>, model: &Model<B>) -> ControlFlow<()> {
        let _ = (report, model);
        ControlFlow::Continue(())
    }
}

/// A step of a training loop.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BatchReport<E> {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// How many epochs there are to be.
    pub epochs: usize,
    /// The batch in the epoch, counted from 0.
    pub batch: usize,
    /// How many batches an epoch has.
    pub batches: usize,
    /// The loss of this batch, before the update.
    pub loss: E,
    /// The mean loss of the epoch so far.
    pub mean_loss: E,
    /// The learning rate of the step.
    pub learning_rate: E,
}

/// An epoch of a training loop.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochReport<E> {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// How many epochs there are to be.
    pub epochs: usize,
    /// The mean loss of the samples, each before the update that it went into.
    pub loss: E,
    /// The mean loss of the validation samples after the epoch, as in evaluation.
    pub validation_loss: Option<E>,
    /// The share of the validation samples that were taken for what they are, where their targets are labels.
    pub accuracy: Option<E>,
    /// The learning rate of the last step.
    pub learning_rate: E,
}

impl<E: Copy> EpochReport<E> {
    /// The loss that says how good the model is: that of the validation samples, where there are some.
    #[must_use]
    pub fn watched(&self) -> E {
        self.validation_loss.unwrap_or(self.loss)
    }
}
