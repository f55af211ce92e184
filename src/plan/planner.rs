//! The planner: what it works on, and the order of its work.

use super::schedule::PlannedStep;
use super::{Buffer, Layout, MultiplyAdds, PlanError, Training, offsets};
use crate::backend::Backend;
use crate::graph::{Id, Node};
use crate::ops::{Gradient, MAX_INPUTS, Op, Reads, Terms};
use crate::program::{Place, Sizes};

/// Steps have 16 bits to say which arguments are theirs.
pub(super) const MAX_NODES: usize = u16::MAX as usize;

/// Ticks of one node backward: one for each input's gradient, then one for each update.
const TICKS: usize = 2 * MAX_INPUTS;

/// What the planner knows of a node.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Info {
    /// A loss or an output depends on it.
    pub(super) needed: bool,
    /// A trained parameter lies behind it.
    pub(super) trainable: bool,
    /// Its gradient is computed: it is trainable, and the loss depends on it by differentiable ways.
    pub(super) differentiated: bool,
    /// It can be read after the run.
    pub(super) kept: bool,
    /// It is relu, and the only operation that contributes to the gradient of its output computes that of its input at once.
    pub(super) rectified: bool,
    /// The parameter is updated already.
    pub(super) updated: bool,
    /// Of a view the value that it is a view of, of any other node itself.
    pub(super) root: u32,
    /// Where its arguments begin in their table.
    pub(super) args: u32,
    /// The last tick that reads the value (of a root).
    pub(super) last_use: u32,
    /// The last tick that reads what forward kept.
    pub(super) last_saved: u32,
    /// How many gradients are added up for it (a root).
    pub(super) users: u32,
    /// The first of the operations that read it and have a backward pass (of a root).
    pub(super) first_user: u32,
    /// Where a leaf lies.
    pub(super) leaf: Place,
    /// Where the value lies. Until offsets are known, a place in the work space names its buffer.
    pub(super) place: Place,
    /// Where lies what forward kept.
    pub(super) saved: Place,
    /// Where the gradient (of a root) lies, once there is a first contribution.
    pub(super) gradient: Option<Place>,
}

impl Info {
    pub(super) const NEW: Self = Self {
        needed: false,
        trainable: false,
        differentiated: false,
        kept: false,
        rectified: false,
        updated: false,
        root: 0,
        args: 0,
        last_use: 0,
        last_saved: 0,
        users: 0,
        first_user: 0,
        leaf: Place::NOWHERE,
        place: Place::NOWHERE,
        saved: Place::NOWHERE,
        gradient: None,
    };
}

/// The planner at work on one graph. `info` has an entry for each node; `steps` and `buffers` have room to spare.
pub(super) struct Planner<'a, 'n, B: Backend> {
    pub(super) nodes: &'a [Node<'n, B>],
    pub(super) loss: Option<usize>,
    pub(super) training: Option<Training>,
    pub(super) info: &'a mut [Info],
    pub(super) steps: &'a mut [PlannedStep<B>],
    pub(super) steps_len: usize,
    /// The node whose forward step is the last one.
    pub(super) last_forward: Option<usize>,
    pub(super) buffers: &'a mut [Buffer],
    pub(super) buffers_len: usize,
    pub(super) sizes: Sizes,
    pub(super) multiply_adds: MultiplyAdds,
}

