//! The planner: a `const fn` from a graph to a program.
//!
//! It decides in which order gradients are computed, how long each value lives, what is computed in place, which buffers
//! share memory, and what needs no gradient at all. It works on slices, so that the same code serves a constant and a
//! graph that is compiled at run time.
//!
//! Time runs in ticks: one for each node forward, then [`TICKS`] for each node backward, in reverse. A buffer lives from
//! the tick that first writes it to the one that last reads it; two buffers share memory when no tick needs both.

mod offsets;
mod schedule;

pub(crate) use schedule::{Info, Planner};

use crate::backend::{Backend, Strict};
use crate::error::Message;
use crate::graph::{Graph, Kind, Name, Node};
use crate::init::Init;
use crate::optim::Optimizer;
use crate::program::{Input, Output, Place, Program, Sizes, Space, Step, Tensor};
use crate::shape::Shape;

/// Ticks of one node backward: one for each input's gradient, then one for each update.
pub(crate) const TICKS: usize = 6;
/// Room for steps, by node: forward, three gradients that each may need a sum, three updates.
const STEPS_PER_NODE: usize = 8;
/// Room for buffers, by node: value, kept, scratch; for each input a gradient and scratch.
const BUFFERS_PER_NODE: usize = 10;

/// What a training program does beside forward and backward.
///
/// ```
/// use slabgrad::prelude::*;
///
/// const FUSED: Training = Training::with::<Adam>().fused();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Training {
    slots: usize,
    fused: bool,
    clip_norm: Option<f64>,
    keep_outputs: bool,
}

impl Training {
    /// Trains with moments for the optimizer `O`, and keeps the gradients of all parameters until the update.
    #[must_use]
    pub const fn with<O: Optimizer<Strict<f32>>>() -> Self {
        Self::with_slots(O::SLOTS)
    }

    /// As [`Training::with`], by the number of slots of moments that the optimizer keeps.
    #[must_use]
    pub const fn with_slots(slots: usize) -> Self {
        Self { slots, fused: false, clip_norm: None, keep_outputs: false }
    }

    /// Applies the update as soon as a parameter's gradient is complete, and gives that memory back. The weights of a
    /// linear layer are even updated a few rows at a time. The result is the same, to the last bit.
    #[must_use]
    pub const fn fused(self) -> Self {
        Self { fused: true, ..self }
    }

    /// Scales all gradients together, before the update, so that their L2 norm is at most `max`.
    #[must_use]
    pub const fn clip_norm(self, max: f64) -> Self {
        Self { clip_norm: Some(max), ..self }
    }

    /// Computes and keeps the graph's outputs too, so that they can be read after a step.
    #[must_use]
    pub const fn keep_outputs(self) -> Self {
        Self { keep_outputs: true, ..self }
    }

    pub(crate) const fn is_fused(&self) -> bool {
        self.fused
    }

    pub(crate) const fn keeps_outputs(&self) -> bool {
        self.keep_outputs
    }
}

/// What a buffer of the work space is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Use {
    /// A node's output.
    Value,
    /// What forward keeps for backward.
    Saved,
    /// Scratch of one kernel.
    Scratch,
    /// A gradient.
    Gradient,
}

