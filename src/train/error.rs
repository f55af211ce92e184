//! Why training stops short.

use super::Dataset;
use crate::backend::Real;
use crate::compiled::{CompileError, Context};
use crate::error::Decimal;
use crate::program::RunError;
use crate::shape::Shape;

/// Why a model cannot be trained with, or evaluated on, this data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// The samples have another shape than the model takes.
    Sample {
        /// The shape that the model takes.
        model: Shape,
        /// The shape that the samples have.
        found: Shape,
    },
    /// The elements to predict from do not divide into samples.
    Elements {
        /// How many elements there are.
        found: usize,
        /// Elements of a sample.
        of_a_sample: usize,
    },
    /// There is not a single batch.
    NoBatch {
        /// How many samples there are.
        samples: usize,
        /// How many make a batch.
        batch: usize,
    },
    /// An element is not finite, or where a class index is wanted, none. Nothing has been trained.
    Element {
        /// Whether it is in the target rather than in the sample.
        in_target: bool,
        /// Which sample, counted from 0.
        sample: usize,
        /// Which of its elements, counted from 0.
        element: usize,
        /// The element.
        value: f32,
        /// How many classes there are, where a class index is wanted.
        classes: Option<usize>,
    },
    /// A step cannot be compiled, or was refused. The steps before it have been taken.
    Step(CompileError),
}

impl core::fmt::Display for FitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sample { model, found } => write!(f, "the samples have shape {found}, the model takes {model}"),
            Self::Elements { found, of_a_sample } => {
                write!(f, "there are {found} elements, which do not divide into samples of {of_a_sample}")
            }
            Self::NoBatch { samples, batch } => write!(f, "{samples} samples do not make a batch of {batch}"),
            Self::Element { in_target, sample, element, value, classes } => {
                let of = if *in_target { "the target of sample" } else { "sample" };
                write!(f, "{of} {sample}, element {element} is {}, ", Decimal(f64::from(*value)))?;
                match classes {
                    Some(classes) => write!(f, "not a class index: there are {classes} classes"),
                    None => f.write_str("which is not finite"),
                }
            }
            Self::Step(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FitError {}

impl From<CompileError> for FitError {
    fn from(error: CompileError) -> Self {
        Self::Step(error)
    }
}

/// Looks through all data for what a compiled step would refuse.
pub(super) fn check_data<B: crate::backend::Backend>(
    context: &Context<B>,
    data: &Dataset<B::Elem>,
) -> Result<(), FitError> {
    let parts = [(&data.samples, data.sample), (&data.targets, data.target)];
    for (input, (elements, shape)) in parts.into_iter().enumerate() {
        let place = |element: usize| (element / shape.len().max(1), element % shape.len().max(1));
        let error = |element, value, classes| {
            let (sample, element) = place(element);
            FitError::Element { in_target: input == 1, sample, element, value, classes }
        };
        context.check_elements(input, elements).map_err(|fault| match fault {
            RunError::IndexOutOfRange { element, value, classes, .. } => error(element, value, Some(classes)),
            RunError::InputNotFinite { element, value, .. } => error(element, value, None),
            other => FitError::Step(CompileError::Run(other)),
        })?;
    }
    Ok(())
}

/// The samples have the shape that the model takes.
pub(super) fn check_shape<E: Real>(model: Shape, data: &Dataset<E>) -> Result<(), FitError> {
    if data.sample == model { Ok(()) } else { Err(FitError::Sample { model, found: data.sample }) }
}
