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

use super::window::{Window2d, pack, source, unpack};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::{Backend, Matrix, Real, Start};
use crate::error::ShapeError;
use crate::graph::{Graph, Name, Var};
use crate::init::Init;
use crate::shape::{R1, R4, Shape};

/// The table; the bias is optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient_x::<B>, Reads::input(1));
        let weight = Gradient::kernel(gradient_w::<B>, Reads::input(0));
        &Op::new("conv2d", forward::<B>, [x, weight, Gradient::kernel(gradient_b::<B>, Reads::NONE)])
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
    let (channels, outputs) = (x.axis(1), weight.axis(0));
    if groups == 0 || !channels.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let rule = "groups divide the input and the output channels";
        return Err(ShapeError::Setting { op, rule, found: groups as f64 });
    }
    if channels / groups != weight.axis(1) {
        let (what, against) = ("input channels of a group are", "weight expects");
        return Err(ShapeError::Length { op, what, found: channels / groups, against, expected: weight.axis(1) });
    }
    if let Some(bias) = bias
        && !bias.equals(&Shape::new([outputs]))
    {
        return Err(ShapeError::Rank { op, operand: "the bias", expected: "[out], as the weight has it", found: bias });
    }
    let window = Window2d { size: [weight.axis(2), weight.axis(3)], ..window };
    let (height, width) = (window.output_for(op, 0, x.axis(2)), window.output_for(op, 1, x.axis(3)));
    let (height, width) = match (height, width) {
        (Ok(height), Ok(width)) => (height, width),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let args = Args::new(&[
        x.axis(1),
        x.axis(2),
        x.axis(3),
        outputs,
        height,
        width,
        groups,
        pack(window.size),
        pack([window.step(0), window.step(1)]),
        pack(window.padding),
        pack(window.dilation),
    ]);
    let columns = weight.product(1, 4) * block_rows(height, width) * width;
    let spec = Spec::new(Shape::new([x.axis(0), outputs, height, width])).args(args);
    Ok(Spec { scratch: columns, scratch_backward: [columns, columns, 0], ..spec })
}

/// How many rows of the output are worked on at a time: enough pixels to fill registers, no more scratch than that needs.
const fn block_rows(height: usize, width: usize) -> usize {
    let rows = 16_usize.div_ceil(if width == 0 { 1 } else { width });
    if rows < height { rows } else { height }
}

/// What a convolution has beside its channels.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    window: Window2d,
    groups: usize,
    bias: bool,
    init: Init,
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
    /// A convolution with parameters `name.weight` `[O, C / groups, kh, kw]` and `name.bias` `[O]`. Channels, height and width of the
    /// output are annotated.
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
        // No group at all is an error of `spec`.
        let of_a_group = match C.checked_div(settings.groups) {
            Some(channels) => channels,
            None => C,
        };
        let shape = Shape::new([O, of_a_group, size[0], size[1]]);
        let spec = spec(x.shape(), shape, None, settings.window, settings.groups);
        let weight = self.parameter_dyn(Name::new(name, "weight"), shape, settings.init);
        if settings.bias {
            let bias = self.parameter::<R1<O>>(name, "bias", Init::Zeros);
            self.record(name, op(), &[x.id(), weight, bias.id()], spec)
        } else {
            self.record(name, op(), &[x.id(), weight], spec)
        }
    }
}

/// The arguments of the kernels, read once.
struct Geometry {
    height: usize,
    width: usize,
    out_height: usize,
    out_width: usize,
    groups: usize,
    /// Input channels of a group, and output channels of a group.
    channels: usize,
    outputs: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

/// A block of rows of the output of one sample and one group.
struct Block {
    /// Where the group's channels of the sample start in `x`, and where its weights start.
    x: usize,
    weight: usize,
    /// Where the block starts in `y`.
    y: usize,
    first_row: usize,
    rows: usize,
}

impl Geometry {
    fn new(args: &Args) -> Self {
        let [channels, height, width, outputs, out_height, out_width, groups, kernel, stride, padding, dilation, _] =
            args.lengths();
        let groups = groups.max(1);
        Self {
            height,
            width,
            out_height,
            out_width,
            groups,
            channels: channels / groups,
            outputs: outputs / groups,
            kernel: unpack(kernel),
            stride: unpack(stride),
            padding: unpack(padding),
            dilation: unpack(dilation),
        }
    }

    /// Weights of one output.
    fn taps(&self) -> usize {
        self.channels * self.kernel[0] * self.kernel[1]
    }

    fn plane(&self) -> usize {
        self.height * self.width
    }

    fn out_plane(&self) -> usize {
        self.out_height * self.out_width
    }

    /// Calls `each` for every block, samples outermost.
    fn for_each_block(&self, y_len: usize, mut each: impl FnMut(&Self, Block)) {
        let sample = self.groups * self.outputs * self.out_plane();
        let rows_at_a_time = block_rows(self.out_height, self.out_width).max(1);
        for n in 0..y_len / sample.max(1) {
            for g in 0..self.groups {
                let mut first_row = 0;
                while first_row < self.out_height {
                    let rows = rows_at_a_time.min(self.out_height - first_row);
                    let x = (n * self.groups + g) * self.channels * self.plane();
                    let y = (n * self.groups + g) * self.outputs * self.out_plane() + first_row * self.out_width;
                    each(self, Block { x, weight: g * self.outputs * self.taps(), y, first_row, rows });
                    first_row += rows;
                }
            }
        }
    }

