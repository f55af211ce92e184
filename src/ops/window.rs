//! What convolution and pooling share: a window that moves over the last two axes of an image, or over the last axis of a
//! sequence, which is an image of height 1.

use super::{Args, Spec};
use crate::error::ShapeError;
use crate::shape::Shape;

/// How a window moves over an image: its size, and stride, padding and dilation in each direction (height, width).
///
/// ```
/// use slabgrad::prelude::*;
///
/// const POOL: Window2d = Window2d::size(2);
/// const WIDE: Window2d = Window2d::rect([3, 5]).stride(1).padding_hw([1, 2]);
/// assert_eq!(POOL.output(1, 9), Ok(4));
/// # Ok::<(), slabgrad::error::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Window2d {
    pub(crate) size: [usize; 2],
    pub(crate) stride: Option<[usize; 2]>,
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

impl Window2d {
    /// A square window that moves by its own size.
    #[must_use]
    pub const fn size(size: usize) -> Self {
        Self::rect([size, size])
    }

    /// A window of this height and width that moves by its own size.
    #[must_use]
    pub const fn rect(size: [usize; 2]) -> Self {
        Self { size, stride: None, padding: [0, 0], dilation: [1, 1] }
    }

    /// The same, moving by `stride` in both directions.
    #[must_use]
    pub const fn stride(self, stride: usize) -> Self {
        self.stride_hw([stride, stride])
    }

    /// The same, moving by these strides.
    #[must_use]
    pub const fn stride_hw(self, stride: [usize; 2]) -> Self {
        Self { stride: Some(stride), ..self }
    }

    /// The same over an image with `padding` more rows and columns on each side.
    #[must_use]
    pub const fn padding(self, padding: usize) -> Self {
        self.padding_hw([padding, padding])
    }

    /// The same over an image with so many more rows above and below, and columns left and right.
    #[must_use]
    pub const fn padding_hw(self, padding: [usize; 2]) -> Self {
        Self { padding, ..self }
    }

    /// The same with its elements `dilation` apart in both directions.
    #[must_use]
    pub const fn dilation(self, dilation: usize) -> Self {
        self.dilation_hw([dilation, dilation])
    }

    /// The same with its elements so far apart.
    #[must_use]
    pub const fn dilation_hw(self, dilation: [usize; 2]) -> Self {
        Self { dilation, ..self }
    }

    /// The stride in direction `axis` (0 height, 1 width).
    pub(super) const fn step(&self, axis: usize) -> usize {
        match self.stride {
            Some(stride) => stride[axis],
            None => self.size[axis],
        }
    }

    /// How many positions the window has along `axis` (0 height, 1 width) of an input of length `input`:
    /// floor((input + 2 padding - span) / stride) + 1, where the span is dilation (size - 1) + 1.
    ///
    /// # Errors
    /// When the window does not fit, or a size, stride or dilation is 0.
    pub const fn output(&self, axis: usize, input: usize) -> Result<usize, ShapeError> {
        self.output_for("window", axis, input)
    }

    pub(super) const fn output_for(&self, op: &'static str, axis: usize, input: usize) -> Result<usize, ShapeError> {
        if let Err(error) = self.check(op, axis) {
            return Err(error);
        }
        let (size, stride, dilation) = (self.size[axis], self.step(axis), self.dilation[axis]);
        let (padding, window) = (self.padding[axis], dilation * (size - 1) + 1);
        let padded = input.saturating_add(2 * padding);
        if padded < window {
            return Err(ShapeError::Window { op, input, padding, window });
        }
        Ok((padded - window) / stride + 1)
    }

    /// Checks the settings along `axis`.
    pub(super) const fn check(&self, op: &'static str, axis: usize) -> Result<(), ShapeError> {
        let (size, stride, dilation) = (self.size[axis], self.step(axis), self.dilation[axis]);
        if size == 0 || stride == 0 || dilation == 0 {
            return Err(ShapeError::Setting { op, rule: "size, stride and dilation are at least 1", found: 0.0 });
        }
        let settings = [size, stride, dilation, self.padding[axis]];
        let mut i = 0;
        while i < settings.len() {
            if settings[i] > PACKED {
                let rule = "size, stride, padding and dilation are at most 65535";
                return Err(ShapeError::Setting { op, rule, found: settings[i] as f64 });
            }
            i += 1;
        }
        Ok(())
    }
}

/// How a window moves over a sequence: its size, stride, padding and dilation.
///
/// ```
/// use slabgrad::prelude::*;
///
/// const POOL: Window1d = Window1d::size(3).stride(2).padding(1);
/// assert_eq!(POOL.output(9), Ok(5));
/// # Ok::<(), slabgrad::error::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Window1d(pub(super) Window2d);

impl Window1d {
    /// A window that moves by its own size.
    #[must_use]
    pub const fn size(size: usize) -> Self {
        Self(Window2d::rect([1, size]))
    }

    /// The same, moving by `stride`.
    #[must_use]
    pub const fn stride(self, stride: usize) -> Self {
        Self(self.0.stride_hw([1, stride]))
    }

    /// The same over a sequence with `padding` more elements on each side.
    #[must_use]
    pub const fn padding(self, padding: usize) -> Self {
        Self(self.0.padding_hw([0, padding]))
    }

    /// The same with its elements `dilation` apart.
    #[must_use]
    pub const fn dilation(self, dilation: usize) -> Self {
        Self(self.0.dilation_hw([1, dilation]))
    }

