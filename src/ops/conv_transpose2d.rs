//! Two-dimensional transposed convolution: `x` `[n, c, h, w]`, weight `[c, o / groups, kh, kw]` (IOHW, as PyTorch lays it
//! out), optional bias `[o]`, output `[n, o, oh, ow]` with
//! `oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1`, and `ow` likewise.
//!
//! `y[n, o, i·stride + p·dilation - padding, ...] = b[o] + Σ w[c, o, p, q] x[n, c, i, j]`, the sum over all that meet there:
//! the gradient of a [convolution](super::conv2d) that reads images like `y` and gives maps like `x`, for its image
//! (Dumoulin and Visin, *A guide to convolution arithmetic*, 2016, section 4). So forward is the convolution's `dx`, `dx` its
//! forward, and `dw` its `dw`, with the same kernels and the same orders of summing; each output starts from its bias.

use super::conv::{self, Geometry, Parameters, Sizes, start_from_bias};
use super::conv2d::Conv2d;
use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec, Terms, Window2d, planes};
use crate::backend::{Backend, Real, Start};
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
        &Op::new("conv_transpose2d", forward::<B>, [x, weight, Gradient::kernel(gradient_b::<B>, Reads::NONE)])
            .terms(Terms::WeightOfInput)
    }
}

/// The output has shape `[n, o, oh, ow]`; `output_padding` are rows and columns that it has more below and to the right,
/// since several images have maps of the same size.
///
/// # Errors
/// When a shape has another number of axes, the channels do not fit the weight and the groups, the output padding is
/// neither less than the stride nor than the dilation, or the padding leaves no output.
pub const fn spec(
    x: Shape,
    weight: Shape,
    bias: Option<Shape>,
    window: Window2d,
    output_padding: [usize; 2],
    groups: usize,
) -> Result<Spec, ShapeError> {
    let op = "conv_transpose2d";
    if x.rank() != 4 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, h, w]", found: x });
    }
    if weight.rank() != 4 {
        let expected = "[in, out / groups, kh, kw]";
        return Err(ShapeError::Rank { op, operand: "the weight", expected, found: weight });
    }
    let channels = x.axis(1);
    if groups == 0 || !channels.is_multiple_of(groups) {
        let rule = "groups divide the input channels";
        return Err(ShapeError::Setting { op, rule, found: groups as f64 });
    }
    if channels != weight.axis(0) {
        let (what, against) = ("input channels are", "weight expects");
        return Err(ShapeError::Length { op, what, found: channels, against, expected: weight.axis(0) });
    }
    let outputs = weight.axis(1) * groups;
    if let Err(error) = conv::check_bias(op, bias, outputs) {
        return Err(error);
    }
    let window = Window2d { size: [weight.axis(2), weight.axis(3)], ..window };
    let maps = [x.axis(2), x.axis(3)];
    let height = output(op, &window, 0, maps[0], output_padding[0]);
    let image = match (height, output(op, &window, 1, maps[1], output_padding[1])) {
        (Ok(height), Ok(width)) => [height, width],
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let (args, columns) = conv::args(&Sizes { channels: outputs, image, outputs: channels, maps, groups }, &window);
    let spec = Spec::new(Shape::new([x.axis(0), outputs, image[0], image[1]])).args(args);
    Ok(Spec { scratch: columns, scratch_backward: [columns, columns, 0], ..spec })
}

/// The output's length along `axis`.
const fn output(
    op: &'static str,
    window: &Window2d,
    axis: usize,
    input: usize,
    output_padding: usize,
) -> Result<usize, ShapeError> {
    let (stride, padding, dilation) = (window.step(axis), window.padding[axis], window.dilation[axis]);
    if let Err(error) = window.check(op, axis) {
        return Err(error);
    }
    if output_padding >= stride && output_padding >= dilation {
        let rule = "the output padding is less than the stride or the dilation";
        return Err(ShapeError::Setting { op, rule, found: output_padding as f64 });
    }
    let full = match input.checked_sub(1) {
        Some(steps) => steps * stride + dilation * (window.size[axis] - 1) + output_padding + 1,
        None => 0,
    };
    if full <= 2 * padding && input > 0 {
        let rule = "the padding leaves an output";
        return Err(ShapeError::Setting { op, rule, found: padding as f64 });
    }
    Ok(full.saturating_sub(2 * padding))
}

/// What a transposed convolution has beside its channels.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose2d {
    convolution: Conv2d,
    output_padding: [usize; 2],
}

impl ConvTranspose2d {
    /// A square kernel with stride 1, no padding, one group, a bias that starts at 0 and a weight that starts as
    /// [`Init::HeUniform`].
    #[must_use]
    pub const fn kernel(size: usize) -> Self {
        Self::kernel_hw([size, size])
    }

    /// The same with a kernel of this height and width.
    #[must_use]
    pub const fn kernel_hw(size: [usize; 2]) -> Self {
        Self { convolution: Conv2d::kernel_hw(size), output_padding: [0, 0] }
    }

    /// Moves by `stride` in the output for each element of the input.
    #[must_use]
    pub const fn stride(self, stride: usize) -> Self {
        self.stride_hw([stride, stride])
    }

    /// Moves by these strides down and across.
    #[must_use]
    pub const fn stride_hw(self, stride: [usize; 2]) -> Self {
        Self { convolution: self.convolution.stride_hw(stride), ..self }
    }

    /// Leaves `padding` rows and columns on each side out of the output.
    #[must_use]
    pub const fn padding(self, padding: usize) -> Self {
        self.padding_hw([padding, padding])
    }

