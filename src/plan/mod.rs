//! The planner: a `const fn` from a graph to a program.
//!
//! It decides in which order gradients are computed, how long each value lives, what is computed in place, which buffers
//! share memory, and what needs no gradient at all. It works on slices, so that the same code serves a constant and a
//! graph that is compiled at run time.
//!
//! Time runs in ticks: one for each node forward, then several for each node backward, in reverse. A buffer lives from the
//! tick that first writes it to the one that last reads it; two buffers share memory when no tick needs both.

mod analysis;
mod error;
mod offsets;
mod planner;
mod schedule;
mod tables;

pub use error::PlanError;
#[cfg(any(feature = "alloc", test))]
pub use tables::Tables;

use crate::backend::{Backend, Strict};
use crate::error::Message;
use crate::graph::Graph;
use crate::ops::{Args, MAX_INPUTS};
use crate::optim::{Optimizer, ParamGroup, Rule, Rules, Scope};
use crate::program::{GroupRun, Input, Output, Program, Sizes, Step, Tensor};
use planner::{Info, Planner};
use tables::Source;

/// Room for steps, by node: forward and the new state; each input's gradient, its sum and its update.
const STEPS_PER_NODE: usize = 2 + 3 * MAX_INPUTS;
/// Room for buffers, by node: value, kept, scratch; for each input a gradient, one by the side, and scratch.
const BUFFERS_PER_NODE: usize = 3 + 3 * MAX_INPUTS;

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
    not_finite: NotFinite,
    rules: Rules,
}

