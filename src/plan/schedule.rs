//! Which steps a program takes, in which order, and on which buffers.

use super::planner::Planner;
use super::{Buffer, Use};
use crate::backend::Backend;
use crate::ops::{Gradient, MAX_INPUTS, Op, Over, OverGradient, Reads};
use crate::program::{Action, Copying, Place, Places, Space};

/// Rows of a weight's gradient that a fused program computes at a time: the height of the matrix product's tile.
const ROWS_AT_A_TIME: usize = 4;

/// A step while it is planned.
#[derive(Clone, Copy)]
pub(super) struct PlannedStep<B: Backend> {
    pub(super) action: Action<B>,
    /// Which node's kernel it runs, where it runs one.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code))]
    pub(super) node: u16,
    /// Where the kernel's arguments begin in their table.
    pub(super) args: u32,
    x: [Place; MAX_INPUTS],
    out: Place,
    saved: Place,
    scratch: Place,
    /// Forward: the state. Backward: the output.
    y: Place,
    dy: Place,
    /// Updates: the parameter.
    param: Place,
}

impl<B: Backend> PlannedStep<B> {
    pub(super) const EMPTY: Self = Self {
        action: Action::Seed,
        node: 0,
        args: 0,
        x: [Place::NOWHERE; MAX_INPUTS],
        y: Place::NOWHERE,
        dy: Place::NOWHERE,
        out: Place::NOWHERE,
        saved: Place::NOWHERE,
        scratch: Place::NOWHERE,
        param: Place::NOWHERE,
    };

    pub(super) const fn places(&self) -> Places {
        let Self { x: [x0, x1, x2], out, saved, scratch, y, dy, param, .. } = *self;
        [x0, x1, x2, out, saved, scratch, y, dy, param]
    }

    /// How many of them are somewhere.
    pub(super) const fn places_len(&self) -> usize {
        let places = self.places();
        let (mut count, mut i) = (0, 0);
        while i < places.len() {
            count += !places[i].equals(Place::NOWHERE) as usize;
            i += 1;
        }
        count
    }
}

