//! What people watch while a network learns: running means, accuracy, confusion, and when to stop.
//!
//! ```
//! use slabgrad::metrics::{ConfusionMatrix, EarlyStopping, argmax, is_in_top};
//!
//! let logits = [0.1_f32, 2.0, -1.0];
//! assert_eq!(argmax(&logits), Some(1));
//! assert!(is_in_top(&logits, 0, 2));
//!
//! let mut confusion = ConfusionMatrix::<3>::new();
//! confusion.record(1, 1);
//! confusion.record(0, 1);
//! assert_eq!((confusion.accuracy::<f32>(), confusion.count(0, 1)), (0.5, 1));
//!
//! let mut stopping = EarlyStopping::new(2, 0.0_f32);
//! assert_eq!([1.0, 0.8, 0.9, 0.8].map(|loss| stopping.should_stop(loss)), [false, false, false, true]);
//! ```

use crate::backend::{Real, counted};

/// A mean that grows with every value, without a sum that could grow large.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningMean<E> {
    mean: E,
    count: usize,
}

impl<E: Real> RunningMean<E> {
    /// Of no values.
    #[must_use]
    pub const fn new() -> Self {
        Self { mean: E::ZERO, count: 0 }
    }

    /// Adds a value.
    pub fn add(&mut self, value: E) {
        self.add_mean(value, 1);
    }

    /// Adds `count` values whose mean is `mean`: those of a batch, say.
    pub fn add_mean(&mut self, mean: E, count: usize) {
        if count > 0 {
            self.count = self.count.saturating_add(count);
            let [count, total] = counted([count, self.count]);
            self.mean += (mean - self.mean) * count / total;
        }
    }

    /// The mean; 0 of no values.
    #[must_use]
    pub const fn mean(&self) -> E {
        self.mean
    }

    /// How many values there were.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// The index of the largest element, the first of equal ones; `None` of an empty slice. A NaN is never the largest, unless all
/// are.
#[must_use]
pub fn argmax<E: Real>(x: &[E]) -> Option<usize> {
    let mut best: Option<(usize, E)> = None;
    for (i, &value) in x.iter().enumerate() {
        if best.is_none_or(|(_, largest)| value > largest || (largest.is_nan() && !value.is_nan())) {
            best = Some((i, value));
        }
    }
    best.map(|(i, _)| i)
}

/// Whether class `label` has one of the `k` largest scores; of equal scores the first counts as larger.
#[must_use]
pub fn is_in_top<E: Real>(scores: &[E], label: usize, k: usize) -> bool {
    let Some(&own) = scores.get(label) else { return false };
    let above = scores.iter().enumerate().filter(|&(i, &score)| score > own || (score == own && i < label));
    !own.is_nan() && above.count() < k
}

/// How often each of `C` classes was taken for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfusionMatrix<const C: usize> {
    counts: [[u32; C]; C],
}

impl<const C: usize> Default for ConfusionMatrix<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const C: usize> ConfusionMatrix<C> {
    /// Without samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: [[0; C]; C] }
    }

    /// Counts a sample of class `label` that was taken for `predicted`. Returns whether both are classes; otherwise nothing is
    /// counted.
    pub fn record(&mut self, label: usize, predicted: usize) -> bool {
        let count = self.counts.get_mut(label).and_then(|row| row.get_mut(predicted));
        if let Some(count) = count {
            *count += 1;
            return true;
        }
        false
    }

    /// How many samples of class `label` were taken for `predicted`.
    #[must_use]
    pub fn count(&self, label: usize, predicted: usize) -> usize {
        self.counts.get(label).and_then(|row| row.get(predicted)).map_or(0, |&count| count as usize)
    }

    /// Samples.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts.as_flattened().iter().map(|&count| count as usize).sum()
    }

    /// The share of samples that were taken for what they are; 0 without samples.
    #[must_use]
    pub fn accuracy<E: Real>(&self) -> E {
        let right = (0..C).map(|class| self.count(class, class)).sum();
        E::from_usize(right) / E::from_usize(self.total().max(1))
    }

    /// The share of class `class` that was recognised; 0 where there was none.
    #[must_use]
    pub fn recall<E: Real>(&self, class: usize) -> E {
        let all: usize = (0..C).map(|predicted| self.count(class, predicted)).sum();
        E::from_usize(self.count(class, class)) / E::from_usize(all.max(1))
    }

    /// The share of what was taken for `class` that was it; 0 where nothing was.
    #[must_use]
    pub fn precision<E: Real>(&self, class: usize) -> E {
        let all: usize = (0..C).map(|label| self.count(label, class)).sum();
        E::from_usize(self.count(class, class)) / E::from_usize(all.max(1))
    }
}

