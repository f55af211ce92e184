//! Compiled steps: a model's forward pass, loss and backward pass, planned once by the static engine's planner and
//! replayed.
//!
//! The first call of a [`Context`] records the model and the loss, without computing anything, and plans a program: which
//! values share memory, what runs in place, what is not needed. Later calls replay it, and allocate nothing. Parameters,
//! state and moments stay where they are, in the model, so what is changed there from outside is seen by the next replay.
//! Eager steps, compiled steps and a static graph of the same network give the same bits.
//!
//! ```
//! use slabgrad::compiled::Context;
//! use slabgrad::layer::{Model, Sequential};
//! use slabgrad::prelude::*;
//!
//! let mut model: Model = Model::new(Sequential::new().linear("fc1", 2, 8).relu().linear("fc2", 8, 2), [2], 1)?;
//! let (mut training, mut inference) = (Context::new(), Context::new());
//! let (x, label) = ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
//! let (x, label) = ((Shape::new([4, 2]), &x[..]), (Shape::new([4]), &label[..]));
//! let mut adam = Adam::new(0.05);
//! let mut loss = 0.0;
//! for _ in 0..200 {
//!     loss = training.training_step(
//!         &mut model,
//!         &mut adam,
//!         |tape, logits, extra| tape.cross_entropy(logits, extra[0], CrossEntropy::new()),
//!         x,
//!         &[label],
//!     )?;
//! }
//! assert!(loss < 0.1);
//! let logits = inference.forward(&mut model, x)?;
//! assert!(logits[0] > logits[1] && logits[2] < logits[3]);
//! println!("{}", training.program().unwrap());
//! # Ok::<(), slabgrad::compiled::CompileError>(())
//! ```

use alloc::rc::Rc;
use alloc::vec::Vec;

use crate::backend::{Backend, Strict};
use crate::layer::Model;
use crate::optim::Optimizer;
use crate::plan::{Tables, Training};
use crate::program::{Memory, Program, RunError};
use crate::shape::Shape;
use crate::tape::{GrowingTape, Handle};

mod by_layer;
mod compile;
mod error;
mod report;

pub use by_layer::{BackwardContext, ForwardContext, layer_contexts};
pub(crate) use compile::stats;
use compile::{Loss, Purpose, compile};
pub use error::CompileError;
pub use report::{Report, Stats};

/// A tensor that is handed over with every step: its shape and its elements.
pub type Input<'a, E> = (Shape, &'a [E]);

/// The most tensors that a step takes, numbers in expressions included.
const MAX_STEP_INPUTS: usize = 32;

/// A place for a compiled program: of training steps, or of inferences. One is needed for each shape of the input.
pub struct Context<B: Backend = Strict<f32>> {
    training: Training,
    compiled: Option<Compiled<B>>,
}

/// A program, and what it was compiled for.
struct Compiled<B: Backend> {
    tables: Tables<'static, B>,
    work: Vec<B::Elem>,
    /// Where each input of the program comes from.
    sources: Vec<Source<B::Elem>>,
    use_: Use,
    /// The shapes of the input and of what comes with it.
    shapes: Vec<Shape>,
    model: Rc<()>,
    report: Report,
}

/// Where an input of a program comes from.
enum Source<E> {
    /// It is handed over: the input itself comes first.
    Given(usize),
    /// It was written into the loss or the model as a number.
    Number(Vec<E>),
}

/// What a context is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// [`Context::training_step`].
    Training,
    /// [`Context::loss`].
    Evaluation,
    /// [`Context::forward`].
    Inference,
}

impl core::fmt::Display for Use {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Training => "training steps",
            Self::Evaluation => "losses in evaluation",
            Self::Inference => "inference",
        })
    }
}

impl<B: Backend> Default for Context<B> {
    fn default() -> Self {
        Self::new()
    }
}

