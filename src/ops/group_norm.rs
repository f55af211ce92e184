//! Group normalisation of `x` `[n, c, ...]` (Wu and He, 2018; PyTorch's `nn.GroupNorm`): the channels of each sample are
//! split into groups, and each group becomes `(x - mean) / √(variance + ε)`, with the biased variance; then
//! `y = x̂ w + b` with a weight and a bias for each channel. One group is layer normalisation over all but the first axis, as
//! many as channels instance normalisation. In place where nothing else reads `x`.
//!
//! With `x̂ = (x - mean) s`, `s = 1 / √(variance + ε)`, `g = dy w` and n elements in a group:
//! `dx = s (g - Σ g / n - x̂ Σ (g x̂) / n)`, `dw = Σ dy x̂`, `db = Σ dy`.

use super::norm::{self, Affine, Division};
use super::{Op, Spec};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};

/// The table; weight and bias are optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &norm::table("group_norm") }
}

/// Any shape `[n, c, ...]`; the output has the same. Weight and bias, where they are there, have shape `[c]`.
///
/// # Errors
/// When `x` has fewer than two axes, the groups do not divide the channels, weight or bias have another shape, or
/// `epsilon` is negative.
pub const fn spec(
    x: Shape,
    weight: Option<Shape>,
    bias: Option<Shape>,
    groups: usize,
    epsilon: f64,
) -> Result<Spec, ShapeError> {
    let op = "group_norm";
    if x.rank() < 2 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, ...]", found: x });
    }
    let channels = x.axis(1);
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(ShapeError::Setting { op, rule: "groups divide the channels", found: groups as f64 });
    }
    let division = Division { groups, channels: channels / groups, plane: x.product(2, x.rank()), centred: true };
    norm::spec(op, x, [weight, bias], Shape::new([channels]), &division, epsilon)
}

/// What a group normalisation has beside the shape that it works on.
#[derive(Clone, Copy, Debug)]
pub struct GroupNorm {
    pub(crate) groups: usize,
    pub(crate) epsilon: f64,
    pub(crate) affine: Affine,
}

impl GroupNorm {
    /// So many groups, with ε = 1e-5, a weight and a bias.
    #[must_use]
    pub const fn groups(groups: usize) -> Self {
        Self { groups, epsilon: 1e-5, affine: Affine::WeightAndBias }
    }

    /// With this ε, which keeps a variance of 0 from being divided by.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// Without weight and bias.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { affine: Affine::Nothing, ..self }
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A group normalisation with parameters `name.weight`, which starts as ones, and `name.bias`, as zeros.
    ///
    /// # Panics
    /// When `x` has fewer than two axes, or `groups` do not divide its channels.
    #[track_caller]
    pub const fn group_norm<S: Dims>(&mut self, name: &'static str, x: Var<S>, groups: usize) -> Var<S> {
        self.group_norm_with(name, x, GroupNorm::groups(groups))
    }

    /// A group normalisation with these settings.
    ///
    /// # Panics
    /// As [`Graph::group_norm`].
    #[track_caller]
    pub const fn group_norm_with<S: Dims>(&mut self, name: &'static str, x: Var<S>, settings: GroupNorm) -> Var<S> {
        let [weight, bias] = settings.affine.shapes(Shape::new([S::SHAPE.axis(1)]));
        let spec = spec(x.shape(), weight, bias, settings.groups, settings.epsilon);
        norm::record(self, name, op(), x.id(), [weight, bias], spec)
    }
}

crate::tape::methods! {
    /// `(x - mean) / √(variance + epsilon) w + b` of `x` `[n, c, ...]` over each of `groups` groups of a sample's channels, with
    /// weight and bias `[c]`; PyTorch's `epsilon` is 1e-5. A fault where shapes or settings do not fit, or there is a bias
    /// without a weight.
    group_norm(x; weight, bias)(groups: usize, epsilon: f64) => (op(), spec(x, weight, bias, groups, epsilon))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        // Two groups of one channel with two elements each, which become -1 and 1.
        let (x, w, b) = ([-1.0, 3.0, 4.0, 6.0], [2.0, 3.0], [10.0, 20.0]);
        let shape = Some(Shape::new([2]));
        let spec = spec(Shape::new([1, 2, 2]), shape, shape, 2, 0.0).unwrap();
        check(op(), spec, &[&x, &w, &b], &[8.0, 12.0, 17.0, 23.0], &[&[0.0; 4], &[0.0, 0.0], &[2.0, 2.0]]);
    }

    #[test]
    fn groups_that_do_not_divide_the_channels_are_an_error() {
        let error = spec(Shape::new([1, 6, 4]), None, None, 4, 1e-5).unwrap_err();
        assert_eq!(std::format!("{error}"), "group_norm: groups divide the channels, found 4");
    }
}
