//! Programs: the planned steps, and the runner that executes them on borrowed slices.
//!
//! A [`Program`] is a value of constants: a table of [`Step`]s that can lie in flash, and the sizes of every space. Running
//! it allocates nothing, grows nothing and does not panic.

use crate::backend::dispatch::first_not_finite;
use crate::backend::{Backend, Real, Strict, fill};
use crate::init::Normal;
use crate::optim::{self, HEADER_LEN, Norm, Optimizer, clip_by_norm};
use crate::plan::NotFinite;

mod error;
mod memory;
mod operands;
mod step;
mod tables;

use error::GradientNotFinite;
pub use error::RunError;
pub use memory::{Memory, Space};
pub(crate) use memory::{at_least, exactly};
pub(crate) use operands::check;
use step::Pass;
pub(crate) use step::{Action, Copying, Places};
pub use step::{Place, Step};
pub(crate) use tables::Sizes;
pub use tables::{Draw, Expected, GroupRun, Input, Output, Tensor};

/// A planned graph: made at compile time by [`program!`](crate::program!), run on slices.
///
/// The lifetime is that of its tables: `'static` where they are constants.
#[derive(Clone, Copy)]
pub struct Program<'t, B: Backend = Strict<f32>> {
    pub(crate) steps: &'t [Step<B>],
    /// Where the steps' operands lie.
    pub(crate) places: &'t [Place],
    /// The steps' arguments.
    pub(crate) args: &'t [u32],
    pub(crate) tensors: &'t [Tensor<'t>],
    pub(crate) draws: &'t [Draw],
    pub(crate) inputs: &'t [Input<'t>],
    pub(crate) expected: &'t [Expected],
    pub(crate) outputs: &'t [Output<'t>],
    pub(crate) groups: &'t [GroupRun],
    pub(crate) sizes: Sizes,
    /// Where a tensor starts with numbers of a normal distribution.
    pub(crate) normal: Option<Normal<B::Elem>>,
}

/// Sizes, in elements, and tables. A training program and an inference program of one network have the same parameters at
/// the same places, whatever their batch sizes.
impl<'t, B: Backend> Program<'t, B> {
    /// Elements of the trained parameters.
    #[must_use]
    pub const fn params_len(&self) -> usize {
        self.sizes.params
    }

    /// Elements of the frozen parameters.
    #[must_use]
    pub const fn frozen_len(&self) -> usize {
        self.sizes.frozen
    }

    /// Elements of the state.
    #[must_use]
    pub const fn state_len(&self) -> usize {
        self.sizes.state
    }

    /// Elements of the gradients: none where the update is fused.
    #[must_use]
    pub const fn grads_len(&self) -> usize {
        self.sizes.grads
    }

    /// Elements of the optimizer's moments.
    #[must_use]
    pub const fn moments_len(&self) -> usize {
        self.sizes.moments
    }

    /// Elements of the work space: activations, scratch, short-lived gradients.
    #[must_use]
    pub const fn work_len(&self) -> usize {
        self.sizes.work
    }

    /// Elements of a slab that holds all spaces but the inputs and the frozen parameters.
    #[must_use]
    pub const fn slab_len(&self) -> usize {
        self.sizes.params + self.sizes.state + self.sizes.grads + self.sizes.moments + self.sizes.work
    }

    /// Elements of a slab that this program and `other`, a program of the same network with another batch size or without
    /// training, can both work in: room for the larger of their work spaces.
    #[must_use]
    pub const fn slab_len_with(&self, other: &Program<'_, B>) -> usize {
        let larger = if other.sizes.work > self.sizes.work { other.sizes.work } else { self.sizes.work };
        self.slab_len() - self.sizes.work + larger
    }

    /// Bytes of RAM: those of [`Program::slab_len`].
    #[must_use]
    pub const fn ram_bytes(&self) -> usize {
        self.slab_len() * size_of::<B::Elem>()
    }

    /// A slab of zeros.
    ///
    /// # Panics
    /// When `N` is less than [`Program::slab_len`]. In a constant or the value of a static, where this belongs, that is a
    /// compile error.
    #[must_use]
    #[track_caller]
    pub const fn slab<const N: usize>(&self) -> [B::Elem; N] {
        if N < self.slab_len() {
            let text = crate::error::Message::new().text("the slab is too short: it has ").number(N);
            let text = text.text(" elements, the program needs ").number(self.slab_len());
            panic!("{}", text.as_str());
        }
        [B::Elem::ZERO; N]
    }

