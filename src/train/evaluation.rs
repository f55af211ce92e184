//! Losses, accuracies and outputs of data, as in evaluation.

use alloc::vec::Vec;

use super::error::{check_data, check_shape};
use super::{Batches, Dataset, FitError};
use crate::backend::{Backend, Real};
use crate::compiled::{CompileError, Context};
use crate::layer::{Model, batched};
use crate::metrics::{RunningMean, argmax};
use crate::plan::Training;
use crate::tape::{GrowingTape, Handle};

/// How good a model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation<E> {
    /// The mean loss of the samples.
    pub loss: E,
    /// The share of them that were taken for what they are, where targets are labels and the model has a score for each
    /// class.
    pub accuracy: Option<E>,
}

/// The loss and the accuracy of all samples, in batches of `batch`, as in evaluation. `loss` gets the tape, the model's output
/// and the targets, and is a mean over the batch.
///
/// # Errors
/// When the data does not fit the model, holds a label that is no class or an element that is not finite, or the model
/// or the loss cannot be compiled.
#[track_caller]
pub fn evaluate<B: Backend>(
    model: &mut Model<B>,
    data: &Dataset<B::Elem>,
    batch: usize,
    loss: impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
) -> Result<Evaluation<B::Elem>, FitError> {
    Evaluator::new(model, data, batch, &loss)?.run(model, &loss)
}

/// The model's outputs for samples that lie one after the other, in batches of `batch`, as in evaluation.
///
/// # Errors
/// When the elements do not divide into samples or one is not finite, `batch` is 0, or the model cannot be compiled.
#[track_caller]
pub fn predict<B: Backend>(model: &mut Model<B>, samples: &[B::Elem], batch: usize) -> Result<Vec<B::Elem>, FitError> {
    let sample = model.input_shape();
    let (found, of_a_sample) = (samples.len(), sample.len());
    if of_a_sample == 0 || !found.is_multiple_of(of_a_sample) {
        return Err(FitError::Elements { found, of_a_sample });
    }
    let count = found / of_a_sample;
    if batch == 0 && count > 0 {
        return Err(FitError::NoBatch { samples: count, batch });
    }
    let mut contexts = Contexts::new(batch, Training::with_slots(0));
    let mut outputs = Vec::with_capacity(count * model.output_shape().len());
    for samples in samples.chunks(batch.saturating_mul(of_a_sample).max(1)) {
        let len = samples.len() / of_a_sample;
        outputs.extend_from_slice(contexts.of(len).forward(model, (batched(sample, len), samples))?);
    }
    Ok(outputs)
}

/// A context for full batches, and one for a smaller last one.
pub(super) struct Contexts<B: Backend> {
    batch: usize,
    full: Context<B>,
    last: Context<B>,
}

impl<B: Backend> Contexts<B> {
    pub(super) const fn new(batch: usize, training: Training) -> Self {
        Self { batch, full: Context::with(training), last: Context::with(training) }
    }

    /// The one for so many samples.
    pub(super) const fn of(&mut self, len: usize) -> &mut Context<B> {
        if len == self.batch { &mut self.full } else { &mut self.last }
    }
}

/// Evaluates the same data again and again.
pub(super) struct Evaluator<'d, B: Backend> {
    data: &'d Dataset<B::Elem>,
    batches: Batches<'d, B::Elem>,
    contexts: Contexts<B>,
}

impl<'d, B: Backend> Evaluator<'d, B> {
    /// Compiles, and looks through the data.
    #[track_caller]
    pub(super) fn new(
        model: &mut Model<B>,
        data: &'d Dataset<B::Elem>,
        batch: usize,
        loss: &impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
    ) -> Result<Self, FitError> {
        check_shape(model.input_shape(), data)?;
        let mut batches = data.batches(batch);
        let mut contexts = Contexts::new(batch, Training::with_slots(0));
        let first = batches.blank().ok_or(FitError::NoBatch { samples: data.len(), batch })?;
        let context = contexts.of(first.len);
        context.compile_loss(model, of_target(loss), first.x, &[first.target])?;
        check_data(context, data)?;
        Ok(Self { data, batches, contexts })
    }

    #[track_caller]
    pub(super) fn run(
        &mut self,
        model: &mut Model<B>,
        loss: &impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
    ) -> Result<Evaluation<B::Elem>, FitError> {
        let scores = model.output_shape();
        let has_scores = scores.rank() == 1 && self.data.classes().is_some_and(|classes| classes <= scores.len());
        let (mut mean, mut right) = (RunningMean::new(), 0);
        self.batches.start(0);
        while let Some(batch) = self.batches.next_batch() {
            let context = self.contexts.of(batch.len);
            let value = context.loss(model, of_target(loss), batch.x, &[batch.target])?;
            mean.add_mean(value, batch.len);
            if has_scores {
                let output = context.output().unwrap_or_default().chunks_exact(scores.len().max(1));
                right +=
                    output.zip(batch.target.1).filter(|(scores, label)| argmax(scores) == label.to_index()).count();
            }
        }
        let accuracy = B::Elem::from_usize(right) / B::Elem::from_usize(mean.count().max(1));
        Ok(Evaluation { loss: mean.mean(), accuracy: has_scores.then_some(accuracy) })
    }
}

/// A loss as contexts take it: the target is the only input beside the samples.
pub(super) fn of_target<B: Backend>(
    loss: &impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
) -> impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle {
    move |tape, output, extra| loss(tape, output, extra.first().copied().unwrap_or(Handle::NONE))
}

impl From<crate::program::RunError> for FitError {
    fn from(error: crate::program::RunError) -> Self {
        Self::Step(CompileError::Run(error))
    }
}
