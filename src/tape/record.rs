//! Recording an operation: its value is computed at once.

use super::node::{Kind, Node};
use super::storage::{Elem, SpacesMut};
use super::{Call, Cause, Handle, Storage, Tape};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::ops::{ForwardCall, Gradient, MAX_INPUTS, Op, Over, Spec};
use crate::program::Space;
use crate::shape::Shape;

impl<S: Storage> Tape<S> {
    /// Records an operation by its table: what the methods named after operations do, and how an operation from another crate
    /// gets onto a tape. See [`Graph::apply`](crate::graph::Graph::apply) for how to write one.
    ///
    /// A fault where the spec is an error, there are more than three inputs, or there is no room.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use slabgrad::ops::relu;
    /// use slabgrad::tape::Tape;
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.parameter([2], &[-1.0, 2.0]);
    /// let y = tape.apply(relu::op(), &[x], Ok(relu::spec(tape.shape(x))));
    /// assert_eq!(tape.value(y), [0.0, 2.0]);
    /// # }
    /// ```
    #[track_caller]
    pub fn apply(&mut self, op: &'static Op<S::Backend>, inputs: &[Handle], spec: Result<Spec, ShapeError>) -> Handle {
        let mut operands = [None; MAX_INPUTS];
        operands.iter_mut().zip(inputs).for_each(|(operand, &input)| *operand = Some(input));
        if inputs.len() > MAX_INPUTS && self.fault.is_none() {
            return self.fail(op.name, &operands, Cause::Operands { found: inputs.len() });
        }
        self.record(Call::from((op, spec)), operands)
    }

    /// Records a call. Inputs that are absent come last.
    #[track_caller]
    pub(crate) fn record(&mut self, call: Call<S::Backend>, inputs: [Option<Handle>; MAX_INPUTS]) -> Handle {
        if self.fault.is_some() {
            return Handle::NONE;
        }
        match self.try_record(&call, inputs) {
            Ok(var) => var,
            Err(cause) => self.fail(call.op.name, &inputs, cause),
        }
    }

    fn try_record(&mut self, call: &Call<S::Backend>, inputs: [Option<Handle>; MAX_INPUTS]) -> Result<Handle, Cause> {
        let op = call.op;
        let mut node = Node::leaf(Kind::Op(op), Shape::SCALAR);
        self.set_inputs(&mut node, inputs.into_iter().flatten())?;
        node.set_spec(call.spec?);
        let inputs = node.inputs;
        if let Some((operand, below)) = call.indices {
            self.check_indices(inputs.get(operand).copied().unwrap_or(Handle::NONE), below)?;
        }
        if op.view {
            let [x, ..] = inputs;
            node.root = self.node(x).map_or(0, |x| x.root);
            return self.push(node, self.work);
        }
        if node.spec.state > 0 {
            node.state = self.find_state(call.state, node.spec.state)?;
        }
        if self.lazy {
            node.pending = true;
            return self.push(node, self.work);
        }
        let top = self.compute(op, &mut node)?;
        self.push(node, top)
    }

    /// Computes node `i` and all that it depends on, where that has not been done.
    pub(super) fn evaluate(&mut self, i: usize) -> Result<(), Cause> {
        let nodes = self.storage.spaces_mut().nodes;
        let Some(root) = nodes.get(i).map(|node| node.root as usize) else { return Ok(()) };
        // How many nodes below `first` are wanted.
        let (mut first, mut waiting) = (root + 1, want(nodes, root));
        while waiting > 0 && first > 0 {
            first -= 1;
            if let Some(node) = nodes.get(first).filter(|node| node.wanted) {
                waiting -= 1;
                let (inputs, state) = (node.inputs, node.state);
                for input in inputs {
                    let root = nodes.get(input.index()).map(|input| input.root as usize);
                    waiting += root.map_or(0, |root| want(nodes, root));
                }
                waiting += want(nodes, state as usize);
            }
        }
        for i in first..=root {
            self.compute_wanted(i)?;
        }
        Ok(())
    }

    fn compute_wanted(&mut self, i: usize) -> Result<(), Cause> {
        let Some(node) = self.storage.spaces_mut().nodes.get_mut(i) else { return Ok(()) };
        if !core::mem::take(&mut node.wanted) {
            return Ok(());
        }
        // Taken out, so that the other nodes can be read while it is computed.
        let mut node = core::mem::replace(node, Node::leaf(Kind::Constant, Shape::SCALAR));
        let outcome = match node.kind {
            Kind::Op(op) => self.compute(op, &mut node),
            _ => self.make_zeros(&mut node),
        };
        if let Ok(top) = outcome {
            (node.pending, self.work) = (false, top);
        }
        if let Some(slot) = self.storage.spaces_mut().nodes.get_mut(i) {
            *slot = node;
        }
        outcome.map(|_| ())
    }

