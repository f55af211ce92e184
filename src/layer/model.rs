//! A layer with its numbers.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::recorder::{Entry, Role, Row, Watch};
use super::{Layer, ModelError, Recorder, write_structure};
use crate::backend::{Backend, Real, Strict};
use crate::graph::Name;
use crate::optim::{HEADER_LEN, Optimizer};
use crate::shape::{MAX_RANK, Shape};
use crate::tape::{GrowingTape, Handle, Kind, Mark};

/// A layer with its parameters and its state, on a tape of its own.
pub struct Model<B: Backend = Strict<f32>> {
    root: Box<dyn Layer<B>>,
    pub(crate) tape: GrowingTape<B>,
    pub(crate) entries: Vec<Entry>,
    rows: Vec<Row>,
    /// Behind parameters and state.
    pub(crate) mark: Mark,
    pub(crate) moments: Vec<B::Elem>,
    sample: Shape,
    output: Shape,
    trains: bool,
    seed: u64,
    /// A model is told from others, and from itself with other parameters frozen, by this.
    pub(crate) identity: Rc<()>,
}

impl<B: Backend> Model<B> {
    /// A model for samples of this shape, without the axis of the batch. Parameters start as their layers say, drawn from the
    /// seed and their names.
    ///
    /// # Errors
    /// When a layer does not fit what comes before it, which is found out before any memory is asked for; when there is not
    /// enough, or 2^32 elements or more are needed.
    pub fn new(root: impl Layer<B> + 'static, sample: impl Into<Shape>, seed: u64) -> Result<Self, ModelError> {
        let (root, sample) = (Box::new(root), sample.into());
        if sample.rank() == MAX_RANK {
            return Err(ModelError::Input { sample, found: sample });
        }
        // Without numbers: which parameters there are, and what shapes come out.
        let mut scratch = GrowingTape::<B>::default().lazily();
        let batch = batched(sample, 1);
        let x = scratch.declare(Kind::Constant, batch);
        scratch.check()?;
        let mut entries = Vec::new();
        let mut recorder = Recorder::new(&mut scratch, &mut entries, true, true);
        let y = recorder.layer("", &*root as &dyn Layer<B>, x);
        let (fault_at, rows) = (recorder.fault_at.take(), core::mem::take(&mut recorder.rows));
        if let Err(error) = scratch.check() {
            return Err(ModelError::Tape { layer: fault_at.unwrap_or_default(), error });
        }
        let output = of_a_sample(scratch.shape(y));
        let tape = GrowingTape::default();
        let (mark, moments) = (tape.mark(), Vec::new());
        let mut model = Self {
            root,
            tape,
            entries,
            rows,
            mark,
            moments,
            sample,
            output,
            trains: true,
            seed,
            identity: Rc::new(()),
        };
        model.lay_out(|_, entry, data| {
            let (scope, leaf) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
            entry.init.fill(data, entry.shape, Name::new(scope, leaf), seed);
        });
        model.tape.check()?;
        Ok(model)
    }

    /// Puts all tensors on a fresh tape, trained parameters first, then frozen ones, then state, and fills them.
    pub(super) fn lay_out(&mut self, mut fill: impl FnMut(usize, &Entry, &mut [B::Elem])) {
        let mut tape = GrowingTape::default();
        tape.set_lazy(self.tape.is_lazy());
        self.tape = tape;
        let len = |trained| {
            let entries = self.entries.iter().filter(|entry| (entry.role == Role::Trained) == trained);
            entries.fold(0, |sum: usize, entry| sum.saturating_add(entry.shape.len()))
        };
        self.tape.reserve_leaves(len(true), len(false));
        let (mut last_old, mut last_new) = (Handle::NONE, Handle::NONE);
        for role in [Role::Trained, Role::Frozen, Role::State] {
            for (i, entry) in self.entries.iter_mut().enumerate().filter(|(_, entry)| entry.role == role) {
                let old = entry.handle;
                // Or a further part of the same value.
                let is_part = role == Role::State && entry.offset > 0 && old == last_old;
                entry.handle =
                    if is_part { last_new } else { self.tape.leaf_with(role.kind(), entry.value_shape, None) };
                (last_old, last_new) = (old, entry.handle);
                if role == Role::Trained {
                    self.tape.set_group(entry.handle, entry.group);
                }
                if let Some(data) = self.tape.value_mut(entry.handle).get_mut(entry.range()) {
                    fill(i, entry, data);
                }
            }
        }
        self.mark = self.tape.mark();
        self.identity = Rc::new(());
    }

    /// The same on a lazy tape: layers build nodes, and values are computed when they are read, or by
    /// [`Model::backward`].
    #[must_use]
    pub fn lazily(mut self) -> Self {
        self.tape.set_lazy(true);
        self
    }

    /// The tape: for inputs, losses, and operations beside the layers. What is recorded on it is gone after
    /// [`Model::zero_grad`], the model's parameters and state stay.
    pub const fn tape(&mut self) -> &mut GrowingTape<B> {
        &mut self.tape
    }

