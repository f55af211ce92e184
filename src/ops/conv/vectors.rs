//! Convolutions on machines with vectors, without columns. A block of the image, or of the maps for the image's gradient, is copied
//! with its padding, and windows of it are multiplied where they lie. Vectors run over outputs, or over channels for the image's
//! gradient; so results are transposed on the way to where they belong.
//!
//! Every sum takes its terms in the order in which it takes them by way of columns, and so has the same bits. Each function returns
//! whether it did the work: shapes that are too small to fill vectors, or too large for the memory here, are left to columns.

mod scatter;

use core::iter::repeat_n;
use core::ops::Range;

use super::{Geometry, Planes};
use crate::backend::threads::{Columns, parts, share};
use crate::backend::transpose::{transpose, transpose_from, transpose_to};
use crate::backend::windows::{Buffer, Product, Row, Rows, Sums, Terms, lanes};
use crate::backend::{Backend, Real, Start};

/// Unoptimized code keeps what is on the stack more than once.
const SMALL: bool = cfg!(debug_assertions);
/// Terms of a product, or pixels of a block of maps.
const PLACES: usize = if SMALL { 64 } else { 256 };
/// Elements of a block of the image with its padding.
const IMAGE: usize = 8192;
/// Elements of panels, and of a result.
const PANEL: usize = PLACES * WIDEST;
/// Elements of two of the widest vectors.
const WIDEST: usize = 32;

/// How an image is worked on in parts.
struct Layout {
    /// Channels of a part.
    channels: usize,
    /// Rows and columns of the maps of a block.
    rows: usize,
    columns: usize,
    /// The image's rows and columns under a block.
    window: [usize; 2],
}

/// A block of the maps of a group of a sample.
struct Block {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

impl Geometry {
    /// The width of panels for so many outputs or channels.
    fn panel_width<B: Backend>(&self, count: usize) -> Option<usize> {
        #[cfg(feature = "std")]
        if crate::backend::registry::matmul_kernel::<B::Elem>().is_some() {
            return None;
        }
        let lanes = lanes::<B>();
        let is_empty = self.plane() == 0 || self.out_plane() == 0 || self.stride.contains(&0);
        if lanes == 0 || 2 * count < lanes || is_empty {
            return None;
        }
        Some(if count > lanes { 2 * lanes } else { lanes })
    }

    fn layout(&self) -> Option<Layout> {
        let [down, across] = self.kernel;
        if down * across == 0 {
            return None;
        }
        let columns = self.out_width.min(PLACES);
        let reach = [0, 1].map(|axis| (self.kernel[axis] - 1) * self.dilation[axis] + 1);
        let width = (columns - 1) * self.stride[1] + reach[1];
        let channels = self.channels.min(PLACES / (down * across)).min(IMAGE / (width * reach[0]));
        let height = IMAGE.checked_div(channels * width)?;
        let rows = ((height - reach[0]) / self.stride[0] + 1).min(PLACES / columns).min(self.out_height);
        Some(Layout { channels, rows, columns, window: [(rows - 1) * self.stride[0] + reach[0], width] })
    }

    fn blocks(&self, layout: &Layout) -> impl Iterator<Item = Block> {
        let &Layout { rows, columns, .. } = layout;
        let [height, width] = [self.out_height, self.out_width];
        (0..height).step_by(rows).flat_map(move |row| {
            (0..width).step_by(columns).map(move |column| Block {
                row,
                rows: rows.min(height - row),
                column,
                columns: columns.min(width - column),
            })
        })
    }

    /// Copies the image under a block, some channels of it, with its padding.
    fn pad<E: Real>(&self, image: &[E], channels: usize, layout: &Layout, block: &Block, padded: &mut [E]) {
        let [rows, columns] = layout.window;
        let rows = self.inside(0, block.row * self.stride[0], 1, rows);
        let columns = self.inside(1, block.column * self.stride[1], 1, columns);
        let planes = Planes { count: channels, len: self.plane(), width: self.width };
        planes.gather(image, &rows, &columns, padded, rows.count * columns.count);
    }