    /// The parameters and the state, in graph order.
    #[must_use]
    pub const fn tensors(&self) -> &'t [Tensor<'t>] {
        self.tensors
    }

    /// The inputs, in the order in which a run takes them.
    #[must_use]
    pub const fn inputs(&self) -> &'t [Input<'t>] {
        self.inputs
    }

    /// The outputs, in graph order.
    #[must_use]
    pub const fn outputs(&self) -> &'t [Output<'t>] {
        self.outputs
    }

    /// The groups of the trained parameters, in their order.
    #[must_use]
    pub const fn groups(&self) -> &'t [GroupRun] {
        self.groups
    }

    /// How many steps a run takes.
    #[must_use]
    pub const fn steps(&self) -> usize {
        self.steps.len()
    }
}

impl<B: Backend> Program<'_, B> {
    /// Draws the parameters and the state from `seed`; see [`crate::init`]. Gradients and moments become 0.
    ///
    /// # Errors
    /// When a space of `memory` is too short.
    pub fn init(&self, memory: &mut Memory<'_, B::Elem>, seed: u64) -> Result<(), RunError> {
        self.check_memory(memory)?;
        let state = memory.state.get_mut(..self.sizes.state).unwrap_or_default();
        for space in [&mut *memory.params, state, memory.grads, memory.moments] {
            fill(space, B::Elem::ZERO);
        }
        for draw in self.draws {
            let space = match draw.place.space() {
                Space::Params => &mut *memory.params,
                Space::State => &mut *memory.state,
                _ => continue,
            };
            self.draw(draw, space, seed);
        }
        Ok(())
    }

    /// Draws the frozen parameters from `seed`, for tests and for hosts that have no trained ones.
    ///
    /// # Errors
    /// When `frozen` is shorter than [`Program::frozen_len`].
    pub fn init_frozen(&self, frozen: &mut [B::Elem], seed: u64) -> Result<(), RunError> {
        memory::at_least(Space::Frozen, self.sizes.frozen, frozen.len())?;
        fill(frozen.get_mut(..self.sizes.frozen).unwrap_or_default(), B::Elem::ZERO);
        for draw in self.draws.iter().filter(|draw| matches!(draw.place.space(), Space::Frozen)) {
            self.draw(draw, frozen, seed);
        }
        Ok(())
    }

    fn draw(&self, draw: &Draw, space: &mut [B::Elem], seed: u64) {
        if let Some(data) = space.get_mut(draw.place.range()) {
            draw.distribution.fill(data, seed ^ draw.hash, self.normal);
        }
    }

    /// Runs forward: afterwards the outputs can be read.
    ///
    /// # Errors
    /// When `inputs` or a space of `memory` has the wrong length, or an input holds what it must not; nothing is changed
    /// then.
    pub fn run(&self, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) -> Result<(), RunError> {
        self.check(memory, inputs)?;
        self.forward(memory, inputs);
        Ok(())
    }

    /// Runs forward and returns the loss, without training.
    ///
    /// # Errors
    /// As [`Program::run`], and for a program without a loss.
    pub fn loss(&self, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) -> Result<B::Elem, RunError> {
        self.run(memory, inputs)?;
        self.read_loss(memory)
    }

    /// One training step: forward, backward, update. Returns the loss before the update.
    ///
    /// # Errors
    /// As [`Program::run`]; for a program that does not train, or has fewer slots of moments than the optimizer keeps, or an
    /// optimizer with an impossible setting; and, unless the plan says otherwise, when the loss or a gradient is not finite.
    /// Parameters and moments are as before then, and state too, unless it was a gradient.
    pub fn step<O: Optimizer<B>>(
        &self,
        memory: &mut Memory<'_, B::Elem>,
        inputs: &[&[B::Elem]],
        optimizer: &mut O,
    ) -> Result<B::Elem, RunError> {
        self.check_optimizer(optimizer)?;
        if !self.accepts(memory, inputs) {
            return self.check(memory, inputs);
        }
        self.forward(memory, inputs);
        let loss = self.finite_loss(memory)?;
        if self.sizes.grads > 0 {
            self.backward(memory, inputs, B::Elem::ONE, false);
            self.apply(memory, optimizer)?;
        } else if !loss.is_finite() && self.sizes.not_finite == NotFinite::Skip {
            optim::count(memory.moments, optim::SKIPPED);
        } else {
            self.apply_fused(memory, inputs, optimizer)?;
        }
        Ok(loss)
    }

    /// Backward, with an update of each parameter as soon as its gradient is complete.
    #[cfg_attr(target_os = "none", inline(never))]
    fn apply_fused<O: Optimizer<B>>(
        &self,
        memory: &mut Memory<'_, B::Elem>,
        inputs: &[&[B::Elem]],
        optimizer: &O,
    ) -> Result<(), GradientNotFinite> {
        let coefficients = optim::begin::<B, O>(memory.moments, optimizer);
        let pass = Pass { program: self, inputs, seed: B::Elem::ONE, accumulate: false };
        let mut steps = self.steps.iter().skip(self.sizes.forward_steps);
        match steps.try_for_each(|step| step.backward_fused::<O>(&pass, &coefficients, memory)) {
            Err(_) if self.sizes.not_finite == NotFinite::Skip => {
                optim::count(memory.moments, optim::SKIPPED);
                Ok(())
            }
            result => result,
        }
    }

    /// The first half of a step: runs forward and backward and leaves the gradients in their space. Returns the loss.
    ///
    /// # Errors
    /// As [`Program::run`]; for a program that does not train or is fused, which keeps no gradients; and, unless the plan says
    /// otherwise, when the loss is not finite.
    pub fn gradients(&self, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) -> Result<B::Elem, RunError> {
        self.check_gradients_are_kept()?;
        self.check(memory, inputs)?;
        self.forward(memory, inputs);
        let loss = self.finite_loss(memory)?;
        self.backward(memory, inputs, B::Elem::ONE, false);
        optim::set_count(memory.moments, optim::GATHERED, B::Elem::ZERO);
        Ok(loss)
    }

    /// As [`Program::gradients`], but adds `weight` times the gradients to those of the calls since the last update. With
    /// the weight `b / B` for each micro-batch of `b` samples, the mean loss of a batch of `B` is minimised.
    ///
    /// The sums over samples go on where the last call left them, so for linear and convolution layers the gradients have the
    /// very bits of the whole batch's, as long as `b` and `B` are powers of two (else the weight rounds) and no other layer
    /// mixes samples. Batch norm does, by its definition; sums over broadcast axes and `B::sum` over samples combine partial
    /// sums in another order.
    ///
    /// # Errors
    /// As [`Program::gradients`]; the gradients gathered so far are unchanged then.
    pub fn accumulate(
        &self,
        memory: &mut Memory<'_, B::Elem>,
        inputs: &[&[B::Elem]],
        weight: B::Elem,
    ) -> Result<B::Elem, RunError> {
        self.check_gradients_are_kept()?;
        self.check(memory, inputs)?;
        self.forward(memory, inputs);
        let loss = self.finite_loss(memory)?;
        let gathered = memory.moments.get(optim::GATHERED).copied().unwrap_or_default();
        self.backward(memory, inputs, weight, gathered > B::Elem::ZERO);
        optim::set_count(memory.moments, optim::GATHERED, gathered + B::Elem::ONE);
        Ok(loss)
    }

    /// The gradients whatever the loss is: for checking what operations do with infinities and NaNs.
    #[cfg(any(feature = "alloc", test))]
    pub(crate) fn gradients_of_any_loss(
        &self,
        memory: &mut Memory<'_, B::Elem>,
        inputs: &[&[B::Elem]],
    ) -> Result<(), RunError> {
        self.run(memory, inputs)?;
        self.backward(memory, inputs, B::Elem::ONE, false);
        Ok(())
    }

    /// The second half of a step: clips the gradients, where the plan says so, and updates the parameters.
    ///
    /// # Errors
    /// As [`Program::step`]. When a gradient is not finite, state has been taken over already.
    pub fn update<O: Optimizer<B>>(&self, memory: &mut Memory<'_, B::Elem>, optimizer: &mut O) -> Result<(), RunError> {
        self.check_memory(memory)?;
        self.check_optimizer(optimizer)?;
        self.check_gradients_are_kept()?;
        Ok(self.apply(memory, optimizer)?)
    }

    /// Updates the parameters, when all but the gradients is checked.
    #[cfg_attr(target_os = "none", inline(never))]
    fn apply<O: Optimizer<B>>(&self, memory: &mut Memory<'_, B::Elem>, optimizer: &O) -> Result<(), GradientNotFinite> {
        if !self.has_gradients(memory)? {
            return Ok(());
        }
        let coefficients = optim::begin::<B, O>(memory.moments, optimizer);
        let grads = memory.grads.get(..self.sizes.grads).unwrap_or_default();
        for group in self.groups {
            let grads = grads.get(group.range()).unwrap_or_default();
            optim::update::<B, O>(
                &coefficients,
                &group.settings(),
                memory.params,
                grads,
                memory.moments,
                self.sizes.params,
                group.range().start,
            );
        }
        Ok(())
    }

    /// How many updates there have been, counted with the moments.
    #[must_use]
    pub fn steps_done(&self, memory: &Memory<'_, B::Elem>) -> usize {
        optim::steps_done(memory.moments)
    }

    /// How many updates were left out because a loss or a gradient was not finite ([`NotFinite::Skip`]).
    #[must_use]
    pub fn steps_skipped(&self, memory: &Memory<'_, B::Elem>) -> usize {
        optim::count_of(memory.moments, optim::SKIPPED)
    }

    /// The output `name` after a run.
    #[must_use]
    pub fn output<'m>(&self, memory: &'m Memory<'_, B::Elem>, name: &str) -> Option<&'m [B::Elem]> {
        let output = self.outputs.iter().find(|output| output.name == name)?;
        match output.place.space() {
            Space::Work => memory.work.get(output.place.range()),
            Space::Params => memory.params.get(output.place.range()),
            Space::Frozen => memory.frozen.get(output.place.range()),
            _ => None,
        }
    }

    /// The parameter or state `name`.
    #[must_use]
    pub fn tensor<'m>(&self, memory: &'m Memory<'_, B::Elem>, name: &str) -> Option<&'m [B::Elem]> {
        let tensor = self.find(name)?;
        match tensor.space {
            Space::Params => memory.params.get(tensor.range()),
            Space::State => memory.state.get(tensor.range()),
            _ => memory.frozen.get(tensor.range()),
        }
    }

    /// The parameter or state `name`, to be changed; `None` for a frozen one.
    #[must_use]
    pub fn tensor_mut<'m>(&self, memory: &'m mut Memory<'_, B::Elem>, name: &str) -> Option<&'m mut [B::Elem]> {
        let tensor = self.find(name)?;
        match tensor.space {
            Space::Params => memory.params.get_mut(tensor.range()),
            Space::State => memory.state.get_mut(tensor.range()),
            _ => None,
        }
    }

    /// The gradient of the trained parameter `name`, after [`Program::gradients`] or [`Program::step`].
    #[must_use]
    pub fn gradient<'m>(&self, memory: &'m Memory<'_, B::Elem>, name: &str) -> Option<&'m [B::Elem]> {
        let tensor = self.find(name).filter(|tensor| matches!(tensor.space, Space::Params))?;
        memory.grads.get(tensor.range())
    }

    fn find(&self, name: &str) -> Option<&Tensor<'_>> {
        self.tensors.iter().find(|tensor| tensor.name == *name)
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn check_memory(&self, memory: &Memory<'_, B::Elem>) -> Result<(), RunError> {
        let sizes = &self.sizes;
        memory::exactly(Space::Params, sizes.params, memory.params.len())?;
        memory::at_least(Space::State, sizes.state, memory.state.len())?;
        memory::at_least(Space::Grads, sizes.grads, memory.grads.len())?;
        memory::at_least(Space::Moments, sizes.moments, memory.moments.len())?;
        memory::at_least(Space::Work, sizes.work, memory.work.len())
    }

    /// Zero, if a run is possible with this memory and these inputs: in the type of a step's result, so that it needs no other place.
    #[cfg_attr(target_os = "none", inline(never))]
    fn check(&self, memory: &Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) -> Result<B::Elem, RunError> {
        self.check_memory(memory)?;
        memory::at_least(Space::Frozen, self.sizes.frozen, memory.frozen.len())?;
        if inputs.len() != self.expected.len() {
            return Err(RunError::InputCount { expected: self.expected.len(), found: inputs.len() });
        }
        let mut inputs = self.expected.iter().zip(inputs).enumerate();
        inputs.try_for_each(|(i, (expected, data))| expected.check(i, data)).map(|()| B::Elem::ZERO)
    }

    /// Whether [`Program::check`] finds nothing. A place for what it finds is on the stack only meanwhile.
    #[cfg_attr(target_os = "none", inline(never))]
    fn accepts(&self, memory: &Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) -> bool {
        self.check(memory, inputs).is_ok()
    }

    fn check_training(&self) -> Result<(), RunError> {
        if self.steps.len() == self.sizes.forward_steps { Err(RunError::NotTraining) } else { Ok(()) }
    }

    fn check_optimizer<O: Optimizer<B>>(&self, optimizer: &O) -> Result<(), RunError> {
        const { assert!(O::SLOTS <= 3, "an optimizer keeps at most three slots of moments") };
        self.check_training()?;
        optimizer.check().map_err(RunError::Setting)?;
        let planned = self.sizes.moments.saturating_sub(HEADER_LEN) / self.sizes.params.max(1);
        if O::SLOTS > planned { Err(RunError::Slots { planned, needed: O::SLOTS }) } else { Ok(()) }
    }

    fn check_gradients_are_kept(&self) -> Result<(), RunError> {
        self.check_training()?;
        if self.sizes.grads < self.sizes.params { Err(RunError::NoGradients) } else { Ok(()) }
    }

    /// Clips by the norm, where the plan says so, and looks for gradients that are not finite, unless it says that they pass.
    fn clip(&self, memory: &mut Memory<'_, B::Elem>) -> Result<(), GradientNotFinite> {
        let grads = memory.grads.get_mut(..self.sizes.grads).unwrap_or_default();
        let Some((single, double)) = self.sizes.clip_norm else {
            return self.check_finite(grads);
        };
        let norm = clip_by_norm::<B>(grads, B::Elem::choose(single, double), Norm::L2);
        self.check_finite(&[norm])
    }

    /// Clips the gradients, and says whether to update with them; the same code for all optimizers.
    fn has_gradients(&self, memory: &mut Memory<'_, B::Elem>) -> Result<bool, GradientNotFinite> {
        optim::set_count(memory.moments, optim::GATHERED, B::Elem::ZERO);
        match self.clip(memory) {
            Err(_) if self.sizes.not_finite == NotFinite::Skip => {
                optim::count(memory.moments, optim::SKIPPED);
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    /// Looks for gradients that are not finite, unless the plan says that they pass.
    fn check_finite(&self, grads: &[B::Elem]) -> Result<(), GradientNotFinite> {
        let fault = match self.sizes.not_finite {
            NotFinite::Pass => None,
            NotFinite::Error | NotFinite::Skip => first_not_finite(grads).and_then(|i| grads.get(i)),
        };
        fault.map_or(Ok(()), |found| Err(GradientNotFinite { found: found.to_f32() }))
    }

    /// The loss, unless it is not finite and has to be.
    fn finite_loss(&self, memory: &Memory<'_, B::Elem>) -> Result<B::Elem, RunError> {
        let loss = self.read_loss(memory)?;
        if loss.is_finite() || self.sizes.not_finite != NotFinite::Error {
            Ok(loss)
        } else {
            Err(RunError::LossNotFinite { loss: loss.to_f32() })
        }
    }

    fn read_loss(&self, memory: &Memory<'_, B::Elem>) -> Result<B::Elem, RunError> {
        let place = self.sizes.loss.ok_or(RunError::NotTraining)?;
        memory.work.get(place.offset()).copied().ok_or(RunError::NotTraining)
    }

    // Neither this nor `backward` shares a frame with what calls it: the stack would be deeper.
    #[cfg_attr(target_os = "none", inline(never))]
    fn forward(&self, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) {
        self.steps.iter().take(self.sizes.forward_steps).for_each(|step| step.forward(self, memory, inputs));
    }

    /// Backward from the loss's gradient `seed`; gradients of parameters are added to where `accumulate`.
    #[cfg_attr(target_os = "none", inline(never))]
    fn backward(&self, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]], seed: B::Elem, accumulate: bool) {
        let pass = Pass { program: self, inputs, seed, accumulate };
        self.steps.iter().skip(self.sizes.forward_steps).for_each(|step| step.backward(&pass, memory));
    }
}

