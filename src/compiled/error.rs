//! Why a step cannot be compiled or replayed.

use alloc::string::String;

use super::Use;
use crate::layer::ModelError;
use crate::program::RunError;
use crate::shape::Shape;

/// Why a step cannot be compiled or replayed. The model is as it was.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CompileError {
    /// The model or the loss cannot be recorded.
    Model(ModelError),
    /// What was recorded cannot be planned: a parameter that the loss does not depend on, for instance.
    Plan(String),
    /// The run was refused.
    Run(RunError),
    /// The context was compiled for another model, or for this one before parameters of it were frozen.
    OtherModel,
    /// The context was compiled for another use.
    OtherUse {
        /// What it was compiled for.
        compiled: Use,
        /// What it was used for.
        found: Use,
    },
    /// An input has another shape than the one that the context was compiled for.
    Shape {
        /// Which one: 0 is the input itself, then come the extra ones.
        input: usize,
        /// The shape that it was compiled for.
        compiled: Shape,
        /// The shape that it has.
        found: Shape,
    },
    /// There are more or fewer inputs.
    InputCount {
        /// How many it was compiled for.
        compiled: usize,
        /// How many there are.
        found: usize,
    },
}

impl core::fmt::Display for CompileError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Plan(text) => f.write_str(text),
            Self::Run(error) => error.fmt(f),
            Self::OtherModel => f.write_str(
                "the context was compiled for another model, or before parameters were frozen or unfrozen; make a new one",
            ),
            Self::OtherUse { compiled, found } => {
                write!(f, "the context was compiled for {compiled}; make another one for {found}")
            }
            Self::Shape { input, compiled, found } => write!(
                f,
                "input {input} has shape {found}, the context was compiled for {compiled}: leave a smaller last batch out, fill it \
                 up, or use a context of its own for it"
            ),
            Self::InputCount { compiled, found } => {
                write!(f, "the context was compiled for {compiled} inputs, there are {found}")
            }
        }
    }
}

impl core::error::Error for CompileError {}

impl From<ModelError> for CompileError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<RunError> for CompileError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}
