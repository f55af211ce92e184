//! What can go wrong on a tape.

#[cfg(feature = "std")]
use core::panic::Location;

use crate::error::{Decimal, ShapeError};
use crate::ops::MAX_INPUTS;
use crate::optim::SettingError;
use crate::program::Space;
use crate::shape::Shape;

/// A fault: what was refused, and why. A fault while recording poisons the tape: it keeps the first one, and later
/// operations touch no memory, until [`reset_to`](super::Tape::reset_to) clears it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TapeError {
    pub(super) op: &'static str,
    pub(super) cause: Cause,
    pub(super) shapes: [Shape; MAX_INPUTS],
    pub(super) count: u8,
    #[cfg(feature = "std")]
    pub(super) location: &'static Location<'static>,
}

/// Why an operation of a tape was refused.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Cause {
    /// The shapes or settings do not fit.
    Shape(ShapeError),
    /// A handle stands for nothing on this tape, because of a reset or because it is another tape's.
    Handle {
        /// Which operand, counted from 0.
        operand: usize,
    },
    /// An operation reads at most three tensors.
    Operands {
        /// How many there are.
        found: usize,
    },
    /// An operand is not of the kind that it has to be.
    Kind {
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The number of elements is not that of the shape.
    Length {
        /// Elements of the shape.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
    /// An index is negative, not a whole number, or too large.
    Index {
        /// Which element of the indices, counted from 0.
        element: usize,
        /// The element.
        value: f32,
        /// Indices are whole numbers below this.
        below: usize,
    },
    /// There is no room for another node.
    Nodes {
        /// How many nodes there is room for.
        room: usize,
    },
    /// There is no room for elements.
    Memory {
        /// In which space.
        space: Space,
        /// Elements that it would have to hold.
        needed: usize,
        /// Elements that it has room for.
        room: usize,
    },
    /// The value that backward starts from is not finite. Nothing was changed.
    LossNotFinite {
        /// The value.
        loss: f32,
    },
    /// A gradient, or where they are clipped their norm, is not finite, so there is no update.
    GradientNotFinite {
        /// The gradient.
        found: f32,
    },
    /// The moments are shorter than the optimizer needs for the tape's parameters.
    Moments {
        /// Elements that it needs: [`Tape::moments_len`](super::Tape::moments_len).
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
    /// The optimizer has an impossible setting.
    Setting(SettingError),
}

impl TapeError {
    /// The operation that was refused.
    #[must_use]
    pub const fn op(&self) -> &'static str {
        self.op
    }

    /// Why.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// The shapes of its operands.
    #[must_use]
    pub fn shapes(&self) -> &[Shape] {
        self.shapes.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// The line that asked for it.
    #[cfg(feature = "std")]
    #[must_use]
    pub const fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl core::fmt::Display for TapeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.cause {
            // It names the operation itself.
            Cause::Shape(error) => write!(f, "{error}")?,
            cause => write!(f, "{}: {cause}", self.op)?,
        }
        for (i, shape) in self.shapes().iter().enumerate() {
            write!(f, "{}{shape}", if i == 0 { "; operands " } else { ", " })?;
        }
        #[cfg(feature = "std")]
        write!(f, "; at {}", self.location)?;
        Ok(())
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for TapeError {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str}: {}, operands {}", self.op, self.cause, self.shapes());
    }
}

impl core::error::Error for TapeError {}

impl core::fmt::Display for Cause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Shape(error) => write!(f, "{error}"),
            Self::Handle { operand } => {
                write!(f, "operand {operand} is not on this tape, or was dropped by a reset")
            }
            Self::Operands { found } => write!(f, "there are {found} operands, at most {MAX_INPUTS} are read"),
            Self::Kind { expected, found } => write!(f, "expected a {expected}, found a {found}"),
            Self::Length { expected, found } => write!(f, "there are {found} elements, the shape has {expected}"),
            Self::Index { element, value, below } => {
                write!(
                    f,
                    "index {} at element {element} is no whole number from 0 to below {below}",
                    Decimal(value.into())
                )
            }
            Self::Nodes { room } => write!(f, "the tape is full: it has room for {room} nodes"),
            Self::Memory { space, needed, room } => {
                write!(f, "the {} space has room for {room} elements, {needed} are needed", space.name())
            }
            Self::LossNotFinite { loss } => write!(f, "the loss is {}; nothing was changed", Decimal(loss.into())),
            Self::GradientNotFinite { found } => {
                write!(f, "a gradient or their norm is {}; nothing was updated", Decimal(found.into()))
            }
            Self::Moments { expected, found } => {
                write!(f, "there are {found} elements of moments, the optimizer needs {expected}")
            }
            Self::Setting(error) => write!(f, "{error}"),
        }
    }
}

impl From<ShapeError> for Cause {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}