/// Makes a [`Program`] of a plan: `program!(static TRAIN = net::<16>().train(Training::with::<Adam>()));`
///
/// The plan is computed while the crate compiles; only the steps and tables that the program has are kept in the binary.
/// Another backend is named by the program's type, and a graph that has room for other than 64 nodes by their number:
/// `program!(static BIG: Program<Strict<f64>> = big(), nodes = 256);`
///
/// It expands to
///
/// ```text
/// static TRAIN: Program<'static, Strict<f32>> = {
///     const PLAN: Plan<Strict<f32>, 64> = net::<16>().train(Training::with::<Adam>());
///     static STEPS: [Step<Strict<f32>>; PLAN.steps_len()] = PLAN.steps();
///     static PLACES: [Place; PLAN.places_len()] = PLAN.places();
///     static ARGS: [u32; PLAN.args_len()] = PLAN.args();
///     static TENSORS: [Tensor; PLAN.tensors_len()] = PLAN.tensors();
///     static DRAWS: [Draw; PLAN.draws_len()] = PLAN.draws();
///     static INPUTS: [Input; PLAN.inputs_len()] = PLAN.inputs();
///     static EXPECTED: [Expected; PLAN.inputs_len()] = PLAN.expected();
///     static OUTPUTS: [Output; PLAN.outputs_len()] = PLAN.outputs();
///     static GROUPS: [GroupRun; PLAN.groups_len()] = PLAN.groups();
///     PLAN.program(&STEPS, &PLACES, &ARGS, &TENSORS, &DRAWS, &INPUTS, &EXPECTED, &OUTPUTS, &GROUPS)
/// };
/// ```
#[macro_export]
macro_rules! program {
    ($(#[$meta:meta])* $vis:vis static $name:ident = $plan:expr $(, nodes = $nodes:literal)?) => {
        $crate::program!(
            $(#[$meta])* $vis static $name: Program<$crate::backend::Strict<f32>> = $plan $(, nodes = $nodes)?
        );
    };
    ($(#[$meta:meta])* $vis:vis static $name:ident: Program<$backend:ty> = $plan:expr) => {
        $crate::program!($(#[$meta])* $vis static $name: Program<$backend> = $plan, nodes = 64);
    };
    ($(#[$meta:meta])* $vis:vis static $name:ident: Program<$backend:ty> = $plan:expr, nodes = $nodes:literal) => {
        $(#[$meta])*
        $vis static $name: $crate::program::Program<'static, $backend> = {
            // A plan of some hundred nodes takes the compiler a second or two, which it would refuse.
            #[allow(long_running_const_eval)]
            const PLAN: $crate::plan::Plan<$backend, $nodes> = $plan;
            static STEPS: [$crate::program::Step<$backend>; PLAN.steps_len()] = PLAN.steps();
            static PLACES: [$crate::program::Place; PLAN.places_len()] = PLAN.places();
            static ARGS: [u32; PLAN.args_len()] = PLAN.args();
            static TENSORS: [$crate::program::Tensor<'static>; PLAN.tensors_len()] = PLAN.tensors();
            static DRAWS: [$crate::program::Draw; PLAN.draws_len()] = PLAN.draws();
            static INPUTS: [$crate::program::Input<'static>; PLAN.inputs_len()] = PLAN.inputs();
            static EXPECTED: [$crate::program::Expected; PLAN.inputs_len()] = PLAN.expected();
            static OUTPUTS: [$crate::program::Output<'static>; PLAN.outputs_len()] = PLAN.outputs();
            static GROUPS: [$crate::program::GroupRun; PLAN.groups_len()] = PLAN.groups();
            PLAN.program(&STEPS, &PLACES, &ARGS, &TENSORS, &DRAWS, &INPUTS, &EXPECTED, &OUTPUTS, &GROUPS)
        };
    };
}
