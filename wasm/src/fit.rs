//! Training and evaluating with a data set, cut into steps: JavaScript takes as many at a time as it likes.

use alloc::vec::Vec;

use slabgrad::backend::Real;
use slabgrad::metrics::RunningMean;
use slabgrad::shape::Shape;
use slabgrad::train::{Dataset, FitError};
use wasm_bindgen::prelude::*;

use crate::description::{Description, object};
use crate::failure::Failure;
use crate::model::{Model, Sums};

/// A data set, and the batch that was gathered last.
struct Batches {
    data: Dataset,
    size: usize,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Batches {
    /// The data set, in which a label that is no class is an error.
    fn new(model: &Model, x: Vec<f32>, y: Vec<f32>, size: usize) -> Result<Self, Failure> {
        let (sample, output, loss) = model.task()?;
        let samples = x.len() / sample.len().max(1);
        let target = loss.target(output, samples, y.len());
        let data = match loss.classes(output) {
            // As in the library, 0.5 or NaN are no class either.
            Some(classes) if target.rank() == 0 => {
                let label = |label: f32| label.to_index().unwrap_or(usize::MAX);
                Dataset::with_labels(sample, x, classes, y.into_iter().map(label))?
            }
            _ => Dataset::new(sample, x, target, y)?,
        };
        if size == 0 || data.is_empty() {
            return Err(FitError::NoBatch { samples: data.len(), batch: size }.into());
        }
        Ok(Self { data, size, x: Vec::new(), y: Vec::new() })
    }

    /// How many batches an epoch has.
    fn count(&self) -> usize {
        self.data.len().div_ceil(self.size)
    }

    /// Gathers batch `i` of samples in this order.
    fn gather(&mut self, order: impl ExactSizeIterator<Item = usize>, i: usize) -> usize {
        self.x.clear();
        self.y.clear();
        let start = i * self.size;
        let len = self.size.min(order.len().saturating_sub(start));
        for sample in order.skip(start).take(len) {
            self.x.extend_from_slice(self.data.sample(sample));
            self.y.extend_from_slice(self.data.target(sample));
        }
        len
    }

    fn target(&self) -> Shape {
        self.data.target_shape()
    }
}

/// Epochs of training. `Model.fit` is a loop around it.
#[wasm_bindgen]
pub struct FitSession {
    batches: Batches,
    seed: u64,
    epochs: usize,
    epoch: usize,
    batch: usize,
    order: Vec<usize>,
    loss: f32,
    mean: RunningMean<f32>,
    samples: usize,
}

#[wasm_bindgen]
impl FitSession {
    /// The model is looked at only; the data is copied.
    #[wasm_bindgen(constructor)]
    pub fn new(
        model: &Model,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] x: Vec<f32>,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] y: Vec<f32>,
        #[wasm_bindgen(unchecked_optional_param_type = "LoopOptions")] options: JsValue,
    ) -> Result<Self, Failure> {
        let options = Description::options("fit", options)?;
        let batches = Batches::new(model, x, y, options.size("batchSize")?.unwrap_or(32))?;
        let mut session = Self {
            batches,
            seed: options.seed("seed")?.unwrap_or(0),
            epochs: options.size("epochs")?.unwrap_or(1),
            epoch: options.size("firstEpoch")?.unwrap_or(0),
            batch: options.size("firstBatch")?.unwrap_or(0),
            order: Vec::new(),
            loss: 0.0,
            mean: RunningMean::new(),
            samples: 0,
        };
        options.finish()?;
        session.shuffle();
        Ok(session)
    }

    /// Takes a step, and says what comes next: another one, or after the last batch of an epoch nothing until `nextEpoch`.
    /// Without a batch left in this epoch it does nothing.
    pub fn step(&mut self, model: &mut Model) -> Result<bool, Failure> {
        let len = self.batches.gather(self.order.iter().copied(), self.batch);
        if len == 0 {
            return Ok(false);
        }
        self.loss = model.step(len, &self.batches.x, &self.batches.y, self.batches.target())?;
        self.mean.add_mean(self.loss, len);
        self.samples += len;
        self.batch += 1;
        Ok(self.batch < self.batches.count())
    }

    /// Goes on to the next epoch.
    #[wasm_bindgen(js_name = nextEpoch)]
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
        self.batch = 0;
        self.mean = RunningMean::new();
        self.shuffle();
    }

    /// Whether all epochs are done.
    #[wasm_bindgen(getter, js_name = isDone)]
    pub fn is_done(&self) -> bool {
        self.epoch >= self.epochs
    }

    /// Where it is.
    #[wasm_bindgen(unchecked_return_type = "Progress")]
    pub fn progress(&self, model: &Model) -> Result<JsValue, Failure> {
        Ok(object([
            ("epoch", self.epoch.into()),
            ("epochs", self.epochs.into()),
            ("batch", self.batch.into()),
            ("batches", self.batches.count().into()),
            ("step", model.steps().into()),
            ("samples", self.samples.into()),
            ("loss", self.loss.into()),
            ("meanLoss", self.mean.mean().into()),
            ("learningRate", model.learning_rate()?.into()),
        ]))
    }

    /// The order of this epoch: the library's, a function of seed and epoch.
    fn shuffle(&mut self) {
        let mut batches = self.batches.data.batches(self.batches.size).shuffled(self.seed);
        batches.start(self.epoch);
        self.order = batches.order().to_vec();
    }
}

/// An evaluation. `Model.evaluate` is a loop around it.
#[wasm_bindgen]
pub struct EvaluationSession {
    batches: Batches,
    batch: usize,
    sums: Sums,
}

#[wasm_bindgen]
impl EvaluationSession {
    /// The model is looked at only; the data is copied.
    #[wasm_bindgen(constructor)]
    pub fn new(
        model: &Model,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] x: Vec<f32>,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] y: Vec<f32>,
        #[wasm_bindgen(js_name = batchSize)] batch_size: usize,
    ) -> Result<Self, Failure> {
        Ok(Self { batches: Batches::new(model, x, y, batch_size)?, batch: 0, sums: Sums::default() })
    }

    /// Evaluates a batch; true as long as there is another one.
    pub fn step(&mut self, model: &mut Model) -> Result<bool, Failure> {
        let len = self.batches.gather(0..self.batches.data.len(), self.batch);
        if len > 0 {
            let Batches { x, y, .. } = &self.batches;
            model.evaluate(len, x, y, self.batches.target(), &mut self.sums)?;
            self.batch += 1;
        }
        Ok(self.batch < self.batches.count())
    }

    /// The result so far.
    #[wasm_bindgen(unchecked_return_type = "Evaluation")]
    pub fn result(&self) -> JsValue {
        self.sums.result()
    }

    /// Starts again from the first sample, with the same data.
    pub fn restart(&mut self) {
        (self.batch, self.sums) = (0, Sums::default());
    }
}