/// A row for each class, a column for each prediction.
impl<const C: usize> core::fmt::Display for ConfusionMatrix<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("    ")?;
        (0..C).try_for_each(|predicted| write!(f, "{predicted:>5}"))?;
        for (label, row) in self.counts.iter().enumerate() {
            write!(f, "\n{label:>4}")?;
            row.iter().try_for_each(|count| write!(f, "{count:>5}"))?;
        }
        Ok(())
    }
}

/// Stops training when a loss has not become smaller for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyStopping<E> {
    patience: usize,
    min_delta: E,
    best: E,
    since_best: usize,
}

impl<E: Real> EarlyStopping<E> {
    /// Waits for `patience` losses in a row that are not smaller than the best one by more than `min_delta`.
    #[must_use]
    pub const fn new(patience: usize, min_delta: E) -> Self {
        Self { patience, min_delta, best: E::INFINITY, since_best: 0 }
    }

    /// Takes in a loss, and says whether to stop. A NaN is never better.
    pub fn should_stop(&mut self, loss: E) -> bool {
        if loss < self.best - self.min_delta {
            self.best = loss;
            self.since_best = 0;
        } else {
            self.since_best += 1;
        }
        self.since_best >= self.patience.max(1)
    }

    /// The best loss so far.
    #[must_use]
    pub const fn best(&self) -> E {
        self.best
    }

    /// Losses since the best one.
    #[must_use]
    pub const fn since_best(&self) -> usize {
        self.since_best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_largest() {
        let mut mean = RunningMean::new();
        [1.0, 2.0, 6.0].into_iter().for_each(|x| mean.add(x));
        assert_eq!((mean.mean(), mean.count()), (3.0_f64, 3));
        mean.add_mean(9.0, 0);
        mean.add_mean(7.0, 1);
        mean.add_mean(1.0, 4);
        assert_eq!((mean.mean(), mean.count()), (2.5, 8));
        assert_eq!(argmax::<f32>(&[]), None);
        assert_eq!(argmax(&[f32::NAN, 1.0, 3.0, 3.0]), Some(2));
        assert_eq!(argmax(&[f32::NAN, f32::NAN]), Some(0));
        assert_eq!(argmax(&[f32::NEG_INFINITY; 2]), Some(0));
    }

    #[test]
    fn ties_count_once_in_the_top() {
        let scores = [1.0, 3.0, 3.0, f64::NAN];
        let top = |k: usize| (0..4).filter(|&label| is_in_top(&scores, label, k)).collect::<std::vec::Vec<_>>();
        assert_eq!((top(1), top(2), top(3)), (std::vec![1], std::vec![1, 2], std::vec![0, 1, 2]));
        assert!(!is_in_top(&scores, 9, 4));
    }

    #[test]
    fn confusion_is_counted_by_class() {
        let mut confusion = ConfusionMatrix::<2>::new();
        for (label, predicted) in [(0, 0), (0, 1), (0, 0), (1, 1)] {
            assert!(confusion.record(label, predicted));
        }
        assert!(!confusion.record(2, 0) && !confusion.record(0, 2));
        assert_eq!((confusion.total(), confusion.accuracy::<f64>()), (4, 0.75));
        assert_eq!((confusion.recall::<f64>(0), confusion.precision::<f64>(1)), (2.0 / 3.0, 0.5));
        assert_eq!(std::format!("{confusion}"), "        0    1\n   0    2    1\n   1    0    1");
    }

    #[test]
    fn a_nan_is_no_progress() {
        let mut stopping = EarlyStopping::new(3, 0.1_f64);
        let stops = [1.0, f64::NAN, 0.95, 0.5, 0.45, f64::NAN, 0.5].map(|loss| stopping.should_stop(loss));
        assert_eq!(stops, [false, false, false, false, false, false, true]);
        assert_eq!((stopping.best(), stopping.since_best()), (0.5, 3));
    }
}
