//! Samples and their targets.

use alloc::vec::Vec;

use super::batches::{Batches, shuffle};
use crate::backend::Real;
use crate::error::Decimal;
use crate::shape::{MAX_RANK, Shape};

/// Samples of one shape, one after the other, and as many targets: class labels, or tensors of one shape.
///
/// ```
/// use slabgrad::train::Dataset;
///
/// let digits = Dataset::<f32>::with_labels([1, 2, 2], vec![0.0; 12], 10, [3, 1, 9])?;
/// assert_eq!((digits.len(), digits.sample(2), digits.target(2)), (3, &[0.0; 4][..], &[9.0][..]));
/// let error = Dataset::<f32>::with_labels([1, 2, 2], vec![0.0; 12], 10, [3, 10, 9]).unwrap_err();
/// assert_eq!(error.to_string(), "sample 1 has label 10, there are 10 classes");
///
/// let lines = Dataset::new([1], vec![0.0, 1.0, 2.0], [2], vec![1.0, 0.0, 3.0, 0.5, 5.0, 1.0])?;
/// assert_eq!(lines.target(1), [3.0, 0.5]);
/// # Ok::<(), slabgrad::train::DatasetError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<E = f32> {
    pub(super) sample: Shape,
    pub(super) samples: Vec<E>,
    pub(super) target: Shape,
    pub(super) targets: Vec<E>,
    classes: Option<usize>,
    len: usize,
}

/// Why there is no such data set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum DatasetError {
    /// A sample or a target has as many axes as a tensor can have, which leaves none for the batch.
    Rank {
        /// Its shape.
        found: Shape,
    },
    /// The elements do not divide into samples.
    Samples {
        /// How many elements there are.
        found: usize,
        /// Elements of a sample.
        of_a_sample: usize,
    },
    /// There are more or fewer targets than samples.
    Targets {
        /// How many samples there are.
        samples: usize,
        /// Elements that their targets have.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
    /// A label is no class.
    Label {
        /// Which sample's, counted from 0.
        sample: usize,
        /// The label.
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A split leaves one side empty, or is none.
    Split {
        /// The share of the second part.
        share: f64,
        /// How many samples there are.
        samples: usize,
    },
}

impl core::fmt::Display for DatasetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Rank { found } => {
                write!(f, "shape {found} has {MAX_RANK} axes, which leaves none for the batch")
            }
            Self::Samples { found, of_a_sample } => {
                write!(f, "there are {found} elements, which do not divide into samples of {of_a_sample}")
            }
            Self::Targets { samples, expected, found } => {
                write!(f, "{samples} samples need {expected} elements of targets, there are {found}")
            }
            Self::Label { sample, label, classes } => {
                write!(f, "sample {sample} has label {label}, there are {classes} classes")
            }
            Self::Split { share, samples } => {
                write!(f, "a share of {} of {samples} samples leaves one part empty", Decimal(share))
            }
        }
    }
}

impl core::error::Error for DatasetError {}

impl<E: Real> Dataset<E> {
    /// Samples of shape `sample` with targets of shape `target`, both without the axis of the batch.
    ///
    /// # Errors
    /// When the elements do not divide into samples, or their targets are more or fewer.
    pub fn new(
        sample: impl Into<Shape>,
        samples: Vec<E>,
        target: impl Into<Shape>,
        targets: Vec<E>,
    ) -> Result<Self, DatasetError> {
        let (sample, target) = (sample.into(), target.into());
        if let Some(found) = [sample, target].into_iter().find(|shape| shape.rank() == MAX_RANK) {
            return Err(DatasetError::Rank { found });
        }
        let (found, of_a_sample) = (samples.len(), sample.len());
        if of_a_sample == 0 || !found.is_multiple_of(of_a_sample) {
            return Err(DatasetError::Samples { found, of_a_sample });
        }
        let len = found / of_a_sample;
        let (expected, found) = (len.saturating_mul(target.len()), targets.len());
        if expected != found {
            return Err(DatasetError::Targets { samples: len, expected, found });
        }
        Ok(Self { sample, samples, target, targets, classes: None, len })
    }

    /// Samples of shape `sample`, without the axis of the batch, each with a class from 0 to below `classes`.
    ///
    /// # Errors
    /// When the elements do not divide into samples, the labels are more or fewer, or one is no class.
    pub fn with_labels(
        sample: impl Into<Shape>,
        samples: Vec<E>,
        classes: usize,
        labels: impl IntoIterator<Item = usize>,
    ) -> Result<Self, DatasetError> {
        let mut targets = Vec::new();
        for (sample, label) in labels.into_iter().enumerate() {
            if label >= classes {
                return Err(DatasetError::Label { sample, label, classes });
            }
            targets.push(E::from_usize(label));
        }
        Ok(Self { classes: Some(classes), ..Self::new(sample, samples, Shape::SCALAR, targets)? })
    }

