//! One-dimensional convolution (cross-correlation, as in PyTorch): `x` `[n, c, l]`, weight `[o, c / groups, k]`, optional
//! bias `[o]`, output `[n, o, ol]` with stride, zero padding, dilation and groups.
//!
//! `y[n, o, i] = b[o] + Σ w[o, c, p] x[n, c, i·stride + p·dilation - padding]`: the kernels are those of
//! [`conv2d`](super::conv2d) on images of height 1, with the same orders of summing.

use super::conv::{
    self, Parameters, forward, forward_relu, gradient_b, gradient_w, gradient_x, gradient_x_behind_relu,
};
use super::conv2d::Conv2d;
use super::window::flat;
use super::{Gradient, Op, Reads, Spec, Terms, Window1d};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::init::Init;
use crate::shape::{R3, Shape};

/// The table; the bias is optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient_x::<B>, Reads::input(1));
        let weight = Gradient::kernel(gradient_w::<B>, Reads::input(0));
        &Op::new("conv1d", forward::<B>, [x, weight, Gradient::kernel(gradient_b::<B>, Reads::NONE)])
            .with_relu(forward_relu::<B>)
            .behind_relu(gradient_x_behind_relu::<B>)
            .terms(Terms::Weight)
    }
}

/// The output has shape `[n, o, ol]`; see [`Window1d::output`].
///
/// # Errors
/// When a shape has another number of axes, the channels do not fit the weight and the groups, or the window does not fit
/// the padded input.
pub const fn spec(
    x: Shape,
    weight: Shape,
    bias: Option<Shape>,
    window: Window1d,
    groups: usize,
) -> Result<Spec, ShapeError> {
    let op = "conv1d";
    if x.rank() != 3 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, l]", found: x });
    }
    if weight.rank() != 3 {
        return Err(ShapeError::Rank { op, operand: "the weight", expected: "[out, in / groups, k]", found: weight });
    }
    match conv::spec(op, flat(x), flat(weight), bias, window.0, groups) {
        Ok(spec) => Ok(Spec { shape: Shape::new([x.axis(0), weight.axis(0), spec.shape.axis(3)]), ..spec }),
        error => error,
    }
}

/// What a one-dimensional convolution has beside its channels.
#[derive(Clone, Copy, Debug)]
pub struct Conv1d(pub(crate) Conv2d);

impl Conv1d {
    /// A kernel of this length with stride 1, no padding, one group, a bias that starts at 0 and a weight that starts as
    /// [`Init::HeUniform`].
    #[must_use]
    pub const fn kernel(size: usize) -> Self {
        Self(Conv2d::kernel_hw([1, size]))
    }

    /// Moves by `stride`.
    #[must_use]
    pub const fn stride(self, stride: usize) -> Self {
        Self(self.0.stride_hw([1, stride]))
    }

    /// Adds `padding` zeros on each side.
    #[must_use]
    pub const fn padding(self, padding: usize) -> Self {
        Self(self.0.padding_hw([0, padding]))
    }

    /// Reads elements that are `dilation` apart.
    #[must_use]
    pub const fn dilation(self, dilation: usize) -> Self {
        Self(self.0.dilation_hw([1, dilation]))
    }

    /// Splits the channels into so many groups that do not see each other; as many as input channels make the convolution
    /// depthwise.
    #[must_use]
    pub const fn groups(self, groups: usize) -> Self {
        Self(self.0.groups(groups))
    }

    /// Without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Self(self.0.without_bias())
    }

    /// With a weight that starts so.
    #[must_use]
    pub const fn init(self, init: Init) -> Self {
        Self(self.0.init(init))
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A convolution with parameters `name.weight` `[O, C / groups, k]` and `name.bias` `[O]`. Channels and length of the
    /// output are annotated.
    ///
    /// # Panics
    /// When the length is not what kernel, stride and padding give, or the groups do not divide the channels.
    #[track_caller]
    pub const fn conv1d<const A: usize, const C: usize, const L: usize, const O: usize, const OL: usize>(
        &mut self,
        name: &'static str,
        x: Var<R3<A, C, L>>,
        settings: Conv1d,
    ) -> Var<R3<A, O, OL>> {
        let Conv2d { window, groups, bias, init } = settings.0;
        let weight = Shape::new([O, conv::of_a_group(C, groups), window.size[1]]);
        let spec = spec(x.shape(), weight, None, Window1d(window), groups);
        let bias = if bias { Some(O) } else { None };
        conv::record(self, name, op(), x.id(), Parameters { weight, bias, init }, spec)
    }
}

/// [`spec`] by settings.
const fn spec_of(x: Shape, weight: Shape, bias: Option<Shape>, settings: Conv1d) -> Result<Spec, ShapeError> {
    let Conv2d { window, groups, .. } = settings.0;
    match conv::check_kernel("conv1d", weight, window.size, 1) {
        Ok(()) => spec(x, weight, bias, Window1d(window), groups),
        Err(error) => Err(error),
    }
}

crate::tape::methods! {
    /// A convolution of `x` `[n, c, l]` with a weight `[o, c / groups, k]` and a bias `[o]`, to `[n, o, ol]`. Stride, padding,
    /// dilation and groups are those of the settings, and their kernel has to be that of the weight; whether they have a bias,
    /// and how the weight starts, means nothing here. A fault where shapes, groups or window do not fit.
    conv1d(x, weight; bias)(settings: Conv1d) => (op(), spec_of(x, weight, bias, settings))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        // y[i] = x[2 i - 1] + 2 x[2 i] + 3 x[2 i + 1] + 10.
        let (x, w) = ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]);
        let window = Window1d::size(3).stride(2).padding(1);
        let spec = spec(Shape::new([1, 1, 4]), Shape::new([1, 1, 3]), Some(Shape::new([1])), window, 1);
        let spec = spec.unwrap();
        assert_eq!(spec.shape, Shape::new([1, 1, 2]));
        check(op(), spec, &[&x, &w, &[10.0]], &[18.0, 30.0], &[&[2.0, 4.0, 2.0, 3.0], &[2.0, 4.0, 6.0], &[2.0]]);
    }

    #[test]
    fn errors_speak_of_one_axis() {
        let error = spec(Shape::new([1, 4, 2]), Shape::new([2, 4, 5]), None, Window1d::size(5).stride(1), 1);
        let text = "conv1d: a window of 5 does not fit an input of 2 with padding 0 on each side";
        assert_eq!(std::format!("{}", error.unwrap_err()), text);
        let error = spec(Shape::new([1, 4, 2, 2]), Shape::new([2, 4, 5]), None, Window1d::size(5), 1);
        let text = "conv1d: the input has shape [1, 4, 2, 2], expected [n, c, l]";
        assert_eq!(std::format!("{}", error.unwrap_err()), text);
    }
}
