//! What can go wrong when a program runs.

use super::Space;
use crate::error::Decimal;
use crate::optim::SettingError;

/// Why a run was refused. Parameters, moments and state are unchanged then, but for one case that says so: checks precede
/// the first write to them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RunError {
    /// The slab is shorter than the program's spaces together.
    SlabLength {
        /// Elements that the program needs.
        expected: usize,
        /// Elements that the slab has.
        found: usize,
    },
    /// A space has the wrong length.
    SpaceLength {
        /// Which space.
        space: Space,
        /// Elements that the program needs.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
    /// The number of inputs is wrong.
    InputCount {
        /// How many the program takes.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// An input has the wrong length: an empty or a smaller last batch, for instance.
    InputLength {
        /// Which input, counted from 0.
        input: usize,
        /// Elements that the program reads.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
    /// An input holds an infinity or a NaN.
    InputNotFinite {
        /// Which input, counted from 0.
        input: usize,
        /// Which of its elements, counted from 0.
        element: usize,
        /// The element.
        value: f32,
    },
    /// A class index is negative, not a whole number, or too large.
    IndexOutOfRange {
        /// Which input, counted from 0.
        input: usize,
        /// Which of its elements, counted from 0.
        element: usize,
        /// The element.
        value: f32,
        /// The number of classes: indices are whole numbers below it.
        classes: usize,
    },
    /// The loss overflowed or is no number, so there is no update.
    LossNotFinite {
        /// The loss.
        loss: f32,
    },
    /// A gradient, or where they are clipped their norm, overflowed or is no number, so there is no update. State, such as
    /// running statistics, has taken the batch in.
    GradientNotFinite {
        /// The gradient, or the norm.
        found: f32,
    },
    /// The optimizer keeps more slots of moments than the program was planned for.
    Slots {
        /// Slots that the program has room for.
        planned: usize,
        /// Slots that the optimizer keeps.
        needed: usize,
    },
    /// The optimizer has an impossible setting.
    Setting(SettingError),
    /// The program was planned to infer: it has no loss and no backward pass.
    NotTraining,
    /// The program is fused, so it keeps no gradients.
    NoGradients,
    /// The program's tables do not fit together. No plan of this crate makes such ones.
    BrokenPlan,
}

/// The one thing that can go wrong in an update, in registers: a place for any error would lie on the stack below the kernels.
#[derive(Clone, Copy)]
pub(super) struct GradientNotFinite {
    /// The gradient, or the norm.
    pub(super) found: f32,
}

impl From<GradientNotFinite> for RunError {
    fn from(GradientNotFinite { found }: GradientNotFinite) -> Self {
        Self::GradientNotFinite { found }
    }
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::SlabLength { expected, found } => {
                write!(f, "the slab has {found} elements, the program needs {expected}")
            }
            Self::SpaceLength { space, expected, found } => {
                write!(f, "the {} space has {found} elements, the program needs {expected}", space.name())
            }
            Self::InputCount { expected, found } => {
                write!(f, "the program takes {expected} inputs, the run was given {found}")
            }
            Self::InputLength { input, expected, found } => {
                write!(f, "input {input} has {found} elements, the program reads {expected}")
            }
            Self::InputNotFinite { input, element, value } => {
                write!(f, "input {input}, element {element} is {}, which is not finite", Decimal(value.into()))
            }
            Self::IndexOutOfRange { input, element, value, classes } => {
                write!(
                    f,
                    "input {input}, element {element} is {}, not a class index: there are {classes} classes",
                    Decimal(value.into())
                )
            }
            Self::LossNotFinite { loss } => write!(f, "the loss is {}; nothing was updated", Decimal(loss.into())),
            Self::GradientNotFinite { found } => {
                write!(f, "a gradient or their norm is {}; nothing was updated", Decimal(found.into()))
            }
            Self::Slots { planned, needed } => write!(
                f,
                "the optimizer keeps {needed} slots of moments, the program was planned for {planned}; plan it with \
                 Training::with::<that optimizer>()"
            ),
            Self::Setting(error) => core::fmt::Display::fmt(&error, f),
            Self::NotTraining => f.write_str("the program only infers: it has no loss and no backward pass"),
            Self::NoGradients => f.write_str("the program is fused: it keeps no gradients"),
            Self::BrokenPlan => f.write_str("the program's tables do not fit together: its plan is broken"),
        }
    }
}

impl core::error::Error for RunError {}