// A method's path is of one lifetime, where the closures are of any.
#[allow(clippy::redundant_closure_for_method_calls)]
impl<B: Backend> Context<B> {
    /// For a program that keeps the gradients of a step.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Training::with_slots(0))
    }

    /// With these settings for training steps: fused updates, clipping, what to do about numbers that are not finite, whether
    /// outputs are kept. Settings of parameters are the model's ([`Model::set_group`]).
    #[must_use]
    pub const fn with(training: Training) -> Self {
        Self { training, compiled: None }
    }

    /// One training step: forward, loss, backward, update. Returns the loss before the update. `loss` gets the tape, the model's
    /// output and the `extra` inputs, such as the targets, and is called when the step is compiled only: what changes from
    /// step to step has to be an input.
    ///
    /// # Errors
    /// When the model or the loss cannot be recorded or planned (a parameter gets no gradient, for instance), an input has
    /// another shape than the compiled one, the context is another model's or one for inference, and as
    /// [`Program::step`].
    #[track_caller]
    pub fn training_step<O: Optimizer<B>>(
        &mut self,
        model: &mut Model<B>,
        optimizer: &mut O,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<B::Elem, CompileError> {
        model.make_room_for_moments(O::SLOTS);
        let training = self.training.for_slots(O::SLOTS);
        self.prepare(model, Purpose::training(training, loss), x, extra)?;
        self.replay(model, x, extra, |program, memory, inputs| program.step(memory, inputs, optimizer))
    }

    /// The first half of a training step: leaves the gradients in the model, where they can be looked at and changed. Returns
    /// the loss.
    ///
    /// # Errors
    /// As [`Context::training_step`].
    #[track_caller]
    pub fn gradients<O: Optimizer<B>>(
        &mut self,
        model: &mut Model<B>,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<B::Elem, CompileError> {
        self.gradients_for(O::SLOTS, model, loss, x, extra)
    }

    /// The same code for all optimizers.
    #[track_caller]
    fn gradients_for(
        &mut self,
        slots: usize,
        model: &mut Model<B>,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<B::Elem, CompileError> {
        model.make_room_for_moments(slots);
        self.prepare(model, Purpose::training(self.training.for_slots(slots), loss), x, extra)?;
        self.replay(model, x, extra, |program, memory, inputs| program.gradients(memory, inputs))
    }

    /// The second half of a training step.
    ///
    /// # Errors
    /// As [`Program::update`], and when nothing has been compiled for this model.
    pub fn update<O: Optimizer<B>>(&mut self, model: &mut Model<B>, optimizer: &mut O) -> Result<(), CompileError> {
        self.run(model, |program, memory| program.update(memory, optimizer))
    }

    /// The model's output for `x`, as in evaluation. It lies in the context until the next call.
    ///
    /// # Errors
    /// As [`Context::training_step`].
    #[track_caller]
    pub fn forward(&mut self, model: &mut Model<B>, x: Input<'_, B::Elem>) -> Result<&[B::Elem], CompileError> {
        type NoLoss<B> = fn(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle;
        self.prepare(model, Purpose::<NoLoss<B>>::INFERENCE, x, &[])?;
        self.replay(model, x, &[], |program, memory, inputs| program.run(memory, inputs))?;
        Ok(self.output().unwrap_or_default())
    }

    /// The loss as in evaluation, without training; [`Context::output`] has the model's output beside it.
    ///
    /// # Errors
    /// As [`Context::training_step`], but a loss that is not finite is a value like any other.
    #[track_caller]
    pub fn loss(
        &mut self,
        model: &mut Model<B>,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<B::Elem, CompileError> {
        self.prepare(model, Purpose::evaluation(loss), x, extra)?;
        self.replay(model, x, extra, |program, memory, inputs| program.run(memory, inputs))?;
        // The loss is recorded after the output that it is of.
        let loss = self.outputs().last().and_then(|loss| loss.first());
        loss.copied().ok_or(CompileError::Run(RunError::BrokenPlan))
    }

    /// The model's output in the last call, where it is kept: of inferences and losses, and of training steps with
    /// [`Training::keep_outputs`].
    #[must_use]
    pub fn output(&self) -> Option<&[B::Elem]> {
        self.outputs().next()
    }

    fn outputs(&self) -> impl Iterator<Item = &[B::Elem]> {
        self.compiled.iter().flat_map(|compiled| {
            let outputs = compiled.tables.outputs().iter();
            outputs.filter_map(|output| compiled.work.get(output.range_in_work()?))
        })
    }

    /// Compiles a training step without taking it.
    #[track_caller]
    pub(crate) fn compile_training<O: Optimizer<B>>(
        &mut self,
        model: &mut Model<B>,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<(), CompileError> {
        model.make_room_for_moments(O::SLOTS);
        self.prepare(model, Purpose::training(self.training.for_slots(O::SLOTS), loss), x, extra)
    }

    /// Compiles a loss without computing it.
    #[track_caller]
    pub(crate) fn compile_loss(
        &mut self,
        model: &mut Model<B>,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<(), CompileError> {
        self.prepare(model, Purpose::evaluation(loss), x, extra)
    }

    /// Checks elements as every run checks those of input `given`: 0 is the input itself, then come the extra ones.
    pub(crate) fn check_elements(&self, given: usize, data: &[B::Elem]) -> Result<(), RunError> {
        let Some(compiled) = &self.compiled else { return Ok(()) };
        let inputs = compiled.tables.inputs().iter().zip(&compiled.sources);
        let mut of_it = inputs.filter(|(_, source)| matches!(source, Source::Given(i) if *i == given));
        of_it.try_for_each(|(input, _)| input.expected().check_elements(given, data))
    }

    /// What was compiled, as text and in numbers.
    #[must_use]
    pub fn program(&self) -> Option<&Report> {
        self.compiled.as_ref().map(|compiled| &compiled.report)
    }

    /// Compiles, or checks that what was compiled is for this.
    #[track_caller]
    fn prepare(
        &mut self,
        model: &mut Model<B>,
        purpose: Purpose<impl Loss<B>>,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<(), CompileError> {
        let Some(compiled) = &self.compiled else {
            self.compiled = Some(compile(model, purpose, x, extra)?);
            return Ok(());
        };
        if compiled.use_ != purpose.use_ {
            return Err(CompileError::OtherUse { compiled: compiled.use_, found: purpose.use_ });
        }
        if compiled.shapes.len() != 1 + extra.len() {
            return Err(CompileError::InputCount { compiled: compiled.shapes.len(), found: 1 + extra.len() });
        }
        let given = core::iter::once(&x).chain(extra).map(|(shape, _)| *shape);
        match given.zip(&compiled.shapes).enumerate().find(|(_, (found, compiled))| found != *compiled) {
            Some((input, (found, &compiled))) => Err(CompileError::Shape { input, compiled, found }),
            None => Ok(()),
        }
    }

    fn replay<T>(
        &mut self,
        model: &mut Model<B>,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
        run: impl FnOnce(&Program<'_, B>, &mut Memory<'_, B::Elem>, &[&[B::Elem]]) -> Result<T, RunError>,
    ) -> Result<T, CompileError> {
        let Some(compiled) = &mut self.compiled else { return Err(CompileError::OtherModel) };
        let sources = core::mem::take(&mut compiled.sources);
        let mut inputs = [&[][..]; MAX_STEP_INPUTS];
        for (input, source) in inputs.iter_mut().zip(&sources) {
            *input = match source {
                Source::Given(0) => x.1,
                Source::Given(i) => extra.get(i - 1).map_or(&[][..], |(_, data)| data),
                Source::Number(data) => data,
            };
        }
        let inputs = inputs.get(..sources.len()).unwrap_or_default();
        let outcome = self.run(model, |program, memory| run(program, memory, inputs));
        if let Some(compiled) = &mut self.compiled {
            compiled.sources = sources;
        }
        outcome
    }

    fn run<T>(
        &mut self,
        model: &mut Model<B>,
        run: impl FnOnce(&Program<'_, B>, &mut Memory<'_, B::Elem>) -> Result<T, RunError>,
    ) -> Result<T, CompileError> {
        let Some(compiled) = self.compiled.as_mut().filter(|compiled| Rc::ptr_eq(&compiled.model, &model.identity))
        else {
            return Err(CompileError::OtherModel);
        };
        let program = compiled.tables.program();
        let (frozen, state) = (program.frozen_len(), program.state_len());
        let mut memory = model.tape.memory(frozen, state, &mut model.moments, &mut compiled.work);
        Ok(run(&program, &mut memory)?)
    }
}