impl<B: Backend> Planner<'_, '_, B> {
    pub(super) const fn new_buffer(&mut self, node: usize, usage: Use, len: usize, start: usize, end: usize) -> Place {
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
    pub(super) const fn keep(&mut self, place: Place, tick: usize) {
        if matches!(place.space(), Space::Work) && place.len() > 0 && self.buffers[place.offset()].end < tick {
            self.buffers[place.offset()].end = tick;
        }
    }

    pub(super) const fn push(&mut self, step: PlannedStep<B>) {
        assert!(self.steps_len < self.steps.len(), "the planner ran out of room for steps");
        self.steps[self.steps_len] = step;
        self.steps_len += 1;
    }

    /// Whether forward of node `i` may overwrite its input 0: it lies in the work space and nothing else reads it, then
    /// or later.
    pub(super) const fn may_overwrite_input(&self, i: usize) -> bool {
        let root = self.root_of_input(i, 0);
        let mut alone = self.info[root].last_use as usize == i;
        let mut slot = 1;
        while slot < self.input_count(i) {
            alone = alone && self.root_of_input(i, slot) != root;
            slot += 1;
        }
        alone && self.op(root).is_some()
    }

    pub(super) const fn places_of_inputs(&self, i: usize) -> [Place; MAX_INPUTS] {
        let mut places = [Place::NOWHERE; MAX_INPUTS];
        let mut slot = 0;
        while slot < self.input_count(i) {
            places[slot] = self.info[self.input(i, slot)].place;
            slot += 1;
        }
        places
    }

    pub(super) const fn schedule_forward(&mut self) {
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

    pub(super) const fn schedule_forward_of(&mut self, i: usize, op: &'static Op<B>) {
        let spec = &self.nodes[i].spec;
        let (run, saved_len) = match op.infer {
            Some(infer) if self.training.is_none() => (infer, 0),
            _ => (op.forward, spec.saved),
        };
        let mut x = self.places_of_inputs(i);
        let takes_over = !matches!(op.over, Over::Nothing) && self.may_overwrite_input(i);
        let (last_use, last_saved) = (self.info[i].last_use as usize, self.info[i].last_saved as usize);
        if op.is_relu && takes_over && self.rectify_last_step(i) {
            self.keep(x[0], last_use);
            self.info[i].place = x[0];
            return;
        }

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
        let copy = if takes_over { Copying::NOTHING } else { Copying::forward(op.over) };
        let action = Action::Forward { run, copy };
        self.multiply_adds.forward = self.multiply_adds.forward.saturating_add(self.multiply_adds_of(i, op));
        let (args, y) = (self.info[i].args, self.state_place(i));
        self.push(PlannedStep { action, node: i as u16, args, x, out, saved, scratch, y, ..PlannedStep::EMPTY });
        self.last_forward = Some(i);
    }

    /// Where the step that was taken last computes the input of node `i`, a relu that takes it over, and has a kernel which
    /// rectifies as well: takes that kernel.
    const fn rectify_last_step(&mut self, i: usize) -> bool {
        let root = self.root_of_input(i, 0);
        let is_last = matches!(self.last_forward, Some(last) if last == root);
        if let (true, Some(op)) = (is_last, self.op(root))
            && let Some(run) = op.with_relu
            && let Action::Forward { copy, .. } = self.steps[self.steps_len - 1].action
        {
            self.steps[self.steps_len - 1].action = Action::Forward { run, copy };
            return true;
        }
        false
    }

    /// Where the state of node `i` lies.
    pub(super) const fn state_place(&self, i: usize) -> Place {
        match self.nodes[i].state {
            Some(state) => Place::new(Space::State, self.info[state.index()].leaf.offset(), self.nodes[i].spec.state),
            None => Place::NOWHERE,
        }
    }

    /// Takes over the new state that forward kernels have left where they keep things.
    pub(super) const fn schedule_commits(&mut self) {
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

    pub(super) const fn schedule_backward(&mut self, loss: usize) {
        let first = self.backward_tick(loss, 0);
        let out = self.new_buffer(loss, Use::Gradient, 1, first, first);
        self.info[self.root(loss)].gradient = Some(out);
        self.schedule_commits();
        self.push(PlannedStep { action: Action::Seed, out, ..PlannedStep::EMPTY });
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
    pub(super) const fn schedule_gradient(
        &mut self,
        i: usize,
        op: &'static Op<B>,
        slot: usize,
        tick: usize,
        last: bool,
    ) {
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
        match self.gradient(i, op, slot) {
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
                    let action = Action::Backward { run, copy: Copying::NOTHING, add: !first };
                    self.push_backward(i, slot, tick, action, reads, dy, out);
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
                let copy = if source_is_free { Copying::NOTHING } else { Copying::backward(over) };
                let action = Action::Backward { run, copy, add: false };
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
    pub(super) const fn keeps_gradient(&self, root: usize) -> bool {
        self.nodes[root].is_trained() && !self.fused()
    }

    /// Where the gradient of `root` is gathered, from now on.
    pub(super) const fn gradient_place(&mut self, root: usize, tick: usize) -> Place {
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

    pub(super) const fn push_move(&mut self, from: Place, to: Place, add: bool) {
        let mut step = PlannedStep { action: Action::Move { add }, out: to, ..PlannedStep::EMPTY };
        step.x[0] = from;
        self.push(step);
    }

    pub(super) const fn push_backward(
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
        if let Some(op) = self.op(i)
            && slot < 2
        {
            self.multiply_adds.backward = self.multiply_adds.backward.saturating_add(self.multiply_adds_of(i, op));
        }
        let mut step = PlannedStep { action, node: i as u16, args: self.info[i].args, dy, out, ..PlannedStep::EMPTY };
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
        if reads.has(Reads::SAVED) || matches!(action, Action::Backward { copy, .. } if copy.is_of_saved()) {
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

    pub(super) const fn schedule_rows(&mut self, i: usize, op: &'static Op<B>, slot: usize, tick: usize, dy: Place) {
        let Gradient::Kernel { run, reads, .. } = op.backward[slot] else {
            return;
        };
        let root = self.root_of_input(i, slot);
        let rows_len = self.nodes[self.input(i, slot)].spec.shape.axis(0);
        let row_len = self.nodes[root].len() / rows_len;
        let rows = if rows_len < ROWS_AT_A_TIME { rows_len } else { ROWS_AT_A_TIME };
        let out = self.new_buffer(root, Use::Gradient, rows * row_len, tick, tick);
        let action = Action::UpdateRows { run, rows: rows as u8 };
        self.push_backward(i, slot, tick, action, reads, dy, out);
        self.info[root].updated = true;
    }

    /// Updates the parameters whose gradients are complete with node `i`: it was the first to read them, so its backward
    /// pass is the last to contribute and the last to read.
    pub(super) const fn schedule_updates(&mut self, i: usize) {
        let mut slot = 0;
        while slot < self.input_count(i) {
            let root = self.root_of_input(i, slot);
            let complete =
                self.nodes[root].is_trained() && self.info[root].first_user as usize == i && !self.info[root].updated;
            if complete && let Some(gradient) = self.info[root].gradient {
                self.keep(gradient, self.backward_tick(i, MAX_INPUTS + slot));
                let mut step =
                    PlannedStep { action: Action::Update, param: self.info[root].leaf, ..PlannedStep::EMPTY };
                step.x[0] = gradient;
                self.push(step);
                self.info[root].updated = true;
            }
            slot += 1;
        }
    }

    /// Turns buffers into offsets, everywhere.
    pub(super) const fn apply_offsets(&mut self) {
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
            self.steps[i] = step;
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

    pub(super) const fn offset(&self, place: Place) -> Place {
        if matches!(place.space(), Space::Work) && place.len() > 0 {
            Place::new(Space::Work, self.buffers[place.offset()].offset, place.len())
        } else {
            place
        }
    }
}
