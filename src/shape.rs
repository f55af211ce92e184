//! Shapes: as types in the static graph ([`R0`] to [`R5`]) and as values ([`Shape`]) everywhere else.

use crate::error::Message;

/// The largest number of axes that a tensor has.
pub const MAX_RANK: usize = 5;

/// The lengths of a tensor's axes, outermost first, as a value. Data is row-major.
///
/// ```
/// use slabgrad::shape::Shape;
///
/// const IMAGES: Shape = Shape::new([16, 1, 8, 8]);
/// assert_eq!(IMAGES.rank(), 4);
/// assert_eq!(IMAGES.len(), 1024);
/// assert_eq!(IMAGES.to_string(), "[16, 1, 8, 8]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    axes: [u32; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar: no axes, one element.
    pub const SCALAR: Self = Self::new([]);

    /// A shape with these axis lengths.
    ///
    /// # Panics
    /// With more than [`MAX_RANK`] axes, or an axis of more than `u32::MAX`; in a constant that is a compile error.
    #[must_use]
    pub const fn new<const R: usize>(lengths: [usize; R]) -> Self {
        Self::from_slice(&lengths)
    }

    /// As [`Shape::new`], from a slice.
    ///
    /// # Panics
    /// As [`Shape::new`].
    #[must_use]
    pub const fn from_slice(lengths: &[usize]) -> Self {
        assert!(lengths.len() <= MAX_RANK, "a tensor has at most 5 axes");
        let mut axes = [1; MAX_RANK];
        let mut i = 0;
        while i < lengths.len() {
            assert!(lengths[i] <= u32::MAX as usize, "an axis has at most 2^32 - 1 elements");
            axes[i] = lengths[i] as u32;
            i += 1;
        }
        Self { axes, rank: lengths.len() as u8 }
    }

    /// The number of axes.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The length of axis `i`, counted from the outermost; 1 beyond the last.
    #[must_use]
    pub const fn axis(&self, i: usize) -> usize {
        // Those beyond the last are stored as 1.
        if i < MAX_RANK { self.axes[i] as usize } else { 1 }
    }

    /// The length of the axis `back` places before the last (0 is the last), as broadcasting counts them; 1 before the
    /// first.
    #[must_use]
    pub const fn axis_from_end(&self, back: usize) -> usize {
        if back < self.rank() { self.axis(self.rank() - 1 - back) } else { 1 }
    }

    /// The number of elements; `usize::MAX` where that is more, which no memory holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.product(0, self.rank())
    }

    /// Whether some axis is empty, so that the tensor has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The product of the axes `from..to`.
    #[must_use]
    #[cfg_attr(target_os = "none", inline(never))]
    pub const fn product(&self, from: usize, to: usize) -> usize {
        let mut product = 1;
        let mut i = from;
        while i < to {
            product = usize::saturating_mul(product, self.axis(i));
            i += 1;
        }
        product
    }

    /// Whether both shapes are the same.
    #[must_use]
    pub const fn equals(&self, other: &Self) -> bool {
        let mut same = self.rank == other.rank;
        let mut i = 0;
        while i < MAX_RANK {
            same = same && self.axis(i) == other.axis(i);
            i += 1;
        }
        same
    }

    /// The shape with one axis more, of length `length`, behind the last.
    ///
    /// # Panics
    /// With [`MAX_RANK`] axes already, or an axis of more than `u32::MAX`.
    #[must_use]
    pub const fn push(mut self, length: usize) -> Self {
        assert!(self.rank() < MAX_RANK, "a tensor has at most 5 axes");
        assert!(length <= u32::MAX as usize, "an axis has at most 2^32 - 1 elements");
        self.axes[self.rank()] = length as u32;
        self.rank += 1;
        self
    }

    /// The first `rank` axes; all where there are fewer.
    #[must_use]
    pub const fn prefix(&self, rank: usize) -> Self {
        let mut shape = *self;
        let mut i = rank;
        while i < MAX_RANK {
            shape.axes[i] = 1;
            i += 1;
        }
        if rank < self.rank() {
            shape.rank = rank as u8;
        }
        shape
    }

    /// The shape without axis `at`, where it has that.
    #[must_use]
    pub const fn without(mut self, at: usize) -> Self {
        if at < self.rank() {
            let mut i = at;
            while i < MAX_RANK {
                self.axes[i] = self.axis(i + 1) as u32;
                i += 1;
            }
            self.rank -= 1;
        }
        self
    }

    /// The shape with the last axis as long as this; a scalar stays one.
    #[must_use]
    pub const fn with_last(mut self, length: usize) -> Self {
        let rank = self.rank();
        if rank > 0 && rank <= MAX_RANK {
            self.axes[rank - 1] = length as u32;
        }
        self
    }
}

