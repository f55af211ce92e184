//! Values as text.

use core::fmt::{Display, Formatter, Result};

use super::{Handle, Storage, Tape};
use crate::shape::Shape;

/// A value with its shape, its type and its gradient as text; see [`Tape::show`].
pub struct Show<'t, S: Storage> {
    tape: &'t Tape<S>,
    var: Handle,
}

impl<S: Storage> Tape<S> {
    /// A value as text: what computed it, its type, shape and elements, and the gradient where there is one. Of a long axis
    /// the first and the last three elements are shown.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use slabgrad::tape::Tape;
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.parameter([2, 2], &[1.0, 2.0, 3.0, 4.5]);
    /// let y = tape.sum(x, &[], false);
    /// tape.backward(y).unwrap();
    /// assert_eq!(tape.show(x).to_string(), "parameter f32 [2, 2] [[1, 2], [3, 4.5]] gradient [[1, 1], [1, 1]]");
    /// # }
    /// ```
    #[must_use]
    pub const fn show(&self, x: Handle) -> Show<'_, S> {
        Show { tape: self, var: x }
    }
}

impl<S: Storage> Display for Show<'_, S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { tape, var } = *self;
        let shape = tape.shape(var);
        write!(f, "{} {} {shape} ", tape.name(var), tape.dtype())?;
        if tape.is_pending(var) {
            f.write_str("(still to be computed)")?;
        } else {
            elements(f, shape, 0, tape.value(var))?;
        }
        if let Some(gradient) = tape.gradient(var) {
            f.write_str(" gradient ")?;
            elements(f, shape, 0, gradient)?;
        }
        Ok(())
    }
}

/// So many elements of an axis are shown at each of its ends.
const ENDS: usize = 3;

fn elements<E: Display>(f: &mut Formatter<'_>, shape: Shape, axis: usize, data: &[E]) -> Result {
    if axis == shape.rank() {
        return data.first().map_or(Ok(()), |element| element.fmt(f));
    }
    let (count, part) = (shape.axis(axis), shape.product(axis + 1, shape.rank()));
    f.write_str("[")?;
    for i in 0..count {
        let left_out = count > 2 * ENDS && i >= ENDS && i < count - ENDS;
        if left_out && i > ENDS {
            continue;
        }
        f.write_str(if i > 0 { ", " } else { "" })?;
        if left_out {
            f.write_str("...")?;
        } else {
            elements(f, shape, axis + 1, data.get(i * part..(i + 1) * part).unwrap_or_default())?;
        }
    }
    f.write_str("]")
}
