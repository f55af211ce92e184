//! Layers that are made of layers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Activation, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Flatten, GlobalAvgPool2d, Layer, Linear,
    MaxPool2d, Recorder,
};
use crate::backend::{Backend, Strict};
use crate::error::ShapeError;
use crate::ops::{Window2d, add, conv1d, conv2d, dropout};
use crate::tape::Handle;

/// Layers one after the other. Each has a name, and its parameters are `name.weight` and so on.
pub struct Sequential<B: Backend = Strict<f32>> {
    children: Vec<(String, Box<dyn Layer<B>>)>,
}

impl<B: Backend> Default for Sequential<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> Sequential<B> {
    /// No layers: the output is the input.
    #[must_use]
    pub const fn new() -> Self {
        Self { children: Vec::new() }
    }

    /// Appends a layer under a name of its own.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, layer: impl Layer<B> + 'static) -> Self {
        self.children.push((name.into(), Box::new(layer)));
        self
    }

    /// Appends a layer, whose name is its place, counted from 0, as in PyTorch.
    #[must_use]
    pub fn push(self, layer: impl Layer<B> + 'static) -> Self {
        let name = format!("{}", self.children.len());
        self.named(name, layer)
    }

    /// Appends a [`Linear`] layer.
    #[must_use]
    pub fn linear(self, name: impl Into<String>, inputs: usize, outputs: usize) -> Self {
        self.named(name, Linear::new(inputs, outputs))
    }

    /// Appends a [`Conv1d`] layer.
    #[must_use]
    pub fn conv1d(self, name: impl Into<String>, inputs: usize, outputs: usize, settings: conv1d::Conv1d) -> Self {
        self.named(name, Conv1d::new(inputs, outputs, settings))
    }

    /// Appends a [`Conv2d`] layer.
    #[must_use]
    pub fn conv2d(self, name: impl Into<String>, inputs: usize, outputs: usize, settings: conv2d::Conv2d) -> Self {
        self.named(name, Conv2d::new(inputs, outputs, settings))
    }

    /// Appends a [`BatchNorm1d`] layer.
    #[must_use]
    pub fn batch_norm1d(self, name: impl Into<String>, channels: usize) -> Self {
        self.named(name, BatchNorm1d::new(channels))
    }

    /// Appends a [`BatchNorm2d`] layer.
    #[must_use]
    pub fn batch_norm2d(self, name: impl Into<String>, channels: usize) -> Self {
        self.named(name, BatchNorm2d::new(channels))
    }

    /// Appends an activation.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.push(activation)
    }

    /// Appends [`Activation::Relu`].
    #[must_use]
    pub fn relu(self) -> Self {
        self.push(Activation::Relu)
    }

    /// Appends a [`MaxPool2d`] layer.
    #[must_use]
    pub fn max_pool2d(self, window: Window2d) -> Self {
        self.push(MaxPool2d::new(window))
    }

    /// Appends an [`AvgPool2d`] layer.
    #[must_use]
    pub fn avg_pool2d(self, window: Window2d) -> Self {
        self.push(AvgPool2d::new(window))
    }

    /// Appends a [`GlobalAvgPool2d`] layer.
    #[must_use]
    pub fn global_avg_pool2d(self) -> Self {
        self.push(GlobalAvgPool2d)
    }

    /// Appends a [`Flatten`] layer.
    #[must_use]
    pub fn flatten(self) -> Self {
        self.push(Flatten)
    }

    /// Appends a [`Dropout`] layer with probability `p`.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        self.push(Dropout::new(dropout::Dropout::new(p)))
    }

    /// How many layers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }
}

impl<B: Backend> Layer<B> for Sequential<B> {
    fn kind(&self) -> &'static str {
        "Sequential"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        self.children.iter().fold(x, |x, (name, layer)| r.layer(name, layer, x))
    }
    fn children(&self) -> Vec<(&str, &dyn Layer<B>)> {
        self.children.iter().map(|(name, layer)| (name.as_str(), &**layer)).collect()
    }
    fn input_size(&self) -> Option<usize> {
        self.children.iter().find_map(|(_, layer)| layer.input_size())
    }
    fn output_size(&self) -> Option<usize> {
        self.children.iter().rev().find_map(|(_, layer)| layer.output_size())
    }
}

/// `x + f(x)`, or with a shortcut `s(x) + f(x)`, as in residual networks (He et al., 2016). Parameters are `block....` and
/// `shortcut....`.
pub struct Residual<B: Backend = Strict<f32>> {
    block: Box<dyn Layer<B>>,
    shortcut: Option<Box<dyn Layer<B>>>,
}

impl<B: Backend> Residual<B> {
    /// Around this layer, whose output has the shape of its input, or of the shortcut's output.
    #[must_use]
    pub fn new(block: impl Layer<B> + 'static) -> Self {
        Self { block: Box::new(block), shortcut: None }
    }

    /// With another way to the output than as it stands, such as a convolution of size 1.
    #[must_use]
    pub fn shortcut(self, shortcut: impl Layer<B> + 'static) -> Self {
        Self { shortcut: Some(Box::new(shortcut)), ..self }
    }
}

impl<B: Backend> Layer<B> for Residual<B> {
    fn kind(&self) -> &'static str {
        "Residual"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let y = r.layer("block", &self.block, x);
        let x = match &self.shortcut {
            Some(shortcut) => r.layer("shortcut", shortcut, x),
            None => x,
        };
        let tape = r.tape();
        let (found, of_shortcut) = (tape.shape(y), tape.shape(x));
        let spec = if found == of_shortcut {
            add::spec(found, of_shortcut)
        } else {
            let (operand, expected) = ("the block's output", "that of the input, or of the shortcut's output");
            Err(ShapeError::Rank { op: "residual", operand, expected, found })
        };
        // Nothing is broadcast, so the kernels that would are not there.
        tape.apply(add::op_same(), &[y, x], spec)
    }
    fn children(&self) -> Vec<(&str, &dyn Layer<B>)> {
        let shortcut = self.shortcut.iter().map(|shortcut| ("shortcut", &**shortcut));
        core::iter::once(("block", &*self.block)).chain(shortcut).collect()
    }
    fn input_size(&self) -> Option<usize> {
        self.block.input_size()
    }
    fn output_size(&self) -> Option<usize> {
        self.block.output_size()
    }
}