/// What a training step does when the loss or a gradient is not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotFinite {
    /// It is an error, and nothing is updated. In a fused program, whose first updates precede the last gradients, the layers
    /// before which a gradient overflows have been updated then, with finite gradients; no other is.
    #[default]
    Error,
    /// The update is left out and counted, and training goes on.
    Skip,
    /// It updates all the same, and saves a look at every gradient.
    Pass,
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
        Self {
            slots,
            fused: false,
            clip_norm: None,
            keep_outputs: false,
            not_finite: NotFinite::Error,
            rules: Rules::NONE,
        }
    }

    /// The same for an optimizer with so many slots, and without rules for parameters.
    #[cfg(feature = "alloc")]
    pub(crate) const fn for_slots(self, slots: usize) -> Self {
        Self { slots, rules: Rules::NONE, ..self }
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

    /// What to do when the loss or a gradient is not finite.
    #[must_use]
    pub const fn not_finite(self, not_finite: NotFinite) -> Self {
        Self { not_finite, ..self }
    }

    /// The weight decay λ of all parameters.
    #[must_use]
    pub const fn weight_decay(self, weight_decay: f64) -> Self {
        self.rule(Scope::All, ParamGroup::new().weight_decay(weight_decay))
    }

    /// No weight decay for parameters with one axis or none: biases and the weights of norms.
    #[must_use]
    pub const fn no_decay_on_vectors(self) -> Self {
        self.rule(Scope::Vectors, ParamGroup::new().weight_decay(0.0))
    }

    /// Settings of their own for the parameters whose name is `name`, or starts with `name` and a dot. Of rules that meet, the
    /// one given last wins.
    #[must_use]
    pub const fn group(self, name: &'static str, group: ParamGroup) -> Self {
        self.rule(Scope::Named(name), group)
    }

    const fn rule(self, scope: Scope, group: ParamGroup) -> Self {
        Self { rules: self.rules.push(Rule { scope, group }), ..self }
    }

    /// Computes and keeps the graph's outputs too, so that they can be read after a step.
    #[must_use]
    pub const fn keep_outputs(self) -> Self {
        Self { keep_outputs: true, ..self }
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
    rank: u32,
}

impl Buffer {
    const EMPTY: Self = Self { node: 0, usage: Use::Value, len: 0, start: 0, end: 0, offset: 0, rank: 0 };

    /// Whether some tick needs both.
    const fn meets(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// What the planner found out beside steps and buffers.
#[derive(Clone, Copy)]
struct Layout {
    sizes: Sizes,
    steps: usize,
    buffers: usize,
    lower_bound: usize,
}

/// A planned graph: the steps with room to spare, and the graph to take the tables from. A value for constants;
/// [`program!`](crate::program!) turns it into a [`Program`].
#[derive(Clone, Copy)]
pub struct Plan<B: Backend = Strict<f32>, const N: usize = 64> {
    graph: Graph<B, N>,
    steps: [[Step<B>; STEPS_PER_NODE]; N],
    buffers: [[Buffer; BUFFERS_PER_NODE]; N],
    info: [Info; N],
    layout: Layout,
    rules: Rules,
}

impl<B: Backend, const N: usize> Plan<B, N> {
    /// Plans inference, or training.
    pub(crate) const fn new(graph: &Graph<B, N>, training: Option<Training>) -> Result<Self, PlanError<'static>> {
        let mut steps = [[Step::EMPTY; STEPS_PER_NODE]; N];
        let mut buffers = [[Buffer::EMPTY; BUFFERS_PER_NODE]; N];
        let mut info = [Info::NEW; N];
        let planner = Planner::new(
            graph.nodes(),
            graph.loss_id(),
            training,
            &mut info,
            steps.as_flattened_mut(),
            buffers.as_flattened_mut(),
        );
        match planner.run() {
            Ok(layout) => {
                let rules = match training {
                    Some(training) => training.rules,
                    None => Rules::NONE,
                };
                Ok(Self { graph: *graph, steps, buffers, info, layout, rules })
            }
            Err(error) => Err(error),
        }
    }

    const fn source(&self) -> Source<'_, 'static, B> {
        Source { nodes: self.graph.nodes(), info: &self.info, rules: &self.rules }
    }

    /// How many steps the program has.
    #[must_use]
    pub const fn steps_len(&self) -> usize {
        self.layout.steps
    }

    /// How many operations' arguments the steps refer to.
    #[must_use]
    pub const fn args_len(&self) -> usize {
        self.source().args_len()
    }

    /// How many parameters and states the graph has.
    #[must_use]
    pub const fn tensors_len(&self) -> usize {
        self.source().tensors_len()
    }

    /// How many inputs a run takes.
    #[must_use]
    pub const fn inputs_len(&self) -> usize {
        self.source().inputs_len()
    }

    /// How many outputs a run leaves.
    #[must_use]
    pub const fn outputs_len(&self) -> usize {
        self.source().outputs_len()
    }

    /// The steps; `S` is [`Plan::steps_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn steps<const S: usize>(&self) -> [Step<B>; S] {
        let mut steps = [Step::EMPTY; S];
        let mut i = 0;
        while i < self.layout.steps {
            steps[i] = self.steps.as_flattened()[i];
            i += 1;
        }
        steps
    }

    /// The arguments of the operations; `S` is [`Plan::args_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn args<const S: usize>(&self) -> [Args; S] {
        let mut all = [Args::NONE; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(args) = self.source().args(i) {
                all[count] = args;
                count += 1;
            }
            i += 1;
        }
        all
    }

    /// The parameters and states; `S` is [`Plan::tensors_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn tensors<const S: usize>(&self) -> [Tensor<'static>; S] {
        let mut all = [Tensor::NONE; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(tensor) = self.source().tensor(i) {
                all[count] = tensor;
                count += 1;
            }
            i += 1;
        }
        all
    }

    /// The inputs; `S` is [`Plan::inputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn inputs<const S: usize>(&self) -> [Input<'static>; S] {
        let mut all = [Input::NONE; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(input) = self.source().input(i) {
                all[count] = input;
                count += 1;
            }
            i += 1;
        }
        all
    }

    /// The outputs; `S` is [`Plan::outputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn outputs<const S: usize>(&self) -> [Output<'static>; S] {
        let mut all = [Output::NONE; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(output) = self.source().output(i) {
                all[count] = output;
                count += 1;
            }
            i += 1;
        }
        all
    }

    /// How many groups of neighbouring parameters there are with the same settings.
    #[must_use]
    pub const fn groups_len(&self) -> usize {
        self.source().groups_len()
    }

    /// The groups of parameters; `S` is [`Plan::groups_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn groups<const S: usize>(&self) -> [GroupRun; S] {
        let mut all = [GroupRun::NONE; S];
        let (mut count, mut i) = (0, 0);
        while i < self.graph.nodes().len() {
            if let Some(run) = self.source().group_from(i) {
                all[count] = run;
                count += 1;
            }
            i += 1;
        }
        all
    }

    /// The program over tables that hold what [`Plan::steps`] and its like returned.
    ///
    /// # Panics
    /// When a table has another length than this plan's.
    #[must_use]
    pub const fn program<'t>(
        &self,
        steps: &'t [Step<B>],
        args: &'t [Args],
        tensors: &'t [Tensor<'t>],
        inputs: &'t [Input<'t>],
        outputs: &'t [Output<'t>],
        groups: &'t [GroupRun],
    ) -> Program<'t, B> {
        assert!(
            steps.len() == self.steps_len()
                && args.len() == self.args_len()
                && tensors.len() == self.tensors_len()
                && inputs.len() == self.inputs_len()
                && outputs.len() == self.outputs_len()
                && groups.len() == self.groups_len(),
            "a program's tables are those of its plan"
        );
        Program { steps, args, tensors, inputs, outputs, groups, sizes: self.layout.sizes }
    }

    /// The tables on the heap, for a graph that is made at run time.
    #[cfg(any(feature = "alloc", test))]
    #[must_use]
    pub fn tables(&self) -> Tables<'static, B> {
        self.source().tables(&self.steps.as_flattened()[..self.layout.steps], self.layout.sizes)
    }

    /// The buffers of the work space, for reports and tests.
    #[must_use]
    pub const fn buffers(&self) -> &[Buffer] {
        self.buffers.as_flattened().split_at(self.layout.buffers).0
    }

    /// Elements of the work space.
    #[must_use]
    pub const fn work_len(&self) -> usize {
        self.layout.sizes.work
    }

    /// No layout of these buffers is smaller: the largest total of buffers that one tick needs.
    #[must_use]
    pub const fn work_lower_bound(&self) -> usize {
        self.layout.lower_bound
    }
}

