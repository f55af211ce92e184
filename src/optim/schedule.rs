//! Learning-rate schedules: values that say the rate of a step, counted from 0.
//!
//! ```
//! use slabgrad::optim::{Adam, Cosine, Schedule, Warmup};
//!
//! const SCHEDULE: Warmup<Cosine<f32>> = Warmup::new(100, Cosine::new(1e-3, 1e-5, 900));
//! let mut adam = Adam::new(0.0);
//! for step in 0..1000 {
//!     adam.set_learning_rate(SCHEDULE.lr(step));
//! }
//! ```

use crate::backend::{Real, counted};

/// A learning rate for every step.
pub trait Schedule<E: Real> {
    /// The rate of step `step`, counted from 0.
    fn lr(&self, step: usize) -> E;
}

/// `step / total` as an element, for `step` up to `total`.
fn share<E: Real>(step: usize, total: usize) -> E {
    let [step, total] = counted::<E>([step.min(total), total.max(1)]);
    step / total
}

/// `base` to a whole power, by squaring, so that it is the same everywhere.
fn power<E: Real>(base: E, mut exponent: usize) -> E {
    let (mut square, mut result) = (base, E::ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

/// From `from` to `to` along half a wave of the cosine; `share` goes from 0 to 1.
fn half_wave<E: Real>(from: E, to: E, share: E) -> E {
    let pi = E::choose(core::f32::consts::PI, core::f64::consts::PI);
    let two = E::ONE + E::ONE;
    to + (from - to) * (E::ONE + (pi * share).cos()) / two
}

/// The same rate in every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant<E = f32>(pub E);

impl<E: Real> Schedule<E> for Constant<E> {
    fn lr(&self, _: usize) -> E {
        self.0
    }
}

/// From `from` to `to` in a straight line over `steps` steps, then `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear<E = f32> {
    from: E,
    to: E,
    steps: usize,
}

impl<E: Real> Linear<E> {
    /// From `from` to `to` over `steps` steps; with none it is `to` at once.
    #[must_use]
    pub const fn new(from: E, to: E, steps: usize) -> Self {
        Self { from, to, steps }
    }
}

impl<E: Real> Schedule<E> for Linear<E> {
    fn lr(&self, step: usize) -> E {
        if step >= self.steps { self.to } else { self.from + (self.to - self.from) * share(step, self.steps) }
    }
}

/// From 0 to the first rate of `then` in a straight line over `steps` steps, then `then`, which counts from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmup<S> {
    steps: usize,
    then: S,
}

impl<S> Warmup<S> {
    /// `steps` steps, then `then`.
    #[must_use]
    pub const fn new(steps: usize, then: S) -> Self {
        Self { steps, then }
    }
}

impl<E: Real, S: Schedule<E>> Schedule<E> for Warmup<S> {
    fn lr(&self, step: usize) -> E {
        match step.checked_sub(self.steps) {
            Some(after) => self.then.lr(after),
            None => self.then.lr(0) * share(step, self.steps),
        }
    }
}

/// From `from` to `to` along half a wave of the cosine over `steps` steps, then `to` (Loshchilov and Hutter, 2017).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cosine<E = f32> {
    from: E,
    to: E,
    steps: usize,
}

impl<E: Real> Cosine<E> {
    /// From `from` to `to` over `steps` steps.
    #[must_use]
    pub const fn new(from: E, to: E, steps: usize) -> Self {
        Self { from, to, steps }
    }
}

impl<E: Real> Schedule<E> for Cosine<E> {
    fn lr(&self, step: usize) -> E {
        if step >= self.steps { self.to } else { half_wave(self.from, self.to, share(step, self.steps)) }
    }
}

/// `start` times `factor` for every `every` steps that have passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDecay<E = f32> {
    start: E,
    factor: E,
    every: usize,
}

impl<E: Real> StepDecay<E> {
    /// `start`, times `factor` after every `every` steps; with 0 never.
    #[must_use]
    pub const fn new(start: E, factor: E, every: usize) -> Self {
        Self { start, factor, every }
    }
}

impl<E: Real> Schedule<E> for StepDecay<E> {
    fn lr(&self, step: usize) -> E {
        self.start * power(self.factor, step.checked_div(self.every).unwrap_or(0))
    }
}

/// `start` times `factor` for every one of `milestones` that has been reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiStep<'a, E = f32> {
    start: E,
    factor: E,
    milestones: &'a [usize],
}

impl<'a, E: Real> MultiStep<'a, E> {
    /// `start`, times `factor` from each of these steps on.
    #[must_use]
    pub const fn new(start: E, factor: E, milestones: &'a [usize]) -> Self {
        Self { start, factor, milestones }
    }
}

