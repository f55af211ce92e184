//! Backward: from a value to all parameters behind it.

#[cfg(feature = "alloc")]
use super::node::Backprop;
use super::node::{Kind, NOWHERE, Node};
use super::record::copy;
use super::storage::{Elem, SpacesMut};
use super::{Cause, Handle, Storage, Tape, TapeError};
use crate::backend::{Backend, Real};
use crate::ops::{Backward, BackwardCall, Gradient, MAX_INPUTS, OverGradient, Reads};
use crate::program::Space;
use core::ops::Range;

impl<S: Storage> Tape<S> {
    /// The gradients of a loss of one element with respect to all that it was computed from. Those of parameters add up over
    /// calls until the next reset, the others start afresh. State, such as running statistics, takes the batch in.
    ///
    /// # Errors
    /// The tape's fault; when the loss has more than one element or is not finite, which changes nothing; or when there is
    /// no room for the gradients, which is a fault.
    #[track_caller]
    pub fn backward(&mut self, loss: Handle) -> Result<(), TapeError> {
        self.force(loss);
        self.check()?;
        let cause = match (self.node(loss), self.value(loss)) {
            (None, _) => Cause::Handle { operand: 0 },
            (_, [value]) if value.is_finite() => return self.backward_from(loss, &[Elem::<S>::ONE]),
            (_, [value]) => Cause::LossNotFinite { loss: value.to_f32() },
            (_, other) => Cause::Length { expected: other.len(), found: 1 },
        };
        Err(self.error("backward", &[Some(loss)], cause))
    }

    /// The same from any value, with the gradient `dy` with respect to it, and whatever its elements are.
    ///
    /// # Errors
    /// As [`Tape::backward`], and when `dy` has another length than the value.
    #[track_caller]
    pub fn backward_from(&mut self, y: Handle, dy: &[Elem<S>]) -> Result<(), TapeError> {
        self.force(y);
        self.check()?;
        match self.try_backward(y, dy) {
            Ok(()) => Ok(()),
            Err(cause @ Cause::Memory { .. }) => {
                self.fail("backward", &[Some(y)], cause);
                self.check()
            }
            Err(cause) => Err(self.error("backward", &[Some(y)], cause)),
        }
    }

    fn try_backward(&mut self, y: Handle, dy: &[Elem<S>]) -> Result<(), Cause> {
        let node = self.node(y).ok_or(Cause::Handle { operand: 0 })?;
        let (len, root, needs_gradient) = (node.len(), node.root as usize, node.needs_gradient);
        if dy.len() != len {
            return Err(Cause::Length { expected: len, found: dy.len() });
        }
        for (i, node) in self.storage.spaces_mut().nodes.iter_mut().enumerate() {
            node.visited = i == y.index();
            node.has_gradient &= node.is_parameter();
        }
        if needs_gradient {
            let first = self.gradient_memory(root)?;
            let spaces = self.storage.spaces_mut();
            if let Some(lent) = Lent::new(spaces, root, self.work) {
                if first { copy(lent.dx, dy) } else { add(lent.dx, dy) }
            }
        }
        for i in (0..=y.index()).rev() {
            if self.nodes().get(i).is_some_and(|node| node.visited) {
                self.take_over_state(i);
                self.backward_of(i)?;
            }
        }
        Ok(())
    }

    /// What forward left as the new state becomes the state.
    fn take_over_state(&mut self, i: usize) {
        let SpacesMut { nodes, work, .. } = self.storage.spaces_mut();
        let Some(node) = nodes.get(i).filter(|node| node.state != NOWHERE) else { return };
        let Some(state) = nodes.get(node.state as usize) else { return };
        // State is older than what uses it.
        let (older, fresh) = work.split_at_mut_checked(node.saved as usize).unwrap_or_default();
        copy(older.get_mut(state.value_range()).unwrap_or_default(), fresh);
    }

