//! What is copied onto a tape: parameters, constants and state.

use super::node::{Kind, Node};
use super::storage::Elem;
use super::{Cause, Handle, Storage, Tape};
use crate::backend::Real;
use crate::graph::Name;
use crate::init::Init;
use crate::ops::MAX_INPUTS;
use crate::optim::{Group, ParamGroup};
use crate::program::Space;
use crate::shape::Shape;

impl<S: Storage> Tape<S> {
    /// Registers a parameter: `data` is copied in, and its gradient starts at 0.
    ///
    /// A fault where `data` has another length than the shape, or there is no room.
    #[track_caller]
    pub fn parameter(&mut self, shape: impl Into<Shape>, data: &[Elem<S>]) -> Handle {
        self.leaf(Kind::Parameter(Group::default()), shape.into(), data)
    }

    /// Registers a parameter that starts as `init` draws it from the seed and the name: the numbers that
    /// [`Program::init`](crate::program::Program::init) gives a parameter of this name.
    ///
    /// A fault where there is no room.
    #[track_caller]
    pub fn init_parameter(&mut self, name: Name<'_>, shape: impl Into<Shape>, init: Init, seed: u64) -> Handle {
        let shape = shape.into();
        let var = self.leaf_with(Kind::Parameter(Group::default()), shape, None);
        init.fill(self.value_mut(var), shape, name, seed);
        var
    }

    /// Copies a constant in: an input, class indices, a mask. No gradient flows into it.
    ///
    /// A fault where `data` has another length than the shape, or there is no room.
    #[track_caller]
    pub fn constant(&mut self, shape: impl Into<Shape>, data: &[Elem<S>]) -> Handle {
        self.leaf(Kind::Constant, shape.into(), data)
    }

    /// Copies state in, such as running statistics: what operations read, and backward changes.
    ///
    /// A fault where `data` has another length than the shape, or there is no room.
    #[track_caller]
    pub fn state(&mut self, shape: impl Into<Shape>, data: &[Elem<S>]) -> Handle {
        self.leaf(Kind::State, shape.into(), data)
    }

    /// State that starts at 0.
    #[track_caller]
    pub(crate) fn zero_state(&mut self, shape: Shape) -> Handle {
        let var = self.leaf_with(Kind::State, shape, None);
        self.value_mut(var).fill(Real::ZERO);
        var
    }

    /// Sets weight decay and learning-rate factor of a parameter; what the group leaves open stays.
    ///
    /// A fault where `x` is no parameter.
    #[track_caller]
    pub fn set_group(&mut self, x: Handle, group: ParamGroup) {
        let number = |number: f64| Elem::<S>::choose(number as f32, number);
        let cause = match self.node_mut(x) {
            None => Cause::Handle { operand: 0 },
            Some(node) => match &mut node.kind {
                Kind::Parameter(settings) => {
                    if let Some(factor) = group.learning_rate_factor {
                        settings.learning_rate_factor = number(factor);
                    }
                    if let Some(decay) = group.weight_decay {
                        settings.weight_decay = number(decay);
                    }
                    return;
                }
                _ => Cause::Kind { expected: "parameter", found: node.name() },
            },
        };
        self.fail("set_group", &[Some(x), None, None], cause);
    }

    #[track_caller]
    fn leaf(&mut self, kind: Kind<S::Backend>, shape: Shape, data: &[Elem<S>]) -> Handle {
        let var = self.leaf_with(kind, shape, Some(data.len()));
        let value = self.value_mut(var);
        if value.len() == data.len() {
            value.copy_from_slice(data);
        }
        var
    }

    /// A leaf whose value is still to be written.
    #[track_caller]
    fn leaf_with(&mut self, kind: Kind<S::Backend>, shape: Shape, data_len: Option<usize>) -> Handle {
        if self.fault.is_some() {
            return Handle::NONE;
        }
        let node = Node::leaf(kind, shape);
        let (name, len) = (node.name(), shape.len());
        match self.try_leaf(node, data_len.unwrap_or(len)) {
            Ok(var) => var,
            Err(cause) => self.fail(name, &[None; MAX_INPUTS], cause),
        }
    }

    fn try_leaf(&mut self, mut node: Node<S::Backend>, data_len: usize) -> Result<Handle, Cause> {
        let len = node.len();
        if data_len != len {
            return Err(Cause::Length { expected: len, found: data_len });
        }
        if node.is_parameter() {
            let end = self.params.saturating_add(len);
            self.storage.reserve(Space::Params, end)?;
            self.storage.reserve(Space::Grads, end)?;
            (node.value, node.gradient) = (self.params as u32, self.params as u32);
            node.needs_gradient = true;
            let var = self.push(node, self.work)?;
            self.grads_from(self.params, end).fill(Real::ZERO);
            self.params = end;
            return Ok(var);
        }
        let end = self.work.saturating_add(len);
        self.storage.reserve(Space::Work, end)?;
        node.value = self.work as u32;
        self.push(node, end)
    }

    fn grads_from(&mut self, start: usize, end: usize) -> &mut [Elem<S>] {
        self.storage.spaces_mut().grads.get_mut(start..end).unwrap_or_default()
    }
}