/// Axis lengths are a shape: `[2, 3]`. More than [`MAX_RANK`] of them do not compile.
/// In shapes that are known when the program runs, an axis of more than `u32::MAX` counts as one of `u32::MAX`, which no
/// memory holds, so that what is made of it is an error and not a panic.
impl<const R: usize> From<[usize; R]> for Shape {
    fn from(lengths: [usize; R]) -> Self {
        const { assert!(R <= MAX_RANK, "a tensor has at most 5 axes") };
        Self::from_slice(&lengths.map(|length| length.min(u32::MAX as usize)))
    }
}

impl core::fmt::Display for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(Message::new().shape(*self).as_str())
    }
}

impl core::fmt::Debug for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// A shape as a type: what a [`Var`](crate::graph::Var) carries.
pub trait Dims: Copy + 'static {
    /// The shape as a value.
    const SHAPE: Shape;
}

macro_rules! ranks {
    ($($(#[$doc:meta])* $name:ident [$($axis:ident),*])*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<$(const $axis: usize),*>;
        impl<$(const $axis: usize),*> Dims for $name<$($axis),*> {
            const SHAPE: Shape = Shape::new([$($axis),*]);
        }
    )*};
}

ranks! {
    /// A scalar.
    R0 []
    /// A vector.
    R1 [A]
    /// A matrix: rows, columns.
    R2 [A, B]
    /// Three axes.
    R3 [A, B, C]
    /// Four axes; images are batch, channels, height, width.
    R4 [A, B, C, D]
    /// Five axes.
    R5 [A, B, C, D, E]
}

/// The shape of `a` and `b` broadcast to one another by NumPy's rules: axes line up from the last, and of two lengths one
/// is 1 or both are equal. `None` where they do not fit.
#[must_use]
pub const fn broadcast(a: Shape, b: Shape) -> Option<Shape> {
    let rank = if a.rank() > b.rank() { a.rank() } else { b.rank() };
    let mut shape = Shape::SCALAR;
    let mut i = 0;
    while i < rank {
        let (x, y) = (a.axis_from_end(rank - 1 - i), b.axis_from_end(rank - 1 - i));
        if x != y && x != 1 && y != 1 {
            return None;
        }
        shape = shape.push(if x == 1 { y } else { x });
        i += 1;
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let cases: [(&[usize], &[usize], Option<&[usize]>); 6] = [
            (&[3, 5], &[3, 5], Some(&[3, 5])),
            (&[2, 3, 1, 5], &[3, 4, 1], Some(&[2, 3, 4, 5])),
            (&[7], &[2, 1], Some(&[2, 7])),
            (&[3, 4], &[], Some(&[3, 4])),
            (&[0, 1], &[4], Some(&[0, 4])),
            (&[3, 4], &[3], None),
        ];
        for (a, b, want) in cases {
            let got = broadcast(Shape::from_slice(a), Shape::from_slice(b));
            assert_eq!(got, want.map(Shape::from_slice), "{a:?} with {b:?}");
        }
    }
}