/// A run of the work space, from the tick that first writes it to the tick that last reads it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The node that it was made for, counted in recording order.
    pub node: usize,
    /// What it is for, at first: an operation that runs in place takes it over.
    pub usage: Use,
    /// Elements.
    pub len: usize,
    /// The first tick that needs it.
    pub start: usize,
    /// The last tick that needs it.
    pub end: usize,
    /// Where it starts in the work space.
    pub offset: usize,
    rank: u16,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self { node: 0, usage: Use::Value, len: 0, start: 0, end: 0, offset: 0, rank: 0 };

    /// Whether some tick needs both.
    pub(crate) const fn meets(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// A planned graph: the steps with room to spare, and the graph to take the tables from. A value for constants;
/// [`program!`](crate::program!) turns it into a [`Program`].
#[derive(Clone, Copy)]
pub struct Plan<B: Backend = Strict<f32>, const N: usize = 64> {
    graph: Graph<B, N>,
    steps: [[Step<B>; STEPS_PER_NODE]; N],
    steps_len: usize,
    buffers: [[Buffer; BUFFERS_PER_NODE]; N],
    buffers_len: usize,
    info: [Info; N],
    sizes: Sizes,
    lower_bound: usize,
}

impl<B: Backend, const N: usize> Plan<B, N> {
    pub(crate) const fn train(graph: &Graph<B, N>, training: Training) -> Self {
        assert!(graph.loss_id().is_some(), "train: the graph has no loss; call g.loss(...)");
        assert!(
            !training.fused || training.clip_norm.is_none(),
            "train: clipping by the global norm needs all gradients before the first update, and a fused program does \
             not keep them; drop either fused() or clip_norm()"
        );
        if let Some(max) = training.clip_norm {
            assert!(max > 0.0, "train: clip_norm must be positive");
        }
        Self::of(graph, Some(training))
    }

    pub(crate) const fn infer(graph: &Graph<B, N>) -> Self {
        Self::of(graph, None)
    }

    const fn of(graph: &Graph<B, N>, training: Option<Training>) -> Self {
        let mut plan = Self {
            graph: *graph,
            steps: [[Step::EMPTY; STEPS_PER_NODE]; N],
            steps_len: 0,
            buffers: [[Buffer::EMPTY; BUFFERS_PER_NODE]; N],
            buffers_len: 0,
            info: [Info::NEW; N],
            sizes: Sizes {
                params: 0,
                frozen: 0,
                state: 0,
                grads: 0,
                moments: 0,
                work: 0,
                forward_steps: 0,
                loss: None,
                clip_norm: None,
            },
            lower_bound: 0,
        };
        let mut planner = Planner::new(
            graph.nodes(),
            graph.loss_id(),
            training,
            &mut plan.info,
            plan.steps.as_flattened_mut(),
            plan.buffers.as_flattened_mut(),
        );
        plan.sizes = planner.run();
        plan.lower_bound = planner.lower_bound();
        plan.steps_len = planner.steps_len();
        plan.buffers_len = planner.buffers_len();
        if let Some(training) = training {
            plan.sizes.moments = training.slots * plan.sizes.params;
            if let Some(max) = training.clip_norm {
                plan.sizes.clip_norm = Some((max as f32, max));
            }
        }
        plan
    }

    /// How many steps the program has.
    #[must_use]
    pub const fn steps_len(&self) -> usize {
        self.steps_len
    }

    /// How many parameters and states the graph has.
    #[must_use]
    pub const fn tensors_len(&self) -> usize {
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if self.tensor(i).is_some() {
                count += 1;
            }
            i += 1;
        }
        count
    }

    /// How many inputs a run takes.
    #[must_use]
    pub const fn inputs_len(&self) -> usize {
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if self.input(i).is_some() {
                count += 1;
            }
            i += 1;
        }
        count
    }

    /// How many outputs a run leaves.
    #[must_use]
    pub const fn outputs_len(&self) -> usize {
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if self.output(i).is_some() {
                count += 1;
            }
            i += 1;
        }
        count
    }

    /// The steps; `S` is [`Plan::steps_len`].
    ///
    /// # Panics
    /// When `S` is another number.
    #[must_use]
    pub const fn steps<const S: usize>(&self) -> [Step<B>; S] {
        assert!(S == self.steps_len);
        let mut steps = [Step::EMPTY; S];
        let mut i = 0;
        while i < S {
            steps[i] = self.steps.as_flattened()[i];
            i += 1;
        }
        steps
    }

    /// The parameters and states; `S` is [`Plan::tensors_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn tensors<const S: usize>(&self) -> [Tensor; S] {
        let none = Tensor {
            name: Name::new("", ""),
            shape: Shape::SCALAR,
            space: Space::Params,
            offset: 0,
            init: Init::Zeros,
        };
        let mut tensors = [none; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(tensor) = self.tensor(i) {
                tensors[count] = tensor;
                count += 1;
            }
            i += 1;
        }
        tensors
    }

    /// The inputs; `S` is [`Plan::inputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn inputs<const S: usize>(&self) -> [Input; S] {
        let mut inputs = [Input { name: "", shape: Shape::SCALAR, classes: 0 }; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(input) = self.input(i) {
                inputs[count] = input;
                count += 1;
            }
            i += 1;
        }
        inputs
    }

    /// The outputs; `S` is [`Plan::outputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn outputs<const S: usize>(&self) -> [Output; S] {
        let mut outputs = [Output { name: "", shape: Shape::SCALAR, place: Place::NOWHERE }; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(output) = self.output(i) {
                outputs[count] = output;
                count += 1;
            }
            i += 1;
        }
        outputs
    }

    /// The program over tables that hold what [`Plan::steps`] and its like returned.
    ///
    /// # Panics
    /// When a table has another length than this plan's.
    #[must_use]
    pub const fn program<'t>(
        &self,
        steps: &'t [Step<B>],
        tensors: &'t [Tensor],
        inputs: &'t [Input],
        outputs: &'t [Output],
    ) -> Program<'t, B> {
        assert!(
            steps.len() == self.steps_len
                && tensors.len() == self.tensors_len()
                && inputs.len() == self.inputs_len()
                && outputs.len() == self.outputs_len(),
            "a program's tables are those of its plan"
        );
        Program { steps, tensors, inputs, outputs, sizes: self.sizes }
    }

    /// The tables on the heap, for a graph that is made at run time.
    #[cfg(any(feature = "alloc", test))]
    #[must_use]
    pub fn tables(&self) -> Tables<B> {
        let nodes = 0..self.graph.nodes().len();
        Tables {
            steps: self.steps.as_flattened().iter().take(self.steps_len).copied().collect(),
            tensors: nodes.clone().filter_map(|i| self.tensor(i)).collect(),
            inputs: nodes.clone().filter_map(|i| self.input(i)).collect(),
            outputs: nodes.filter_map(|i| self.output(i)).collect(),
            sizes: self.sizes,
        }
    }

    /// The buffers of the work space, for reports and tests.
    #[must_use]
    pub const fn buffers(&self) -> &[Buffer] {
        self.buffers.as_flattened().split_at(self.buffers_len).0
    }

    /// Elements of the work space.
    #[must_use]
    pub const fn work_len(&self) -> usize {
        self.sizes.work
    }

    /// No layout of these buffers is smaller: the largest total of buffers that one tick needs.
    #[must_use]
    pub const fn work_lower_bound(&self) -> usize {
        self.lower_bound
    }

    const fn node(&self, i: usize) -> &Node<B> {
        &self.graph.nodes()[i]
    }

    const fn tensor(&self, i: usize) -> Option<Tensor> {
        let node = self.node(i);
        let (Kind::Parameter { init, .. } | Kind::State { init }) = node.kind else {
            return None;
        };
        let place = self.info[i].leaf;
        Some(Tensor { name: node.name, shape: node.spec.shape, space: place.space(), offset: place.offset(), init })
    }

    const fn input(&self, i: usize) -> Option<Input> {
        match self.node(i).kind {
            Kind::Input { classes } if self.info[i].needed => {
                let node = self.node(i);
                Some(Input { name: node.name.leaf, shape: node.spec.shape, classes: classes as usize })
            }
            _ => None,
        }
    }

    const fn output(&self, i: usize) -> Option<Output> {
        match self.node(i).output {
            Some(name) if self.info[i].kept => {
                Some(Output { name, shape: self.node(i).spec.shape, place: self.info[i].place })
            }
            _ => None,
        }
    }
}

