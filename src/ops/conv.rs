//! What the convolutions share: their shape rule, and the kernels that gather an image into columns, or scatter columns
//! into one, around a matrix product.
//!
//! The kernels are named from the convolution's side: it reads an image and makes maps, one for each output channel. A
//! transposed convolution runs the same ones with image and maps exchanged, a one-dimensional one runs them on images of
//! height 1.

use core::ops::Range;

use super::window::{Window2d, pack, source, unpack};
use super::{Args, BackwardCall, ForwardCall, Op, Spec, planes, relu};
use crate::backend::{Backend, Matrix, Real, Start};
use crate::error::ShapeError;
use crate::graph::{Graph, Id, Name, Var};
use crate::init::Init;
use crate::shape::{Dims, Shape};

/// The lengths of a convolution that its window leaves open.
pub(super) struct Sizes {
    pub(super) channels: usize,
    pub(super) image: [usize; 2],
    pub(super) outputs: usize,
    pub(super) maps: [usize; 2],
    pub(super) groups: usize,
}

/// The arguments of the kernels, and the elements of scratch that each of them needs for its columns.
pub(super) const fn args(sizes: &Sizes, window: &Window2d) -> (Args, usize) {
    let args = Args::new(&[
        sizes.channels,
        sizes.image[0],
        sizes.image[1],
        sizes.outputs,
        sizes.maps[0],
        sizes.maps[1],
        sizes.groups,
        pack(window.size),
        pack([window.step(0), window.step(1)]),
        pack(window.padding),
        pack(window.dilation),
    ]);
    let groups = if sizes.groups == 0 { 1 } else { sizes.groups };
    let taps = sizes.channels / groups * window.size[0] * window.size[1];
    (args, taps * block_rows(sizes.maps[0], sizes.maps[1]) * sizes.maps[1])
}

/// The spec of a convolution `op` of an image `[n, c, h, w]`; the caller has checked the number of axes.
pub(super) const fn spec(
    op: &'static str,
    x: Shape,
    weight: Shape,
    bias: Option<Shape>,
    window: Window2d,
    groups: usize,
) -> Result<Spec, ShapeError> {
    let (channels, outputs) = (x.axis(1), weight.axis(0));
    if groups == 0 || !channels.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let rule = "groups divide the input and the output channels";
        return Err(ShapeError::Setting { op, rule, found: groups as f64 });
    }
    if channels / groups != weight.axis(1) {
        let (what, against) = ("input channels of a group are", "weight expects");
        return Err(ShapeError::Length { op, what, found: channels / groups, against, expected: weight.axis(1) });
    }
    if let Err(error) = check_bias(op, bias, outputs) {
        return Err(error);
    }
    let window = Window2d { size: [weight.axis(2), weight.axis(3)], ..window };
    let (height, width) = (window.output_for(op, 0, x.axis(2)), window.output_for(op, 1, x.axis(3)));
    let maps = match (height, width) {
        (Ok(height), Ok(width)) => [height, width],
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let image = [x.axis(2), x.axis(3)];
    let (args, columns) = args(&Sizes { channels, image, outputs, maps, groups }, &window);
    let spec = Spec::new(Shape::new([x.axis(0), outputs, maps[0], maps[1]])).args(args);
    Ok(Spec { scratch: columns, scratch_backward: [columns, columns, 0], ..spec })
}

/// Settings for a tape have a kernel of the size of the weight `[.., .., kh, kw]`, or `[.., .., k]` where `axes` is 1. A weight of
/// another number of axes is an error of the specs.
pub(super) const fn check_kernel(
    op: &'static str,
    weight: Shape,
    kernel: [usize; 2],
    axes: usize,
) -> Result<(), ShapeError> {
    if weight.rank() != 2 + axes {
        return Ok(());
    }
    let against = "that of the weight";
    if axes == 2 && kernel[0] != weight.axis(2) {
        let what = "the height of the settings' kernel is";
        return Err(ShapeError::Length { op, what, found: kernel[0], against, expected: weight.axis(2) });
    }
    let what = if axes == 2 { "the width of the settings' kernel is" } else { "the length of the settings' kernel is" };
    let (found, expected) = (kernel[1], weight.axis_from_end(0));
    if found == expected { Ok(()) } else { Err(ShapeError::Length { op, what, found, against, expected }) }
}

