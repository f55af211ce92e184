//! The gradient for the image: its pixels that lie a stride apart see the same taps, and are one product for each of these.

use core::iter::repeat_n;
use core::ops::Range;

use super::super::{Geometry, Planes, Positions, relu};
use super::{IMAGE, PANEL, PLACES, SMALL, WIDEST};
use crate::backend::transpose::transpose;
use crate::backend::windows::{Buffer, Product, Row, Rows, Sums, Terms, lanes};
use crate::backend::{Backend, Real, Start};

/// Elements of the weights that are needed at a time.
const WEIGHTS: usize = if SMALL { 8192 } else { 32768 };

impl Geometry {
    /// [`Geometry::scatter`]: pixels that lie a stride apart see the same taps. Each of these adds a product to all of them, in the order
    /// in which the maps' pixels would.
    #[inline(never)]
    pub(in super::super) fn scatter_in_vectors<B: Backend>(
        &self,
        image: &mut [B::Elem],
        [weight, relu]: [&[B::Elem]; 2],
        maps: &[B::Elem],
        start: Start,
    ) -> bool {
        let [down, across] = self.kernel;
        let (Some(wide), [Some(vertical), Some(horizontal)]) =
            (self.panel_width::<B>(self.channels), [0, 1].map(|axis| Shifts::new(self, axis)))
        else {
            return false;
        };
        let size = down * across * self.outputs;
        let Some(width) = [wide, lanes::<B>()].into_iter().find(|width| size * width <= WEIGHTS) else {
            return false;
        };
        let columns = self.width.div_ceil(self.stride[1]) + horizontal.spread();
        // In strides, so that every block begins with the same phase.
        let room = (IMAGE / (self.outputs * columns)).saturating_sub(vertical.spread());
        let strides = room.min(PANEL / width / self.width / self.stride[0]).min(self.height.div_ceil(self.stride[0]));
        if self.outputs > PLACES || strides == 0 || size == 0 {
            return false;
        }
        let rows_at_once = strides * self.stride[0];
        let padded_rows = strides + vertical.spread();
        let mut padded = Buffer::<_, IMAGE>::NEW;
        let mut weights = Buffer::<_, WEIGHTS>::NEW;
        let mut sums = Buffer::<_, PANEL>::NEW;
        // A panel has four columns or more.
        let mut rows = Buffer::<_, { PANEL / 4 }>::NEW;
        let mut terms = Buffer::<_, PLACES>::NEW;
        let padded = padded.collect(repeat_n(B::Elem::ZERO, self.outputs * padded_rows * columns));
        let places = (0..self.outputs).map(|output| (output * padded_rows * columns) as u32);
        let terms = Terms::new(terms.collect(places));
        let (plane, samples) = (self.plane(), image.len() / self.image_len());
        for first in (0..self.height).step_by(rows_at_once) {
            let height = rows_at_once.min(self.height - first);
            let first_stride = first / self.stride[0];
            let down_in_maps = vertical.positions(first_stride, padded_rows, self.out_height);
            let across_in_maps = horizontal.positions(0, columns, self.out_width);
            // The rows of all phases, one after the other.
            let phases = (0..self.stride[0].min(height))
                .flat_map(|y| (0..self.stride[1].min(self.width)).map(move |x| (y, x)))
                .map(|(y, x)| {
                    let down = vertical.seen(y, first_stride, height, self.out_height);
                    (y, x, down, horizontal.seen(x, 0, self.width, self.out_width))
                });
            let rows = &*rows.collect(phases.clone().flat_map(|(y, x, down, across)| {
                down.flat_map(move |u| {
                    across.clone().map(move |v| Row {
                        from: (u * columns + v) as u32,
                        to: ((y + u * self.stride[0]) * self.width + x + v * self.stride[1]) as u32,
                    })
                })
            }));
            let pixels = height * self.width;
            let sums = sums.collect(repeat_n(B::Elem::ZERO, pixels * width));
            for group in 0..self.groups {
                for channel in (0..self.channels).step_by(width) {
                    let channels = width.min(self.channels - channel);
                    let weights = weights.collect(repeat_n(B::Elem::ZERO, size * width));
                    for output in 0..self.outputs {
                        let taps = &weight[(group * self.outputs + output) * self.taps() + channel * down * across..];
                        let to = &mut weights[output * width..];
                        transpose::<B>([channels, down * across], taps, down * across, to, self.outputs * width);
                    }
                    // What went before ended with the last sample, and what comes next begins with the first: these are in the cache.
                    for n in (0..samples).rev() {
                        let maps = &maps[(n * self.groups + group) * self.outputs * self.out_plane()..];
                        let at = n * self.image_len() + (group * self.channels + channel) * plane + first * self.width;
                        let planes = Planes { count: self.outputs, len: self.out_plane(), width: self.out_width };
                        planes.gather(maps, &down_in_maps, &across_in_maps, padded, padded_rows * columns);
                        let image = &mut image[at..];
                        if start == Start::Output {
                            transpose::<B>([channels, pixels], image, plane, sums, width);
                        } else if rows.len() < pixels {
                            sums.fill(B::Elem::ZERO);
                        }
                        let is_fresh = start == Start::Zero && rows.len() == pixels;
                        let mut rest = rows;
                        for (y, x, seen_down, seen_across) in phases.clone() {
                            let (rows, others) = rest.split_at(seen_down.len() * seen_across.len());
                            rest = others;
                            let rows = Rows::new(rows);
                            let mut how = if is_fresh { Sums::From(&[B::Elem::ZERO; WIDEST]) } else { Sums::Add };
                            // From the last tap down: the maps' rows ascend.
                            for (p, row) in vertical.taps(y).rev() {
                                for (q, column) in horizontal.taps(x) {
                                    let panel = &weights[(p * across + q) * self.outputs * width..];
                                    let (left, result) = (&padded[row * columns + column..], &mut *sums);
                                    Product { left, rows, terms, panel, width, result, sums: how }.run::<B>();
                                    how = Sums::Add;
                                }
                            }
                        }
                        transpose::<B>([pixels, channels], sums, width, image, plane);
                        let planes = relu.get(at..).unwrap_or_default().chunks(plane).take(channels);
                        for (dx, y) in image.chunks_mut(plane).zip(planes) {
                            relu::gradient_in_place::<B>(&mut dx[..pixels], &y[..pixels]);
                        }
                    }
                }
            }
        }
        true
    }
}

