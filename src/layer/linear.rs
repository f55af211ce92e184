//! Layers that multiply by a matrix or look rows of one up.

use alloc::vec;
use alloc::vec::Vec;

use super::{Activation, Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::init::Init;
use crate::ops::linear;
use crate::tape::Handle;

/// `activation(x Wᵀ + b)` for `[n, ..., in]`, with parameters `weight` `[out, in]` and `bias` `[out]`: Keras' Dense.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "Dense")]
pub struct Linear {
    inputs: usize,
    outputs: usize,
    settings: linear::Linear,
    activation: Activation,
}

impl Linear {
    /// With a bias, without an activation; the weight starts as [`Init::HeUniform`].
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize) -> Self {
        Self { inputs, outputs, settings: linear::Linear::new(), activation: Activation::Identity }
    }

    /// With these settings.
    #[must_use]
    pub const fn settings(self, settings: linear::Linear) -> Self {
        Self { settings, ..self }
    }

    /// With this activation.
    #[must_use]
    pub const fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }
}

impl<B: Backend> Layer<B> for Linear {
    fn kind(&self) -> &'static str {
        "Linear"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let weight = r.parameter("weight", [self.outputs, self.inputs], self.settings.init);
        let bias = self.settings.bias.then(|| r.parameter("bias", [self.outputs], Init::Zeros));
        let y = r.tape().linear(x, weight, bias);
        r.activate(self.activation, y)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            ("inputs", Setting::Size(self.inputs)),
            ("outputs", Setting::Size(self.outputs)),
            ("bias", Setting::Flag(self.settings.bias)),
            ("activation", Setting::Activation(self.activation)),
        ]
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.inputs)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.outputs)
    }
}

/// Rows of a table: `[n, ...]` of whole numbers below `count` becomes `[n, ..., size]`, with a parameter `weight`
/// `[count, size]` that starts with normal numbers of variance 2 / `size`.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    count: usize,
    size: usize,
    init: Init,
}

impl Embedding {
    /// A table of `count` rows of `size` elements.
    #[must_use]
    pub const fn new(count: usize, size: usize) -> Self {
        Self { count, size, init: Init::HeNormal }
    }

    /// With a weight that starts so.
    #[must_use]
    pub const fn init(self, init: Init) -> Self {
        Self { init, ..self }
    }
}

impl<B: Backend> Layer<B> for Embedding {
    fn kind(&self) -> &'static str {
        "Embedding"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let weight = r.parameter("weight", [self.count, self.size], self.init);
        r.tape().embedding(weight, x)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("count", Setting::Size(self.count)), ("size", Setting::Size(self.size))]
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.size)
    }
}
