//! What convolution and pooling share: a window that moves over the last two axes of an image.

use crate::error::ShapeError;

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
    pub(super) size: [usize; 2],
    pub(super) stride: Option<[usize; 2]>,
    pub(super) padding: [usize; 2],
    pub(super) dilation: [usize; 2],
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
        let (padding, window) = (self.padding[axis], dilation * (size - 1) + 1);
        if input + 2 * padding < window {
            return Err(ShapeError::Window { op, input, padding, window });
        }
        Ok((input + 2 * padding - window) / stride + 1)
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
