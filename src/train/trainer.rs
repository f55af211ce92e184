//! The training loop.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::error::{check_data, check_shape};
use super::evaluation::{Contexts, Evaluator, of_target};
use super::{BatchReport, Batches, Callback, Dataset, EpochReport, FitError, LastBatch};
use crate::backend::{Backend, Real, Strict};
use crate::layer::Model;
use crate::metrics::{EarlyStopping, RunningMean};
use crate::optim::{Optimizer, Schedule};
use crate::plan::Training;
use crate::tape::{GrowingTape, Handle};

/// The settings of a training loop; [`Trainer::fit`] runs it.
pub struct Trainer<'a, B: Backend = Strict<f32>> {
    epochs: usize,
    batch: usize,
    seed: u64,
    last: LastBatch,
    training: Training,
    validation: Option<&'a Dataset<B::Elem>>,
    schedule: Option<&'a dyn Schedule<B::Elem>>,
    early_stopping: Option<EarlyStopping<B::Elem>>,
    keep_best: bool,
    callbacks: Vec<&'a mut dyn Callback<B>>,
}

/// Why a training loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All epochs are done.
    Done,
    /// The loss had not become smaller for long enough.
    Early,
    /// A callback ended it.
    Callback,
}

/// What happened in a training loop.
#[derive(Clone, Debug, PartialEq)]
pub struct History<E> {
    /// One report for each whole epoch.
    pub epochs: Vec<EpochReport<E>>,
    /// The epoch after which the watched loss was smallest.
    pub best: Option<usize>,
    /// Why it ended.
    pub stop: Stop,
}

impl<E> History<E> {
    /// The report of the last epoch.
    #[must_use]
    pub fn last(&self) -> Option<&EpochReport<E>> {
        self.epochs.last()
    }
}

impl<'a, B: Backend> Trainer<'a, B> {
    /// So many epochs in batches of `batch`, in an order from seed 0, the last batch kept.
    #[must_use]
    pub const fn new(epochs: usize, batch: usize) -> Self {
        Self {
            epochs,
            batch,
            seed: 0,
            last: LastBatch::Keep,
            training: Training::with_slots(0),
            validation: None,
            schedule: None,
            early_stopping: None,
            keep_best: false,
            callbacks: Vec::new(),
        }
    }

    /// With the orders of another seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With this done about the samples that do not fill a batch. Where they are kept, they have a program of their own.
    #[must_use]
    pub fn last_batch(self, last: LastBatch) -> Self {
        Self { last, ..self }
    }

    /// With these settings of training steps: fused updates, clipping, what to do about numbers that are not finite.
    #[must_use]
    pub fn training(self, training: Training) -> Self {
        Self { training, ..self }
    }

    /// Evaluates the model on this data after each epoch.
    #[must_use]
    pub fn validation(self, validation: &'a Dataset<B::Elem>) -> Self {
        Self { validation: Some(validation), ..self }
    }

    /// Sets the learning rate of every step, counted from 0 over all epochs. Without a schedule it is the optimizer's.
    #[must_use]
    pub fn schedule(self, schedule: &'a dyn Schedule<B::Elem>) -> Self {
        Self { schedule: Some(schedule), ..self }
    }

    /// Stops when the loss has not become smaller for some epochs: that of the validation data, or where there is none, of
    /// the training.
    #[must_use]
    pub fn early_stopping(self, early_stopping: EarlyStopping<B::Elem>) -> Self {
        Self { early_stopping: Some(early_stopping), ..self }
    }

    /// Leaves the model as it was after the epoch with the smallest loss, of the validation data or else of the training, with
    /// its state. The moments stay those of the last step.
    #[must_use]
    pub fn keep_best(self) -> Self {
        Self { keep_best: true, ..self }
    }

    /// Calls this after each batch and each epoch. There can be several.
    #[must_use]
    pub fn callback(mut self, callback: &'a mut dyn Callback<B>) -> Self {
        self.callbacks.push(callback);
        self
    }