/// A bias has one element for each output.
pub(super) const fn check_bias(op: &'static str, bias: Option<Shape>, outputs: usize) -> Result<(), ShapeError> {
    match bias {
        Some(found) if !found.equals(&Shape::new([outputs])) => {
            Err(ShapeError::Rank { op, operand: "the bias", expected: "[out], as the weight has it", found })
        }
        _ => Ok(()),
    }
}

/// The input channels of a group; no group at all is an error of the specs.
pub(super) const fn of_a_group(channels: usize, groups: usize) -> usize {
    match channels.checked_div(groups) {
        Some(of_a_group) => of_a_group,
        None => channels,
    }
}

/// The parameters of a layer: the weight's shape, the length of the bias if there is one, and how the weight starts.
pub(super) struct Parameters {
    pub(super) weight: Shape,
    pub(super) bias: Option<usize>,
    pub(super) init: Init,
}

/// Records a layer with parameters `name.weight` and `name.bias`.
pub(super) const fn record<B: Backend, const N: usize, S: Dims>(
    g: &mut Graph<B, N>,
    name: &'static str,
    op: &'static Op<B>,
    x: Id,
    parameters: Parameters,
    spec: Result<Spec, ShapeError>,
) -> Var<S> {
    let weight = g.parameter_dyn(Name::new(name, "weight"), parameters.weight, parameters.init);
    match parameters.bias {
        Some(outputs) => {
            let bias = g.parameter_dyn(Name::new(name, "bias"), Shape::new([outputs]), Init::Zeros);
            g.record(name, op, &[x, weight, bias], spec)
        }
        None => g.record(name, op, &[x, weight], spec),
    }
}

/// How many rows of the output are worked on at a time: enough pixels to fill registers, no more scratch than that needs.
const fn block_rows(height: usize, width: usize) -> usize {
    let rows = 16_usize.div_ceil(if width == 0 { 1 } else { width });
    if rows < height { rows } else { height }
}