    /// The places of taps in a padded block.
    fn taps_of(&self, channels: usize, layout: &Layout) -> impl Iterator<Item = u32> + use<> {
        let ([down, across], dilation, [height, width]) = (self.kernel, self.dilation, layout.window);
        (0..channels).flat_map(move |channel| {
            (0..down).flat_map(move |p| {
                (0..across).map(move |q| ((channel * height + p * dilation[0]) * width + q * dilation[1]) as u32)
            })
        })
    }

    /// The places of the windows of a block's pixels in a padded block, whose rows have so many columns.
    fn pixels_of(&self, layout: &Layout, columns: usize) -> impl Iterator<Item = u32> + use<> {
        let (stride, width) = (self.stride, layout.window[1]);
        (0..layout.rows)
            .flat_map(move |row| (0..columns).map(move |column| (row * stride[0] * width + column * stride[1]) as u32))
    }

    /// Copies a block of some maps, so that pixels become rows of `width`.
    fn maps_to_rows<B: Backend>(
        &self,
        block: &Block,
        maps: &[B::Elem],
        count: usize,
        to: &mut [B::Elem],
        width: usize,
    ) {
        for (at, from, len) in self.runs(block) {
            transpose::<B>([count, len], &maps[at..], self.out_plane(), &mut to[from * width..], width);
        }
    }

    /// The way back.
    fn rows_to_maps<B: Backend>(
        &self,
        block: &Block,
        from: &[B::Elem],
        width: usize,
        maps: &mut [B::Elem],
        count: usize,
    ) {
        for (at, first, len) in self.runs(block) {
            transpose::<B>([len, count], &from[first * width..], width, &mut maps[at..], self.out_plane());
        }
    }

    /// The runs of neighbours that a block is on a plane: where each begins there, and in the block, and how long they are.
    fn runs(&self, block: &Block) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let whole = block.columns == self.out_width;
        let (count, len) = if whole { (1, block.rows * block.columns) } else { (block.rows, block.columns) };
        let (first, width) = (block.row * self.out_width + block.column, self.out_width);
        (0..count).map(move |run| (first + run * width, run * len, len))
    }

    /// [`Geometry::convolve`], and what comes `then`, on elements in any order.
    #[inline(never)]
    pub(super) fn convolve_in_vectors<B: Backend>(
        &self,
        image: &[B::Elem],
        [weight, bias]: [&[B::Elem]; 2],
        maps: &mut [B::Elem],
        start: Start,
        then: &dyn Fn(&mut [B::Elem]),
    ) -> bool {
        let (Some(width), Some(layout)) = (self.panel_width::<B>(self.outputs), self.layout()) else {
            return false;
        };
        let mut padded = Buffer::<_, IMAGE>::NEW;
        let mut panels = Buffer::<_, PANEL>::NEW;
        let mut result = Buffer::<_, PANEL>::NEW;
        let mut rows = Buffer::<_, PLACES>::NEW;
        let mut rows_at_the_edge = Buffer::<_, PLACES>::NEW;
        let mut terms = Buffer::<_, PLACES>::NEW;
        let rows = Rows::new(rows.collect(enumerated(self.pixels_of(&layout, layout.columns))));
        let result = result.collect(repeat_n(B::Elem::ZERO, PLACES * width));
        let padded = padded.collect(repeat_n(B::Elem::ZERO, layout.channels * layout.window[0] * layout.window[1]));
        let (plane, out_plane, samples) = (self.plane(), self.out_plane(), maps.len() / self.maps_len());
        for (group, Range { start: channel, end }) in self.parts(&layout, 0..self.channels) {
            let channels = end - channel;
            let terms = Terms::new(terms.collect(self.taps_of(channels, &layout)));
            let at_once = PANEL / terms.len() / width * width;
            for first in (0..self.outputs).step_by(at_once) {
                let outputs = at_once.min(self.outputs - first);
                let panels = panels.collect(repeat_n(B::Elem::ZERO, outputs.next_multiple_of(width) * terms.len()));
                let first = group * self.outputs + first;
                for (i, panel) in panels.chunks_exact_mut(terms.len() * width).enumerate() {
                    let taps =
                        weight.get((first + i * width) * self.taps() + channel * (self.taps() / self.channels)..);
                    let count = width.min(outputs - i * width);
                    transpose::<B>([count, terms.len()], taps.unwrap_or_default(), self.taps(), panel, width);
                }
                for n in 0..samples {
                    let image = image.get(n * self.image_len() + (group * self.channels + channel) * plane..);
                    let maps = maps.get_mut((n * self.groups * self.outputs + first) * out_plane..).unwrap_or_default();
                    for block in self.blocks(&layout) {
                        self.pad(image.unwrap_or_default(), channels, &layout, &block, padded);
                        let rows = if block.columns == layout.columns {
                            rows
                        } else {
                            Rows::new(rows_at_the_edge.collect(enumerated(self.pixels_of(&layout, block.columns))))
                        };
                        let rows = rows.first(block.rows * block.columns);
                        for (i, panel) in panels.chunks_exact(terms.len() * width).enumerate() {
                            let count = width.min(outputs - i * width);
                            let maps = maps.get_mut(i * width * out_plane..).unwrap_or_default();
                            let mut from = [B::Elem::ZERO; WIDEST];
                            let sums = if channel > 0 || start == Start::Output {
                                self.maps_to_rows::<B>(&block, maps, count, result, width);
                                Sums::Continue
                            } else {
                                let bias = bias.iter().skip(first + i * width).take(count);
                                from.iter_mut().zip(bias).for_each(|(from, &bias)| *from = bias);
                                Sums::From(&from)
                            };
                            Product { left: padded, rows, terms, panel, width, result, sums }.run::<B>();
                            if end == self.channels {
                                then(&mut result[..rows.len() * width]);
                            }
                            self.rows_to_maps::<B>(&block, result, width, maps, count);
                        }
                    }
                }
            }
        }
        true
    }