    /// Trains. `loss` gets the tape, the model's output and the targets, and is a mean over the batch; it is called when steps
    /// are compiled only. Labels have shape `[batch]`.
    ///
    /// # Errors
    /// Before anything is trained: when the data does not fit the model, holds a label that is no class or an element that is
    /// not finite, does not make a batch, or when the model or the loss cannot be compiled. Later: when a step is refused
    /// since the loss or a gradient is not finite.
    #[track_caller]
    pub fn fit<O: Optimizer<B>>(
        mut self,
        model: &mut Model<B>,
        data: &Dataset<B::Elem>,
        optimizer: &mut O,
        loss: impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
    ) -> Result<History<B::Elem>, FitError> {
        check_shape(model.input_shape(), data)?;
        let mut batches = data.batches(self.batch).last(self.last).shuffled(self.seed);
        let mut contexts = Contexts::new(self.batch, self.training);
        let first = batches.blank().ok_or(FitError::NoBatch { samples: data.len(), batch: self.batch })?;
        let context = contexts.of(first.len);
        context.compile_training::<O>(model, of_target(&loss), first.x, &[first.target])?;
        check_data(context, data)?;
        let mut evaluator = match self.validation {
            Some(validation) => Some(Evaluator::new(model, validation, self.batch, &loss)?),
            None => None,
        };

        let mut loop_ = Loop { batches, contexts, steps: 0 };
        let mut history = History { epochs: Vec::new(), best: None, stop: Stop::Done };
        let mut best = Best { loss: B::Elem::INFINITY, tensors: Vec::new() };
        for epoch in 0..self.epochs {
            let Some(mean_loss) = self.train_epoch(epoch, &mut loop_, model, optimizer, &loss)? else {
                history.stop = Stop::Callback;
                break;
            };
            let evaluation = evaluator.as_mut().map(|evaluator| evaluator.run(model, &loss)).transpose()?;
            let report = EpochReport {
                epoch,
                epochs: self.epochs,
                loss: mean_loss,
                validation_loss: evaluation.map(|evaluation| evaluation.loss),
                accuracy: evaluation.and_then(|evaluation| evaluation.accuracy),
                learning_rate: optimizer.learning_rate(),
            };
            history.epochs.push(report);
            if report.watched() < best.loss {
                best.loss = report.watched();
                history.best = Some(epoch);
                if self.keep_best {
                    model.save_tensors(&mut best.tensors);
                }
            }
            if notify(&mut self.callbacks, |callback| callback.on_epoch(&report, model)).is_break() {
                history.stop = Stop::Callback;
                break;
            }
            if self.early_stopping.as_mut().is_some_and(|stopping| stopping.should_stop(report.watched())) {
                history.stop = Stop::Early;
                break;
            }
        }
        model.load_tensors(&best.tensors);
        Ok(history)
    }

    /// The mean loss of an epoch; `None` where a callback ended it.
    #[track_caller]
    fn train_epoch<O: Optimizer<B>>(
        &mut self,
        epoch: usize,
        loop_: &mut Loop<'_, B>,
        model: &mut Model<B>,
        optimizer: &mut O,
        loss: &impl Fn(&mut GrowingTape<B>, Handle, Handle) -> Handle,
    ) -> Result<Option<B::Elem>, FitError> {
        let Loop { batches, contexts, steps } = loop_;
        let (mut mean, count) = (RunningMean::new(), batches.count());
        batches.start(epoch);
        for batch_at in 0..count {
            let Some(batch) = batches.next_batch() else { break };
            if let Some(schedule) = self.schedule {
                optimizer.set_learning_rate(schedule.lr(*steps));
            }
            *steps += 1;
            let context = contexts.of(batch.len);
            let loss = context.training_step(model, optimizer, of_target(loss), batch.x, &[batch.target])?;
            mean.add_mean(loss, batch.len);
            let report = BatchReport {
                epoch,
                epochs: self.epochs,
                batch: batch_at,
                batches: count,
                loss,
                mean_loss: mean.mean(),
                learning_rate: optimizer.learning_rate(),
            };
            if notify(&mut self.callbacks, |callback| callback.on_batch(&report)).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(mean.mean()))
    }
}

/// What a training loop goes on with from epoch to epoch.
struct Loop<'d, B: Backend> {
    batches: Batches<'d, B::Elem>,
    contexts: Contexts<B>,
    /// How many steps have been taken.
    steps: usize,
}

/// The smallest loss so far, and the model's tensors then.
struct Best<E> {
    loss: E,
    tensors: Vec<E>,
}

/// Calls all, and breaks when one of them does.
fn notify<B: Backend>(
    callbacks: &mut [&mut dyn Callback<B>],
    mut call: impl FnMut(&mut dyn Callback<B>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut flow = ControlFlow::Continue(());
    for callback in callbacks {
        if call(*callback).is_break() {
            flow = ControlFlow::Break(());
        }
    }
    flow
}