    /// How many samples there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The shape of a sample.
    #[must_use]
    pub const fn sample_shape(&self) -> Shape {
        self.sample
    }

    /// The shape of a target: no axes for a label.
    #[must_use]
    pub const fn target_shape(&self) -> Shape {
        self.target
    }

    /// How many classes there are, where targets are labels.
    #[must_use]
    pub const fn classes(&self) -> Option<usize> {
        self.classes
    }

    /// Sample `i`; empty where there is none.
    #[must_use]
    pub fn sample(&self, i: usize) -> &[E] {
        part(&self.samples, i, self.sample.len())
    }

    /// The target of sample `i`; empty where there is none.
    #[must_use]
    pub fn target(&self, i: usize) -> &[E] {
        part(&self.targets, i, self.target.len())
    }

    /// Two parts, for training and for validation: `share` of the samples, rounded to nearest, are drawn for the second one.
    /// Both keep the order of the samples.
    ///
    /// # Errors
    /// When one part would be empty.
    pub fn split(self, share: f64, seed: u64) -> Result<(Self, Self), DatasetError> {
        let drawn = (share * self.len as f64 + 0.5) as usize;
        if drawn == 0 || drawn >= self.len {
            return Err(DatasetError::Split { share, samples: self.len });
        }
        let mut order: Vec<usize> = (0..self.len).collect();
        shuffle(&mut order, seed, 0);
        let (second, first) = order.split_at_mut_checked(drawn).unwrap_or_default();
        Ok((self.part(first), self.part(second)))
    }

    /// The samples with these numbers, in ascending order.
    fn part(&self, chosen: &mut [usize]) -> Self {
        chosen.sort_unstable();
        Self {
            samples: chosen.iter().flat_map(|&i| self.sample(i)).copied().collect(),
            targets: chosen.iter().flat_map(|&i| self.target(i)).copied().collect(),
            len: chosen.len(),
            ..*self
        }
    }

    /// The samples in batches of `size`, in their order, the last of which may be smaller.
    #[must_use]
    pub fn batches(&self, size: usize) -> Batches<'_, E> {
        Batches::new(self, size)
    }
}

fn part<E>(all: &[E], i: usize, len: usize) -> &[E] {
    let start = i.saturating_mul(len);
    all.get(start..start.saturating_add(len)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn what_does_not_fit_is_an_error_with_the_numbers() {
        let text = |result: Result<Dataset, DatasetError>| result.unwrap_err().to_string();
        assert_eq!(
            text(Dataset::new([3], vec![0.0; 7], [1], vec![])),
            "there are 7 elements, which do not divide into samples of 3"
        );
        assert_eq!(
            text(Dataset::new([0, 3], vec![], [1], vec![])),
            "there are 0 elements, which do not divide into samples of 0"
        );
        assert_eq!(
            text(Dataset::new([3], vec![0.0; 6], [2], vec![0.0; 3])),
            "2 samples need 4 elements of targets, there are 3"
        );
        assert_eq!(
            text(Dataset::with_labels([3], vec![0.0; 6], 2, [0, 1, 1])),
            "2 samples need 2 elements of targets, there are 3"
        );
        assert_eq!(
            text(Dataset::new([1; 5], vec![0.0], [1], vec![0.0])),
            "shape [1, 1, 1, 1, 1] has 5 axes, which leaves none for the batch"
        );
        for share in [0.1, -1.0, 0.9, 2.0, f64::NAN] {
            let data = Dataset::<f32>::new([1], vec![0.0; 4], [], vec![0.0; 4]).unwrap();
            let error = DatasetError::Split { share, samples: 4 };
            assert_eq!(data.split(share, 1).unwrap_err().to_string(), error.to_string());
        }
    }

    #[test]
    fn a_split_is_a_function_of_the_seed() {
        let data = Dataset::<f32>::with_labels([2], (0..20_u8).map(f32::from).collect(), 10, 0..10).unwrap();
        let labels = |seed| {
            let (first, second) = data.clone().split(0.3, seed).unwrap();
            assert_eq!((first.len(), second.len(), first.classes()), (7, 3, Some(10)));
            assert_eq!(second.sample(1), [second.targets[1] * 2.0, second.targets[1] * 2.0 + 1.0]);
            let mut all = [&first.targets[..], &second.targets].concat();
            all.sort_unstable_by(f32::total_cmp);
            assert_eq!(all, data.targets, "every sample is on one side");
            second.targets
        };
        assert_eq!(labels(1), [3.0, 4.0, 5.0]);
        assert_eq!(labels(2), [3.0, 6.0, 9.0]);
    }
}
