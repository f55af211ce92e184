//! Optimizers: one pass over flat slices, in place.

mod adam;
mod sgd;

pub use adam::{Adam, AdamForm, AdamRates};
pub use sgd::{Momentum, MomentumRates, Sgd};

use crate::backend::{Backend, Real};

/// An update rule.
///
/// A rule is a value with its settings and its step count; what it knows of each parameter, the moments, lies in a slab
/// that the caller hands over, in up to three slots that are laid out as the parameters.
pub trait Optimizer<B: Backend> {
    /// How many slots of moments it keeps.
    const SLOTS: usize;
    /// The coefficients of one step.
    type Rates;

    /// Starts a step: counts it and computes its coefficients.
    fn begin(&mut self) -> Self::Rates;

    /// Updates a run of parameters with their gradients. The moments are runs of the same parameters; unused ones are
    /// empty.
    fn update(rates: &Self::Rates, params: &mut [B::Elem], grads: &[B::Elem], moments: [&mut [B::Elem]; 3]);
}

/// Updates nothing: backward alone.
pub(crate) struct NoUpdate;

impl<B: Backend> Optimizer<B> for NoUpdate {
    const SLOTS: usize = 0;
    type Rates = ();

    fn begin(&mut self) {}
    fn update((): &(), _: &mut [B::Elem], _: &[B::Elem], _: [&mut [B::Elem]; 3]) {}
}

/// The L2 norm, from sums of squares in the order of [`Backend::sum_pairs`].
#[must_use]
pub fn norm<B: Backend>(grads: &[B::Elem]) -> B::Elem {
    B::dot(grads, grads).sqrt()
}

/// Scales `grads` by `max` / norm where their L2 norm is above `max`, and returns the norm before that.
///
/// ```
/// use slabgrad::backend::Strict;
/// use slabgrad::optim::clip_by_norm;
///
/// let mut grads = [3.0_f32, 4.0];
/// assert_eq!(clip_by_norm::<Strict<f32>>(&mut grads, 1.0), 5.0);
/// assert_eq!(grads, [0.6, 0.8]);
/// ```
pub fn clip_by_norm<B: Backend>(grads: &mut [B::Elem], max: B::Elem) -> B::Elem {
    let norm = norm::<B>(grads);
    if norm > max {
        let scale = max / norm;
        grads.iter_mut().for_each(|g| *g *= scale);
    }
    norm
}
