//! Layer normalisation over the last 1 to 3 axes (Ba, Kiros and Hinton, 2016; PyTorch's `nn.LayerNorm`):
//! `y = (x - mean) / √(variance + ε) w + b`, with the biased variance. In place where nothing else reads `x`.
//!
//! With `x̂ = (x - mean) s`, `s = 1 / √(variance + ε)`, `g = dy w` and n elements to a mean:
//! `dx = s (g - Σ g / n - x̂ Σ (g x̂) / n)`, `dw = Σ dy x̂`, `db = Σ dy`.

use super::norm::{self, Affine};
use super::{Op, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table; weight and bias are optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &norm::table("layer_norm") }
}

/// Any shape with at least `axes` axes; the output has the same. Weight and bias, where they are there, have the shape of the
/// last `axes` axes.
///
/// # Errors
/// When `x` has fewer axes, `axes` is not 1, 2 or 3, weight or bias have another shape, or `epsilon` is negative.
pub const fn spec(
    x: Shape,
    weight: Option<Shape>,
    bias: Option<Shape>,
    axes: usize,
    epsilon: f64,
) -> Result<Spec, ShapeError> {
    norm::spec_of_last_axes("layer_norm", x, [weight, bias], axes, epsilon, true)
}

/// What a layer normalisation has beside the shape that it works on.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    pub(crate) axes: usize,
    pub(crate) epsilon: f64,
    pub(crate) affine: Affine,
}

impl LayerNorm {
    /// Over the last axis, with ε = 1e-5 and a weight and a bias.
    #[must_use]
    pub const fn new() -> Self {
        Self::last_axes(1)
    }

    /// The same over the last 1, 2 or 3 axes together.
    #[must_use]
    pub const fn last_axes(axes: usize) -> Self {
        Self { axes, epsilon: 1e-5, affine: Affine::WeightAndBias }
    }

    /// With this ε, which keeps a variance of 0 from being divided by.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// With a weight alone.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Self { affine: Affine::Weight, ..self }
    }

    /// Without weight and bias.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { affine: Affine::Nothing, ..self }
    }
}

impl Default for LayerNorm {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A layer normalisation over the last axis, with parameters `name.weight`, which starts as ones, and `name.bias`, as zeros.
    #[track_caller]
    pub const fn layer_norm<S: Dims>(&mut self, name: &'static str, x: Var<S>) -> Var<S> {
        self.layer_norm_with(name, x, LayerNorm::new())
    }

    /// A layer normalisation with these settings.
    ///
    /// # Panics
    /// When `x` has fewer axes than are normalised over.
    #[track_caller]
    pub const fn layer_norm_with<S: Dims>(&mut self, name: &'static str, x: Var<S>, settings: LayerNorm) -> Var<S> {
        let [weight, bias] = settings.affine.shapes(norm::last_axes(S::SHAPE, settings.axes));
        let spec = spec(x.shape(), weight, bias, settings.axes, settings.epsilon);
        norm::record(self, name, op(), x.id(), [weight, bias], spec)
    }
}

crate::tape::methods! {
    /// `(x - mean) / √(variance + epsilon) w + b` over the last `axes` axes, 1 to 3, of which weight and bias have the shape;
    /// PyTorch's `epsilon` is 1e-5. A fault where shapes or settings do not fit, or there is a bias without a weight.
    layer_norm(x; weight, bias)(axes: usize, epsilon: f64) => (op(), spec(x, weight, bias, axes, epsilon))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        // Mean 1 and variance 4, then mean 5 and variance 1; ε = 0.
        let (x, w, b) = ([-1.0, 3.0, 4.0, 6.0], [2.0, 3.0], [10.0, 20.0]);
        let shape = Some(Shape::new([2]));
        let spec = spec(Shape::new([2, 2]), shape, shape, 1, 0.0).unwrap();
        // Two elements are normalised to -1 and 1 whatever they are, so the gradient for them is 0.
        check(op(), spec, &[&x, &w, &b], &[8.0, 23.0, 8.0, 23.0], &[&[0.0; 4], &[-2.0, 2.0], &[2.0, 2.0]]);
    }

    #[test]
    fn equal_elements_give_the_bias_and_a_finite_gradient() {
        let spec = spec(Shape::new([3]), None, None, 1, 1e-5).unwrap();
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&[7.0; 3]], &[1.0, 0.0, -1.0], 0);
        let scale = 1.0 / f64::sqrt(1e-5);
        assert_eq!((y, dx), (std::vec![0.0; 3], std::vec![scale, 0.0, -scale]));
    }

    #[test]
    fn errors_have_the_numbers() {
        let x = Shape::new([2, 3]);
        let text = |spec: Result<Spec, ShapeError>| std::format!("{}", spec.unwrap_err());
        let rule = "layer_norm: the input has shape [2, 3], expected as many axes as are normalised over, 1 to 3";
        assert_eq!(text(spec(x, None, None, 3, 1e-5)), rule);
        let rule = "layer_norm: the weight has shape [2], expected that of what is normalised";
        assert_eq!(text(spec(x, Some(Shape::new([2])), None, 1, 1e-5)), rule);
        assert_eq!(text(spec(x, None, None, 1, -1.0)), "layer_norm: epsilon is at least 0 and finite, found -1");
    }
}
