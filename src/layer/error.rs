//! Why a model cannot do what it was asked for.

use alloc::string::String;

use crate::shape::Shape;
use crate::tape::TapeError;

/// Why a model cannot do what it was asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelError {
    /// The tape had a fault.
    Tape {
        /// The name of the layer that was being recorded; empty outside of layers.
        layer: String,
        /// The fault.
        error: TapeError,
    },
    /// An input is neither a sample nor a batch of samples.
    Input {
        /// The shape of a sample.
        sample: Shape,
        /// The shape of the input.
        found: Shape,
    },
    /// No parameter or state has this name, or starts with it and a dot.
    Unknown {
        /// The name.
        name: String,
    },
    /// It cannot be compiled.
    Compile(String),
    /// The data of a tensor has another length.
    Length {
        /// The tensor.
        name: String,
        /// Elements of the tensor.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
}

impl core::fmt::Display for ModelError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Tape { layer, error } if layer.is_empty() => error.fmt(f),
            Self::Tape { layer, error } => write!(f, "layer `{layer}`: {error}"),
            Self::Input { sample, found } => {
                write!(f, "the input has shape {found}, a sample of the model {sample}, a batch one axis more in front")
            }
            Self::Compile(text) => f.write_str(text),
            Self::Unknown { name } => write!(f, "no parameter or state is named `{name}`"),
            Self::Length { name, expected, found } => {
                write!(f, "`{name}` has {expected} elements, there are {found}")
            }
        }
    }
}

impl core::error::Error for ModelError {}

impl From<TapeError> for ModelError {
    fn from(error: TapeError) -> Self {
        Self::Tape { layer: String::new(), error }
    }
}
