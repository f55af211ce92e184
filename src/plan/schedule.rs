//! Which steps a program takes, in which order, and on which buffers.

use super::{Buffer, Layout, PlanError, Training, Use, offsets};
use crate::backend::Backend;
use crate::graph::{Id, Kind, Node};
use crate::ops::{Gradient, MAX_INPUTS, Op, Over, OverGradient, Reads};
use crate::program::{Action, Place, Sizes, Space, Step};

/// Ticks of one node backward: one for each input's gradient, then one for each update.
const TICKS: usize = 2 * MAX_INPUTS;
/// Rows of a weight's gradient that a fused program computes at a time: the height of the matrix product's tile.
const ROWS_AT_A_TIME: usize = 4;

/// What the planner knows of a node.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Info {
    /// A loss or an output depends on it.
    pub(super) needed: bool,
    /// A trained parameter lies behind it.
    trainable: bool,
    /// Its gradient is computed: it is trainable, and the loss depends on it by differentiable ways.
    differentiated: bool,
    /// It can be read after the run.
    pub(super) kept: bool,
    /// The parameter is updated already.
    updated: bool,
    /// Of a view the value that it is a view of, of any other node itself.
    root: u32,
    /// Where its arguments lie in their table.
    args: u32,
    /// The last tick that reads the value (of a root).
    last_use: u32,
    /// The last tick that reads what forward kept.
    last_saved: u32,
    /// How many gradients are added up for it (a root).
    users: u32,
    /// The first of the operations that read it and have a backward pass (of a root).
    first_user: u32,
    /// Where a leaf lies.
    pub(super) leaf: Place,
    /// Where the value lies. Until offsets are known, a place in the work space names its buffer.
    pub(super) place: Place,
    /// Where lies what forward kept.
    saved: Place,
    /// Where the gradient (of a root) lies, once there is a first contribution.
    gradient: Option<Place>,
}

impl Info {
    pub(super) const NEW: Self = Self {
        needed: false,
        trainable: false,
        differentiated: false,
        kept: false,
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
    nodes: &'a [Node<'n, B>],
    loss: Option<usize>,
    training: Option<Training>,
    info: &'a mut [Info],
    steps: &'a mut [Step<B>],
    steps_len: usize,
    buffers: &'a mut [Buffer],
    buffers_len: usize,
    sizes: Sizes,
}