/// What the planner makes of nodes on the heap.
#[cfg(feature = "alloc")]
pub(crate) struct HeapPlan<'n, B: Backend> {
    pub(crate) tables: Tables<'n, B>,
    pub(crate) buffers: alloc::vec::Vec<Buffer>,
    /// Which nodes the arguments in the tables are of.
    pub(crate) nodes_of_args: alloc::vec::Vec<usize>,
    /// Which nodes the inputs in the tables are.
    pub(crate) nodes_of_inputs: alloc::vec::Vec<usize>,
    /// Which nodes the program needs.
    pub(crate) needed: alloc::vec::Vec<bool>,
}

/// Plans inference, or training towards a loss, for nodes that were recorded at run time.
#[cfg(feature = "alloc")]
pub(crate) fn plan_nodes<'n, B: Backend>(
    nodes: &[crate::graph::Node<'n, B>],
    loss: Option<crate::graph::Id>,
    training: Option<Training>,
) -> Result<HeapPlan<'n, B>, PlanError<'n>> {
    let mut info = alloc::vec![Info::NEW; nodes.len()];
    let mut steps = alloc::vec![Step::EMPTY; nodes.len() * STEPS_PER_NODE];
    let mut buffers = alloc::vec![Buffer::EMPTY; nodes.len() * BUFFERS_PER_NODE];
    let layout = Planner::new(nodes, loss, training, &mut info, &mut steps, &mut buffers).run()?;
    let rules = training.map_or(Rules::NONE, |training| training.rules);
    let source = Source { nodes, info: &info, rules: &rules };
    let nodes_of_args = (0..nodes.len()).filter(|&i| source.args(i).is_some()).collect();
    let nodes_of_inputs = (0..nodes.len()).filter(|&i| source.input(i).is_some()).collect();
    let tables = source.tables(steps.get(..layout.steps).unwrap_or_default(), layout.sizes);
    buffers.truncate(layout.buffers);
    let needed = info.iter().map(|info| info.needed).collect();
    Ok(HeapPlan { tables, buffers, nodes_of_args, nodes_of_inputs, needed })
}

/// The spaces' sizes, and the buffers of the work space with the nodes that they were made for.
impl<B: Backend, const N: usize> core::fmt::Display for Plan<B, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Layout { sizes, steps, .. } = &self.layout;
        let Sizes { params, frozen, state, grads, moments, work, forward_steps, .. } = sizes;
        writeln!(
            f,
            "{steps} steps, {forward_steps} of them forward; elements: params {params}, frozen {frozen}, state {state}, \
             grads {grads}, moments {moments}, work {work}"
        )?;
        for Buffer { node, usage, len, start, end, offset, .. } in self.buffers() {
            let node = &self.graph.nodes()[*node];
            let name = node.op().map_or("", |op| op.name);
            let shape = Message::new().shape(node.spec.shape);
            writeln!(
                f,
                "  {offset:>6}..{:<6} ticks {start:>4} to {end:<4} {usage:?} of {name} {} {}",
                offset + len,
                node.name,
                shape.as_str()
            )?;
        }
        Ok(())
    }
}
