//! Two-dimensional convolution (cross-correlation, as in PyTorch): `x` `[n, c, h, w]`, weight `[o, c / groups, kh, kw]`,
//! optional bias `[o]`, output `[n, o, oh, ow]` with stride, zero padding, dilation and groups.
//!
//! `y[n, o, i, j] = b[o] + Σ w[o, c, p, q] x[n, c, i·stride + p·dilation - padding, ...]`. Each output starts from its bias
//! and adds its products in ascending order of `(c, p, q)`; padding takes part as zeros. The kernels gather a block of
//! output pixels into columns, in scratch, and multiply matrices.
//!
//! `dw` adds its products in ascending order of `(n, i, j)`, so gradients that are gathered over micro-batches have the bits
//! of the whole batch's. `dx` adds, in ascending order of `(i, q)`, sums over the output channels. `db` adds the sum of each
//! plane of `dy` in ascending order of `n`.

use super::conv::{
    self, Parameters, forward, forward_relu, gradient_b, gradient_w, gradient_x, gradient_x_behind_relu,
};
use super::{Gradient, Op, Reads, Spec, Terms, Window2d};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::init::Init;
use crate::shape::{R4, Shape};

/// The table; the bias is optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient_x::<B>, Reads::input(1));
        let weight = Gradient::kernel(gradient_w::<B>, Reads::input(0));
        &Op::new("conv2d", forward::<B>, [x, weight, Gradient::kernel(gradient_b::<B>, Reads::NONE)])
            .with_relu(forward_relu::<B>)
            .behind_relu(gradient_x_behind_relu::<B>)
            .terms(Terms::Weight)
    }
}

/// The output has shape `[n, o, oh, ow]`; see [`Window2d::output`].
///
/// # Errors
/// When a shape has another number of axes, the channels do not fit the weight and the groups, or the window does not fit
/// the padded image.
pub const fn spec(
    x: Shape,
    weight: Shape,
    bias: Option<Shape>,
    window: Window2d,
    groups: usize,
) -> Result<Spec, ShapeError> {
    let op = "conv2d";
    if x.rank() != 4 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, h, w]", found: x });
    }
    if weight.rank() != 4 {
        let expected = "[out, in / groups, kh, kw]";
        return Err(ShapeError::Rank { op, operand: "the weight", expected, found: weight });
    }
    conv::spec(op, x, weight, bias, window, groups)
}

/// What a convolution has beside its channels.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    pub(crate) window: Window2d,
    pub(crate) groups: usize,
    pub(crate) bias: bool,
    pub(crate) init: Init,
}

impl Conv2d {
    /// A square kernel with stride 1, no padding, one group, a bias that starts at 0 and a weight that starts as
    /// [`Init::HeUniform`].
    #[must_use]
    pub const fn kernel(size: usize) -> Self {
        Self::kernel_hw([size, size])
    }

    /// The same with a kernel of this height and width.
    #[must_use]
    pub const fn kernel_hw(size: [usize; 2]) -> Self {
        Self { window: Window2d::rect(size).stride(1), groups: 1, bias: true, init: Init::HeUniform }
    }

    /// Moves by `stride` in both directions.
    #[must_use]
    pub const fn stride(self, stride: usize) -> Self {
        self.stride_hw([stride, stride])
    }

    /// Moves by these strides down and across.
    #[must_use]
    pub const fn stride_hw(self, stride: [usize; 2]) -> Self {
        Self { window: self.window.stride_hw(stride), ..self }
    }

    /// Adds `padding` zeros on each side.
    #[must_use]
    pub const fn padding(self, padding: usize) -> Self {
        self.padding_hw([padding, padding])
    }

    /// Adds so many zeros above and below, and left and right.
    #[must_use]
    pub const fn padding_hw(self, padding: [usize; 2]) -> Self {
        Self { window: self.window.padding_hw(padding), ..self }
    }

    /// Reads elements that are `dilation` apart.
    #[must_use]
    pub const fn dilation(self, dilation: usize) -> Self {
        Self { window: self.window.dilation(dilation), ..self }
    }

    /// Reads elements that are so far apart down and across.
    #[must_use]
    pub const fn dilation_hw(self, dilation: [usize; 2]) -> Self {
        Self { window: self.window.dilation_hw(dilation), ..self }
    }