    /// The contributions of node `i` to the gradients of its inputs.
    fn backward_of(&mut self, i: usize) -> Result<(), Cause> {
        let SpacesMut { nodes, .. } = self.storage.spaces_mut();
        let Some(node) = nodes.get(i) else { return Ok(()) };
        let (inputs, count) = (node.inputs, usize::from(node.input_count));
        // A view has the gradient of what it is a view of.
        let passes_on = node.root as usize == i && node.has_gradient;
        for (slot, input) in inputs.into_iter().enumerate().take(count) {
            let Some(input) = self.storage.spaces_mut().nodes.get_mut(input.index()) else { continue };
            input.visited = true;
            let (root, needs_gradient) = (input.root as usize, input.needs_gradient);
            if passes_on && needs_gradient {
                self.contribute(i, slot, root)?;
            }
        }
        Ok(())
    }

    /// The contribution of node `i` to the gradient for its input `slot`, whose root is `root`.
    fn contribute(&mut self, i: usize, slot: usize, root: usize) -> Result<(), Cause> {
        let Some(node) = self.nodes().get(i) else { return Ok(()) };
        let Some(rule) = Rule::of(node, slot) else { return Ok(()) };
        let scratch = node.spec.scratch_backward.get(slot).copied().unwrap_or(0);
        let len = self.nodes().get(root).map_or(0, Node::len);
        let first = self.gradient_memory(root)?;
        // What works over its operand cannot add: it has a buffer by the side.
        let side = if first || !rule.overwrites() { 0 } else { len };
        self.storage.reserve(Space::Work, self.work.saturating_add(side).saturating_add(scratch))?;
        if let Some(lent) = Lent::new(self.storage.spaces_mut(), root, self.work) {
            lent.contribute(i, slot, rule, first, side);
        }
        Ok(())
    }

    /// Gives the gradient of node `root` memory where it has none. Returns whether what comes is the first contribution.
    fn gradient_memory(&mut self, root: usize) -> Result<bool, Cause> {
        let Some(node) = self.nodes().get(root) else { return Ok(false) };
        let (first, len, mut place) = (!node.has_gradient, node.len(), node.gradient);
        if place == NOWHERE {
            let end = self.work.saturating_add(len);
            self.storage.reserve(Space::Work, end)?;
            place = self.work as u32;
            self.work = end;
        }
        if let Some(node) = self.storage.spaces_mut().nodes.get_mut(root) {
            (node.gradient, node.has_gradient) = (place, true);
        }
        Ok(first)
    }
}

/// How a gradient is computed.
#[derive(Clone, Copy)]
enum Rule<B: Backend> {
    Pass,
    Kernel {
        run: Backward<B>,
        reads: Reads,
        over: OverGradient,
    },
    /// By the node's own function.
    #[cfg(feature = "alloc")]
    Function,
}

impl<B: Backend> Rule<B> {
    fn of(node: &Node<B>, slot: usize) -> Option<Self> {
        match &node.kind {
            Kind::Op(op) => match *op.backward.get(slot)? {
                Gradient::None => None,
                Gradient::Pass => Some(Self::Pass),
                Gradient::Kernel { run, reads, over, .. } => Some(Self::Kernel { run, reads, over }),
            },
            #[cfg(feature = "alloc")]
            Kind::Function(..) => Some(Self::Function),
            _ => None,
        }
    }

    /// Whether it reads all of these.
    fn reads(&self, what: Reads) -> bool {
        match self {
            Self::Pass => false,
            Self::Kernel { reads, .. } => reads.has(what),
            #[cfg(feature = "alloc")]
            Self::Function => true,
        }
    }

    /// Whether it writes where the gradient goes, and cannot add to it.
    fn overwrites(&self) -> bool {
        match self {
            Self::Pass => false,
            Self::Kernel { over, .. } => !matches!(over, OverGradient::Nothing),
            #[cfg(feature = "alloc")]
            Self::Function => true,
        }
    }
}

/// The memory of a contribution: the gradient to be changed, free memory behind all that is in use, and the rest to be read.
struct Lent<'a, B: Backend> {
    nodes: &'a [Node<B>],
    params: &'a [B::Elem],
    /// The work space before and behind the gradient.
    before: &'a [B::Elem],
    behind: &'a [B::Elem],
    /// Where the latter starts.
    behind_at: usize,
    dx: &'a mut [B::Elem],
    free: &'a mut [B::Elem],
}