/// The tables of a program that was planned at run time.
#[cfg(any(feature = "alloc", test))]
pub struct Tables<B: Backend> {
    steps: alloc::vec::Vec<Step<B>>,
    tensors: alloc::vec::Vec<Tensor>,
    inputs: alloc::vec::Vec<Input>,
    outputs: alloc::vec::Vec<Output>,
    sizes: Sizes,
}

#[cfg(any(feature = "alloc", test))]
impl<B: Backend> Tables<B> {
    /// The program over these tables.
    #[must_use]
    pub fn program(&self) -> Program<'_, B> {
        let Self { steps, tensors, inputs, outputs, sizes } = self;
        Program { steps, tensors, inputs, outputs, sizes: *sizes }
    }
}

/// The plan as text: steps in order, then the buffers of the work space.
impl<B: Backend, const N: usize> core::fmt::Display for Plan<B, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let sizes = &self.sizes;
        writeln!(
            f,
            "{} steps, {} of them forward; elements: params {}, frozen {}, state {}, grads {}, moments {}, work {}",
            self.steps_len,
            sizes.forward_steps,
            sizes.params,
            sizes.frozen,
            sizes.state,
            sizes.grads,
            sizes.moments,
            sizes.work
        )?;
        for buffer in self.buffers() {
            let node = self.node(buffer.node);
            let name = node.op().map_or("", |op| op.name);
            let Buffer { len, start, end, offset, .. } = *buffer;
            writeln!(
                f,
                "  {:>6}..{:<6} ticks {start:>4} to {end:<4} {:?} of {} `{name}` {}",
                offset,
                offset + len,
                buffer.usage,
                buffer.node,
                Message::new().shape(node.spec.shape).as_str()
            )?;
        }
        Ok(())
    }
}
