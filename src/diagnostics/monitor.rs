//! The last steps' gradients, and what they say about training.

use super::{Health, Issues};
use crate::backend::Real;

/// One step, as a monitor keeps it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Record<E> {
    /// The step, as the caller counts.
    pub step: usize,
    /// The L2 norm of all gradients.
    pub l2: E,
    /// The largest absolute value.
    pub inf: E,
    /// What was wrong.
    pub issues: Issues,
}

/// The last `N` steps.
#[derive(Clone, Copy, Debug)]
pub struct Monitor<E, const N: usize = 100> {
    records: [Record<E>; N],
    recorded: usize,
}

/// Steps that a diagnosis looks at.
const LAST: usize = 10;

impl<E: Real, const N: usize> Default for Monitor<E, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Real, const N: usize> Monitor<E, N> {
    /// Without records.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N > 0, "a monitor keeps at least one step") };
        let issues = Issues { exploding: false, vanishing: false, not_finite: false, imbalance: false };
        Self { records: [Record { step: 0, l2: E::ZERO, inf: E::ZERO, issues }; N], recorded: 0 }
    }

    /// Records what a check found at step `step`; of more than `N` steps the oldest is forgotten.
    pub fn record(&mut self, step: usize, health: &Health<E>) {
        if let Some(record) = self.records.get_mut(self.recorded % N) {
            *record = Record { step, l2: health.global.l2, inf: health.global.inf, issues: health.issues };
            // Stays in step with the ring when it wraps.
            self.recorded = if self.recorded == 2 * N - 1 { N } else { self.recorded + 1 };
        }
    }

    /// How many steps are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recorded.min(N)
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recorded == 0
    }

    /// The steps that are kept, oldest first.
    pub fn history(&self) -> impl Iterator<Item = &Record<E>> {
        let first = self.recorded - self.len();
        (first..self.recorded).filter_map(|i| self.records.get(i % N))
    }

    /// What the last ten steps say.
    #[must_use]
    pub fn diagnose(&self) -> Diagnosis<E> {
        let steps = self.len().min(LAST);
        let mut d = Diagnosis {
            steps,
            mean: E::ZERO,
            max: E::ZERO,
            min: if steps == 0 { E::ZERO } else { E::INFINITY },
            unhealthy: 0,
            issues: Issues::default(),
        };
        for record in self.history().skip(self.len() - steps) {
            d.mean += record.l2;
            d.max = d.max.maximum(record.l2);
            d.min = if record.l2 < d.min { record.l2 } else { d.min };
            d.unhealthy += usize::from(!record.issues.is_healthy());
            d.issues.exploding |= record.issues.exploding;
            d.issues.vanishing |= record.issues.vanishing;
            d.issues.not_finite |= record.issues.not_finite;
            d.issues.imbalance |= record.issues.imbalance;
        }
        d.mean = d.mean / E::from_usize(steps.max(1));
        d
    }
}

/// What a monitor's last steps say.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Diagnosis<E> {
    /// Steps that it is about: ten, or as many as there were.
    pub steps: usize,
    /// The mean of the gradients' L2 norms.
    pub mean: E,
    /// The largest.
    pub max: E,
    /// The smallest.
    pub min: E,
    /// Steps with an issue.
    pub unhealthy: usize,
    /// Every issue that occurred.
    pub issues: Issues,
}

impl<E: Real> Diagnosis<E> {
    /// The smallest norm divided by the largest: near 1 where training is steady. 1 where all are 0.
    #[must_use]
    pub fn stability(&self) -> E {
        if self.max > E::ZERO { self.min / self.max } else { E::ONE }
    }

    /// What to try, the most urgent first.
    pub fn recommendations(&self) -> impl Iterator<Item = &'static str> {
        let unstable = self.stability() < E::choose(0.1, 0.1);
        let often = self.unhealthy > 5;
        let healthy = !(self.issues.exploding || self.issues.vanishing || unstable || often);
        let cases: [(bool, &[&str]); 5] = [
            (
                self.issues.exploding,
                &["gradients explode: lower the learning rate", "clip the gradients by their norm, for instance at 1"],
            ),
            (
                self.issues.vanishing,
                &[
                    "gradients vanish: raise the learning rate",
                    "use relu or gelu in place of sigmoid or tanh",
                    "normalise between layers",
                    "add residual connections",
                    "check how the parameters are initialised",
                ],
            ),
            (
                unstable,
                &[
                    "gradient norms jump from step to step: use a larger batch, or gather micro-batches",
                    "lower the learning rate, or warm it up",
                    "clip the gradients by their norm",
                ],
            ),
            (often, &["most of the last steps were unhealthy: check the data for outliers and wrong labels"]),
            (healthy, &["gradients are healthy"]),
        ];
        cases.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, texts)| texts.iter().copied())
    }
}

impl<E: Real> core::fmt::Display for Diagnosis<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { steps, mean, max, min, unhealthy, .. } = self;
        write!(f, "last {steps} steps: gradient norm {mean} on average, {min} to {max}, {unhealthy} unhealthy")?;
        self.recommendations().try_for_each(|text| write!(f, "\n- {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;
    use crate::diagnostics::{Thresholds, check_parts};

    fn monitor<const N: usize>(norms: &[f64]) -> Monitor<f64, N> {
        let mut monitor = Monitor::new();
        for (step, &norm) in norms.iter().enumerate() {
            let grads = [norm];
            monitor.record(step, &check_parts::<Strict<f64>>(&grads, [&grads[..]].into_iter(), &Thresholds::default()));
        }
        monitor
    }

    #[test]
    fn the_oldest_steps_are_forgotten() {
        for count in 0..20 {
            let norms: std::vec::Vec<f64> = (1..=count).map(f64::from).collect();
            let monitor = monitor::<4>(&norms);
            let steps: std::vec::Vec<usize> = monitor.history().map(|record| record.step).collect();
            let want: std::vec::Vec<usize> = (norms.len().saturating_sub(4)..norms.len()).collect();
            assert_eq!((steps, monitor.len()), (want, norms.len().min(4)));
        }
    }

    #[test]
    fn a_diagnosis_is_about_the_last_ten_steps() {
        let d = monitor::<100>(&[1e6, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]).diagnose();
        assert_eq!((d.steps, d.mean, d.min, d.max, d.unhealthy, d.stability()), (10, 1.5, 1.0, 2.0, 0, 0.5));
        assert_eq!(d.recommendations().count(), 1);
        assert_eq!(monitor::<5>(&[]).diagnose().steps, 0);
    }

    /// As many texts as nanograd has for each finding, in its order.
    #[test]
    fn recommendations_follow_the_findings() {
        let count = |norms: &[f64]| monitor::<16>(norms).diagnose().recommendations().count();
        assert_eq!(count(&[1.0, 1.0]), 1, "healthy");
        assert_eq!(count(&[20.0, 20.0]), 2, "exploding");
        assert_eq!(count(&[1e-8, 1e-8]), 5, "vanishing");
        assert_eq!(count(&[1.0, 0.05]), 3, "unstable");
        assert_eq!(count(&[20.0; 6]), 3, "exploding, and most steps unhealthy");
        assert_eq!(count(&[20.0, 1e-8]), 10, "exploding, vanishing and unstable");
    }
}
