//! Layers with weights, pools, dropout and flatten.

use alloc::vec;
use alloc::vec::Vec;

use super::{Activation, Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::init::Init;
use crate::ops::avg_pool2d::CountPadding;
use crate::ops::{Window2d, conv1d, conv2d, dropout, linear};
use crate::shape::Shape;
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

/// A convolution of `[n, in, h, w]`, then an activation, with parameters `weight` `[out, in / groups, kh, kw]` and `bias`
/// `[out]`.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    inputs: usize,
    outputs: usize,
    settings: conv2d::Conv2d,
    activation: Activation,
}

impl Conv2d {
    /// Between so many channels, with these settings, without an activation.
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize, settings: conv2d::Conv2d) -> Self {
        Self { inputs, outputs, settings, activation: Activation::Identity }
    }

    /// With this activation.
    #[must_use]
    pub const fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }
}

impl<B: Backend> Layer<B> for Conv2d {
    fn kind(&self) -> &'static str {
        "Conv2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let (settings, [height, width]) = (self.settings, self.settings.window.size);
        let of_a_group = self.inputs / settings.groups.max(1);
        let weight = r.parameter("weight", [self.outputs, of_a_group, height, width], settings.init);
        let bias = settings.bias.then(|| r.parameter("bias", [self.outputs], Init::Zeros));
        let y = r.tape().conv2d(x, weight, bias, settings);
        r.activate(self.activation, y)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let conv2d::Conv2d { window, groups, bias, .. } = self.settings;
        let mut settings = vec![("inputs", Setting::Size(self.inputs)), ("outputs", Setting::Size(self.outputs))];
        settings.extend(window_settings(window, [1, 1]));
        settings.extend([
            ("groups", Setting::Size(groups)),
            ("bias", Setting::Flag(bias)),
            ("activation", Setting::Activation(self.activation)),
        ]);
        settings
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.inputs)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.outputs)
    }
}

/// The settings of a window that moves by `stride` unless it says otherwise.
fn window_settings(window: Window2d, stride: [usize; 2]) -> [(&'static str, Setting); 4] {
    [
        ("kernel", Setting::Pair(window.size)),
        ("stride", Setting::Pair(window.stride.unwrap_or(stride))),
        ("padding", Setting::Pair(window.padding)),
        ("dilation", Setting::Pair(window.dilation)),
    ]
}

/// A convolution of `[n, in, length]`, then an activation, with parameters `weight` `[out, in / groups, k]` and `bias`
/// `[out]`.
#[derive(Clone, Copy, Debug)]
pub struct Conv1d {
    inputs: usize,
    outputs: usize,
    settings: conv1d::Conv1d,
    activation: Activation,
}

impl Conv1d {
    /// Between so many channels, with these settings, without an activation.
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize, settings: conv1d::Conv1d) -> Self {
        Self { inputs, outputs, settings, activation: Activation::Identity }
    }

    /// With this activation.
    #[must_use]
    pub const fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }
}

impl<B: Backend> Layer<B> for Conv1d {
    fn kind(&self) -> &'static str {
        "Conv1d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let settings = self.settings.0;
        let of_a_group = self.inputs / settings.groups.max(1);
        let weight = r.parameter("weight", [self.outputs, of_a_group, settings.window.size[1]], settings.init);
        let bias = settings.bias.then(|| r.parameter("bias", [self.outputs], Init::Zeros));
        let y = r.tape().conv1d(x, weight, bias, self.settings);
        r.activate(self.activation, y)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let conv2d::Conv2d { window, groups, bias, .. } = self.settings.0;
        vec![
            ("inputs", Setting::Size(self.inputs)),
            ("outputs", Setting::Size(self.outputs)),
            ("kernel", Setting::Size(window.size[1])),
            ("stride", Setting::Size(window.stride.unwrap_or([1, 1])[1])),
            ("padding", Setting::Size(window.padding[1])),
            ("dilation", Setting::Size(window.dilation[1])),
            ("groups", Setting::Size(groups)),
            ("bias", Setting::Flag(bias)),
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

/// Each sample as a vector: `[n, ...]` becomes `[n, product of the rest]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flatten;

impl<B: Backend> Layer<B> for Flatten {
    fn kind(&self) -> &'static str {
        "Flatten"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().flatten(x)
    }
}

/// The largest element of every window over `[n, c, h, w]`.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d(Window2d);

impl MaxPool2d {
    /// Over these windows.
    #[must_use]
    pub const fn new(window: Window2d) -> Self {
        Self(window)
    }
}

impl<B: Backend> Layer<B> for MaxPool2d {
    fn kind(&self) -> &'static str {
        "MaxPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().max_pool2d(x, self.0)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        window_settings(self.0, self.0.size).into()
    }
}

/// The mean of every window over `[n, c, h, w]`.
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2d {
    window: Window2d,
    padding: CountPadding,
}

impl AvgPool2d {
    /// Over these windows; padding counts as zeros.
    #[must_use]
    pub const fn new(window: Window2d) -> Self {
        Self { window, padding: CountPadding::Yes }
    }

    /// Whether padding counts.
    #[must_use]
    pub const fn count_padding(self, padding: CountPadding) -> Self {
        Self { padding, ..self }
    }
}

impl<B: Backend> Layer<B> for AvgPool2d {
    fn kind(&self) -> &'static str {
        "AvgPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().avg_pool2d(x, self.window, self.padding)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings: Vec<_> = window_settings(self.window, self.window.size).into();
        settings.push(("count_padding", Setting::Flag(self.padding == CountPadding::Yes)));
        settings
    }
}

/// The mean of every plane: `[n, c, h, w]` becomes `[n, c]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GlobalAvgPool2d;

impl<B: Backend> Layer<B> for GlobalAvgPool2d {
    fn kind(&self) -> &'static str {
        "GlobalAvgPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let y = r.tape().global_avg_pool2d(x);
        r.tape().flatten(y)
    }
}

/// Sets elements to 0 at random in training, and does nothing in evaluation; see [`ops::dropout`](crate::ops::dropout).
#[derive(Clone, Copy, Debug)]
pub struct Dropout(dropout::Dropout);

impl Dropout {
    /// With these settings.
    #[must_use]
    pub const fn new(settings: dropout::Dropout) -> Self {
        Self(settings)
    }
}

impl<B: Backend> Layer<B> for Dropout {
    fn kind(&self) -> &'static str {
        "Dropout"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let (counter, stream) = r.dropout_counter();
        if r.is_training() { r.tape().dropout(x, counter, self.0, stream) } else { x }
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![("p", Setting::Number(self.0.p))];
        if self.0.seed != 0 {
            settings.push(("seed", Setting::Seed(self.0.seed)));
        }
        settings
    }
}

/// The shape of a single sample, without the axis of the batch.
pub(super) fn of_a_sample(batch: Shape) -> Shape {
    batch.without(0)
}
