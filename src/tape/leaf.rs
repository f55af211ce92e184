//! What is copied onto a tape: parameters, constants and state.

use super::node::{Kind, Node};
use super::storage::Elem;
#[cfg(feature = "alloc")]
use super::storage::MAX_PLACE;
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

    /// A leaf that is known by its shape alone, as long as nothing computes with it: then it is zeros.
    ///
    /// A fault where no tape could hold it.
    #[cfg(feature = "alloc")]
    #[track_caller]
    pub(crate) fn declare(&mut self, kind: Kind<S::Backend>, shape: Shape) -> Handle {
        if self.fault.is_some() {
            return Handle::NONE;
        }
        let mut node = Node::leaf(kind, shape);
        node.pending = true;
        let (name, needed) = (node.name(), node.len());
        let space = if node.is_parameter() { Space::Params } else { Space::Work };
        let outcome = match needed {
            0..=MAX_PLACE => self.push(node, self.work),
            _ => Err(Cause::Memory { space, needed, room: MAX_PLACE }),
        };
        match outcome {
            Ok(var) => var,
            Err(cause) => self.fail(name, &[None; MAX_INPUTS], cause),
        }
    }

    /// Asks at once for the memory of leaves that come next: elements of parameters, and of others.
    ///
    /// A fault where there is not enough.
    #[cfg(feature = "alloc")]
    #[track_caller]
    pub(crate) fn reserve_leaves(&mut self, params: usize, others: usize) {
        let ends = [
            (Space::Work, self.work, others),
            (Space::Params, self.params, params),
            (Space::Grads, self.params, params),
        ];
        for (space, start, len) in ends {
            if let Err(cause) = self.storage.reserve(space, start.saturating_add(len)) {
                self.fail("parameters and states", &[None; MAX_INPUTS], cause);
                return;
            }
        }
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
    pub(crate) fn leaf_with(&mut self, kind: Kind<S::Backend>, shape: Shape, data_len: Option<usize>) -> Handle {
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
        let (params, work) = self.make_room(&mut node)?;
        let var = self.push(node, work)?;
        self.params = params;
        Ok(var)
    }

    /// Puts a leaf behind the others, the gradient of a parameter as 0. Returns where parameters and the work space end then.
    fn make_room(&mut self, node: &mut Node<S::Backend>) -> Result<(usize, usize), Cause> {
        if !node.is_parameter() {
            let end = self.work.saturating_add(node.len());
            self.storage.reserve(Space::Work, end)?;
            node.value = self.work as u32;
            return Ok((self.params, end));
        }
        let end = self.params.saturating_add(node.len());
        self.storage.reserve(Space::Params, end)?;
        self.storage.reserve(Space::Grads, end)?;
        (node.value, node.gradient) = (self.params as u32, self.params as u32);
        self.storage.spaces_mut().grads.get_mut(self.params..end).unwrap_or_default().fill(Real::ZERO);
        Ok((end, self.work))
    }

    /// Gives a leaf that was only declared its memory. Returns where the work space ends then.
    pub(super) fn make_zeros(&mut self, node: &mut Node<S::Backend>) -> Result<usize, Cause> {
        let (params, work) = self.make_room(node)?;
        let spaces = self.storage.spaces_mut();
        let space = if node.is_parameter() { spaces.params } else { spaces.work };
        space.get_mut(node.value_range()).unwrap_or_default().fill(Real::ZERO);
        self.params = params;
        Ok(work)
    }
}
