//! Training steps layer by layer, without a program: a context for the forward pass and one for the backward pass.

use crate::backend::Backend;
use crate::layer::{Model, ModelError};
use crate::optim::Optimizer;
use crate::tape::{GrowingTape, Handle};

use super::Input;

/// The forward pass of steps that are taken layer by layer: each layer is recorded, and its output is computed before the
/// next layer is. After the first step the same memory is used again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForwardContext {
    elements: usize,
}

/// The backward pass of such steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardContext {
    elements: usize,
}

/// Contexts for training steps layer by layer.
///
/// ```
/// use slabgrad::compiled::layer_contexts;
/// use slabgrad::layer::{Model, Sequential};
/// use slabgrad::prelude::*;
///
/// let mut model: Model = Model::new(Sequential::new().linear("fc1", 2, 8).relu().linear("fc2", 8, 1), [2], 1)?;
/// let (mut forward, mut backward) = layer_contexts();
/// let (x, y) = ((Shape::new([2, 2]), &[1.0, 2.0, 3.0, 5.0][..]), (Shape::new([2, 1]), &[3.0, 8.0][..]));
/// for _ in 0..200 {
///     let output = forward.forward(&mut model, x, |layer, output| assert!(!output.is_empty(), "{layer}"))?;
///     let target = model.tape().constant(y.0, y.1);
///     let loss = model.tape().mse(output, target, Reduction::Mean);
///     backward.backward(&mut model, loss)?;
///     model.update(&Adam::new(0.02))?;
///     model.zero_grad();
/// }
/// // Or all of it at once.
/// let loss = |tape: &mut slabgrad::tape::GrowingTape, output, extra: &[slabgrad::tape::Handle]| {
///     tape.mse(output, extra[0], Reduction::Mean)
/// };
/// let loss = backward.training_step(&mut forward, &mut model, &Adam::new(0.02), loss, x, &[y])?;
/// assert!(loss < 0.1, "{loss}");
/// # Ok::<(), slabgrad::layer::ModelError>(())
/// ```
#[must_use]
pub fn layer_contexts() -> (ForwardContext, BackwardContext) {
    (ForwardContext::default(), BackwardContext::default())
}

impl ForwardContext {
    /// Records and computes the model's output for `x`, and hands every layer's name and output to `each` as soon as it is
    /// there.
    ///
    /// # Errors
    /// As [`Model::forward`].
    #[track_caller]
    pub fn forward<B: Backend>(
        &mut self,
        model: &mut Model<B>,
        x: Input<'_, B::Elem>,
        mut each: impl FnMut(&str, &[B::Elem]),
    ) -> Result<Handle, ModelError> {
        let x = model.tape().constant(x.0, x.1);
        let trains = model.is_training();
        let y = model.forward_watched(x, trains, &mut each)?;
        self.elements = model.tape().work_len();
        Ok(y)
    }

    /// Elements in use after the last forward pass, parameters and their gradients apart.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }
}

impl BackwardContext {
    /// The gradients of all parameters that `loss` depends on.
    ///
    /// # Errors
    /// As [`Model::backward`].
    #[track_caller]
    pub fn backward<B: Backend>(&mut self, model: &mut Model<B>, loss: Handle) -> Result<(), ModelError> {
        let before = model.tape().work_len();
        model.backward(loss)?;
        self.elements = model.tape().work_len().saturating_sub(before);
        Ok(())
    }

    /// Elements that the gradients of the last backward pass took, those of parameters apart.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// One training step through both contexts: forward, loss, backward, update; then gradients are set to 0. Returns the loss
    /// before the update.
    ///
    /// # Errors
    /// As [`Model::forward`], [`Model::backward`] and [`Model::update`].
    #[track_caller]
    pub fn training_step<B: Backend, O: Optimizer<B>>(
        &mut self,
        forward: &mut ForwardContext,
        model: &mut Model<B>,
        optimizer: &O,
        loss: impl FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle,
        x: Input<'_, B::Elem>,
        extra: &[Input<'_, B::Elem>],
    ) -> Result<B::Elem, ModelError> {
        model.zero_grad();
        let output = forward.forward(model, x, |_, _| {})?;
        let extra: alloc::vec::Vec<Handle> =
            extra.iter().map(|(shape, data)| model.tape().constant(*shape, data)).collect();
        let loss = loss(model.tape(), output, &extra);
        self.backward(model, loss)?;
        model.update(optimizer)?;
        let value = model.tape().item(loss);
        model.zero_grad();
        Ok(value)
    }
}