    /// Groups, and so many of the channels of each in parts.
    fn parts(&self, layout: &Layout, channels: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let step = layout.channels;
        (0..self.groups).flat_map(move |group| {
            channels.clone().step_by(step).map(move |first| (group, first..(first + step).min(channels.end)))
        })
    }

    /// [`Geometry::correlate`]. Threads share the taps; each copies the channels that it needs, and all maps.
    pub(super) fn correlate_in_vectors<B: Backend>(
        &self,
        image: &[B::Elem],
        maps: &[B::Elem],
        weight: &mut [B::Elem],
    ) -> bool {
        let (Some(width), Some(layout)) = (self.panel_width::<B>(self.outputs), self.layout()) else {
            return false;
        };
        let (taps, parts) = (self.taps(), parts(maps.len() * self.taps()));
        let grain = if self.channels < parts { 1 } else { taps / self.channels };
        share(parts, grain, 0..taps, Columns::new(weight, taps, taps), &|taps, weight| {
            self.correlate_taps::<B>(image, maps, taps, weight, width, &layout);
        });
        true
    }

    /// The same for some taps, whose weights these are.
    #[inline(never)]
    fn correlate_taps<B: Backend>(
        &self,
        image: &[B::Elem],
        maps: &[B::Elem],
        taps: Range<usize>,
        mut weight: Columns<'_, B::Elem>,
        width: usize,
        layout: &Layout,
    ) {
        let mut padded = Buffer::<_, IMAGE>::NEW;
        let mut panel = Buffer::<_, PANEL>::NEW;
        let mut sums = Buffer::<_, PANEL>::NEW;
        let mut places = Buffer::<_, PLACES>::NEW;
        let mut terms = Buffer::<_, PLACES>::NEW;
        let mut terms_at_the_edge = Buffer::<_, PLACES>::NEW;
        let terms = Terms::new(terms.collect(self.pixels_of(layout, layout.columns)));
        let panel = panel.collect(repeat_n(B::Elem::ZERO, PLACES * width));
        let padded = padded.collect(repeat_n(B::Elem::ZERO, layout.channels * layout.window[0] * layout.window[1]));
        let (plane, out_plane, samples) = (self.plane(), self.out_plane(), maps.len() / self.maps_len());
        let of_a_channel = self.taps() / self.channels;
        let channels = taps.start / of_a_channel..taps.end.div_ceil(of_a_channel);
        for (group, part) in self.parts(layout, channels) {
            let taps_here = taps.start.max(part.start * of_a_channel)..taps.end.min(part.end * of_a_channel);
            let others = taps_here.start - part.start * of_a_channel;
            let rows = self.taps_of(part.len(), layout).skip(others).take(taps_here.len());
            let rows = Rows::new(places.collect(enumerated(rows)));
            let at_once = PANEL / rows.len() / width * width;
            for first in (0..self.outputs).step_by(at_once) {
                let outputs = at_once.min(self.outputs - first);
                let first = group * self.outputs + first;
                let sums = sums.collect(repeat_n(B::Elem::ZERO, outputs.next_multiple_of(width) * rows.len()));
                let panels = || (0..outputs).step_by(width).map(|i| (i, width.min(outputs - i)));
                let column = taps_here.start - taps.start;
                for ((i, count), sums) in panels().zip(sums.chunks_exact_mut(rows.len() * width)) {
                    transpose_from::<B>([count, rows.len()], &mut weight, [first + i, column], sums, width);
                }
                for n in 0..samples {
                    let image = image.get(n * self.image_len() + (group * self.channels + part.start) * plane..);
                    let maps = maps.get((n * self.groups * self.outputs + first) * out_plane..).unwrap_or_default();
                    for block in self.blocks(layout) {
                        self.pad(image.unwrap_or_default(), part.len(), layout, &block, padded);
                        let terms = if block.columns == layout.columns {
                            terms
                        } else {
                            Terms::new(terms_at_the_edge.collect(self.pixels_of(layout, block.columns)))
                        };
                        let terms = terms.first(block.rows * block.columns);
                        for ((i, count), sums) in panels().zip(sums.chunks_exact_mut(rows.len() * width)) {
                            self.maps_to_rows::<B>(&block, &maps[i * out_plane..], count, panel, width);
                            let (left, panel) = (&*padded, &*panel);
                            Product { left, rows, terms, panel, width, result: sums, sums: Sums::Continue }.run::<B>();
                        }
                    }
                }
                for ((i, count), sums) in panels().zip(sums.chunks_exact(rows.len() * width)) {
                    transpose_to::<B>([rows.len(), count], sums, width, &mut weight, [first + i, column]);
                }
            }
        }
    }
}