impl<'a, B: Backend> Lent<'a, B> {
    /// For the gradient of node `root`; `work` elements are in use.
    fn new(spaces: SpacesMut<'a, B>, root: usize, work: usize) -> Option<Self> {
        let SpacesMut { nodes, params, grads, work: space, .. } = spaces;
        let (nodes, params) = (&*nodes, &*params);
        let target = nodes.get(root)?;
        let range = target.gradient_range();
        let (used, free) = space.split_at_mut_checked(work)?;
        if target.is_parameter() {
            let dx = grads.get_mut(range)?;
            return Some(Self { nodes, params, before: used, behind: &[], behind_at: work, dx, free });
        }
        let (before, rest) = used.split_at_mut_checked(range.start)?;
        let (dx, behind) = rest.split_at_mut_checked(range.len())?;
        Some(Self { nodes, params, before, behind, behind_at: range.end, dx, free })
    }

    fn read(&self, range: Range<usize>) -> &'a [B::Elem] {
        if range.end <= self.before.len() {
            return self.before.get(range).unwrap_or_default();
        }
        let start = range.start.checked_sub(self.behind_at);
        start.and_then(|start| self.behind.get(start..start + range.len())).unwrap_or_default()
    }

    fn value(&self, i: usize) -> &'a [B::Elem] {
        let Some(root) = self.nodes.get(i).and_then(|node| self.nodes.get(node.root as usize)) else { return &[] };
        let range = root.value_range();
        if root.is_parameter() { self.params.get(range).unwrap_or_default() } else { self.read(range) }
    }

    /// The inputs of a node, those that are wanted.
    fn inputs(&self, node: &Node<B>, wanted: impl Fn(usize) -> bool) -> [&'a [B::Elem]; MAX_INPUTS] {
        let mut x = [&[][..]; MAX_INPUTS];
        for (operand, (x, input)) in x.iter_mut().zip(node.inputs()).enumerate() {
            if wanted(operand) {
                *x = self.value(input.index());
            }
        }
        x
    }

    /// Adds the contribution of node `i` for its input `slot`, or writes the first one. `side` elements are needed by the
    /// side.
    fn contribute(self, i: usize, slot: usize, rule: Rule<B>, first: bool, side: usize) {
        let Some(node) = self.nodes.get(i) else { return };
        let dy = self.read(node.gradient_range());
        let x = self.inputs(node, |operand| rule.reads(Reads::input(operand)));
        let y = if rule.reads(Reads::OUTPUT) { self.value(i) } else { &[] };
        let saved = self.read(node.saved as usize..node.saved as usize + node.spec.saved);

        let (by_side, free) = self.free.split_at_mut_checked(side).unwrap_or_default();
        let dx = if side > 0 { &mut *by_side } else { &mut *self.dx };
        match rule {
            Rule::Pass if first => copy(dx, dy),
            Rule::Pass => add(dx, dy),
            Rule::Kernel { run, over, .. } => {
                match over {
                    OverGradient::Nothing => {}
                    OverGradient::Dy => copy(dx, dy),
                    OverGradient::Saved => copy(dx, saved),
                }
                let scratch_len = node.spec.scratch_backward.get(slot).copied().unwrap_or(0);
                let scratch = free.get_mut(..scratch_len).unwrap_or_default();
                let saved = if rule.reads(Reads::SAVED) { saved } else { &[] };
                let (args, add) = (&node.spec.args, !first && side == 0);
                run(BackwardCall { args, x, y, saved, dy, dx, add, scratch, first_row: 0 });
            }
            #[cfg(feature = "alloc")]
            Rule::Function => {
                if let Kind::Function(_, backward) = &node.kind {
                    dx.fill(B::Elem::ZERO);
                    backward(Backprop { input: slot, x, y, dy, dx });
                }
            }
        }
        if side > 0 {
            add(self.dx, by_side);
        }
    }
}

fn add<E: Real>(to: &mut [E], from: &[E]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
}