impl<E: Real> Schedule<E> for MultiStep<'_, E> {
    fn lr(&self, step: usize) -> E {
        let reached = self.milestones.iter().filter(|&&milestone| milestone <= step).count();
        self.start * power(self.factor, reached)
    }
}

/// `start` times `factor` to the power of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential<E = f32> {
    start: E,
    factor: E,
}

impl<E: Real> Exponential<E> {
    /// `start`, times `factor` after every step.
    #[must_use]
    pub const fn new(start: E, factor: E) -> Self {
        Self { start, factor }
    }
}

impl<E: Real> Schedule<E> for Exponential<E> {
    fn lr(&self, step: usize) -> E {
        self.start * power(self.factor, step)
    }
}

/// From `from` to `to` over `steps` steps, as `to + (from - to) (1 - t)^exponent`, then `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polynomial<E = f32> {
    from: E,
    to: E,
    steps: usize,
    exponent: usize,
}

impl<E: Real> Polynomial<E> {
    /// From `from` to `to` over `steps` steps, with this whole exponent.
    #[must_use]
    pub const fn new(from: E, to: E, steps: usize, exponent: usize) -> Self {
        Self { from, to, steps, exponent }
    }
}

impl<E: Real> Schedule<E> for Polynomial<E> {
    fn lr(&self, step: usize) -> E {
        if step >= self.steps {
            return self.to;
        }
        let rest = E::ONE - share(step, self.steps);
        self.to + (self.from - self.to) * power(rest, self.exponent)
    }
}

/// One cycle (Smith and Topin, 2018), as PyTorch's `OneCycleLR` with its cosine: from `max / 25` up to `max` over the first
/// 30 % of `steps` steps, then down to `max / 250000`, which the last step has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneCycle<E = f32> {
    max: E,
    steps: usize,
}

impl<E: Real> OneCycle<E> {
    /// A cycle of `steps` steps up to `max`.
    #[must_use]
    pub const fn new(max: E, steps: usize) -> Self {
        Self { max, steps }
    }
}

impl<E: Real> Schedule<E> for OneCycle<E> {
    fn lr(&self, step: usize) -> E {
        let (start, end) = (self.max / E::from_usize(25), self.max / E::from_usize(250_000));
        // The peak lies at step 0.3 steps - 1, between two steps where that is no whole number.
        let [at, steps] = counted::<E>([step.min(self.steps), self.steps]);
        let (peak, last) = (E::choose(0.3, 0.3) * steps - E::ONE, steps - E::ONE);
        if at >= last {
            end
        } else if at <= peak {
            half_wave(start, self.max, at / peak)
        } else {
            half_wave(self.max, end, (at - peak) / (last - peak))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, want: f64) {
        assert!((found - want).abs() <= 1e-12 * want.abs().max(1.0), "{found}, expected {want}");
    }

    #[test]
    fn rates_of_the_reference_system() {
        let cosine = Warmup::new(500, Cosine::new(1e-3, 1e-5, 9500));
        let rates =
            [(0, 0.0), (250, 5e-4), (499, 9.98e-4), (500, 1e-3), (5250, 5.05e-4), (10_000, 1e-5), (20_000, 1e-5)];
        for (step, want) in rates {
            close(cosine.lr(step), want);
        }
        let linear = Linear::new(0.0, 0.1, 10);
        for (step, want) in [(0, 0.0), (5, 0.05), (9, 0.09), (10, 0.1), (99, 0.1)] {
            close(linear.lr(step), want);
        }
        close(Linear::new(0.0, 0.1, 0).lr(0), 0.1);
        let steps = StepDecay::new(0.1, 0.5, 30);
        for (step, want) in [(0, 0.1), (29, 0.1), (30, 0.05), (59, 0.05), (60, 0.025), (90, 0.0125)] {
            close(steps.lr(step), want);
        }
        // Step decay after a warmup counts from its end.
        close(Warmup::new(7, steps).lr(36), 0.1);
        close(Warmup::new(7, steps).lr(37), 0.05);
    }

    #[test]
    fn one_cycle_is_pytorchs() {
        // torch.optim.lr_scheduler.OneCycleLR(max_lr=0.1, total_steps=10): its first, peak and last rates.
        let cycle = OneCycle::new(0.1, 10);
        close(cycle.lr(0), 0.004);
        close(cycle.lr(2), 0.1);
        close(cycle.lr(9), 4e-7);
        close(cycle.lr(100), 4e-7);
    }

    #[test]
    fn polynomials_end_where_they_should() {
        let schedule = Polynomial::new(1.0, 0.2, 4, 2);
        for (step, want) in [(0, 1.0), (2, 0.4), (4, 0.2), (5, 0.2)] {
            close(schedule.lr(step), want);
        }
    }
}