    /// How many positions the window has; see [`Window2d::output`].
    ///
    /// # Errors
    /// When the window does not fit, or a size, stride or dilation is 0.
    pub const fn output(&self, input: usize) -> Result<usize, ShapeError> {
        self.0.output(1, input)
    }
}

/// A sequence `[n, c, l]` as images `[n, c, 1, l]`.
pub(super) const fn flat(x: Shape) -> Shape {
    Shape::new([x.axis(0), x.axis(1), 1, x.axis(2)])
}

/// The spec of a pooling `op` over images `[n, c, h, w]`, with words 8 and on of the arguments to spare. No window lies in
/// the padding alone.
pub(super) const fn pooling_spec(op: &'static str, x: Shape, window: Window2d) -> Result<Spec, ShapeError> {
    if x.rank() != 4 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, h, w]", found: x });
    }
    let mut axis = 0;
    while axis < 2 {
        if window.padding[axis] > window.size[axis] / 2 {
            let rule = "the padding is at most half of the window";
            return Err(ShapeError::Setting { op, rule, found: window.padding[axis] as f64 });
        }
        if sees_only_padding(window, axis, x.axis(2 + axis)) {
            let rule = "the dilation leaves no window in the padding alone";
            return Err(ShapeError::Setting { op, rule, found: window.dilation[axis] as f64 });
        }
        axis += 1;
    }
    match (window.output_for(op, 0, x.axis(2)), window.output_for(op, 1, x.axis(3))) {
        (Ok(height), Ok(width)) => {
            let args = Args::new(&[
                x.axis(2),
                x.axis(3),
                height,
                width,
                pack(window.size),
                pack([window.step(0), window.step(1)]),
                pack(window.padding),
                pack(window.dilation),
            ]);
            Ok(Spec::new(Shape::new([x.axis(0), x.axis(1), height, width])).args(args))
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The same over sequences `[n, c, l]`.
pub(super) const fn pooling_spec_1d(op: &'static str, x: Shape, window: Window1d) -> Result<Spec, ShapeError> {
    if x.rank() != 3 {
        return Err(ShapeError::Rank { op, operand: "the input", expected: "[n, c, l]", found: x });
    }
    match pooling_spec(op, flat(x), window.0) {
        Ok(spec) => Ok(Spec { shape: Shape::new([x.axis(0), x.axis(1), spec.shape.axis(3)]), ..spec }),
        error => error,
    }
}

/// The largest length of which two fit one word.
const PACKED: usize = 0xffff;

/// Two lengths in one word; [`Window2d::output`] has checked that they fit.
pub(super) const fn pack(pair: [usize; 2]) -> usize {
    pair[0] << 16 | pair[1]
}

/// The reverse of [`pack`].
#[inline(always)]
pub(super) fn unpack(word: usize) -> [usize; 2] {
    [word >> 16, word & 0xffff]
}

/// Where element `tap` of the window at position `position` lies on an axis of length `len`; `None` in the padding.
#[inline(always)]
pub(super) fn source(
    position: usize,
    tap: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
    len: usize,
) -> Option<usize> {
    (position * stride + tap * dilation).checked_sub(padding).filter(|&at| at < len)
}

/// Whether a window steps over the whole input of length `input` along `axis`, from the padding before it to that after it.
const fn sees_only_padding(window: Window2d, axis: usize, input: usize) -> bool {
    let (padding, dilation, step) = (window.padding[axis], window.dilation[axis], window.step(axis));
    let mut start = 0;
    while dilation > 0 && step > 0 && start < padding {
        let before = padding - start;
        if before.next_multiple_of(dilation) - before >= input {
            return true;
        }
        start += step;
    }
    false
}

/// Calls `each` for every window over every plane of a pooling's input of `len` elements, in the order of the output.
pub(super) fn for_each_window(args: &Args, len: usize, mut each: impl FnMut(&View)) {
    let [height, width, out_height, out_width, size, stride, padding, dilation, ..] = args.lengths();
    let [size, stride, padding, dilation] = [size, stride, padding, dilation].map(unpack);
    let down =
        Taps { at: 0, size: size[0], stride: stride[0], dilation: dilation[0], padding: padding[0], len: height };
    let across =
        Taps { at: 0, size: size[1], stride: stride[1], dilation: dilation[1], padding: padding[1], len: width };
    for start in (0..len).step_by((height * width).max(1)) {
        for i in 0..out_height {
            for j in 0..out_width {
                each(&View { start, width, down: Taps { at: i, ..down }, across: Taps { at: j, ..across } });
            }
        }
    }
}

/// What a window sees at one position.
pub(super) struct View {
    start: usize,
    width: usize,
    down: Taps,
    across: Taps,
}

impl View {
    /// Calls `each` with the place of every element, in row-major order, without the padding.
    #[inline(always)]
    pub(super) fn for_each(&self, mut each: impl FnMut(usize)) {
        for row in self.down.places() {
            for column in self.across.places() {
                each(self.start + row * self.width + column);
            }
        }
    }

    /// How many elements the window has, with those in the padding.
    pub(super) fn size(&self) -> usize {
        self.down.size * self.across.size
    }
}

/// A window at one position, in one direction.
#[derive(Clone, Copy)]
struct Taps {
    at: usize,
    size: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
    len: usize,
}

impl Taps {
    /// Where its elements lie, without the padding.
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.size).filter_map(|tap| source(self.at, tap, self.stride, self.dilation, self.padding, self.len))
    }
}
