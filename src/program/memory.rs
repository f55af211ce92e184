//! The spaces that a program runs in.

use super::{Program, RunError};
use crate::backend::Backend;

/// A kind of memory, and what lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Space {
    /// The inputs of a run: anywhere, also flash or a DMA buffer.
    Input,
    /// Parameters that are not trained: flash will do.
    Frozen,
    /// Trained parameters, one after the other in graph order.
    Params,
    /// Running statistics and other things that a model keeps but does not train.
    State,
    /// Gradients, laid out as the parameters.
    Grads,
    /// The optimizer's state: slots that are laid out as the parameters.
    Moments,
    /// Activations, scratch and short-lived gradients, where the planner put them.
    Work,
}

impl Space {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Frozen => "frozen",
            Self::Params => "params",
            Self::State => "state",
            Self::Grads => "grads",
            Self::Moments => "moments",
            Self::Work => "work",
        }
    }
}

/// The spaces of a model, borrowed. One memory serves all programs of a network: a training program and an inference
/// program share parameters, state and work space, and the latter leaves the rest alone.
// In the order of `Space`, so that an operand's space is found by its number.
#[derive(Debug)]
#[repr(C)]
pub struct Memory<'a, E> {
    /// Frozen parameters: at least [`Program::frozen_len`].
    pub frozen: &'a [E],
    /// Trained parameters: exactly [`Program::params_len`].
    pub params: &'a mut [E],
    /// State: at least [`Program::state_len`].
    pub state: &'a mut [E],
    /// Gradients: at least [`Program::grads_len`].
    pub grads: &'a mut [E],
    /// Moments: at least [`Program::moments_len`].
    pub moments: &'a mut [E],
    /// Work: at least [`Program::work_len`].
    pub work: &'a mut [E],
}

impl<B: Backend> Program<'_, B> {
    /// Splits a slab into the spaces of this program: parameters, state and work from its start, gradients and moments at
    /// its end. What is left over belongs to the work space, so that a larger program of the same network can run in the
    /// same memory. There are no frozen parameters; see [`Program::memory_with`].
    ///
    /// A program that infers knows of no moments, and takes a training program's for its work space if it splits the same
    /// slab. Let both run in the memory that the training program makes.
    ///
    /// # Errors
    /// When the slab is shorter than [`Program::slab_len`].
    pub fn memory<'a>(&self, slab: &'a mut [B::Elem]) -> Result<Memory<'a, B::Elem>, RunError> {
        self.memory_with(slab, &[])
    }

    /// As [`Program::memory`], with frozen parameters that lie elsewhere.
    ///
    /// # Errors
    /// As [`Program::memory`], and when `frozen` is shorter than [`Program::frozen_len`].
    pub fn memory_with<'a>(
        &self,
        slab: &'a mut [B::Elem],
        frozen: &'a [B::Elem],
    ) -> Result<Memory<'a, B::Elem>, RunError> {
        let too_short = RunError::SlabLength { expected: self.slab_len(), found: slab.len() };
        at_least(Space::Frozen, self.sizes.frozen, frozen.len())?;
        let sizes = &self.sizes;
        let after_work = slab.len().checked_sub(sizes.grads + sizes.moments).ok_or(too_short)?;
        let (front, back) = slab.split_at_mut_checked(after_work).ok_or(too_short)?;
        let (params, front) = front.split_at_mut_checked(sizes.params).ok_or(too_short)?;
        let (state, work) = front.split_at_mut_checked(sizes.state).ok_or(too_short)?;
        let (grads, moments) = back.split_at_mut_checked(sizes.grads).ok_or(too_short)?;
        at_least(Space::Work, sizes.work, work.len()).map_err(|_| too_short)?;
        Ok(Memory { frozen, params, state, grads, moments, work })
    }
}

pub(crate) fn exactly(space: Space, expected: usize, found: usize) -> Result<(), RunError> {
    if found == expected { Ok(()) } else { Err(RunError::SpaceLength { space, expected, found }) }
}

pub(crate) fn at_least(space: Space, expected: usize, found: usize) -> Result<(), RunError> {
    exactly(space, expected, found.min(expected)).map_err(|_| RunError::SpaceLength { space, expected, found })
}
