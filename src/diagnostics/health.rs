//! Statistics of gradients, and whether they are healthy.

use crate::backend::{Backend, Real};
use crate::error::Decimal;
use crate::optim::{Norm, norm};
use crate::program::{Memory, Program, Space};

/// What can be said of one gradient, or of all together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GradientStats<E> {
    /// The L2 norm.
    pub l2: E,
    /// The largest absolute value.
    pub inf: E,
    /// The mean absolute value; 0 where there are no elements.
    pub mean_abs: E,
    /// Elements.
    pub size: usize,
}

impl<E: Real> GradientStats<E> {
    /// Of these gradients.
    #[must_use]
    pub fn of<B: Backend<Elem = E>>(grads: &[E]) -> Self {
        let size = grads.len();
        Self {
            l2: norm::<B>(grads, Norm::L2),
            inf: norm::<B>(grads, Norm::Inf),
            mean_abs: norm::<B>(grads, Norm::L1) / E::from_usize(size.max(1)),
            size,
        }
    }
}

/// From where on gradients are taken for unhealthy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds<E> {
    /// A global L2 norm above this explodes.
    pub exploding: E,
    /// A global L2 norm below this vanishes.
    pub vanishing: E,
    /// Gradients whose largest L2 norm is more than this times the smallest have drifted apart.
    pub imbalance: E,
}

impl<E: Real> Default for Thresholds<E> {
    /// 10, 1e-7 and 1000.
    fn default() -> Self {
        Self {
            exploding: E::choose(10.0, 10.0),
            vanishing: E::choose(1e-7, 1e-7),
            imbalance: E::choose(1000.0, 1000.0),
        }
    }
}

/// What is wrong with gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::struct_excessive_bools)]
pub struct Issues {
    /// The norm is above the threshold, or not finite.
    pub exploding: bool,
    /// The norm is below the threshold.
    pub vanishing: bool,
    /// A gradient is infinite or no number.
    pub not_finite: bool,
    /// The norms of the parameters' gradients are far apart; not looked at where one is 0.
    pub imbalance: bool,
}

impl Issues {
    /// Nothing is wrong.
    #[must_use]
    pub const fn is_healthy(self) -> bool {
        !(self.exploding || self.vanishing || self.not_finite || self.imbalance)
    }
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Health<E> {
    /// All gradients together.
    pub global: GradientStats<E>,
    /// The smallest and the largest L2 norm of a parameter's gradient; equal where there is one parameter.
    pub smallest: E,
    /// See `smallest`.
    pub largest: E,
    /// What is wrong.
    pub issues: Issues,
}

impl<E: Real> core::fmt::Display for Health<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let GradientStats { l2, inf, mean_abs, size } = self.global;
        let [l2, inf, mean_abs] = [l2, inf, mean_abs].map(|number| Decimal(number.to_f32().into()));
        write!(f, "{size} gradients: L2 norm {l2}, largest {inf}, mean {mean_abs}; ")?;
        if self.issues.is_healthy() {
            return f.write_str("healthy");
        }
        let issues = [
            (self.issues.not_finite, "not finite"),
            (self.issues.exploding, "exploding"),
            (self.issues.vanishing, "vanishing"),
            (self.issues.imbalance, "out of balance"),
        ];
        let mut first = true;
        for (_, issue) in issues.into_iter().filter(|(is, _)| *is) {
            f.write_str(if first { "" } else { ", " })?;
            f.write_str(issue)?;
            first = false;
        }
        Ok(())
    }
}

/// Checks the gradients that a program left, by parameter and together. A fused program leaves none: its health is that of no
/// gradients at all.
#[must_use]
pub fn check<B: Backend>(
    program: &Program<'_, B>,
    memory: &Memory<'_, B::Elem>,
    thresholds: &Thresholds<B::Elem>,
) -> Health<B::Elem> {
    let grads = memory.grads.get(..program.grads_len()).unwrap_or_default();
    let trained = program.tensors().iter().filter(|tensor| matches!(tensor.space, Space::Params));
    check_parts::<B>(grads, trained.map(|tensor| grads.get(tensor.range()).unwrap_or_default()), thresholds)
}

/// The same for gradients `all` that consist of these parts, one for each parameter.
#[must_use]
pub fn check_parts<'g, B: Backend>(
    all: &[B::Elem],
    parts: impl Iterator<Item = &'g [B::Elem]>,
    thresholds: &Thresholds<B::Elem>,
) -> Health<B::Elem> {
    let global = GradientStats::of::<B>(all);
    let (mut smallest, mut largest) = (B::Elem::INFINITY, B::Elem::ZERO);
    for part in parts {
        let l2 = norm::<B>(part, Norm::L2);
        largest = largest.maximum(l2);
        if l2 < smallest {
            smallest = l2;
        }
    }
    let not_finite = !global.l2.is_finite() && !all.iter().all(|g| g.is_finite());
    let issues = Issues {
        exploding: global.l2 > thresholds.exploding || !global.l2.is_finite(),
        vanishing: global.l2 < thresholds.vanishing,
        not_finite,
        imbalance: smallest > B::Elem::ZERO && largest > thresholds.imbalance * smallest,
    };
    Health { global, smallest, largest, issues }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    fn issues(parts: &[&[f64]]) -> Issues {
        check_parts::<Strict<f64>>(&parts.concat(), parts.iter().copied(), &Thresholds::default()).issues
    }

    #[test]
    fn thresholds_are_those_of_the_reference() {
        let healthy = Issues::default();
        assert_eq!(issues(&[&[10.0]]), healthy);
        assert_eq!(issues(&[&[10.001]]), Issues { exploding: true, ..healthy });
        assert_eq!(issues(&[&[1e-7]]), healthy);
        assert_eq!(issues(&[&[9e-8]]), Issues { vanishing: true, ..healthy });
        assert_eq!(issues(&[&[1.0], &[1e-3]]), healthy);
        assert_eq!(issues(&[&[1.0], &[9e-4]]), Issues { imbalance: true, ..healthy });
        assert_eq!(issues(&[&[1.0], &[0.0]]), healthy, "a gradient of 0 says nothing about balance");
        assert_eq!(issues(&[&[f64::NAN]]), Issues { exploding: true, not_finite: true, ..healthy });
        assert_eq!(
            issues(&[&[1e200, 1e200]]),
            Issues { exploding: true, ..healthy },
            "the norm overflows, no gradient does"
        );
    }

    #[test]
    fn statistics_and_report() {
        let health = check_parts::<Strict<f64>>(&[3.0, -4.0], [&[3.0, -4.0][..]].into_iter(), &Thresholds::default());
        assert_eq!(health.global, GradientStats { l2: 5.0, inf: 4.0, mean_abs: 3.5, size: 2 });
        assert_eq!(std::format!("{health}"), "2 gradients: L2 norm 5, largest 4, mean 3.5; healthy");
        let health = check_parts::<Strict<f64>>(&[1e3, f64::INFINITY], [].into_iter(), &Thresholds::default());
        assert!(std::format!("{health}").ends_with("; not finite, exploding"), "{health}");
    }
}
