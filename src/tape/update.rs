//! Updating a tape's parameters.

use super::node::Kind;
use super::storage::{Elem, SpacesMut};
use super::{Cause, Storage, Tape, TapeError};
use crate::backend::Real;
use crate::backend::dispatch::first_not_finite;
use crate::optim::{self, HEADER_LEN, Norm, Optimizer};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

impl<S: Storage> Tape<S> {
    /// Elements of the moments that an optimizer keeps for the parameters that are registered so far: a header, and its
    /// slots laid out as the parameters, as in a [`Memory`](crate::program::Memory).
    #[must_use]
    pub const fn moments_len<O: Optimizer<S::Backend>>(&self) -> usize {
        HEADER_LEN + O::SLOTS * self.params
    }

    /// Moments for an optimizer, all 0: the start.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn moments<O: Optimizer<S::Backend>>(&self) -> Vec<Elem<S>> {
        alloc::vec![Elem::<S>::ZERO; self.moments_len::<O>()]
    }

    /// Scales the gradients of all parameters together so that their L2 norm is at most `max`, and returns the norm before
    /// that.
    pub fn clip_norm(&mut self, max: Elem<S>) -> Elem<S> {
        optim::clip_by_norm::<S::Backend>(self.grads_mut(), max, Norm::L2)
    }

    /// Updates every parameter that a backward has reached since the last reset. The others are left alone: they neither
    /// move nor decay.
    ///
    /// # Errors
    /// The tape's fault; when the moments are too short, the optimizer has an impossible setting, or a gradient is not finite.
    /// Nothing is changed then.
    #[track_caller]
    pub fn update<O: Optimizer<S::Backend>>(
        &mut self,
        optimizer: &O,
        moments: &mut [Elem<S>],
    ) -> Result<(), TapeError> {
        self.check()?;
        let (expected, found) = (self.moments_len::<O>(), moments.len());
        let not_finite = first_not_finite(self.grads()).and_then(|i| self.grads().get(i));
        let cause = if found < expected {
            Cause::Moments { expected, found }
        } else if let Err(error) = optimizer.check() {
            Cause::Setting(error)
        } else if let Some(found) = not_finite {
            Cause::GradientNotFinite { found: found.to_f32() }
        } else {
            self.apply_update(optimizer, moments);
            return Ok(());
        };
        Err(self.error("update", &[], cause))
    }

    fn apply_update<O: Optimizer<S::Backend>>(&mut self, optimizer: &O, moments: &mut [Elem<S>]) {
        let coefficients = optim::begin::<S::Backend, O>(moments, optimizer);
        let params_len = self.params;
        let SpacesMut { nodes, params, grads, .. } = self.storage.spaces_mut();
        for node in nodes {
            if let Kind::Parameter(group) = &node.kind
                && node.has_gradient
            {
                let range = node.value_range();
                let grads = grads.get(range.clone()).unwrap_or_default();
                optim::update::<S::Backend, O>(&coefficients, group, params, grads, moments, params_len, range.start);
            }
        }
    }
}
