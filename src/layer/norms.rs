//! Normalisations.

use alloc::vec;
use alloc::vec::Vec;

use super::{Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::init::Init;
use crate::ops::norm::Affine;
use crate::ops::{batch_norm, group_norm, layer_norm, rms_norm};
use crate::shape::Shape;
use crate::tape::Handle;

/// Weight and bias of a normalisation, of shape `shape`.
fn affine<B: Backend>(r: &mut Recorder<'_, B>, affine: Affine, shape: Shape) -> [Option<Handle>; 2] {
    let [weight, bias] = affine.shapes(shape);
    [
        weight.map(|shape| r.parameter("weight", shape, Init::Ones)),
        bias.map(|shape| r.parameter("bias", shape, Init::Zeros)),
    ]
}

fn affine_settings(affine: Affine) -> [(&'static str, Setting); 2] {
    let (weight, bias) = (affine != Affine::Nothing, affine == Affine::WeightAndBias);
    [("weight", Setting::Flag(weight)), ("bias", Setting::Flag(bias))]
}

fn batch_norm_settings(channels: usize, settings: batch_norm::BatchNorm) -> Vec<(&'static str, Setting)> {
    let mut all = vec![
        ("channels", Setting::Size(channels)),
        ("epsilon", Setting::Number(settings.epsilon)),
        ("momentum", Setting::Number(settings.momentum)),
        ("biased", Setting::Flag(settings.biased)),
    ];
    if settings.eval {
        all.push(("eval", Setting::Flag(true)));
    }
    all.extend(affine_settings(settings.affine));
    all
}

/// Batch normalisation over positions along so many axes, with parameters `weight` and `bias` and states `running_mean` and
/// `running_var`, all `[c]`. In evaluation it takes the running statistics.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<const AXES: usize> {
    channels: usize,
    settings: batch_norm::BatchNorm,
}

/// [`BatchNorm`] of `[n, c]` or `[n, c, length]`.
pub type BatchNorm1d = BatchNorm<1>;
/// [`BatchNorm`] of images `[n, c, h, w]`.
pub type BatchNorm2d = BatchNorm<2>;

impl<const AXES: usize> BatchNorm<AXES> {
    /// Of so many channels or features.
    #[must_use]
    pub const fn new(channels: usize) -> Self {
        Self { channels, settings: batch_norm::BatchNorm::new() }
    }

    /// With these settings.
    #[must_use]
    pub const fn settings(self, settings: batch_norm::BatchNorm) -> Self {
        Self { settings, ..self }
    }
}

impl<B: Backend, const AXES: usize> Layer<B> for BatchNorm<AXES> {
    fn kind(&self) -> &'static str {
        if AXES == 1 { "BatchNorm1d" } else { "BatchNorm2d" }
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        // In the order of a static graph, which images tell layouts by.
        let leaves = [("running_mean", Init::Zeros), ("running_var", Init::Ones)];
        let statistics = r.states(leaves, [self.channels]);
        let [weight, bias] = affine(r, self.settings.affine, [self.channels].into());
        let settings = if r.is_training() { self.settings } else { self.settings.eval() };
        let found = r.tape().shape(x);
        let (expected, fits) = match AXES {
            1 => ("[n, c] or [n, c, length]", found.rank() == 2 || found.rank() == 3),
            _ => ("[n, c, h, w]", found.rank() == 4),
        };
        if !fits {
            let op = Layer::<B>::kind(self);
            let error = ShapeError::Rank { op, operand: "the input", expected, found };
            return r.tape().apply(batch_norm::op(), &[x], Err(error));
        }
        r.tape().batch_norm(x, weight, bias, statistics, settings)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        batch_norm_settings(self.channels, self.settings)
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.channels)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.channels)
    }
}

/// Layer normalisation over the last axes, whose shape it is made for, with parameters `weight` and `bias` of that shape.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    shape: Shape,
    settings: layer_norm::LayerNorm,
}

impl LayerNorm {
    /// Over the last axes, which have this shape.
    pub fn new(shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        Self { shape, settings: layer_norm::LayerNorm::last_axes(shape.rank()) }
    }

    /// With this ε.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { settings: self.settings.epsilon(epsilon), ..self }
    }

    /// Without weight and bias.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { settings: self.settings.without_affine(), ..self }
    }
}

impl<B: Backend> Layer<B> for LayerNorm {
    fn kind(&self) -> &'static str {
        "LayerNorm"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let [weight, bias] = affine(r, self.settings.affine, self.shape);
        r.tape().layer_norm(x, weight, bias, self.settings.axes, self.settings.epsilon)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut all: Vec<_> = (0..self.shape.rank()).map(|i| ("axis", Setting::Size(self.shape.axis(i)))).collect();
        all.push(("epsilon", Setting::Number(self.settings.epsilon)));
        all.extend(affine_settings(self.settings.affine));
        all
    }
}

/// Root-mean-square normalisation over the last axes, whose shape it is made for, with a parameter `weight` of that shape.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    shape: Shape,
    settings: rms_norm::RmsNorm,
}

impl RmsNorm {
    /// Over the last axes, which have this shape.
    pub fn new(shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        Self { shape, settings: rms_norm::RmsNorm::last_axes(shape.rank()) }
    }

    /// With this ε.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { settings: self.settings.epsilon(epsilon), ..self }
    }

    /// Without a weight.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { settings: self.settings.without_affine(), ..self }
    }
}

impl<B: Backend> Layer<B> for RmsNorm {
    fn kind(&self) -> &'static str {
        "RmsNorm"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let [weight, _] = affine(r, self.settings.affine, self.shape);
        r.tape().rms_norm(x, weight, self.settings.axes, self.settings.epsilon)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut all: Vec<_> = (0..self.shape.rank()).map(|i| ("axis", Setting::Size(self.shape.axis(i)))).collect();
        all.push(("epsilon", Setting::Number(self.settings.epsilon)));
        all.push(("weight", Setting::Flag(self.settings.affine != Affine::Nothing)));
        all
    }
}

/// Group normalisation of `[n, c, ...]`, with parameters `weight` and `bias` `[c]`.
#[derive(Clone, Copy, Debug)]
pub struct GroupNorm {
    channels: usize,
    settings: group_norm::GroupNorm,
}

impl GroupNorm {
    /// Of so many groups of channels.
    #[must_use]
    pub const fn new(groups: usize, channels: usize) -> Self {
        Self { channels, settings: group_norm::GroupNorm::groups(groups) }
    }

    /// With this ε.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { settings: self.settings.epsilon(epsilon), ..self }
    }

    /// Without weight and bias.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { settings: self.settings.without_affine(), ..self }
    }
}

impl<B: Backend> Layer<B> for GroupNorm {
    fn kind(&self) -> &'static str {
        "GroupNorm"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let [weight, bias] = affine(r, self.settings.affine, [self.channels].into());
        r.tape().group_norm(x, weight, bias, self.settings.groups, self.settings.epsilon)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut all = vec![
            ("groups", Setting::Size(self.settings.groups)),
            ("channels", Setting::Size(self.channels)),
            ("epsilon", Setting::Number(self.settings.epsilon)),
        ];
        all.extend(affine_settings(self.settings.affine));
        all
    }
    fn input_size(&self) -> Option<usize> {
        Some(self.channels)
    }
    fn output_size(&self) -> Option<usize> {
        Some(self.channels)
    }
}