    /// Sets the inputs of a node, and whether its gradient is needed.
    #[inline]
    pub(super) fn set_inputs(
        &self,
        node: &mut Node<S::Backend>,
        inputs: impl Iterator<Item = Handle>,
    ) -> Result<(), Cause> {
        for (operand, input) in inputs.enumerate() {
            let found = self.node(input).ok_or(Cause::Handle { operand })?;
            let differentiable = match node.kind {
                Kind::Op(op) => !matches!(op.backward.get(operand), Some(Gradient::None)),
                _ => true,
            };
            node.needs_gradient |= found.needs_gradient && differentiable;
            node.input_count += 1;
            *node.inputs.get_mut(operand).ok_or(Cause::Operands { found: operand + 1 })? = input;
        }
        Ok(())
    }

    /// Runs the forward kernel into fresh memory at the end of the work space, and returns where that ends then.
    #[inline]
    fn compute(&mut self, op: &'static Op<S::Backend>, node: &mut Node<S::Backend>) -> Result<usize, Cause> {
        let (start, len, Spec { saved, scratch, .. }) = (self.work, node.len(), node.spec);
        let saved_at = start.saturating_add(len);
        let top = saved_at.saturating_add(saved);
        self.storage.reserve(Space::Work, top.saturating_add(scratch))?;
        (node.value, node.saved) = (start as u32, saved_at as u32);

        let (x, fresh, state) = operands(self.storage.spaces_mut(), node, start);
        let (y, fresh) = fresh.split_at_mut_checked(len).unwrap_or_default();
        let (saved, fresh) = fresh.split_at_mut_checked(saved).unwrap_or_default();
        let scratch = fresh.get_mut(..scratch).unwrap_or_default();
        match op.over {
            Over::Nothing => {}
            Over::Output => copy(y, x[0]),
            Over::Saved => copy(saved, x[0]),
        }
        (op.forward)(ForwardCall { args: &node.spec.args, x, y, saved, scratch, state });
        Ok(top)
    }

    fn check_indices(&mut self, indices: Handle, below: usize) -> Result<(), Cause> {
        let fault = |&(_, value): &(usize, &Elem<S>)| value.to_index().is_none_or(|index| index >= below);
        if let Some((element, value)) = self.value(indices).iter().enumerate().find(fault) {
            return Err(Cause::Index { element, value: value.to_f32(), below });
        }
        let root = self.node(indices).map_or(0, |node| node.root as usize);
        if let Some(node) = self.storage.spaces_mut().nodes.get_mut(root)
            && (node.classes == 0 || below < node.classes as usize)
        {
            node.classes = below as u32;
        }
        Ok(())
    }

    fn find_state(&self, state: Option<Handle>, len: usize) -> Result<u32, Cause> {
        let state = state.ok_or(Cause::Kind { expected: "state", found: "nothing" })?;
        match self.node(state) {
            None => Err(Cause::Handle { operand: MAX_INPUTS }),
            Some(node) if !matches!(node.kind, Kind::State) => {
                Err(Cause::Kind { expected: "state", found: node.name() })
            }
            Some(node) if node.len() != len => Err(Cause::Length { expected: len, found: node.len() }),
            Some(_) => Ok(state.index() as u32),
        }
    }
}

/// Marks a node that is still to be computed as wanted. Returns how many there are more, 0 or 1.
fn want<B: Backend>(nodes: &mut [Node<B>], i: usize) -> usize {
    match nodes.get_mut(i) {
        Some(node) if node.pending && !node.wanted => {
            node.wanted = true;
            1
        }
        _ => 0,
    }
}

/// The inputs of a node, the memory behind the first `used` elements of the work space, and the node's state.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
pub(super) fn operands<'a, B: Backend>(
    spaces: SpacesMut<'a, B>,
    node: &Node<B>,
    used: usize,
) -> ([&'a [B::Elem]; MAX_INPUTS], &'a mut [B::Elem], &'a [B::Elem]) {
    let SpacesMut { nodes, params, work, .. } = spaces;
    let (nodes, params) = (&*nodes, &*params);
    let (used, fresh) = work.split_at_mut_checked(used).unwrap_or_default();
    let used = &*used;
    let value = |index: usize| {
        let Some(root) = nodes.get(index).and_then(|node| nodes.get(node.root as usize)) else { return &[][..] };
        (if root.is_parameter() { params } else { used }).get(root.value_range()).unwrap_or_default()
    };
    let mut x = [&[][..]; MAX_INPUTS];
    x.iter_mut().zip(node.inputs()).for_each(|(x, input)| *x = value(input.index()));
    (x, fresh, value(node.state as usize))
}

pub(super) fn copy<E: Real>(to: &mut [E], from: &[E]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
}