impl<'a, 'n, B: Backend> Planner<'a, 'n, B> {
    pub(super) const fn new(
        nodes: &'a [Node<'n, B>],
        loss: Option<Id>,
        training: Option<Training>,
        info: &'a mut [Info],
        steps: &'a mut [PlannedStep<B>],
        buffers: &'a mut [Buffer],
    ) -> Self {
        let loss = match (loss, training) {
            (Some(loss), Some(_)) => Some(loss.index()),
            _ => None,
        };
        Self {
            nodes,
            loss,
            training,
            info,
            steps,
            steps_len: 0,
            last_forward: None,
            buffers,
            buffers_len: 0,
            sizes: Sizes::NONE,
            multiply_adds: MultiplyAdds { forward: 0, backward: 0 },
        }
    }

    /// Plans; afterwards steps, buffers and places are final.
    pub(super) const fn run(mut self) -> Result<Layout, PlanError<'n>> {
        // Constants have no `?`.
        if let Err(error) = self.place_leaves() {
            return Err(error);
        }
        if let Err(error) = self.mark_needed() {
            return Err(error);
        }
        if let Some(training) = self.training
            && let Err(error) = self.mark_differentiated(training)
        {
            return Err(error);
        }
        self.find_last_uses();
        self.schedule_forward();
        if let Some(loss) = self.loss {
            self.schedule_backward(loss);
        }
        let buffers = self.buffers.split_at_mut(self.buffers_len).0;
        self.sizes.work = offsets::assign(buffers);
        let lower_bound = offsets::lower_bound(buffers);
        if self.sizes.work >= Place::LIMIT {
            return Err(PlanError::TooLarge);
        }
        self.apply_offsets();
        let Self { sizes, multiply_adds, steps_len: steps, buffers_len: buffers, .. } = self;
        Ok(Layout { sizes, multiply_adds, steps, buffers, lower_bound })
    }

    pub(super) const fn fused(&self) -> bool {
        match &self.training {
            Some(training) => training.fused,
            None => false,
        }
    }

    pub(super) const fn op(&self, i: usize) -> Option<&'static Op<B>> {
        self.nodes[i].op()
    }

    pub(super) const fn input(&self, i: usize, slot: usize) -> usize {
        self.nodes[i].inputs[slot].index()
    }

    pub(super) const fn input_count(&self, i: usize) -> usize {
        self.nodes[i].input_count as usize
    }

    pub(super) const fn root(&self, i: usize) -> usize {
        self.info[i].root as usize
    }

    pub(super) const fn root_of_input(&self, i: usize, slot: usize) -> usize {
        self.root(self.input(i, slot))
    }

    /// How the gradient reaches input `slot` of node `i`: as the operation says, unless it goes on through relu at once.
    pub(super) const fn gradient(&self, i: usize, op: &Op<B>, slot: usize) -> Gradient<B> {
        let from_relu = slot == 0 && self.info[self.root_of_input(i, slot)].rectified;
        match (op.backward[slot], op.behind_relu) {
            _ if self.info[i].rectified => Gradient::Pass,
            (Gradient::Kernel { reads, .. }, Some(run)) if from_relu => {
                Gradient::kernel(run, reads.and(Reads::input(0)))
            }
            (gradient, _) => gradient,
        }
    }

    /// Multiply-adds of node `i`'s output, and of the gradient of each operand of its products.
    pub(super) const fn multiply_adds_of(&self, i: usize, op: &Op<B>) -> usize {
        let (y, x) = (&self.nodes[i].spec.shape, &self.nodes[self.input(i, 0)].spec.shape);
        let weight = &self.nodes[self.input(i, 1)].spec.shape;
        match op.terms {
            Terms::None => 0,
            Terms::Row => y.len().saturating_mul(x.axis_from_end(0)),
            Terms::Weight => y.len().saturating_mul(weight.product(1, weight.rank())),
            Terms::WeightOfInput => x.len().saturating_mul(weight.product(1, weight.rank())),
        }
    }

    pub(super) const fn is_view(&self, i: usize) -> bool {
        match self.op(i) {
            Some(op) => op.view,
            None => false,
        }
    }

    /// The last tick of all, to which what is read after a run lives.
    pub(super) const fn end(&self) -> usize {
        self.nodes.len() * (1 + TICKS)
    }

    /// The tick of the gradient for the input that comes `position`th in node `i`'s backward order.
    pub(super) const fn backward_tick(&self, i: usize, position: usize) -> usize {
        self.nodes.len() + (self.nodes.len() - 1 - i) * TICKS + position
    }

    /// The tick at which new state is taken over, once the loss is known.
    pub(super) const fn commit_tick(&self) -> usize {
        self.nodes.len()
    }
}
