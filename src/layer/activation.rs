//! Activations, as values and as layers.

use super::{Layer, Recorder};
use crate::backend::Backend;
use crate::error::Decimal;
use crate::ops::softplus;
use crate::tape::{Handle, Storage, Tape};

/// An activation: a value that layers take as a setting, and a layer itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `x` where it is positive, else this times `x`.
    LeakyRelu(f64),
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` where it is positive, else this times `e^x - 1`.
    Elu(f64),
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `tanh(x)`.
    Tanh,
    /// `ln(1 + e^(b x)) / b`, with this b.
    Softplus(f64),
    /// `x` times the distribution function of the normal distribution.
    Gelu,
    /// The approximation of the former by tanh.
    GeluTanh,
    /// `x / (1 + e^-x)`.
    Silu,
    /// `x tanh(ln(1 + e^x))`.
    Mish,
    /// `min(max(x / 6 + 1 / 2, 0), 1)`.
    Hardsigmoid,
    /// `x` times the former.
    Hardswish,
    /// `min(max(x, -1), 1)`.
    Hardtanh,
    /// Softmax over the last axis.
    Softmax,
    /// Its logarithm.
    LogSoftmax,
}

impl Activation {
    /// All, those with a setting with PyTorch's default.
    pub const ALL: [Self; 17] = [
        Self::Identity,
        Self::Relu,
        Self::LeakyRelu(0.01),
        Self::Relu6,
        Self::Elu(1.0),
        Self::Sigmoid,
        Self::Tanh,
        Self::Softplus(1.0),
        Self::Gelu,
        Self::GeluTanh,
        Self::Silu,
        Self::Mish,
        Self::Hardsigmoid,
        Self::Hardswish,
        Self::Hardtanh,
        Self::Softmax,
        Self::LogSoftmax,
    ];

    /// Its name, as PyTorch has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "Identity",
            Self::Relu => "ReLU",
            Self::LeakyRelu(_) => "LeakyReLU",
            Self::Relu6 => "ReLU6",
            Self::Elu(_) => "ELU",
            Self::Sigmoid => "Sigmoid",
            Self::Tanh => "Tanh",
            Self::Softplus(_) => "Softplus",
            Self::Gelu => "GELU",
            Self::GeluTanh => "GELUTanh",
            Self::Silu => "SiLU",
            Self::Mish => "Mish",
            Self::Hardsigmoid => "Hardsigmoid",
            Self::Hardswish => "Hardswish",
            Self::Hardtanh => "Hardtanh",
            Self::Softmax => "Softmax",
            Self::LogSoftmax => "LogSoftmax",
        }
    }

    /// Its setting, where it has one.
    #[must_use]
    pub const fn setting(self) -> Option<f64> {
        match self {
            Self::LeakyRelu(setting) | Self::Elu(setting) | Self::Softplus(setting) => Some(setting),
            _ => None,
        }
    }

    /// The activation of this name, with this setting where it has one.
    #[must_use]
    pub fn from_name(name: &str, setting: Option<f64>) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|activation| activation.name() == name)?;
        Some(match (found, setting) {
            (Self::LeakyRelu(_), Some(setting)) => Self::LeakyRelu(setting),
            (Self::Elu(_), Some(setting)) => Self::Elu(setting),
            (Self::Softplus(_), Some(setting)) => Self::Softplus(setting),
            _ => found,
        })
    }

    /// Records it.
    #[track_caller]
    pub fn apply<S: Storage>(self, tape: &mut Tape<S>, x: Handle) -> Handle {
        match self {
            Self::Identity => x,
            Self::Relu => tape.relu(x),
            Self::LeakyRelu(slope) => tape.leaky_relu(x, slope),
            Self::Relu6 => tape.relu6(x),
            Self::Elu(alpha) => tape.elu(x, alpha),
            Self::Sigmoid => tape.sigmoid(x),
            Self::Tanh => tape.tanh(x),
            Self::Softplus(beta) => tape.softplus(x, beta, softplus::THRESHOLD),
            Self::Gelu => tape.gelu(x),
            Self::GeluTanh => tape.gelu_tanh(x),
            Self::Silu => tape.silu(x),
            Self::Mish => tape.mish(x),
            Self::Hardsigmoid => tape.hardsigmoid(x),
            Self::Hardswish => tape.hardswish(x),
            Self::Hardtanh => tape.hardtanh(x, -1.0, 1.0),
            Self::Softmax => {
                let last = tape.shape(x).rank().saturating_sub(1);
                tape.softmax(x, last)
            }
            Self::LogSoftmax => {
                let last = tape.shape(x).rank().saturating_sub(1);
                tape.log_softmax(x, last)
            }
        }
    }
}

impl core::fmt::Display for Activation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.setting() {
            Some(setting) => write!(f, "{}({})", self.name(), Decimal(setting)),
            None => f.write_str(self.name()),
        }
    }
}

impl<B: Backend> Layer<B> for Activation {
    fn kind(&self) -> &'static str {
        self.name()
    }
    fn forward(&self, recorder: &mut Recorder<'_, B>, x: Handle) -> Handle {
        self.apply(recorder.tape(), x)
    }
    fn settings(&self) -> alloc::vec::Vec<(&'static str, super::Setting)> {
        self.setting().map(|setting| ("setting", super::Setting::Number(setting))).into_iter().collect()
    }
}
