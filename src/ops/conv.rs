//! What the convolutions share: their shape rule, and the kernels that gather an image into columns, or scatter columns
//! into one, around a matrix product.
//!
//! The kernels are named from the convolution's side: it reads an image and makes maps, one for each output channel. A
//! transposed convolution runs the same ones with image and maps exchanged, a one-dimensional one runs them on images of
//! height 1.

#[cfg(target_arch = "x86_64")]
mod vectors;

use core::ops::Range;

use super::window::{Window2d, pack, unpack};
use super::{Args, BackwardCall, ForwardCall, Op, Spec, planes, relu};
use crate::backend::columns::{Place, Runs};
use crate::backend::threads::{Each, Scratch, parts, share};
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
    (args, taps * block_rows(taps, sizes.maps[0], sizes.maps[1]) * sizes.maps[1])
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

/// Pixels that fill registers. In a browser memory is less of a concern, and what is done for each block is a larger part of the work.
const PIXELS: usize = if cfg!(target_arch = "wasm32") { 224 } else { 16 };

/// How many rows of the output are worked on at a time: enough pixels to fill registers, and more where that takes no more than
/// 512 elements of scratch.
const fn block_rows(taps: usize, height: usize, width: usize) -> usize {
    let width = if width == 0 { 1 } else { width };
    let taps = if taps == 0 { 1 } else { taps };
    let (needed, affordable) = (PIXELS.div_ceil(width), 512 / taps / width);
    let rows = if affordable > needed { affordable } else { needed };
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
    /// Where the group's channels of the sample start in `x`, and its first output.
    x: usize,
    first_output: usize,
    /// Where the block starts in `y`.
    y: usize,
    first_row: usize,
    rows: usize,
}

/// Positions along an axis of an image: which of `count` lie inside of it, and where the first of these lies.
struct Positions {
    inside: Range<usize>,
    at: usize,
    step: usize,
    count: usize,
}

impl Positions {
    /// `count` positions, `step` apart, from `first` on, of `len` with so much padding before and after.
    fn new(len: usize, padding: usize, first: usize, step: usize, count: usize) -> Self {
        let until = |end: usize| end.saturating_sub(first).div_ceil(step.max(1)).min(count);
        let (start, end) = (until(padding), until(len + padding));
        Self { inside: start..end, at: (first + start * step).saturating_sub(padding), step, count }
    }
}

/// `count` planes of `len` elements, in rows of `width`.
struct Planes {
    count: usize,
    len: usize,
    width: usize,
}