/// Which elements of the maps a pixel of the image is seen by, along an axis. Pixel `phase + u * stride` is seen at tap `t` by element
/// `u + (phase + padding - t * dilation) / stride`, where that is a whole number.
struct Shifts {
    kernel: usize,
    stride: isize,
    padding: isize,
    dilation: isize,
    least: isize,
    most: isize,
}

impl Shifts {
    /// `None` where windows are so far apart that pixels between them are not seen, or so large that there is no room for them here.
    fn new(geometry: &Geometry, axis: usize) -> Option<Self> {
        if geometry.stride[axis] > PLACES || geometry.kernel[axis] > PLACES {
            return None;
        }
        let maps = [geometry.out_height, geometry.out_width][axis];
        let mut shifts = Self {
            kernel: geometry.kernel[axis],
            stride: geometry.stride[axis].cast_signed(),
            padding: geometry.padding[axis].cast_signed(),
            dilation: geometry.dilation[axis].cast_signed(),
            least: isize::MAX,
            most: isize::MIN,
        };
        for phase in 0..geometry.stride[axis] {
            for tap in 0..shifts.kernel {
                if let Some(shift) = shifts.of(phase, tap) {
                    (shifts.least, shifts.most) = (shifts.least.min(shift), shifts.most.max(shift));
                }
            }
        }
        (shifts.kernel > 0 && geometry.dilation[axis] <= maps).then_some(shifts)
    }

    fn of(&self, phase: usize, tap: usize) -> Option<isize> {
        let at = phase.cast_signed() + self.padding - tap.cast_signed() * self.dilation;
        (at.rem_euclid(self.stride) == 0).then_some(at.div_euclid(self.stride))
    }

    /// Elements by which the maps reach further than the pixels of a phase.
    fn spread(&self) -> usize {
        (self.most - self.least).cast_unsigned()
    }

    /// The taps that a phase sees, and where they begin in padded maps.
    fn taps(&self, phase: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        (0..self.kernel).filter_map(move |tap| Some((tap, (self.of(phase, tap)? - self.least).cast_unsigned())))
    }

    /// The maps from the pixels at `first * stride` on, with their padding.
    fn positions(&self, first: usize, count: usize, len: usize) -> Positions {
        let padding = (-self.least).max(0);
        Positions::new(len, padding.cast_unsigned(), first + (self.least + padding).cast_unsigned(), 1, count)
    }

    /// Which of the pixels of a phase, of `count` pixels from `first * stride` on, are seen by any of the maps' `len` elements.
    fn seen(&self, phase: usize, first: usize, count: usize, len: usize) -> Range<usize> {
        let count = count.saturating_sub(phase).div_ceil(self.stride.cast_unsigned()).cast_signed();
        let shifts = || (0..self.kernel).filter_map(|tap| self.of(phase, tap)).map(|shift| first.cast_signed() + shift);
        let (Some(least), Some(most)) = (shifts().min(), shifts().max()) else {
            return 0..0;
        };
        let within = |at: isize| at.clamp(0, count).cast_unsigned();
        within(-most)..within(len.cast_signed() - least)
    }
}
