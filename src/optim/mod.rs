//! Optimizers: one pass over flat slices, in place.
//!
//! An optimizer is a value with its settings, which are its public fields, and nothing else. What it remembers lies in the
//! moments' space of a program or beside a tape: a header of [`HEADER_LEN`] elements with the step count, and up to three
//! slots laid out as the parameters. So a slab holds all that training needs to go on, and a slab of zeros is the start.

mod adagrad;
mod adam;
mod clip;
mod group;
mod moments;
mod rmsprop;
mod schedule;
mod sgd;

pub use adagrad::{Adagrad, AdagradCoefficients};
pub use adam::{Adam, AdamCoefficients, AdamForm, AmsGrad};
pub use clip::{Norm, clip_by_norm, clip_by_value, norm};
pub use group::{Group, ParamGroup};
pub(crate) use group::{Rule, Rules, Scope};
pub(crate) use moments::{GATHERED, SKIPPED, begin, count, count_of, set_count, update};
pub use moments::{HEADER_LEN, steps_done};
pub use rmsprop::{RmsProp, RmsPropCoefficients};
pub use schedule::{
    Constant, Cosine, Exponential, Linear, MultiStep, OneCycle, Polynomial, Schedule, StepDecay, Warmup,
};
pub use sgd::{Momentum, Sgd, SgdCoefficients};

use crate::backend::{Backend, Real};
use crate::error::Decimal;

/// The most slots that an optimizer keeps.
#[cfg_attr(not(feature = "alloc"), allow(dead_code))]
pub(crate) const MAX_SLOTS: usize = 3;

/// An update rule.
pub trait Optimizer<B: Backend>: 'static {
    /// How many slots of moments it keeps: three at the most.
    const SLOTS: usize;
    /// The coefficients of one step.
    type Coefficients: Sync + 'static;

    /// Looks for a setting that it cannot have.
    ///
    /// # Errors
    /// Which one, with its value.
    fn check(&self) -> Result<(), SettingError>;

    /// The learning rate.
    fn learning_rate(&self) -> B::Elem;

    /// Sets the learning rate of the next steps.
    fn set_learning_rate(&mut self, learning_rate: B::Elem);

    /// The coefficients of the next step. `own` is kept from step to step; before the first it is 0.
    fn begin(&self, own: &mut [B::Elem; 4]) -> Self::Coefficients;

    /// Updates a run of parameters of one group with their gradients. The moments are runs of the same parameters; unused
    /// ones are empty. With `inline(always)` it is compiled for each kind of vectors that the machine may have.
    fn update(
        coefficients: &Self::Coefficients,
        group: &Group<B::Elem>,
        params: &mut [B::Elem],
        grads: &[B::Elem],
        moments: [&mut [B::Elem]; 3],
    );
}

/// A setting of an optimizer that it cannot have.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SettingError {
    /// The setting, and what it must be.
    pub rule: &'static str,
    /// The value that it has.
    pub found: f32,
}

impl SettingError {
    /// Learning rates and epsilons.
    pub(crate) fn unless_not_negative<E: Real>(rule: &'static str, value: E) -> Result<(), Self> {
        Self::of(rule, unless_below(E::INFINITY, value))
    }

    /// Decay rates.
    pub(crate) fn unless_below_one<E: Real>(rule: &'static str, value: E) -> Result<(), Self> {
        Self::of(rule, unless_below(E::ONE, value))
    }

    fn of<E: Real>(rule: &'static str, found: Option<E>) -> Result<(), Self> {
        found.map_or(Ok(()), |found| Err(Self { rule, found: found.to_f32() }))
    }
}

/// The number, unless it is from 0 and below `end`. A function of its own on a microcontroller: where the compiler sees infinity, it
/// makes twenty instructions of two comparisons.
#[cfg_attr(target_os = "none", inline(never))]
fn unless_below<E: Real>(end: E, number: E) -> Option<E> {
    if number >= E::ZERO && number < end { None } else { Some(number) }
}

impl core::fmt::Display for SettingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, found {}", self.rule, Decimal(self.found.into()))
    }
}

impl core::error::Error for SettingError {}

pub(crate) const LEARNING_RATE: &str = "the learning rate is a finite number from 0";

/// The decays and the gradient of one parameter: `g + λ p`, without touching `g` where there is no decay.
#[inline(always)]
pub(crate) fn decayed<B: Backend>(decay: B::Elem, p: B::Elem, g: B::Elem) -> B::Elem {
    if decay == B::Elem::ZERO { g } else { B::mul_add(decay, p, g) }
}