    /// Calls `each` with every row of `width` pixels in which one tap meets one row of the block: the tap, the row of the
    /// block, where the tap's row of the input starts in a sample (`None` in the padding), and the tap's column. Rows of
    /// the block are outermost.
    fn for_each_tap_row(&self, block: &Block, mut each: impl FnMut(usize, usize, Option<usize>, usize)) {
        for row in 0..block.rows {
            let mut tap = 0;
            for c in 0..self.channels {
                for p in 0..self.kernel[0] {
                    let (stride, dilation, padding) = (self.stride[0], self.dilation[0], self.padding[0]);
                    let line = source(block.first_row + row, p, stride, dilation, padding, self.height)
                        .map(|i| c * self.plane() + i * self.width);
                    for q in 0..self.kernel[1] {
                        each(tap, row, line, q);
                        tap += 1;
                    }
                }
            }
        }
    }

    /// Where column `q` of the window at column `j` lies in a row of the input.
    fn column(&self, j: usize, q: usize) -> Option<usize> {
        source(j, q, self.stride[1], self.dilation[1], self.padding[1], self.width)
    }

    /// Gathers the block's columns: the element of tap `t` for pixel `p` at `t * tap_step + p * pixel_step`.
    fn gather<E: Real>(&self, block: &Block, x: &[E], columns: &mut [E], tap_step: usize, pixel_step: usize) {
        let x = x.get(block.x..).unwrap_or_default();
        self.for_each_tap_row(block, |tap, row, line, q| {
            let line = line.and_then(|start| x.get(start..start + self.width)).unwrap_or_default();
            let start = tap * tap_step + row * self.out_width * pixel_step;
            let columns = columns.get_mut(start..).unwrap_or_default();
            for (j, to) in columns.iter_mut().step_by(pixel_step.max(1)).take(self.out_width).enumerate() {
                *to = self.column(j, q).and_then(|at| line.get(at)).copied().unwrap_or_default();
            }
        });
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let geometry = Geometry::new(call.args);
    let [x, weight, bias] = call.x;
    let (plane, y) = (geometry.out_plane(), call.y);
    for planes in y.chunks_exact_mut((bias.len() * plane).max(1)) {
        for (y, &b) in planes.chunks_exact_mut(plane.max(1)).zip(bias) {
            y.fill(b);
        }
    }
    let start = Start::adding(!bias.is_empty());
    let columns = call.scratch;
    geometry.for_each_block(y.len(), |geometry, block| {
        let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
        geometry.gather(&block, x, columns, pixels, 1);
        let weight = Matrix { data: weight.get(block.weight..).unwrap_or_default(), row: taps, col: 1 };
        let columns = Matrix { data: columns, row: pixels, col: 1 };
        let y = y.get_mut(block.y..).unwrap_or_default();
        B::matmul([geometry.outputs, pixels, taps], weight, columns, y, plane, start);
    });
}

fn gradient_w<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let geometry = Geometry::new(call.args);
    let (x, dy, dw, columns) = (call.x[0], call.dy, call.dx, call.scratch);
    if !call.add {
        dw.fill(B::Elem::ZERO);
    }
    geometry.for_each_block(dy.len(), |geometry, block| {
        let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
        geometry.gather(&block, x, columns, 1, taps);
        let dy = Matrix { data: dy.get(block.y..).unwrap_or_default(), row: geometry.out_plane(), col: 1 };
        let columns = Matrix { data: columns, row: taps, col: 1 };
        let dw = dw.get_mut(block.weight..).unwrap_or_default();
        B::matmul([geometry.outputs, taps, pixels], dy, columns, dw, taps, Start::Output);
    });
}

fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let geometry = Geometry::new(call.args);
    let (weight, dy, dx, columns) = (call.x[1], call.dy, call.dx, call.scratch);
    if !call.add {
        dx.fill(B::Elem::ZERO);
    }
    geometry.for_each_block(dy.len(), |geometry, block| {
        let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
        let weight = Matrix { data: weight.get(block.weight..).unwrap_or_default(), row: 1, col: taps };
        let dy = Matrix { data: dy.get(block.y..).unwrap_or_default(), row: geometry.out_plane(), col: 1 };
        B::matmul([taps, pixels, geometry.outputs], weight, dy, columns, pixels, Start::Zero);
        let dx = dx.get_mut(block.x..).unwrap_or_default();
        geometry.for_each_tap_row(&block, |tap, row, line, q| {
            let Some(line) = line.and_then(|start| dx.get_mut(start..start + geometry.width)) else {
                return;
            };
            let start = tap * pixels + row * geometry.out_width;
            let columns = columns.get(start..start + geometry.out_width).unwrap_or_default();
            for (j, &from) in columns.iter().enumerate() {
                if let Some(to) = geometry.column(j, q).and_then(|at| line.get_mut(at)) {
                    *to += from;
                }
            }
        });
    });
}

fn gradient_b<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let plane = Geometry::new(call.args).out_plane();
    let (dy, db) = (call.dy, call.dx);
    if !call.add {
        db.fill(B::Elem::ZERO);
    }
    for planes in dy.chunks_exact((db.len() * plane).max(1)) {
        for (db, dy) in db.iter_mut().zip(planes.chunks_exact(plane.max(1))) {
            *db += B::sum(dy);
        }
    }
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
