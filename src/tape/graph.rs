//! What is recorded on a tape as a graph for the planner, and its memory as a program's.

use alloc::vec::Vec;

use super::node::{Kind, NOWHERE};
use super::storage::SpacesMut;
use super::{Cause, GrowingTape, Handle, Mark, Storage, TapeError};
use crate::backend::Backend;
use crate::graph::{self, Id, Name};
use crate::init::Init;
use crate::ops::MAX_INPUTS;
use crate::program::Memory;

impl<B: Backend> GrowingTape<B> {
    /// Whether values are computed when they are needed; returns what it was.
    pub(crate) const fn set_lazy(&mut self, lazy: bool) -> bool {
        core::mem::replace(&mut self.lazy, lazy)
    }

    /// Whether values are computed when they are needed.
    pub(crate) const fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// The length so far, and that of the work space, which may hold gradients behind the last node's value.
    pub(crate) fn lengths(&self) -> (Mark, usize) {
        (self.mark(), self.work)
    }

    /// Drops what was recorded since then, and a fault, and leaves values and gradients from before as they are.
    pub(crate) fn forget_since(&mut self, (mark, work): (Mark, usize)) {
        self.storage.truncate(mark.0);
        self.fault = None;
        self.epoch = self.epoch.wrapping_add(1);
        self.forget_values_behind(work);
        self.work = work;
    }

    /// All nodes, under the same numbers. Constants before `mark` are frozen parameters, the others inputs. `name` says what a
    /// leaf is called.
    ///
    /// # Errors
    /// For a function of the user's own, which has no table.
    #[track_caller]
    pub(crate) fn graph<'n>(
        &self,
        mark: Mark,
        outputs: [Option<Handle>; 2],
        name: impl Fn(usize) -> &'n str,
    ) -> Result<Vec<graph::Node<'n, B>>, TapeError> {
        let node = |(i, node): (usize, &super::Node<B>)| {
            let mut graph_node = graph::Node::of(node.spec.shape);
            graph_node.spec = node.spec;
            graph_node.input_count = node.input_count;
            for (to, from) in graph_node.inputs.iter_mut().zip(node.inputs()) {
                *to = Id::new(from.index());
            }
            graph_node.state = (node.state != NOWHERE).then(|| Id::new(node.state as usize));
            graph_node.name = Name::new("", name(i));
            let is_output = outputs.iter().flatten().any(|output| i == output.index());
            graph_node.output = is_output.then_some("output");
            graph_node.kind = match &node.kind {
                Kind::Parameter(_) => graph::Kind::Parameter { init: Init::Zeros, frozen: false },
                Kind::Constant if i < mark.0 => graph::Kind::Parameter { init: Init::Zeros, frozen: true },
                Kind::Constant => graph::Kind::Input { classes: node.classes },
                Kind::State => graph::Kind::State { init: Init::Zeros },
                Kind::Op(op) => graph::Kind::Op(op),
                Kind::Function(name, _) => {
                    let cause = Cause::Kind { expected: "operation with a table", found: "closure" };
                    return Err(self.error(name, &[None; MAX_INPUTS], cause));
                }
            };
            Ok(graph_node)
        };
        self.nodes().iter().enumerate().map(node).collect()
    }

    /// The elements of the constant that is node `i`.
    pub(crate) fn constant_at(&self, i: usize) -> &[B::Elem] {
        let range = self.nodes().get(i).map_or(0..0, super::Node::value_range);
        self.storage.spaces().work.get(range).unwrap_or_default()
    }

    /// The memory of a program whose frozen parameters and state lie at the start of the work space, in this order.
    pub(crate) fn memory<'a>(
        &'a mut self,
        frozen: usize,
        state: usize,
        moments: &'a mut [B::Elem],
        work: &'a mut [B::Elem],
    ) -> Memory<'a, B::Elem> {
        let params_len = self.params;
        let SpacesMut { params, grads, work: values, .. } = self.storage.spaces_mut();
        let (frozen, rest) = values.split_at_mut_checked(frozen).unwrap_or_default();
        let state = rest.get_mut(..state).unwrap_or_default();
        let params = params.get_mut(..params_len).unwrap_or_default();
        Memory { frozen, params, state, grads, moments, work }
    }
}
