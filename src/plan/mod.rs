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
#[cfg(feature = "alloc")]
mod heap;
mod offsets;
mod planner;
mod schedule;
mod tables;
mod training;

pub use error::PlanError;
#[cfg(feature = "alloc")]
pub(crate) use heap::{HeapPlan, plan_nodes};
#[cfg(any(feature = "alloc", test))]
pub use tables::Tables;
pub use training::{NotFinite, Training};

use crate::backend::{Backend, Strict};
use crate::error::Message;
use crate::graph::Graph;
use crate::ops::MAX_INPUTS;
use crate::optim::Rules;
use crate::program::{Draw, Expected, GroupRun, Input, Output, Place, Program, Sizes, Step, Tensor, check};
use planner::{Info, Planner};
use schedule::PlannedStep;
use tables::{Source, args_len, fill_places, fill_steps, normal_of, places_len};

/// Room for steps, by node: forward and the new state; each input's gradient, its sum and its update.
const STEPS_PER_NODE: usize = 2 + 3 * MAX_INPUTS;
/// Room for buffers, by node: value, kept, scratch; for each input a gradient, one by the side, and scratch.
const BUFFERS_PER_NODE: usize = 3 + 3 * MAX_INPUTS;

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

/// How much a run multiplies and adds in matrix products and convolutions, by which the work of networks is compared. What
/// works element by element, and the update, is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiplyAdds {
    /// For the values.
    pub forward: usize,
    /// For the gradients.
    pub backward: usize,
}

/// What the planner found out beside steps and buffers.
#[derive(Clone, Copy)]
struct Layout {
    sizes: Sizes,
    multiply_adds: MultiplyAdds,
    steps: usize,
    buffers: usize,
    lower_bound: usize,
}

/// A planned graph: the steps with room to spare, and the graph to take the tables from. A value for constants;
/// [`program!`](crate::program!) turns it into a [`Program`].
#[derive(Clone, Copy)]
pub struct Plan<B: Backend = Strict<f32>, const N: usize = 64> {
    graph: Graph<B, N>,
    steps: [[PlannedStep<B>; STEPS_PER_NODE]; N],
    buffers: [[Buffer; BUFFERS_PER_NODE]; N],
    info: [Info; N],
    layout: Layout,
    rules: Rules,
}

/// The entries of all nodes that have one, in their order. A constant function can be handed no other one.
macro_rules! collect {
    ($self:ident.$entry:ident, $none:expr) => {{
        let (mut all, mut count, mut i) = ([$none; S], 0, 0);
        while i < $self.graph.nodes().len() {
            if let Some(entry) = $self.source().$entry(i) {
                all[count] = entry;
                count += 1;
            }
            i += 1;
        }
        all
    }};
}

impl<B: Backend, const N: usize> Plan<B, N> {
    /// Plans inference, or training.
    pub(crate) const fn new(graph: &Graph<B, N>, training: Option<Training>) -> Result<Self, PlanError<'static>> {
        let mut steps = [[PlannedStep::EMPTY; STEPS_PER_NODE]; N];
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

    const fn planned(&self) -> &[PlannedStep<B>] {
        self.steps.as_flattened().split_at(self.layout.steps).0
    }

    const fn source(&self) -> Source<'_, 'static, B> {
        Source { nodes: self.graph.nodes(), info: &self.info, rules: &self.rules }
    }

    /// How many steps the program has.
    #[must_use]
    pub const fn steps_len(&self) -> usize {
        self.layout.steps
    }

    /// How many words hold the steps' arguments.
    #[must_use]
    pub const fn args_len(&self) -> usize {
        args_len(self.planned())
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
        fill_steps(self.planned(), &mut steps);
        steps
    }

    /// How many operands the steps have.
    #[must_use]
    pub const fn places_len(&self) -> usize {
        places_len(self.planned())
    }

    /// Where the operands of the steps lie; `S` is [`Plan::places_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn places<const S: usize>(&self) -> [Place; S] {
        let mut places = [Place::NOWHERE; S];
        fill_places(self.planned(), &mut places);
        places
    }

    /// The arguments of the steps; `S` is [`Plan::args_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn args<const S: usize>(&self) -> [u32; S] {
        let mut args = [0; S];
        self.source().fill_args(&mut args);
        args
    }

    /// The parameters and states; `S` is [`Plan::tensors_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn tensors<const S: usize>(&self) -> [Tensor<'static>; S] {
        collect!(self.tensor, Tensor::NONE)
    }

    /// How many parameters and states start with other numbers than zeros.
    #[must_use]
    pub const fn draws_len(&self) -> usize {
        self.source().draws_len()
    }

    /// How these start; `S` is [`Plan::draws_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn draws<const S: usize>(&self) -> [Draw; S] {
        collect!(self.draw, Draw::NONE)
    }

    /// The inputs; `S` is [`Plan::inputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn inputs<const S: usize>(&self) -> [Input<'static>; S] {
        collect!(self.input, Input::NONE)
    }

    /// What a run looks at of the inputs; `S` is [`Plan::inputs_len`].
    ///
    /// # Panics
    /// When `S` is less.
    #[must_use]
    pub const fn expected<const S: usize>(&self) -> [Expected; S] {
        let (inputs, mut all, mut i) = (self.inputs::<S>(), [Expected::NONE; S], 0);
        while i < S {
            all[i] = inputs[i].expected();
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
        collect!(self.output, Output::NONE)
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
        collect!(self.group_from, GroupRun::NONE)
    }

    /// The program over tables that hold what [`Plan::steps`] and its like returned.
    ///
    /// # Panics
    /// When a table has another length than this plan's, or operands of a step overlap.
    #[must_use]
    pub const fn program<'t>(
        &self,
        steps: &'t [Step<B>],
        places: &'t [Place],
        args: &'t [u32],
        tensors: &'t [Tensor<'t>],
        draws: &'t [Draw],
        inputs: &'t [Input<'t>],
        expected: &'t [Expected],
        outputs: &'t [Output<'t>],
        groups: &'t [GroupRun],
    ) -> Program<'t, B> {
        assert!(
            steps.len() == self.steps_len()
                && places.len() == self.places_len()
                && args.len() == self.args_len()
                && tensors.len() == self.tensors_len()
                && draws.len() == self.draws_len()
                && inputs.len() == self.inputs_len()
                && expected.len() == self.inputs_len()
                && outputs.len() == self.outputs_len()
                && groups.len() == self.groups_len(),
            "a program's tables are those of its plan"
        );
        check(steps, places, args);
        let (sizes, normal) = (self.layout.sizes, normal_of(draws));
        Program { steps, places, args, tensors, draws, inputs, expected, outputs, groups, sizes, normal }
    }

    /// The tables on the heap, for a graph that is made at run time.
    #[cfg(any(feature = "alloc", test))]
    #[must_use]
    pub fn tables(&self) -> Tables<'static, B> {
        self.source().tables_with_tensors(self.planned(), self.layout.sizes)
    }

    /// The buffers of the work space, for reports and tests.
    #[must_use]
    pub const fn buffers(&self) -> &[Buffer] {
        self.buffers.as_flattened().split_at(self.layout.buffers).0
    }

    /// The work of a run.
    #[must_use]
    pub const fn multiply_adds(&self) -> MultiplyAdds {
        self.layout.multiply_adds
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