impl Planes {
    /// Copies elements of rows of all planes, with zeros for those outside; `distance` is that from a plane to the next where they go.
    fn gather<E: Real>(&self, from: &[E], rows: &Positions, columns: &Positions, to: &mut [E], distance: usize) {
        // Rows that are not inside; runs see to what is beside them.
        let inside = if columns.inside.is_empty() { 0..0 } else { rows.inside.clone() };
        if inside.len() < rows.count {
            for plane in to.chunks_mut(distance.max(1)).take(self.count) {
                for rows in [0..inside.start, inside.end..rows.count] {
                    let zeros = plane.get_mut(rows.start * columns.count..rows.end * columns.count);
                    zeros.unwrap_or_default().fill(E::ZERO);
                }
            }
        }
        let runs = Runs {
            count: [self.count, rows.inside.len()],
            len: columns.inside.len(),
            dense: Place {
                at: rows.inside.start * columns.count + columns.inside.start,
                step: [distance, columns.count],
            },
            image: Place { at: rows.at * self.width + columns.at, step: [self.len, rows.step * self.width] },
            stride: columns.step,
            zeros: [columns.inside.start, columns.count - columns.inside.end],
        };
        runs.gather(from, to);
    }
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
        let rows_at_a_time = block_rows(self.taps(), self.out_height, self.out_width).max(1);
        for n in 0..y_len / sample.max(1) {
            for g in 0..self.groups {
                let mut first_row = 0;
                while first_row < self.out_height {
                    let rows = rows_at_a_time.min(self.out_height - first_row);
                    let x = (n * self.groups + g) * self.channels * self.plane();
                    let y = (n * self.groups + g) * self.outputs * self.out_plane() + first_row * self.out_width;
                    each(self, Block { x, first_output: g * self.outputs, y, first_row, rows });
                    first_row += rows;
                }
            }
        }
    }

    /// `count` positions along `axis`, `step` apart, the first of them at `first` on the padded image.
    fn inside(&self, axis: usize, first: usize, step: usize, count: usize) -> Positions {
        Positions::new([self.height, self.width][axis], self.padding[axis], first, step, count)
    }

    /// Gathers the block's columns: the pixels of a tap are neighbours.
    fn gather<E: Real>(&self, block: &Block, image: &[E], columns: &mut [E]) {
        let image = image.get(block.x..).unwrap_or_default();
        let [down, across] = self.kernel;
        let pixels = block.rows * self.out_width;
        let planes = Planes { count: self.channels, len: self.plane(), width: self.width };
        for q in 0..across {
            let of_rows = self.inside(1, q * self.dilation[1], self.stride[1], self.out_width);
            for p in 0..down {
                let first = block.first_row * self.stride[0] + p * self.dilation[0];
                let rows = self.inside(0, first, self.stride[0], block.rows);
                let taps = columns.get_mut((p * across + q) * pixels..).unwrap_or_default();
                planes.gather(image, &rows, &of_rows, taps, down * across * pixels);
            }
        }
    }

    /// Adds the block's columns to the image, in ascending order of row and column of the window.
    fn add_columns<E: Real>(&self, block: &Block, columns: &[E], image: &mut [E]) {
        let image = image.get_mut(block.x..).unwrap_or_default();
        let [down, across] = self.kernel;
        let pixels = block.rows * self.out_width;
        for row in 0..block.rows {
            let first = (block.first_row + row) * self.stride[0];
            let taps = self.inside(0, first, self.dilation[0], down);
            for q in 0..across {
                let columns_inside = self.inside(1, q * self.dilation[1], self.stride[1], self.out_width);
                let inside = columns_inside.inside;
                let runs = Runs {
                    count: [self.channels, taps.inside.len()],
                    len: inside.len(),
                    dense: Place {
                        at: (taps.inside.start * across + q) * pixels + row * self.out_width + inside.start,
                        step: [down * across * pixels, across * pixels],
                    },
                    image: Place {
                        at: taps.at * self.width + columns_inside.at,
                        step: [self.plane(), self.dilation[0] * self.width],
                    },
                    stride: self.stride[1],
                    zeros: [0; 2],
                };
                runs.scatter(columns, image);
            }
        }
    }

    /// Elements of a sample's input.
    const fn image_len(&self) -> usize {
        self.groups * self.channels * self.height * self.width
    }

    /// Elements of a sample's output.
    fn maps_len(&self) -> usize {
        self.groups * self.outputs * self.out_plane()
    }

    /// Writes the maps of images, or adds to them.
    pub(super) fn convolve<B: Backend>(
        &self,
        image: &[B::Elem],
        weight: &[B::Elem],
        maps: &mut [B::Elem],
        columns: &mut [B::Elem],
        start: Start,
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.convolve_in_vectors::<B>(image, [weight, &[]], maps, start, &|_| {}) {
            return;
        }
        self.convolve_by_columns::<B>(image, weight, maps, columns, start);
    }

    fn convolve_by_columns<B: Backend>(
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
            let weight =
                Matrix { data: weight.get(block.first_output * taps..).unwrap_or_default(), row: taps, col: 1 };
            let columns = Matrix { data: columns, row: pixels, col: 1 };
            let maps = maps.get_mut(block.y..).unwrap_or_default();
            B::matmul([geometry.outputs, pixels, taps], weight, columns, maps, geometry.out_plane(), start);
        });
    }

    /// Writes images, or adds to them, what every element of their maps weighs in them: the transpose of [`Geometry::convolve`]. They go
    /// on through relu, where its output is given.
    pub(super) fn scatter<B: Backend>(
        &self,
        image: &mut [B::Elem],
        [weight, relu]: [&[B::Elem]; 2],
        maps: &[B::Elem],
        columns: &mut [B::Elem],
        start: Start,
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.scatter_in_vectors::<B>(image, [weight, relu], maps, start) {
            return;
        }
        self.scatter_by_columns::<B>(image, [weight, relu], maps, columns, start);
    }

    fn scatter_by_columns<B: Backend>(
        &self,
        image: &mut [B::Elem],
        [weight, relu]: [&[B::Elem]; 2],
        maps: &[B::Elem],
        columns: &mut [B::Elem],
        start: Start,
    ) {
        let (image_len, maps_len) = (self.image_len(), self.maps_len());
        for (n, image) in image.chunks_exact_mut(image_len.max(1)).enumerate() {
            let maps = maps.get(n * maps_len..(n + 1) * maps_len).unwrap_or_default();
            if start == Start::Zero {
                image.fill(B::Elem::ZERO);
            }
            self.for_each_block(maps.len(), |geometry, block| {
                let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
                let weight =
                    Matrix { data: weight.get(block.first_output * taps..).unwrap_or_default(), row: 1, col: taps };
                let maps = Matrix { data: maps.get(block.y..).unwrap_or_default(), row: geometry.out_plane(), col: 1 };
                B::matmul([taps, pixels, geometry.outputs], weight, maps, columns, pixels, Start::Zero);
                geometry.add_columns(&block, columns, image);
            });
            if let Some(y) = relu.get(n * image_len..(n + 1) * image_len) {
                through_relu::<B>(image, y);
            }
        }
    }

    /// Adds to the weights' gradient the products of the image and the maps.
    pub(super) fn correlate<B: Backend>(
        &self,
        image: &[B::Elem],
        maps: &[B::Elem],
        weight: &mut [B::Elem],
        scratch: &mut [B::Elem],
    ) {
        #[cfg(target_arch = "x86_64")]
        if self.correlate_in_vectors::<B>(image, maps, weight) {
            return;
        }
        // Threads share the outputs; each gathers the columns for itself.
        let (outputs, parts) = (self.groups * self.outputs, parts(maps.len() * self.taps()));
        let data = (Each(weight, self.taps()), Scratch::new(scratch));
        share(parts, 8, 0..outputs, data, &|outputs, (Each(weight, _), scratch)| {
            scratch.lend(|scratch| self.correlate_by_columns::<B>(image, maps, outputs, weight, scratch));
        });
    }

    /// The same for some outputs, whose weights these are.
    fn correlate_by_columns<B: Backend>(
        &self,
        image: &[B::Elem],
        maps: &[B::Elem],
        outputs: Range<usize>,
        weight: &mut [B::Elem],
        columns: &mut [B::Elem],
    ) {
        self.for_each_block(maps.len(), |geometry, block| {
            let (taps, pixels) = (geometry.taps(), block.rows * geometry.out_width);
            let first = block.first_output.max(outputs.start);
            let count = (block.first_output + geometry.outputs).min(outputs.end).saturating_sub(first);
            if count == 0 {
                return;
            }
            geometry.gather(&block, image, columns);
            let maps = maps.get(block.y + (first - block.first_output) * geometry.out_plane()..).unwrap_or_default();
            let maps = Matrix { data: maps, row: geometry.out_plane(), col: 1 };
            let columns = Matrix { data: columns, row: 1, col: pixels };
            let weight = weight.get_mut((first - outputs.start) * taps..).unwrap_or_default();
            B::matmul([count, taps, pixels], maps, columns, weight, taps, Start::Output);
        });
    }
}

