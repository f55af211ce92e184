//! The moments' space: a header with the counts, then the optimizer's slots, laid out as the parameters.

use super::{Group, Optimizer};
use crate::backend::dispatch::{Kernel, dispatch};
use crate::backend::threads::{ELEMENTS_OF_A_PART, Each, UPDATE, parts, share};
use crate::backend::{Backend, Real};

/// Elements at the start of the moments' space: the count of steps in two of them (so that `f32` counts beyond 2^24), the
/// count of skipped steps, the count of micro-batches gathered since the last update, and four for the optimizer.
pub const HEADER_LEN: usize = 8;

const STEPS_LOW: usize = 0;
const STEPS_HIGH: usize = 1;
pub(crate) const SKIPPED: usize = 2;
pub(crate) const GATHERED: usize = 3;
/// The low part of the step count stays below this.
const CARRY: usize = 1 << 20;

/// A count in the header.
pub(crate) fn count_of<E: Real>(moments: &[E], at: usize) -> usize {
    moments.get(at).copied().and_then(Real::to_index).unwrap_or(0)
}

pub(crate) fn set_count<E: Real>(moments: &mut [E], at: usize, value: E) {
    if let Some(count) = moments.get_mut(at) {
        *count = value;
    }
}

/// Adds one to a count in the header.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn count<E: Real>(moments: &mut [E], at: usize) {
    let count = moments.get(at).copied().unwrap_or_default();
    set_count(moments, at, count + E::ONE);
}

/// How many updates there have been.
///
/// ```
/// use slabgrad::optim::{HEADER_LEN, steps_done};
///
/// assert_eq!(steps_done(&[0.0_f32; HEADER_LEN]), 0);
/// ```
#[must_use]
pub fn steps_done<E: Real>(moments: &[E]) -> usize {
    count_of(moments, STEPS_HIGH) * CARRY + count_of(moments, STEPS_LOW)
}

/// Counts a step and takes the optimizer's coefficients for it.
pub(crate) fn begin<B: Backend, O: Optimizer<B>>(moments: &mut [B::Elem], optimizer: &O) -> O::Coefficients {
    let mut nothing = [B::Elem::ZERO; HEADER_LEN];
    let [low, high, _skipped, _gathered, own @ ..] = moments.first_chunk_mut().unwrap_or(&mut nothing);
    *low += B::Elem::ONE;
    if *low == B::Elem::from_usize(CARRY) {
        *low = B::Elem::ZERO;
        *high += B::Elem::ONE;
    }
    optimizer.begin(own)
}

/// Updates the parameters of a group from `first` on, as many as there are `grads`; `params_len` is the length of one slot of
/// moments.
pub(crate) fn update<B: Backend, O: Optimizer<B>>(
    coefficients: &O::Coefficients,
    group: &Group<B::Elem>,
    params: &mut [B::Elem],
    grads: &[B::Elem],
    moments: &mut [B::Elem],
    params_len: usize,
    first: usize,
) {
    let range = first..first + grads.len();
    let mut slots = moments.get_mut(HEADER_LEN..).unwrap_or_default();
    let mut slot = |used: bool| match core::mem::take(&mut slots).split_at_mut_checked(params_len) {
        Some((slot, others)) if used => {
            slots = others;
            slot.get_mut(range.clone()).unwrap_or_default()
        }
        _ => Default::default(),
    };
    let [a, b, c] = [slot(O::SLOTS > 0), slot(O::SLOTS > 1), slot(O::SLOTS > 2)];
    let params = params.get_mut(range.clone()).unwrap_or_default();
    #[cfg(feature = "std")]
    if let Some(kernel) = crate::backend::registry::update_kernel::<B, O>() {
        return kernel(coefficients, group, params, grads, [a, b, c]);
    }
    let data = ((Each(params, 1), Each(grads, 1)), (Each(a, 1), Each(b, 1), Each(c, 1)));
    share(parts(UPDATE * grads.len()), ELEMENTS_OF_A_PART, 0..grads.len(), data, &|_, ((params, grads), (a, b, c))| {
        let (params, grads, moments) = (params.0, grads.0, [a.0, b.0, c.0]);
        dispatch::<B, _>(Update::<B, O> { coefficients, group, params, grads, moments });
    });
}

/// The operands of [`Optimizer::update`].
struct Update<'a, B: Backend, O: Optimizer<B>> {
    coefficients: &'a O::Coefficients,
    group: &'a Group<B::Elem>,
    params: &'a mut [B::Elem],
    grads: &'a [B::Elem],
    moments: [&'a mut [B::Elem]; 3],
}

impl<B: Backend, O: Optimizer<B>> Kernel<B::Elem> for Update<'_, B, O> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = B::Elem>, const VECTOR: usize>(self) {
        O::update(self.coefficients, self.group, self.params, self.grads, self.moments);
    }
}
