//! What a program's tables hold beside its steps: tensors, inputs, outputs, groups of parameters, and sizes.

use super::{Place, RunError, Space};
use crate::backend::Real;
use crate::backend::dispatch::first_not_finite;
use crate::graph::Name;
use crate::init::{Distribution, Init};
use crate::optim::Group;
use crate::plan::NotFinite;
use crate::shape::Shape;

/// A parameter, trained or frozen, or a piece of state.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'t> {
    /// Its name.
    pub name: Name<'t>,
    /// Its shape.
    pub shape: Shape,
    /// Its space: [`Space::Params`], [`Space::Frozen`] or [`Space::State`].
    pub space: Space,
    /// Where it starts in that space, in elements.
    pub offset: usize,
    /// How it starts.
    pub init: Init,
}

impl Tensor<'_> {
    pub(crate) const NONE: Self =
        Self { name: Name::new("", ""), shape: Shape::SCALAR, space: Space::Params, offset: 0, init: Init::Zeros };

    /// Where it lies in its space.
    #[must_use]
    pub const fn range(&self) -> core::ops::Range<usize> {
        self.offset..self.offset + self.shape.len()
    }
}

/// How a tensor starts that does not start with zeros. A firmware that draws its parameters but asks for no names and shapes has these
/// in flash and not the tensors.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The hash of its name, which its seed is made of.
    pub(crate) hash: u64,
    pub(crate) distribution: Distribution,
    pub(crate) place: Place,
}

impl Draw {
    pub(crate) const NONE: Self = Self { hash: 0, distribution: Distribution::ZEROS, place: Place::NOWHERE };
}

/// A run of neighbouring parameters with the same settings.
#[derive(Clone, Copy, Debug)]
pub struct GroupRun {
    start: u32,
    len: u32,
    /// In both precisions, as [`Real::choose`] takes them.
    learning_rate_factor: (f32, f64),
    weight_decay: (f32, f64),
}

impl GroupRun {
    pub(crate) const NONE: Self = Self::new(0, 0, 1.0, 0.0);

    pub(crate) const fn new(start: usize, len: usize, factor: f64, decay: f64) -> Self {
        Self {
            start: start as u32,
            len: len as u32,
            learning_rate_factor: (factor as f32, factor),
            weight_decay: (decay as f32, decay),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) const fn has_settings_of(&self, other: &Self) -> bool {
        self.learning_rate_factor.1.to_bits() == other.learning_rate_factor.1.to_bits()
            && self.weight_decay.1.to_bits() == other.weight_decay.1.to_bits()
    }

    pub(crate) const fn longer_by(self, len: usize) -> Self {
        Self { len: self.len + len as u32, ..self }
    }

    /// The parameters that it covers.
    #[must_use]
    pub const fn range(&self) -> core::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    /// The settings.
    #[must_use]
    pub fn settings<E: Real>(&self) -> Group<E> {
        let (factor, decay) = (self.learning_rate_factor, self.weight_decay);
        Group { learning_rate_factor: E::choose(factor.0, factor.1), weight_decay: E::choose(decay.0, decay.1) }
    }
}

/// An input that a run takes.
#[derive(Clone, Copy, Debug)]
pub struct Input<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its shape.
    pub shape: Shape,
    /// Its elements are whole numbers below this, or any finite numbers where it is 0.
    pub classes: usize,
}

/// What a run looks at of an input, apart from names and shapes, which not every firmware asks for.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    len: u32,
    classes: u32,
}

/// A value that a run leaves to be read.
#[derive(Clone, Copy, Debug)]
pub struct Output<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its shape.
    pub shape: Shape,
    pub(crate) place: Place,
}

impl Output<'_> {
    /// Where it lies in the work space, unless it is a parameter.
    #[cfg(feature = "alloc")]
    pub(crate) const fn range_in_work(&self) -> Option<core::ops::Range<usize>> {
        if matches!(self.place.space(), Space::Work) { Some(self.place.range()) } else { None }
    }

    pub(crate) const NONE: Self = Self { name: "", shape: Shape::SCALAR, place: Place::NOWHERE };
}

/// The sizes of a program's spaces in elements, and what its runner has to know beside the steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) params: usize,
    pub(crate) frozen: usize,
    pub(crate) state: usize,
    pub(crate) grads: usize,
    pub(crate) moments: usize,
    pub(crate) work: usize,
    /// How many of the steps are forward.
    pub(crate) forward_steps: usize,
    pub(crate) loss: Option<Place>,
    /// In both precisions, as [`Real::choose`] takes it.
    pub(crate) clip_norm: Option<(f32, f64)>,
    pub(crate) not_finite: NotFinite,
}

impl Sizes {
    pub(crate) const NONE: Self = Self {
        params: 0,
        frozen: 0,
        state: 0,
        grads: 0,
        moments: 0,
        work: 0,
        forward_steps: 0,
        loss: None,
        clip_norm: None,
        not_finite: NotFinite::Error,
    };
}

impl Input<'_> {
    pub(crate) const NONE: Self = Self { name: "", shape: Shape::SCALAR, classes: 0 };

    pub(crate) const fn expected(&self) -> Expected {
        Expected { len: self.shape.len() as u32, classes: self.classes as u32 }
    }
}

impl Expected {
    pub(crate) const NONE: Self = Self { len: 0, classes: 0 };

    pub(super) fn check<E: Real>(self, index: usize, data: &[E]) -> Result<(), RunError> {
        let expected = self.len as usize;
        if data.len() != expected {
            return Err(RunError::InputLength { input: index, expected, found: data.len() });
        }
        self.check_elements(index, data)
    }

    /// Class indices are classes, everything else is finite.
    pub(crate) fn check_elements<E: Real>(self, index: usize, data: &[E]) -> Result<(), RunError> {
        let classes = self.classes as usize;
        let fault = if classes > 0 {
            data.iter().position(|x| x.to_index().is_none_or(|index| index >= classes))
        } else {
            first_not_finite(data)
        };
        let Some((element, value)) = fault.and_then(|i| Some((i, data.get(i)?.to_f32()))) else {
            return Ok(());
        };
        Err(if classes > 0 {
            RunError::IndexOutOfRange { input: index, element, value, classes }
        } else {
            RunError::InputNotFinite { input: index, element, value }
        })
    }
}
