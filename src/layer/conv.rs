//! Convolutions.

use alloc::vec;
use alloc::vec::Vec;

use super::model::batched;
use super::{Activation, Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::init::Init;
use crate::ops::{Window2d, conv1d, conv2d};
use crate::shape::Shape;
use crate::tape::Handle;

/// A convolution with the settings `S`, then an activation, with parameters `weight` `[out, in / groups, ...kernel]` and `bias`
/// `[out]`.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<S> {
    inputs: usize,
    outputs: usize,
    settings: S,
    activation: Activation,
}

/// [`Convolution`] of `[n, in, length]`.
pub type Conv1d = Convolution<conv1d::Conv1d>;
/// [`Convolution`] of `[n, in, h, w]`.
pub type Conv2d = Convolution<conv2d::Conv2d>;

impl<S: Copy> Convolution<S> {
    /// Between so many channels, with these settings, without an activation.
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize, settings: S) -> Self {
        Self { inputs, outputs, settings, activation: Activation::Identity }
    }

    /// With this activation.
    #[must_use]
    pub const fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Weight and bias of a kernel of this shape.
    fn parameters<B: Backend>(
        &self,
        r: &mut Recorder<'_, B>,
        kernel: Shape,
        settings: conv2d::Conv2d,
    ) -> (Handle, Option<Handle>) {
        let weight = batched(batched(kernel, self.inputs / settings.groups.max(1)), self.outputs);
        let weight = r.parameter("weight", weight, settings.init);
        (weight, settings.bias.then(|| r.parameter("bias", [self.outputs], Init::Zeros)))
    }

    /// All settings, those of the window in the middle.
    fn all_settings(
        &self,
        window: [(&'static str, Setting); 4],
        settings: conv2d::Conv2d,
    ) -> Vec<(&'static str, Setting)> {
        let mut all = vec![("inputs", Setting::Size(self.inputs)), ("outputs", Setting::Size(self.outputs))];
        all.extend(window);
        all.extend([
            ("groups", Setting::Size(settings.groups)),
            ("bias", Setting::Flag(settings.bias)),
            ("activation", Setting::Activation(self.activation)),
        ]);
        all
    }
}

impl<B: Backend> Layer<B> for Conv1d {
    fn kind(&self) -> &'static str {
        "Conv1d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let settings = self.settings.0;
        let (weight, bias) = self.parameters(r, [settings.window.size[1]].into(), settings);
        let y = r.tape().conv1d(x, weight, bias, self.settings);
        r.activate(self.activation, y)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let window = window_settings(self.settings.0.window, [1, 1]).map(|(name, setting)| match setting {
            Setting::Pair([_, along]) => (name, Setting::Size(along)),
            other => (name, other),
        });
        self.all_settings(window, self.settings.0)
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.inputs)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.outputs)
    }
}

impl<B: Backend> Layer<B> for Conv2d {
    fn kind(&self) -> &'static str {
        "Conv2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let (weight, bias) = self.parameters(r, self.settings.window.size.into(), self.settings);
        let y = r.tape().conv2d(x, weight, bias, self.settings);
        r.activate(self.activation, y)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        self.all_settings(window_settings(self.settings.window, [1, 1]), self.settings)
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.inputs)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.outputs)
    }
}

/// The settings of a window that moves by `stride` unless it says otherwise.
pub(super) fn window_settings(window: Window2d, stride: [usize; 2]) -> [(&'static str, Setting); 4] {
    [
        ("kernel", Setting::Pair(window.size)),
        ("stride", Setting::Pair(window.stride.unwrap_or(stride))),
        ("padding", Setting::Pair(window.padding)),
        ("dilation", Setting::Pair(window.dilation)),
    ]
}