    /// Leaves so many rows above and below, and columns left and right, out of the output.
    #[must_use]
    pub const fn padding_hw(self, padding: [usize; 2]) -> Self {
        Self { convolution: self.convolution.padding_hw(padding), ..self }
    }

    /// Adds rows below and columns to the right of the output.
    #[must_use]
    pub const fn output_padding(self, output_padding: usize) -> Self {
        self.output_padding_hw([output_padding, output_padding])
    }

    /// Adds so many rows below and columns to the right of the output.
    #[must_use]
    pub const fn output_padding_hw(self, output_padding: [usize; 2]) -> Self {
        Self { output_padding, ..self }
    }

    /// Writes elements that are `dilation` apart.
    #[must_use]
    pub const fn dilation(self, dilation: usize) -> Self {
        self.dilation_hw([dilation, dilation])
    }

    /// Writes elements that are so far apart down and across.
    #[must_use]
    pub const fn dilation_hw(self, dilation: [usize; 2]) -> Self {
        Self { convolution: self.convolution.dilation_hw(dilation), ..self }
    }

    /// Splits the channels into so many groups that do not see each other.
    #[must_use]
    pub const fn groups(self, groups: usize) -> Self {
        Self { convolution: self.convolution.groups(groups), ..self }
    }

    /// Without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Self { convolution: self.convolution.without_bias(), ..self }
    }

    /// With a weight that starts so.
    #[must_use]
    pub const fn init(self, init: Init) -> Self {
        Self { convolution: self.convolution.init(init), ..self }
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// A transposed convolution with parameters `name.weight` `[C, O / groups, kh, kw]` and `name.bias` `[O]`. Channels,
    /// height and width of the output are annotated.
    ///
    /// # Panics
    /// When height and width are not what kernel, stride and padding give, or the groups do not divide the channels.
    #[track_caller]
    pub const fn conv_transpose2d<
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
        settings: ConvTranspose2d,
    ) -> Var<R4<A, O, OH, OW>> {
        let ConvTranspose2d { convolution, output_padding } = settings;
        let Conv2d { window, groups, bias, init } = convolution;
        let weight = Shape::new([C, conv::of_a_group(O, groups), window.size[0], window.size[1]]);
        let spec = spec(x.shape(), weight, None, window, output_padding, groups);
        let bias = if bias { Some(O) } else { None };
        conv::record(self, name, op(), x.id(), Parameters { weight, bias, init }, spec)
    }
}

/// [`spec`] by settings.
const fn spec_of(x: Shape, weight: Shape, bias: Option<Shape>, settings: ConvTranspose2d) -> Result<Spec, ShapeError> {
    let ConvTranspose2d { convolution: Conv2d { window, groups, .. }, output_padding } = settings;
    match conv::check_kernel("conv_transpose2d", weight, window.size, 2) {
        Ok(()) => spec(x, weight, bias, window, output_padding, groups),
        Err(error) => Err(error),
    }
}

crate::tape::methods! {
    /// A transposed convolution of `x` `[n, c, h, w]` with a weight `[c, o / groups, kh, kw]` and a bias `[o]`, to
    /// `[n, o, oh, ow]`. Stride, padding, output padding, dilation and groups are those of the settings, and their kernel has to
    /// be that of the weight; whether they have a bias, and how the weight starts, means nothing here. A fault where shapes,
    /// groups or paddings do not fit.
    conv_transpose2d(x, weight; bias)(settings: ConvTranspose2d) => (op(), spec_of(x, weight, bias, settings))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let geometry = Geometry::new(call.args);
    let [x, weight, bias] = call.x;
    let start = start_from_bias(call.y, bias, geometry.plane());
    geometry.scatter::<B>(call.y, [weight, &[]], x, call.scratch, start);
}

fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let start = Start::adding(call.add);
    Geometry::new(call.args).convolve::<B>(call.dy, call.x[1], call.dx, call.scratch, start);
}

fn gradient_w<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    Geometry::new(call.args).correlate::<B>(call.dy, call.x[0], call.dx, call.scratch);
}

fn gradient_b<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    planes::add_sums::<B>(call.dx, call.dy, Geometry::new(call.args).plane());
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn values_and_gradients() {
        // One row: each element writes w = [1, 2, 3] at twice its place, so that the ends of neighbours meet.
        let window = Window2d::rect([1, 3]).stride_hw([1, 2]);
        let (x, weight) = (Shape::new([1, 1, 1, 3]), Shape::new([1, 1, 1, 3]));
        let spec = spec(x, weight, Some(Shape::new([1])), window, [0, 1], 1).unwrap();
        assert_eq!(spec.shape, Shape::new([1, 1, 1, 8]));
        let y = [11.0, 12.0, 15.0, 14.0, 19.0, 16.0, 19.0, 10.0];
        check(op(), spec, &[&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], &[10.0]], &y, &[&[6.0; 3], &[6.0; 3], &[8.0]]);
    }

    #[test]
    fn settings_that_leave_nothing_are_errors() {
        let spec = |padding, output_padding| {
            let window = Window2d::size(3).stride(2).padding(padding);
            spec(Shape::new([1, 2, 1, 1]), Shape::new([2, 3, 3, 3]), None, window, [output_padding; 2], 1)
        };
        assert_eq!(spec(1, 1).unwrap().shape, Shape::new([1, 3, 2, 2]));
        let text = |spec: Result<Spec, ShapeError>| std::format!("{}", spec.unwrap_err());
        assert_eq!(text(spec(2, 0)), "conv_transpose2d: the padding leaves an output, found 2");
        let rule = "conv_transpose2d: the output padding is less than the stride or the dilation, found 2";
        assert_eq!(text(spec(0, 2)), rule);
    }
}