/// The gradient of an image that is relu's output `y` goes on through relu. Within the loops around it a microcontroller has too few
/// registers.
#[cfg_attr(target_os = "none", inline(never))]
fn through_relu<B: Backend>(image: &mut [B::Elem], y: &[B::Elem]) {
    relu::gradient_in_place::<B>(image, y);
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
fn forward_then<B: Backend>(call: ForwardCall<'_, B::Elem>, then: impl Fn(&mut [B::Elem]) + Sync) {
    let geometry = Geometry::new(call.args);
    let [x, weight, bias] = call.x;
    let (image, maps) = (geometry.image_len().max(1), geometry.maps_len().max(1));
    let samples = call.y.len() / maps;
    let data = (Each(x, image), Each(call.y, maps), Scratch::new(call.scratch));
    let parts = parts(samples * maps * geometry.taps());
    share(parts, 1, 0..samples, data, &|_, (Each(x, _), Each(y, _), scratch)| {
        scratch.lend(|scratch| {
            #[cfg(target_arch = "x86_64")]
            if geometry.convolve_in_vectors::<B>(x, [weight, bias], y, Start::Zero, &then) {
                return;
            }
            for (n, y) in y.chunks_exact_mut(maps).enumerate() {
                let x = x.get(n * image..(n + 1) * image).unwrap_or_default();
                let start = start_from_bias(y, bias, geometry.out_plane());
                geometry.convolve_by_columns::<B>(x, weight, y, scratch, start);
                then(y);
            }
        });
    });
}

/// The gradient for its input.
pub(super) fn gradient_x<B: Backend>(mut call: BackwardCall<'_, B::Elem>) {
    call.x[0] = &[];
    gradient_x_behind_relu::<B>(call);
}

/// The same, sample by sample, and that of a rectified linear unit in front, whose output is given.
pub(super) fn gradient_x_behind_relu<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let geometry = Geometry::new(call.args);
    let (image, maps) = (geometry.image_len().max(1), geometry.maps_len());
    let samples = call.dx.len() / image;
    let data = (Each(call.dx, image), Each(call.x[0], image), Scratch::new(call.scratch));
    let parts = parts(samples * maps * geometry.taps());
    share(parts, 1, 0..samples, data, &|samples, (Each(dx, _), Each(x, _), scratch)| {
        scratch.lend(|scratch| {
            let dy = call.dy.get(samples.start * maps..samples.end * maps).unwrap_or_default();
            geometry.scatter::<B>(dx, [call.x[1], x], dy, scratch, Start::adding(call.add));
        });
    });
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
