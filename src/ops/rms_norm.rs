//! Root mean square normalisation over the last 1 to 3 axes (Zhang and Sennrich, 2019; PyTorch's `nn.RMSNorm`):
//! `y = x / √(mean x² + ε) w`. In place where nothing else reads `x`.
//!
//! With `s = 1 / √(mean x² + ε)`, `x̂ = x s`, `g = dy w` and n elements to a mean: `dx = s (g - x̂ Σ (g x̂) / n)` and
//! `dw = Σ dy x̂`.

use super::norm::{self, Affine};
use super::{Op, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table; the weight is optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &norm::table("rms_norm") }
}

/// Any shape with at least `axes` axes; the output has the same. The weight, where it is there, has the shape of the last
/// `axes` axes.
///
/// # Errors
/// When `x` has fewer axes, `axes` is not 1, 2 or 3, the weight has another shape, or `epsilon` is negative.
pub const fn spec(x: Shape, weight: Option<Shape>, axes: usize, epsilon: f64) -> Result<Spec, ShapeError> {
    norm::spec_of_last_axes("rms_norm", x, [weight, None], axes, epsilon, false)
}

/// What a root mean square normalisation has beside the shape that it works on.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    pub(crate) axes: usize,
    pub(crate) epsilon: f64,
    pub(crate) affine: Affine,
}

impl RmsNorm {
    /// Over the last axis, with ε = 1e-5 and a weight.
    #[must_use]
    pub const fn new() -> Self {
        Self::last_axes(1)
    }

    /// The same over the last 1, 2 or 3 axes together.
    #[must_use]
    pub const fn last_axes(axes: usize) -> Self {
        Self { axes, epsilon: 1e-5, affine: Affine::Weight }
    }

    /// With this ε, which keeps a mean square of 0 from being divided by.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// Without the weight.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { affine: Affine::Nothing, ..self }
    }
}

impl Default for RmsNorm {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A root mean square normalisation over the last axis, with the parameter `name.weight`, which starts as ones.
    #[track_caller]
    pub const fn rms_norm<S: Dims>(&mut self, name: &'static str, x: Var<S>) -> Var<S> {
        self.rms_norm_with(name, x, RmsNorm::new())
    }

    /// A root mean square normalisation with these settings.
    ///
    /// # Panics
    /// When `x` has fewer axes than are normalised over.
    #[track_caller]
    pub const fn rms_norm_with<S: Dims>(&mut self, name: &'static str, x: Var<S>, settings: RmsNorm) -> Var<S> {
        let [weight, bias] = settings.affine.shapes(norm::last_axes(S::SHAPE, settings.axes));
        let spec = spec(x.shape(), weight, settings.axes, settings.epsilon);
        norm::record(self, name, op(), x.id(), [weight, bias], spec)
    }
}

crate::tape::methods! {
    /// `x / √(mean x² + epsilon) w` over the last `axes` axes, 1 to 3, of which the weight has the shape. A fault where shapes
    /// or settings do not fit.
    rms_norm(x; weight)(axes: usize, epsilon: f64) => (op(), spec(x, weight, axes, epsilon))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, gradient};
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn values_and_gradients() {
        // The mean square is 25; ε = 0.
        let spec = spec(Shape::new([1, 2]), Some(Shape::new([2])), 1, 0.0).unwrap();
        let (x, w) = ([1.0, 7.0], [2.0, 3.0]);
        // Σ g x̂ / n = (2 · 0.2 + 3 · 1.4) / 2 = 2.3.
        let dx = [(2.0 - 0.2 * 2.3) / 5.0, (3.0 - 1.4 * 2.3) / 5.0];
        check(op(), spec, &[&x, &w], &[0.4, 4.2], &[&dx, &[0.2, 1.4]]);
    }

    #[test]
    fn zeros_stay_zeros_with_a_finite_gradient() {
        let spec = spec(Shape::new([2]), None, 1, 1e-5).unwrap();
        let (y, dx) = gradient(op::<Strict<f64>>(), spec, &[&[0.0; 2]], &[1.0, 0.0], 0);
        assert_eq!((y, dx), (std::vec![0.0; 2], std::vec![1.0 / f64::sqrt(1e-5), 0.0]));
    }
}