impl<'a, 'n, B: Backend> Planner<'a, 'n, B> {
    pub(super) const fn new(
        nodes: &'a [Node<'n, B>],
        loss: Option<Id>,
        training: Option<Training>,
        info: &'a mut [Info],
        steps: &'a mut [Step<B>],
        buffers: &'a mut [Buffer],
    ) -> Self {
        let loss = match (loss, training) {
            (Some(loss), Some(_)) => Some(loss.index()),
            _ => None,
        };
        Self { nodes, loss, training, info, steps, steps_len: 0, buffers, buffers_len: 0, sizes: Sizes::NONE }
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
        Ok(Layout { sizes: self.sizes, steps: self.steps_len, buffers: self.buffers_len, lower_bound })
    }

    const fn fused(&self) -> bool {
        match &self.training {
            Some(training) => training.fused,
            None => false,
        }
    }

    const fn op(&self, i: usize) -> Option<&'static Op<B>> {
        self.nodes[i].op()
    }

    const fn input(&self, i: usize, slot: usize) -> usize {
        self.nodes[i].inputs[slot].index()
    }

    const fn input_count(&self, i: usize) -> usize {
        self.nodes[i].input_count as usize
    }

    const fn root(&self, i: usize) -> usize {
        self.info[i].root as usize
    }

    const fn root_of_input(&self, i: usize, slot: usize) -> usize {
        self.root(self.input(i, slot))
    }

    const fn is_view(&self, i: usize) -> bool {
        match self.op(i) {
            Some(op) => op.view,
            None => false,
        }
    }

    /// The last tick of all, to which what is read after a run lives.
    const fn end(&self) -> usize {
        self.nodes.len() * (1 + TICKS)
    }

    /// The tick of the gradient for the input that comes `position`th in node `i`'s backward order.
    const fn backward_tick(&self, i: usize, position: usize) -> usize {
        self.nodes.len() + (self.nodes.len() - 1 - i) * TICKS + position
    }

    /// The tick at which new state is taken over, once the loss is known.
    const fn commit_tick(&self) -> usize {
        self.nodes.len()
    }

    /// Parameters and state lie in the order of recording whatever is needed, so that all programs of a graph agree.
    const fn place_leaves(&mut self) -> Result<(), PlanError<'n>> {
        let mut i = 0;
        while i < self.nodes.len() {
            let node = &self.nodes[i];
            if node.largest_buffer() >= Place::LIMIT {
                return Err(PlanError::TooLarge);
            }
            self.info[i].root = match node.op() {
                Some(op) if op.view => self.info[node.inputs[0].index()].root,
                _ => i as u32,
            };
            let space = match node.kind {
                Kind::Parameter { frozen: false, .. } => Some((Space::Params, &mut self.sizes.params)),
                Kind::Parameter { frozen: true, .. } => Some((Space::Frozen, &mut self.sizes.frozen)),
                Kind::State { .. } => Some((Space::State, &mut self.sizes.state)),
                Kind::Input { .. } | Kind::Op(_) => None,
            };
            if let Some((space, used)) = space {
                if *used + node.len() >= Place::LIMIT {
                    return Err(PlanError::TooLarge);
                }
                self.info[i].leaf = Place::new(space, *used, node.len());
                self.info[i].place = self.info[i].leaf;
                *used += node.len();
            }
            i += 1;
        }
        Ok(())
    }

    /// From the loss and the outputs back to what they are computed from.
    const fn mark_needed(&mut self) -> Result<(), PlanError<'n>> {
        let (keeps_outputs, nothing) = match &self.training {
            Some(training) => (training.keep_outputs, PlanError::NoLoss),
            None => (true, PlanError::NoOutput),
        };
        let mut found = false;
        let mut i = self.nodes.len();
        while i > 0 {
            i -= 1;
            let is_loss = match self.loss {
                Some(loss) => loss == i,
                None => false,
            };
            let is_output = keeps_outputs && self.nodes[i].output.is_some();
            found = found || is_loss || (is_output && self.training.is_none());
            if is_loss || is_output {
                self.info[i].needed = true;
                self.info[i].kept = true;
            }
            if self.info[i].needed {
                let mut slot = 0;
                while slot < self.input_count(i) {
                    let input = self.input(i, slot);
                    self.info[input].needed = true;
                    slot += 1;
                }
            }
        }
        if !found {
            return Err(nothing);
        }
        self.number_inputs_and_args();
        self.check_outputs()
    }

    /// A run takes the needed inputs only, in the order of recording; likewise the table of arguments.
    const fn number_inputs_and_args(&mut self) {
        let (mut inputs, mut args, mut i) = (0, 0, 0);
        while i < self.nodes.len() {
            if self.info[i].needed && matches!(self.nodes[i].kind, Kind::Input { .. }) {
                self.info[i].place = Place::new(Space::Input, inputs, self.nodes[i].len());
                inputs += 1;
            }
            if self.info[i].needed && self.op(i).is_some() && !self.is_view(i) {
                self.info[i].args = args;
                args += 1;
            }
            i += 1;
        }
    }

    /// What is read after a run has to be in memory that the run was given to write.
    const fn check_outputs(&self) -> Result<(), PlanError<'n>> {
        let mut i = 0;
        while i < self.nodes.len() {
            let root = &self.nodes[self.root(i)];
            if self.info[i].kept
                && matches!(root.kind, Kind::Input { .. })
                && let Some(output) = self.nodes[i].output
            {
                return Err(PlanError::OutputIsInput { output, input: root.name });
            }
            i += 1;
        }
        Ok(())
    }

    /// Whether the gradient of node `i` goes on to its input `slot`.
    const fn passes_gradient(&self, i: usize, slot: usize) -> bool {
        match self.op(i) {
            Some(op) if op.view => slot == 0,
            Some(op) => !matches!(op.backward[slot], Gradient::None),
            None => false,
        }
    }

    const fn mark_differentiated(&mut self, training: Training) -> Result<(), PlanError<'n>> {
        let Some(loss) = self.loss else { return Err(PlanError::NoLoss) };
        if let Some(max) = training.clip_norm {
            if max.is_nan() || max <= 0.0 {
                return Err(PlanError::ClipNorm);
            }
            if training.fused {
                return Err(PlanError::ClipFused);
            }
            self.sizes.clip_norm = Some((max as f32, max));
        }
        self.sizes.moments = training.slots * self.sizes.params;
        self.sizes.grads = if training.fused { 0 } else { self.sizes.params };
        self.mark_trainable(loss);
        if self.op(self.root(loss)).is_none() {
            return Err(PlanError::LossNotComputed);
        }
        if !self.info[loss].trainable {
            return Err(PlanError::NothingToTrain);
        }
        self.info[loss].differentiated = true;
        let mut i = loss + 1;
        while i > 0 {
            i -= 1;
            if self.info[i].differentiated {
                self.mark_inputs_differentiated(i);
            }
        }
        self.check_all_parameters_are_reached()
    }

    const fn mark_trainable(&mut self, loss: usize) {
        let mut i = 0;
        while i <= loss {
            let mut trainable = self.nodes[i].is_trained();
            let mut slot = 0;
            while slot < self.input_count(i) {
                trainable = trainable || (self.info[self.input(i, slot)].trainable && self.passes_gradient(i, slot));
                slot += 1;
            }
            self.info[i].trainable = trainable;
            i += 1;
        }
    }

    const fn mark_inputs_differentiated(&mut self, i: usize) {
        let mut slot = 0;
        while slot < self.input_count(i) {
            let input = self.input(i, slot);
            let root = self.root(input);
            let passes = self.info[input].trainable && self.passes_gradient(i, slot);
            self.info[input].differentiated = self.info[input].differentiated || passes;
            if !self.is_view(i) {
                // Whether or not a gradient goes to it, a backward kernel may read it.
                self.info[root].first_user = i as u32;
                self.info[root].users += passes as u32;
            }
            slot += 1;
        }
    }

    const fn check_all_parameters_are_reached(&self) -> Result<(), PlanError<'n>> {
        let mut i = 0;
        while i < self.nodes.len() {
            let node = &self.nodes[i];
            if node.is_trained() && !self.info[i].differentiated {
                return Err(PlanError::Unreached { name: node.name });
            }
            i += 1;
        }
        Ok(())
    }

    /// Whether the gradient for input `slot` of node `i` is computed.
    const fn wants_gradient(&self, i: usize, slot: usize) -> bool {
        slot < self.input_count(i)
            && self.info[i].differentiated
            && self.info[self.input(i, slot)].differentiated
            && self.passes_gradient(i, slot)
    }

    /// The gradient for input `slot` of node `i` is computed a few rows at a time, each updated at once. That holds for
    /// one input of a node at the most: the gradients for the others read the parameter as it was, and come before.
    const fn by_rows(&self, i: usize, slot: usize) -> bool {
        let mut last = None;
        let mut each = 0;
        while each < self.input_count(i) {
            if self.may_go_by_rows(i, each) {
                last = Some(each);
            }
            each += 1;
        }
        match last {
            Some(last) => last == slot,
            None => false,
        }
    }

    const fn may_go_by_rows(&self, i: usize, slot: usize) -> bool {
        let root = self.root_of_input(i, slot);
        let rows = match self.op(i) {
            Some(op) => matches!(op.backward[slot], Gradient::Kernel { rows: true, .. }),
            None => false,
        };
        let only_here = self.info[root].users == 1 && self.info[root].first_user as usize == i;
        rows && self.fused() && self.nodes[root].is_trained() && only_here
    }

    /// The inputs of node `i` whose gradients are computed, in the order in which that happens: parameters first, so that
    /// the gradient for an activation may take over the memory of the output's. But where rows are updated as they are
    /// computed, that comes last, since the other gradients read the parameter as it was.
    const fn backward_order(&self, i: usize) -> ([usize; MAX_INPUTS], usize) {
        let mut order = [0; MAX_INPUTS];
        let mut count = 0;
        let mut rank = 0;
        while rank < 3 {
            // Parameters, values, rows.
            let mut slot = 0;
            while slot < self.input_count(i) {
                if self.wants_gradient(i, slot) {
                    let is_parameter = self.nodes[self.root_of_input(i, slot)].is_trained();
                    let own = if self.by_rows(i, slot) {
                        2
                    } else if is_parameter {
                        0
                    } else {
                        1
                    };
                    if own == rank {
                        order[count] = slot;
                        count += 1;
                    }
                }
                slot += 1;
            }
            rank += 1;
        }
        (order, count)
    }

    const fn use_value(&mut self, i: usize, tick: usize) {
        let root = self.root(i);
        if tick > self.info[root].last_use as usize {
            self.info[root].last_use = tick as u32;
        }
    }

    const fn find_last_uses(&mut self) {
        let mut i = 0;
        while i < self.nodes.len() {
            if self.info[i].kept {
                self.use_value(i, self.end());
            }
            if self.info[i].needed && !self.is_view(i) {
                let mut slot = 0;
                while slot < self.input_count(i) {
                    self.use_value(self.input(i, slot), i);
                    slot += 1;
                }
                if self.nodes[i].state.is_some() && self.training.is_some() {
                    self.info[i].last_saved = self.commit_tick() as u32;
                }
                let (order, count) = self.backward_order(i);
                let mut position = 0;
                while position < count {
                    self.find_backward_uses(i, order[position], self.backward_tick(i, position));
                    position += 1;
                }
            }
            i += 1;
        }
    }

    const fn find_backward_uses(&mut self, i: usize, slot: usize, tick: usize) {
        let Some(op) = self.op(i) else { return };
        let Gradient::Kernel { reads, over, .. } = op.backward[slot] else {
            return;
        };
        let mut read = 0;
        while read < self.input_count(i) {
            if reads.has(Reads::input(read)) {
                self.use_value(self.input(i, read), tick);
            }
            read += 1;
        }
        if reads.has(Reads::OUTPUT) {
            self.use_value(i, tick);
        }
        let reads_saved = reads.has(Reads::SAVED) || matches!(over, OverGradient::Saved);
        if reads_saved && tick > self.info[i].last_saved as usize {
            self.info[i].last_saved = tick as u32;
        }
    }

    const fn new_buffer(&mut self, node: usize, usage: Use, len: usize, start: usize, end: usize) -> Place {
        if len == 0 {
            return Place::NOWHERE;
        }
        assert!(self.buffers_len < self.buffers.len(), "the planner ran out of room for buffers");
        let end = if end > start { end } else { start };
        self.buffers[self.buffers_len] = Buffer { node, usage, len, start, end, ..Buffer::EMPTY };
        self.buffers_len += 1;
        Place::new(Space::Work, self.buffers_len - 1, len)
    }

    /// Keeps the buffer of a place in the work space until `tick`.
    const fn keep(&mut self, place: Place, tick: usize) {
        if matches!(place.space(), Space::Work) && place.len() > 0 && self.buffers[place.offset()].end < tick {
            self.buffers[place.offset()].end = tick;
        }
    }

    const fn push(&mut self, step: Step<B>) {
        assert!(self.steps_len < self.steps.len(), "the planner ran out of room for steps");
        self.steps[self.steps_len] = step;
        self.steps_len += 1;
    }

    /// Whether forward of node `i` may overwrite its input 0: it lies in the work space and nothing else reads it, then
    /// or later.
    const fn may_overwrite_input(&self, i: usize) -> bool {
        let root = self.root_of_input(i, 0);
        let mut alone = self.info[root].last_use as usize == i;
        let mut slot = 1;
        while slot < self.input_count(i) {
            alone = alone && self.root_of_input(i, slot) != root;
            slot += 1;
        }
        alone && self.op(root).is_some()
    }

    const fn places_of_inputs(&self, i: usize) -> [Place; MAX_INPUTS] {
        let mut places = [Place::NOWHERE; MAX_INPUTS];
        let mut slot = 0;
        while slot < self.input_count(i) {
            places[slot] = self.info[self.input(i, slot)].place;
            slot += 1;
        }
        places
    }

    const fn schedule_forward(&mut self) {
        let mut i = 0;
        while i < self.nodes.len() {
            if let Some(op) = self.op(i)
                && self.info[i].needed
            {
                if op.view {
                    self.info[i].place = self.info[self.input(i, 0)].place;
                } else {
                    self.schedule_forward_of(i, op);
                }
            }
            i += 1;
        }
        self.sizes.forward_steps = self.steps_len;
    }

    const fn schedule_forward_of(&mut self, i: usize, op: &'static Op<B>) {
        let spec = &self.nodes[i].spec;
        let (run, saved_len) = match op.infer {
            Some(infer) if self.training.is_none() => (infer, 0),
            _ => (op.forward, spec.saved),
        };
        let mut x = self.places_of_inputs(i);
        let takes_over = !matches!(op.over, Over::Nothing) && self.may_overwrite_input(i);
        let (last_use, last_saved) = (self.info[i].last_use as usize, self.info[i].last_saved as usize);

        let out = if takes_over && matches!(op.over, Over::Output) {
            self.keep(x[0], last_use);
            x[0]
        } else {
            self.new_buffer(i, Use::Value, spec.shape.len(), i, last_use)
        };
        let saved = if takes_over && matches!(op.over, Over::Saved) {
            self.keep(x[0], last_saved);
            x[0]
        } else {
            self.new_buffer(i, Use::Saved, saved_len, i, last_saved)
        };
        let scratch = self.new_buffer(i, Use::Scratch, spec.scratch, i, i);
        self.info[i].place = out;
        self.info[i].saved = saved;
        if takes_over {
            // The kernel finds input 0 in the buffer that it overwrites.
            x[0] = Place::NOWHERE;
        }
        let copy = !takes_over && !matches!(op.over, Over::Nothing);
        let action = Action::Forward { run, over: op.over, copy };
        let (args, param) = (self.info[i].args, self.state_place(i));
        self.push(Step { action, args, x, out, saved, scratch, param, ..Step::EMPTY });
    }

    /// Where the state of node `i` lies.
    const fn state_place(&self, i: usize) -> Place {
        match self.nodes[i].state {
            Some(state) => Place::new(Space::State, self.info[state.index()].leaf.offset(), self.nodes[i].spec.state),
            None => Place::NOWHERE,
        }
    }

    /// Takes over the new state that forward kernels have left where they keep things.
    const fn schedule_commits(&mut self) {
        let mut i = 0;
        while i < self.nodes.len() {
            let to = self.state_place(i);
            if to.len() > 0 && self.info[i].needed {
                let saved = self.info[i].saved;
                let new = Place::new(saved.space(), saved.offset(), to.len());
                self.keep(saved, self.commit_tick());
                self.push_move(new, to, false);
            }
            i += 1;
        }
    }

    const fn schedule_backward(&mut self, loss: usize) {
        let first = self.backward_tick(loss, 0);
        let out = self.new_buffer(loss, Use::Gradient, 1, first, first);
        self.info[self.root(loss)].gradient = Some(out);
        self.schedule_commits();
        self.push(Step { action: Action::Seed, out, ..Step::EMPTY });
        let mut i = loss + 1;
        while i > 0 {
            i -= 1;
            if self.info[i].differentiated
                && let Some(op) = self.op(i)
                && !op.view
            {
                let (order, count) = self.backward_order(i);
                let mut position = 0;
                while position < count {
                    let tick = self.backward_tick(i, position);
                    self.schedule_gradient(i, op, order[position], tick, position + 1 == count);
                    position += 1;
                }
                if self.fused() {
                    self.schedule_updates(i);
                }
            }
        }
    }

    /// The gradient of node `i` for its input `slot`. `last` says that it is the last one that reads the gradient of `i`.
    const fn schedule_gradient(&mut self, i: usize, op: &'static Op<B>, slot: usize, tick: usize, last: bool) {
        let Some(dy) = self.info[i].gradient else {
            panic!("the planner reached a node before its gradient");
        };
        self.keep(dy, tick);
        if self.by_rows(i, slot) {
            self.schedule_rows(i, op, slot, tick, dy);
            return;
        }
        let root = self.root_of_input(i, slot);
        let first = self.info[root].gradient.is_none();
        match op.backward[slot] {
            Gradient::None => {}
            Gradient::Pass => {
                if first && last && !self.keeps_gradient(root) {
                    self.info[root].gradient = Some(dy);
                } else {
                    let out = self.gradient_place(root, tick);
                    self.push_move(dy, out, !first);
                }
            }
            Gradient::Kernel { run, reads, over, .. } => {
                let over_what = match over {
                    OverGradient::Nothing => None,
                    OverGradient::Dy => Some((dy, last)),
                    OverGradient::Saved => Some((self.info[i].saved, self.info[i].last_saved as usize == tick)),
                };
                let Some((source, source_is_free)) = over_what else {
                    let out = self.gradient_place(root, tick);
                    self.push_backward(
                        i,
                        slot,
                        tick,
                        Action::Backward { run, over, copy: false, add: !first },
                        reads,
                        dy,
                        out,
                    );
                    return;
                };
                // In place, then moved or added to where the gradient belongs, unless it is there already.
                let len = self.nodes[root].len();
                let buffer = if source_is_free {
                    self.keep(source, tick);
                    source
                } else {
                    self.new_buffer(root, Use::Gradient, len, tick, tick)
                };
                let action = Action::Backward { run, over, copy: !source_is_free, add: false };
                self.push_backward(i, slot, tick, action, reads, dy, buffer);
                if first && !self.keeps_gradient(root) {
                    self.info[root].gradient = Some(buffer);
                } else {
                    let out = self.gradient_place(root, tick);
                    self.push_move(buffer, out, !first);
                }
            }
        }
    }

    /// Whether the gradient of `root` lies in the space of gradients: that of a parameter in a program that is not fused.
    const fn keeps_gradient(&self, root: usize) -> bool {
        self.nodes[root].is_trained() && !self.fused()
    }

    /// Where the gradient of `root` is gathered, from now on.
    const fn gradient_place(&mut self, root: usize, tick: usize) -> Place {
        let place = match self.info[root].gradient {
            Some(place) => place,
            None if self.keeps_gradient(root) => {
                let leaf = self.info[root].leaf;
                Place::new(Space::Grads, leaf.offset(), leaf.len())
            }
            None => self.new_buffer(root, Use::Gradient, self.nodes[root].len(), tick, tick),
        };
        self.keep(place, tick);
        self.info[root].gradient = Some(place);
        place
    }

    const fn push_move(&mut self, from: Place, to: Place, add: bool) {
        let mut step = Step { action: Action::Move { add }, out: to, ..Step::EMPTY };
        step.x[0] = from;
        self.push(step);
    }

    const fn push_backward(
        &mut self,
        i: usize,
        slot: usize,
        tick: usize,
        action: Action<B>,
        reads: Reads,
        dy: Place,
        out: Place,
    ) {
        let spec = &self.nodes[i].spec;
        let mut step = Step { action, args: self.info[i].args, dy, out, ..Step::EMPTY };
        let mut read = 0;
        while read < self.input_count(i) {
            if reads.has(Reads::input(read)) {
                step.x[read] = self.info[self.input(i, read)].place;
            }
            read += 1;
        }
        if reads.has(Reads::OUTPUT) {
            step.y = self.info[i].place;
        }
        if reads.has(Reads::SAVED) || matches!(action, Action::Backward { over: OverGradient::Saved, .. }) {
            step.saved = self.info[i].saved;
        }
        step.scratch = self.new_buffer(i, Use::Scratch, spec.scratch_backward[slot], tick, tick);
        // What the kernel overwrites, it finds in `dx`.
        if step.dy.equals(out) {
            step.dy = Place::NOWHERE;
        }
        if step.saved.equals(out) {
            step.saved = Place::NOWHERE;
        }
        if let Action::UpdateRows { .. } = action {
            step.param = self.info[self.root_of_input(i, slot)].leaf;
        }
        self.push(step);
    }

    const fn schedule_rows(&mut self, i: usize, op: &'static Op<B>, slot: usize, tick: usize, dy: Place) {
        let Gradient::Kernel { run, reads, .. } = op.backward[slot] else {
            return;
        };
        let root = self.root_of_input(i, slot);
        let rows_len = self.nodes[self.input(i, slot)].spec.shape.axis(0);
        let row_len = self.nodes[root].len() / rows_len;
        let rows = if rows_len < ROWS_AT_A_TIME { rows_len } else { ROWS_AT_A_TIME };
        let out = self.new_buffer(root, Use::Gradient, rows * row_len, tick, tick);
        let action = Action::UpdateRows { run, rows: rows as u32, row_len: row_len as u32 };
        self.push_backward(i, slot, tick, action, reads, dy, out);
        self.info[root].updated = true;
    }

    /// Updates the parameters whose gradients are complete with node `i`: it was the first to read them, so its backward
    /// pass is the last to contribute and the last to read.
    const fn schedule_updates(&mut self, i: usize) {
        let mut slot = 0;
        while slot < self.input_count(i) {
            let root = self.root_of_input(i, slot);
            let complete =
                self.nodes[root].is_trained() && self.info[root].first_user as usize == i && !self.info[root].updated;
            if complete && let Some(gradient) = self.info[root].gradient {
                self.keep(gradient, self.backward_tick(i, MAX_INPUTS + slot));
                let mut step = Step { action: Action::Update, param: self.info[root].leaf, ..Step::EMPTY };
                step.x[0] = gradient;
                self.push(step);
                self.info[root].updated = true;
            }
            slot += 1;
        }
    }

    /// Turns buffers into offsets, everywhere.
    const fn apply_offsets(&mut self) {
        let mut i = 0;
        while i < self.steps_len {
            let mut step = self.steps[i];
            let mut slot = 0;
            while slot < MAX_INPUTS {
                step.x[slot] = self.offset(step.x[slot]);
                slot += 1;
            }
            step.y = self.offset(step.y);
            step.dy = self.offset(step.dy);
            step.out = self.offset(step.out);
            step.saved = self.offset(step.saved);
            step.scratch = self.offset(step.scratch);
            self.steps[i] = share_operands(step);
            i += 1;
        }
        i = 0;
        while i < self.nodes.len() {
            self.info[i].place = self.offset(self.info[i].place);
            i += 1;
        }
        if let Some(loss) = self.loss {
            self.sizes.loss = Some(self.info[loss].place);
        }
    }

    const fn offset(&self, place: Place) -> Place {
        if matches!(place.space(), Space::Work) && place.len() > 0 {
            Place::new(Space::Work, self.buffers[place.offset()].offset, place.len())
        } else {
            place
        }
    }
}

/// An operand in the work space that a step reads twice is borrowed once.
const fn share_operands<B: Backend>(mut step: Step<B>) -> Step<B> {
    let mut i = 1;
    while i < MAX_INPUTS {
        let mut before = 0;
        while before < i {
            let same = step.x[i].equals(step.x[before]);
            if same && matches!(step.x[i].space(), Space::Work) && step.x[i].len() > 0 {
                step.x[i] = Place::new(Space::SameAs, before, 0);
            }
            before += 1;
        }
        i += 1;
    }
    step
}