    /// Splits the channels into so many groups that do not see each other; as many as input channels make the convolution
    /// depthwise.
    #[must_use]
    pub const fn groups(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// Without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Self { bias: false, ..self }
    }

    /// With a weight that starts so.
    #[must_use]
    pub const fn init(self, init: Init) -> Self {
        Self { init, ..self }
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A convolution with parameters `name.weight` `[O, C / groups, kh, kw]` and `name.bias` `[O]`. Channels, height
    /// and width of the output are annotated.
    ///
    /// # Panics
    /// When height and width are not what kernel, stride and padding give, or the groups do not divide the channels.
    #[track_caller]
    pub const fn conv2d<
        const A: usize,
        const C: usize,
        const H: usize,
        const W: usize,
        const O: usize,
        const OH: usize,
        const OW: usize,
    >(
        &mut self,
        name: &'static str,
        x: Var<R4<A, C, H, W>>,
        settings: Conv2d,
    ) -> Var<R4<A, O, OH, OW>> {
        let size = settings.window.size;
        let weight = Shape::new([O, conv::of_a_group(C, settings.groups), size[0], size[1]]);
        let spec = spec(x.shape(), weight, None, settings.window, settings.groups);
        let bias = if settings.bias { Some(O) } else { None };
        conv::record(self, name, op(), x.id(), Parameters { weight, bias, init: settings.init }, spec)
    }
}

/// [`spec`] by settings.
const fn spec_of(x: Shape, weight: Shape, bias: Option<Shape>, settings: Conv2d) -> Result<Spec, ShapeError> {
    match conv::check_kernel("conv2d", weight, settings.window.size, 2) {
        Ok(()) => spec(x, weight, bias, settings.window, settings.groups),
        Err(error) => Err(error),
    }
}

crate::tape::methods! {
    /// A convolution of `x` `[n, c, h, w]` with a weight `[o, c / groups, kh, kw]` and a bias `[o]`, to `[n, o, oh, ow]`. Stride,
    /// padding, dilation and groups are those of the settings, and their kernel has to be that of the weight; whether they have
    /// a bias, and how the weight starts, means nothing here. A fault where shapes, groups or window do not fit.
    conv2d(x, weight; bias)(settings: Conv2d) => (op(), spec_of(x, weight, bias, settings))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        // A 2 x 2 kernel over a 3 x 3 image: y[i, j] = x[i, j] + 2 x[i, j+1] + 3 x[i+1, j] + 4 x[i+1, j+1] + 10.
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let w = [1.0, 2.0, 3.0, 4.0];
        let window = Window2d::size(2).stride(1);
        let spec = spec(Shape::new([1, 1, 3, 3]), Shape::new([1, 1, 2, 2]), Some(Shape::new([1])), window, 1);
        let y = [47.0, 57.0, 77.0, 87.0];
        let dx = [1.0, 3.0, 2.0, 4.0, 10.0, 6.0, 3.0, 7.0, 4.0];
        let dw = [12.0, 16.0, 24.0, 28.0];
        check(op(), spec.unwrap(), &[&x, &w, &[10.0]], &y, &[&dx, &dw, &[4.0]]);
    }

    #[test]
    fn shapes_follow_the_floor_rule() {
        let size = |h: usize, kernel: usize, stride: usize, padding: usize| {
            let window = Window2d::size(kernel).stride(stride).padding(padding);
            spec(Shape::new([1, 1, h, h]), Shape::new([1, 1, kernel, kernel]), None, window, 1).map(|s| s.shape.axis(2))
        };
        assert_eq!((size(8, 3, 2, 0), size(4, 3, 1, 1), size(8, 3, 2, 1)), (Ok(3), Ok(4), Ok(4)));
        let error = size(2, 5, 1, 1).unwrap_err();
        let text = "conv2d: a window of 5 does not fit an input of 2 with padding 1 on each side";
        assert_eq!(std::format!("{error}"), text);
        let error = spec(Shape::new([1, 4, 8, 8]), Shape::new([8, 3, 3, 3]), None, Window2d::size(3), 1).unwrap_err();
        assert_eq!(
            error.message("conv2").as_str(),
            "conv2d `conv2`: input channels of a group are 4, weight expects 3"
        );
    }
}
