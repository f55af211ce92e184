//! What a program needs: where leaves lie, what is computed, what is differentiated, how long values live.

use super::planner::{MAX_NODES, Planner};
use super::{PlanError, Training};
use crate::backend::Backend;
use crate::graph::Kind;
use crate::ops::{Gradient, MAX_INPUTS, OverGradient, Reads};
use crate::optim::{HEADER_LEN, Scope};
use crate::program::{Place, Space};

impl<'n, B: Backend> Planner<'_, 'n, B> {
    /// Parameters and state lie in the order of recording whatever is needed, so that all programs of a graph agree.
    pub(super) const fn place_leaves(&mut self) -> Result<(), PlanError<'n>> {
        let mut i = 0;
        if self.nodes.len() > MAX_NODES {
            return Err(PlanError::TooManyNodes);
        }
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
    pub(super) const fn mark_needed(&mut self) -> Result<(), PlanError<'n>> {
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

    /// A run takes the needed inputs only, in the order of recording; likewise the table of arguments, with those that are all
    /// zeros behind.
    pub(super) const fn number_inputs_and_args(&mut self) {
        let (mut inputs, mut words, mut i) = (0, 0, 0);
        while i < self.nodes.len() {
            if self.info[i].needed && matches!(self.nodes[i].kind, Kind::Input { .. }) {
                self.info[i].place = Place::new(Space::Input, inputs, self.nodes[i].len());
                inputs += 1;
            }
            if let (true, Some(args)) = (self.info[i].needed, self.nodes[i].args()) {
                self.info[i].args = words;
                words += args.len() as u32;
            }
            i += 1;
        }
        while i > 0 {
            i -= 1;
            if matches!(self.nodes[i].args(), Some([])) {
                self.info[i].args = words;
            }
        }
    }

    /// What is read after a run has to be in memory that the run was given to write.
    pub(super) const fn check_outputs(&self) -> Result<(), PlanError<'n>> {
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
    pub(super) const fn passes_gradient(&self, i: usize, slot: usize) -> bool {
        match self.op(i) {
            Some(op) if op.view => slot == 0,
            Some(op) => !matches!(op.backward[slot], Gradient::None),
            None => false,
        }
    }

    pub(super) const fn mark_differentiated(&mut self, training: Training) -> Result<(), PlanError<'n>> {
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
        if let Err(error) = self.check_rules(training) {
            return Err(error);
        }
        self.sizes.moments = training.slots.saturating_mul(self.sizes.params).saturating_add(HEADER_LEN);
        if self.sizes.moments >= Place::LIMIT {
            return Err(PlanError::TooLarge);
        }
        self.sizes.not_finite = training.not_finite;
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

    /// Every rule names a trained parameter and has settings that it can have.
    pub(super) const fn check_rules(&self, training: Training) -> Result<(), PlanError<'n>> {
        let rules = training.rules.as_slice();
        let mut i = 0;
        while i < rules.len() {
            let settings = [rules[i].group.learning_rate_factor, rules[i].group.weight_decay];
            let mut j = 0;
            while j < settings.len() {
                if let Some(value) = settings[j]
                    && !(value.is_finite() && value >= 0.0)
                {
                    return Err(PlanError::GroupSetting);
                }
                j += 1;
            }
            if let Scope::Named(name) = rules[i].scope
                && !self.names_a_trained_parameter(name)
            {
                return Err(PlanError::UnknownGroup { name });
            }
            i += 1;
        }
        Ok(())
    }

    pub(super) const fn names_a_trained_parameter(&self, name: &str) -> bool {
        let mut i = 0;
        while i < self.nodes.len() {
            if self.nodes[i].is_trained() && self.nodes[i].name.is_within(name) {
                return true;
            }
            i += 1;
        }
        false
    }

    pub(super) const fn mark_trainable(&mut self, loss: usize) {
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

    pub(super) const fn mark_inputs_differentiated(&mut self, i: usize) {
        let mut slot = 0;
        while slot < self.input_count(i) {
            let input = self.input(i, slot);
            let root = self.root(input);
            let passes = self.info[input].trainable && self.passes_gradient(i, slot);
            self.info[input].differentiated = self.info[input].differentiated || passes;
            if !self.is_view(i) {
                // Whether or not a gradient goes to it, a backward kernel may read it.
                self.info[root].first_user = i as u32;
                if passes {
                    self.info[root].rectified = slot == 0 && self.info[root].users == 0 && self.may_rectify(i, root);
                    self.info[root].users += 1;
                }
            }
            slot += 1;
        }
    }

    /// Whether node `i` has a kernel for the gradient of its input 0 that goes on through `root`, which is relu.
    const fn may_rectify(&self, i: usize, root: usize) -> bool {
        match (self.op(i), self.op(root)) {
            (Some(op), Some(relu)) => op.behind_relu.is_some() && relu.is_relu,
            _ => false,
        }
    }

    pub(super) const fn check_all_parameters_are_reached(&self) -> Result<(), PlanError<'n>> {
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
    pub(super) const fn wants_gradient(&self, i: usize, slot: usize) -> bool {
        slot < self.input_count(i)
            && self.info[i].differentiated
            && self.info[self.input(i, slot)].differentiated
            && self.passes_gradient(i, slot)
    }

    /// The gradient for input `slot` of node `i` is computed a few rows at a time, each updated at once. That holds for
    /// one input of a node at the most: the gradients for the others read the parameter as it was, and come before.
    pub(super) const fn by_rows(&self, i: usize, slot: usize) -> bool {
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

    pub(super) const fn may_go_by_rows(&self, i: usize, slot: usize) -> bool {
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
    pub(super) const fn backward_order(&self, i: usize) -> ([usize; MAX_INPUTS], usize) {
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

    pub(super) const fn use_value(&mut self, i: usize, tick: usize) {
        let root = self.root(i);
        if tick > self.info[root].last_use as usize {
            self.info[root].last_use = tick as u32;
        }
    }

    pub(super) const fn find_last_uses(&mut self) {
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

    pub(super) const fn find_backward_uses(&mut self, i: usize, slot: usize, tick: usize) {
        let Some(op) = self.op(i) else { return };
        let Gradient::Kernel { reads, over, .. } = self.gradient(i, op, slot) else {
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
}