/// The arguments of the kernels, read once.
pub(super) struct Geometry {
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

/// A run of pixels of one row of a block, as one tap meets it.
struct Run {
    /// Where the row's pixels start among the block's columns.
    at: usize,
    /// Which of them lie in the image, the others in the padding beside it.
    columns: Range<usize>,
    /// Where the first of these lies in the group's channels; `None` in the padding above or below.
    image: Option<usize>,
}

impl Geometry {
    pub(super) fn new(args: &Args) -> Self {
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

    pub(super) fn plane(&self) -> usize {
        self.height * self.width
    }

    pub(super) fn out_plane(&self) -> usize {
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

    /// Calls `each` with every run of pixels in which one tap meets one row of the block. Rows of the block are outermost,
    /// then the columns of the window.
    #[inline(always)]
    fn for_each_run(&self, block: &Block, mut each: impl FnMut(Run)) {
        for row in 0..block.rows {
            for q in 0..self.kernel[1] {
                let (columns, first) = self.columns(q);
                for c in 0..self.channels {
                    for p in 0..self.kernel[0] {
                        let (stride, dilation, padding) = (self.stride[0], self.dilation[0], self.padding[0]);
                        let line = source(block.first_row + row, p, stride, dilation, padding, self.height);
                        let image = line.map(|line| c * self.plane() + line * self.width + first);
                        let tap = (c * self.kernel[0] + p) * self.kernel[1] + q;
                        let at = (tap * block.rows + row) * self.out_width;
                        each(Run { at, columns: columns.clone(), image });
                    }
                }
            }
        }
    }

    /// The columns of the output at which column `q` of the window lies in the image, and where it lies at the first.
    fn columns(&self, q: usize) -> (Range<usize>, usize) {
        let (stride, offset, padding) = (self.stride[1].max(1), q * self.dilation[1], self.padding[1]);
        let end = (self.width + padding).saturating_sub(offset).div_ceil(stride).min(self.out_width);
        let start = padding.saturating_sub(offset).div_ceil(stride).min(end);
        (start..end, (start * stride + offset).saturating_sub(padding))
    }

    /// Gathers the block's columns: the pixels of a tap are neighbours.
    fn gather<E: Real>(&self, block: &Block, x: &[E], columns: &mut [E]) {
        let x = x.get(block.x..).unwrap_or_default();
        self.for_each_run(block, |run| {
            let to = columns.get_mut(run.at..run.at + self.out_width).unwrap_or_default();
            let from = run.image.and_then(|image| x.get(image..)).unwrap_or_default();
            if from.is_empty() || run.columns.len() < to.len() {
                to.fill(E::ZERO);
            }
            let to = to.get_mut(run.columns).unwrap_or_default();
            copy_every(self.stride[1], from, to);
        });
    }

    /// Elements of a sample's input.
    const fn image_len(&self) -> usize {
        self.groups * self.channels * self.height * self.width
    }

    /// Elements of a sample's output.
    fn maps_len(&self) -> usize {
        self.groups * self.outputs * self.out_plane()
    }

    /// Writes the maps of an image, or adds to them.
    pub(super) fn convolve<B: Backend>(
        &self,
        image: &[B::Elem],
        weight: &[B::Elem],
        maps: &mut [B::Elem],
        columns: &mut [B::Elem],
        start: Start,
    ) {
        self.for_each_block(maps.len(), |geometry, block| {
            let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
            geometry.gather(&block, image, columns);
            let weight = Matrix { data: weight.get(block.weight..).unwrap_or_default(), row: taps, col: 1 };
            let columns = Matrix { data: columns, row: pixels, col: 1 };
            let maps = maps.get_mut(block.y..).unwrap_or_default();
            B::matmul([geometry.outputs, pixels, taps], weight, columns, maps, geometry.out_plane(), start);
        });
    }

    /// Adds to the image what every element of the maps weighs in it: the transpose of [`Geometry::convolve`].
    pub(super) fn scatter<B: Backend>(
        &self,
        image: &mut [B::Elem],
        weight: &[B::Elem],
        maps: &[B::Elem],
        columns: &mut [B::Elem],
    ) {
        self.for_each_block(maps.len(), |geometry, block| {
            let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
            let weight = Matrix { data: weight.get(block.weight..).unwrap_or_default(), row: 1, col: taps };
            let maps = Matrix { data: maps.get(block.y..).unwrap_or_default(), row: geometry.out_plane(), col: 1 };
            B::matmul([taps, pixels, geometry.outputs], weight, maps, columns, pixels, Start::Zero);
            let image_of_group = image.get_mut(block.x..).unwrap_or_default();
            geometry.for_each_run(&block, |run| {
                let Some(to) = run.image.and_then(|image| image_of_group.get_mut(image..)) else {
                    return;
                };
                let from = columns.get(run.at..).and_then(|row| row.get(run.columns)).unwrap_or_default();
                add_to_every(geometry.stride[1], to, from);
            });
        });
    }

    /// Adds to the weights' gradient the products of the image and the maps.
    pub(super) fn correlate<B: Backend>(
        &self,
        image: &[B::Elem],
        maps: &[B::Elem],
        weight: &mut [B::Elem],
        columns: &mut [B::Elem],
    ) {
        self.for_each_block(maps.len(), |geometry, block| {
            let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
            geometry.gather(&block, image, columns);
            let maps = Matrix { data: maps.get(block.y..).unwrap_or_default(), row: geometry.out_plane(), col: 1 };
            let columns = Matrix { data: columns, row: 1, col: pixels };
            let weight = weight.get_mut(block.weight..).unwrap_or_default();
            B::matmul([geometry.outputs, taps, pixels], maps, columns, weight, taps, Start::Output);
        });
    }
}

/// Copies every `stride`-th element of `from`, as many as there is room for.
#[inline(always)]
fn copy_every<E: Real>(stride: usize, from: &[E], to: &mut [E]) {
    match stride {
        1 => to.iter_mut().zip(from).for_each(|(to, &from)| *to = from),
        // The usual one besides, four at a time.
        2 => {
            let (fours, eights) = (to.as_chunks_mut::<4>().0, from.as_chunks::<8>().0);
            for (to, from) in fours.iter_mut().zip(eights) {
                *to = [from[0], from[2], from[4], from[6]];
            }
            let mut i = 4 * fours.len().min(eights.len());
            while let (Some(to), Some(&from)) = (to.get_mut(i), from.get(2 * i)) {
                *to = from;
                i += 1;
            }
        }
        _ => {
            for (to, from) in to.iter_mut().zip(from.chunks(stride.max(1))) {
                *to = from.first().copied().unwrap_or_default();
            }
        }
    }
}

/// Adds the elements of `from` to every `stride`-th of `to`.
#[inline(always)]
fn add_to_every<E: Real>(stride: usize, to: &mut [E], from: &[E]) {
    match stride {
        1 => to.iter_mut().zip(from).for_each(|(to, &from)| *to += from),
        2 => {
            let (eights, fours) = (to.as_chunks_mut::<8>().0, from.as_chunks::<4>().0);
            for (to, from) in eights.iter_mut().zip(fours) {
                to[0] += from[0];
                to[2] += from[1];
                to[4] += from[2];
                to[6] += from[3];
            }
            let mut i = 4 * fours.len().min(eights.len());
            while let (Some(to), Some(&from)) = (to.get_mut(2 * i), from.get(i)) {
                *to += from;
                i += 1;
            }
        }
        _ => {
            for (to, &from) in to.chunks_mut(stride.max(1)).zip(from) {
                to.iter_mut().take(1).for_each(|to| *to += from);
            }
        }
    }
}

/// Fills each plane of `y` with its channel's bias. Returns what products start from: these, or zeros where there is no
/// bias.
pub(super) fn start_from_bias<E: Real>(y: &mut [E], bias: &[E], plane: usize) -> Start {
    for planes in y.chunks_exact_mut((bias.len() * plane).max(1)) {
        for (y, &b) in planes.chunks_exact_mut(plane.max(1)).zip(bias) {
            y.fill(b);
        }
    }
    Start::adding(!bias.is_empty())
}

/// The forward kernel of a convolution.
pub(super) fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    forward_then::<B>(call, |_| {});
}

/// The same with a rectified linear unit.
pub(super) fn forward_relu<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    forward_then::<B>(call, relu::in_place::<B>);
}

/// Sample by sample, so that bias, products and what comes `then` find a sample's maps in the cache.
#[inline(always)]
fn forward_then<B: Backend>(call: ForwardCall<'_, B::Elem>, then: impl Fn(&mut [B::Elem])) {
    let geometry = Geometry::new(call.args);
    let [x, weight, bias] = call.x;
    let (image, maps) = (geometry.image_len().max(1), geometry.maps_len().max(1));
    for (x, y) in x.chunks_exact(image).zip(call.y.chunks_exact_mut(maps)) {
        let start = start_from_bias(y, bias, geometry.out_plane());
        geometry.convolve::<B>(x, weight, y, call.scratch, start);
        then(y);
    }
}

/// The gradient for its input.
pub(super) fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    Geometry::new(call.args).scatter::<B>(call.dx, call.x[1], call.dy, call.scratch);
}

/// The gradient for its weight.
pub(super) fn gradient_w<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    Geometry::new(call.args).correlate::<B>(call.x[0], call.dy, call.dx, call.scratch);
}

/// The gradient for its bias.
pub(super) fn gradient_b<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    planes::add_sums::<B>(call.dx, call.dy, Geometry::new(call.args).out_plane());
}