/// Rows from these places, to those of a result in their order.
fn enumerated(places: impl Iterator<Item = u32>) -> impl Iterator<Item = Row> {
    (0..).zip(places).map(|(to, from)| Row { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::threads::Cut;
    use crate::backend::{Fast, Strict};

    fn values(len: usize, seed: usize) -> std::vec::Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed * 31) % 1009) as f32 / 97.0 - 5.0).collect()
    }

    fn bits(values: &[f32]) -> std::vec::Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// Both ways to compute all that a convolution is made of; returns in how many of three the machine's vectors were used.
    fn compare<B: Backend<Elem = f32>>(geometry: &Geometry, samples: usize) -> usize {
        let Geometry { groups, channels, outputs, out_width, kernel, .. } = *geometry;
        let image = values(samples * geometry.image_len(), 1);
        let weight = values(groups * outputs * geometry.taps(), 2);
        let bias = values(groups * outputs, 3);
        let maps = values(samples * geometry.maps_len(), 4);
        let relu = &values(samples * geometry.image_len(), 5)[..];
        let shape = std::format!(
            "{groups} x {channels} x {}x{} to {outputs} x {}x{out_width}, {kernel:?} stride {:?} padding {:?} dilation {:?}",
            geometry.height,
            geometry.width,
            geometry.out_height,
            geometry.stride,
            geometry.padding,
            geometry.dilation
        );
        let rows = super::super::block_rows(geometry.taps(), geometry.out_height, out_width);
        let mut columns = std::vec![0.0; geometry.taps() * rows * out_width];
        let mut used = 0;

        for start in [Start::Zero, Start::Output] {
            let (mut got, mut want) = (maps.clone(), maps.clone());
            let with_bias = if start == Start::Zero { &bias[..] } else { &[] };
            if geometry.convolve_in_vectors::<B>(&image, [&weight, with_bias], &mut got, start, &|_| {}) {
                let start = if start == Start::Zero {
                    super::super::start_from_bias(&mut want, &bias, geometry.out_plane())
                } else {
                    start
                };
                geometry.convolve_by_columns::<B>(&image, &weight, &mut want, &mut columns, start);
                assert_eq!(bits(&got), bits(&want), "maps: {shape}");
                used |= 1;
            }
            let relu = if start == Start::Zero { relu } else { &[] };
            let (mut got, mut want) = (image.clone(), image.clone());
            // A sum that nothing is added to stays what it is.
            got[0] = -0.0;
            want[0] = -0.0;
            *got.last_mut().unwrap() = -0.0;
            *want.last_mut().unwrap() = -0.0;
            if geometry.scatter_in_vectors::<B>(&mut got, [&weight, relu], &maps, start) {
                geometry.scatter_by_columns::<B>(&mut want, [&weight, relu], &maps, &mut columns, start);
                assert_eq!(bits(&got), bits(&want), "image: {shape}");
                used |= 2;
            }
        }
        let (all, taps) = (0..groups * outputs, geometry.taps());
        let (mut got, mut want) = (weight.clone(), weight.clone());
        if geometry.correlate_in_vectors::<B>(&image, &maps, &mut got) {
            geometry.correlate_by_columns::<B>(&image, &maps, all, &mut want, &mut columns);
            assert_eq!(bits(&got), bits(&want), "weights: {shape}");
            // In two parts, as by two threads.
            let (width, layout) = (geometry.panel_width::<B>(outputs).unwrap(), geometry.layout().unwrap());
            let (mut got, middle) = (weight, taps / 3);
            let (first, rest) = Columns::new(&mut got, taps, taps).cut(middle);
            for (taps, weight) in [(0..middle, first), (middle..taps, rest)] {
                geometry.correlate_taps::<B>(&image, &maps, taps, weight, width, &layout);
            }
            assert_eq!(bits(&got), bits(&want), "weights in two parts: {shape}");
            used |= 4;
        }
        used
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes; `windows.rs` has a small one")]
    fn the_bits_are_those_of_columns() {
        if lanes::<Strict<f32>>() == 0 {
            return;
        }
        let mut seed = 7_usize;
        let mut random = |from: usize, to: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from + (seed >> 33) % (to - from)
        };
        let mut used = [0; 8];
        for round in 0..60 {
            let pair = |random: &mut dyn FnMut(usize, usize) -> usize, from, to| [random(from, to), random(from, to)];
            let (kernel, stride) = (pair(&mut random, 1, 5), pair(&mut random, 1, 4));
            let (padding, dilation) = (pair(&mut random, 0, 4), pair(&mut random, 1, 4));
            let large = round % 40 == 0;
            let image = if large { [random(1, 9), random(250, 600)] } else { pair(&mut random, 1, 24) };
            let reach = [0, 1].map(|axis| (kernel[axis] - 1) * dilation[axis] + 1);
            if (0..2).any(|axis| image[axis] + 2 * padding[axis] < reach[axis]) {
                continue;
            }
            let [out_height, out_width] =
                [0, 1].map(|axis| (image[axis] + 2 * padding[axis] - reach[axis]) / stride[axis] + 1);
            let most = if large { 8 } else { 50 };
            let geometry = Geometry {
                height: image[0],
                width: image[1],
                out_height,
                out_width,
                groups: random(1, 3),
                channels: random(1, most),
                outputs: random(1, most),
                kernel,
                stride,
                padding,
                dilation,
            };
            used[compare::<Strict<f32>>(&geometry, 2)] += 1;
            compare::<Fast<f32>>(&geometry, 1);
        }
        assert!(used[7] > 15, "{used:?}");
    }
}
