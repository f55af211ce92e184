//! Data in batches.

use alloc::vec::Vec;

use super::Dataset;
use crate::backend::Real;
use crate::compiled::Input;
use crate::layer::batched;
use crate::random::Xoshiro256StarStar;

/// What becomes of the samples that do not fill a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastBatch {
    /// They are a smaller batch.
    #[default]
    Keep,
    /// They sit the epoch out.
    LeaveOut,
}

/// A data set in batches, epoch by epoch. Batches are gathered into the same memory again and again, so they are lent one
/// by one.
///
/// ```
/// use slabgrad::train::{Dataset, LastBatch};
///
/// let data = Dataset::<f32>::with_labels([1], (0..5_u8).map(f32::from).collect(), 5, 0..5)?;
/// let mut batches = data.batches(2).shuffled(7).last(LastBatch::LeaveOut);
/// for epoch in 0..3 {
///     batches.start(epoch);
///     while let Some(batch) = batches.next_batch() {
///         assert_eq!(batch.x.0.axis(0), 2);
///         assert_eq!(batch.x.1, batch.target.1);
///     }
/// }
/// # Ok::<(), slabgrad::train::DatasetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batches<'d, E> {
    data: &'d Dataset<E>,
    size: usize,
    seed: Option<u64>,
    last: LastBatch,
    order: Vec<usize>,
    /// How many of `order` have been lent in this epoch.
    done: usize,
    samples: Vec<E>,
    targets: Vec<E>,
}

/// Samples and their targets, each with the shape of the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch<'b, E> {
    /// How many samples there are.
    pub len: usize,
    /// The samples.
    pub x: Input<'b, E>,
    /// Their targets.
    pub target: Input<'b, E>,
}

impl<'d, E: Real> Batches<'d, E> {
    pub(super) fn new(data: &'d Dataset<E>, size: usize) -> Self {
        let room = size.min(data.len());
        Self {
            data,
            size,
            seed: None,
            last: LastBatch::Keep,
            order: (0..data.len()).collect(),
            done: 0,
            samples: Vec::with_capacity(room * data.sample.len()),
            targets: Vec::with_capacity(room * data.target.len()),
        }
    }

    /// In another order in every epoch, which is a function of `seed` and the epoch. The first epoch, 0, starts.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.start(0);
        self
    }

    /// With this done about the samples that do not fill a batch.
    #[must_use]
    pub fn last(self, last: LastBatch) -> Self {
        Self { last, ..self }
    }

    /// Starts an epoch.
    pub fn start(&mut self, epoch: usize) {
        self.done = 0;
        if let Some(seed) = self.seed {
            self.order.iter_mut().enumerate().for_each(|(i, index)| *index = i);
            shuffle(&mut self.order, seed, epoch);
        }
    }

    /// The next batch of the epoch; `None` at its end.
    pub fn next_batch(&mut self) -> Option<Batch<'_, E>> {
        let len = self.next_len()?;
        let rest = self.order.get(self.done..)?;
        self.samples.clear();
        self.targets.clear();
        for &i in rest.iter().take(len) {
            self.samples.extend_from_slice(self.data.sample(i));
            self.targets.extend_from_slice(self.data.target(i));
        }
        self.done += len;
        Some(self.lend(len))
    }

    /// Zeros in the place of the next batch, which are fine whatever the elements mean: to compile for.
    pub(super) fn blank(&mut self) -> Option<Batch<'_, E>> {
        let len = self.next_len()?;
        self.samples.clear();
        self.targets.clear();
        self.samples.resize(len * self.data.sample.len(), E::ZERO);
        self.targets.resize(len * self.data.target.len(), E::ZERO);
        Some(self.lend(len))
    }

    fn lend(&self, len: usize) -> Batch<'_, E> {
        let x = (batched(self.data.sample, len), &self.samples[..]);
        Batch { len, x, target: (batched(self.data.target, len), &self.targets) }
    }

    /// How many samples the next batch has.
    fn next_len(&self) -> Option<usize> {
        let len = self.data.len().saturating_sub(self.done).min(self.size);
        (len == self.size || self.last == LastBatch::Keep).then_some(len).filter(|&len| len > 0)
    }

    /// The numbers of the samples in the order of this epoch.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// How many batches an epoch has.
    #[must_use]
    pub fn count(&self) -> usize {
        let full = self.data.len().checked_div(self.size).unwrap_or(0);
        let is_one_more = self.last == LastBatch::Keep && self.size > 0 && !self.data.len().is_multiple_of(self.size);
        full + usize::from(is_one_more)
    }
}

/// Fisher and Yates' shuffle with xoshiro256**, for a seed and an epoch.
pub(super) fn shuffle(order: &mut [usize], seed: u64, epoch: usize) {
    let of_seed = Xoshiro256StarStar::seed_from_u64(seed).next_u64();
    let mut random = Xoshiro256StarStar::seed_from_u64(of_seed.wrapping_add(epoch as u64));
    for i in (1..order.len()).rev() {
        // A number up to `i` by multiplication, which is the same whatever `usize` is.
        let other = (u128::from(random.next_u64()) * (i as u128 + 1)) >> 64;
        order.swap(i, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn data() -> Dataset {
        Dataset::with_labels([2], (0..14_u8).map(f32::from).collect(), 7, 0..7).unwrap()
    }

    fn lens(mut batches: Batches<'_, f32>) -> Vec<usize> {
        let lens: Vec<usize> = core::iter::from_fn(|| batches.next_batch().map(|batch| batch.len)).collect();
        assert_eq!(lens.len(), batches.count());
        lens
    }

    #[test]
    fn the_last_batch_is_kept_or_left_out() {
        let data = data();
        for (size, kept, full) in [
            (3, vec![3, 3, 1], vec![3, 3]),
            (7, vec![7], vec![7]),
            (9, vec![7], vec![]),
            (1, vec![1; 7], vec![1; 7]),
            (0, vec![], vec![]),
        ] {
            assert_eq!(lens(data.batches(size)), kept, "batches of {size}");
            assert_eq!(lens(data.batches(size).last(LastBatch::LeaveOut)), full, "full batches of {size}");
        }
    }

    #[test]
    fn batches_hold_samples_with_their_targets() {
        let data = data();
        let mut batches = data.batches(3);
        let first = batches.next_batch().unwrap();
        assert_eq!((first.x.0, first.target.0), ([3, 2].into(), [3].into()));
        assert_eq!((first.x.1, first.target.1), (&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0][..], &[0.0, 1.0, 2.0][..]));
    }

    #[test]
    fn an_order_is_a_function_of_seed_and_epoch() {
        let data = data();
        let mut batches = data.batches(3).shuffled(1);
        let mut of_epoch = |epoch| {
            batches.start(epoch);
            let mut seen = Vec::new();
            while let Some(batch) = batches.next_batch() {
                for (x, target) in batch.x.1.chunks(2).zip(batch.target.1) {
                    assert_eq!(x, [target * 2.0, target * 2.0 + 1.0]);
                }
                seen.extend(batch.target.1.iter().map(|&label| label as usize));
            }
            assert_eq!(seen, batches.order());
            let mut sorted = seen.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6], "every sample is seen once");
            seen
        };
        let orders = [0, 1, 5, 0].map(&mut of_epoch);
        assert_eq!(orders[0], [4, 2, 3, 0, 5, 6, 1]);
        assert_eq!(orders[1], [4, 3, 1, 5, 2, 0, 6]);
        assert_eq!(orders[0], orders[3], "an epoch's order does not depend on the one before");
        assert_ne!(data.batches(3).shuffled(2).order(), orders[1], "seeds and epochs do not add up");
    }
}