    /// Records the model's output for `x`, a sample or a batch of samples.
    ///
    /// # Errors
    /// When `x` is neither, or the tape has a fault: with the layer in which it came up.
    #[track_caller]
    pub fn forward(&mut self, x: Handle) -> Result<Handle, ModelError> {
        self.forward_in(x, self.trains)
    }

    pub(crate) fn forward_in(&mut self, x: Handle, trains: bool) -> Result<Handle, ModelError> {
        self.record(x, trains, None)
    }

    /// The same, and computes every layer's output before the next layer is recorded, for `each` to see.
    pub(crate) fn forward_watched(
        &mut self,
        x: Handle,
        trains: bool,
        each: &mut dyn FnMut(&str, &[B::Elem]),
    ) -> Result<Handle, ModelError> {
        self.record(x, trains, Some(each))
    }

    fn record(&mut self, x: Handle, trains: bool, each: Option<Watch<'_, B>>) -> Result<Handle, ModelError> {
        self.tape.check()?;
        let (sample, found) = (self.sample, self.tape.shape(x));
        let is_sample = found == sample;
        let batch = if is_sample { batched(sample, 1) } else { found };
        if batch.rank() == 0 || of_a_sample(batch) != sample {
            return Err(ModelError::Input { sample, found });
        }
        let x = if is_sample { self.tape.reshape(x, batch) } else { x };
        let mut recorder = Recorder::new(&mut self.tape, &mut self.entries, false, trains);
        // Taken apart for a shorter life than the caller's.
        recorder.watch = match each {
            Some(each) => Some(each),
            None => None,
        };
        let y = recorder.layer("", &*self.root, x);
        if let Some(layer) = recorder.fault_at.take()
            && let Err(error) = self.tape.check()
        {
            return Err(ModelError::Tape { layer, error });
        }
        Ok(if is_sample { self.tape.reshape(y, of_a_sample(self.tape.shape(y))) } else { y })
    }

    /// The gradients of all parameters that `loss` depends on, added to what they are.
    ///
    /// # Errors
    /// As [`Tape::backward`](crate::tape::Tape::backward).
    #[track_caller]
    pub fn backward(&mut self, loss: Handle) -> Result<(), ModelError> {
        Ok(self.tape.backward(loss)?)
    }

    /// Updates the parameters that a backward has reached since the last [`Model::zero_grad`]. The moments are the model's.
    ///
    /// # Errors
    /// As [`Tape::update`](crate::tape::Tape::update).
    #[track_caller]
    pub fn update<O: Optimizer<B>>(&mut self, optimizer: &O) -> Result<(), ModelError> {
        self.make_room_for_moments(O::SLOTS);
        Ok(self.tape.update(optimizer, &mut self.moments)?)
    }

    /// The optimizer's moments, laid out as the trained parameters behind a header; empty before the first update.
    #[must_use]
    pub fn moments(&self) -> &[B::Elem] {
        &self.moments
    }

    /// Forgets the moments, for another optimizer: its first step is a first step.
    pub fn reset_moments(&mut self) {
        self.moments.clear();
    }

    /// Moments for an optimizer with so many slots; new ones are 0.
    pub(crate) fn make_room_for_moments(&mut self, slots: usize) {
        let len = HEADER_LEN + slots * self.tape.params().len();
        if self.moments.len() < len {
            self.moments.resize(len, B::Elem::ZERO);
        }
    }

    /// Sets all gradients to 0 and drops what was recorded. Parameters, state and moments stay.
    pub fn zero_grad(&mut self) {
        self.tape.reset_to(self.mark);
    }

    /// From now on layers behave as in training: dropout drops, batch normalisation takes the batch's statistics.
    pub const fn train(&mut self) {
        self.trains = true;
    }

    /// From now on layers behave as in evaluation.
    pub const fn eval(&mut self) {
        self.trains = false;
    }

    /// Whether layers behave as in training.
    #[must_use]
    pub const fn is_training(&self) -> bool {
        self.trains
    }

    /// The layer that the model was made of.
    #[must_use]
    pub fn layer(&self) -> &dyn Layer<B> {
        &*self.root
    }

    /// The seed that the parameters were drawn from.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The shape of a sample.
    #[must_use]
    pub const fn input_shape(&self) -> Shape {
        self.sample
    }

    /// The shape of the output for a sample.
    #[must_use]
    pub const fn output_shape(&self) -> Shape {
        self.output
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

/// The structure, a line for each layer.
impl<B: Backend> core::fmt::Display for Model<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_structure(f, &*self.root, "", 0)
    }
}

/// The shape of a single sample, without the axis of the batch.
fn of_a_sample(batch: Shape) -> Shape {
    batch.without(0)
}

/// The shape of a batch of so many samples.
pub(crate) fn batched(sample: Shape, count: usize) -> Shape {
    let mut shape = Shape::from([count]);
    (0..sample.rank()).for_each(|axis| shape = shape.push(sample.axis(axis)));
    shape
}
