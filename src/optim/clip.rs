//! Norms of gradients, and clipping.

use crate::backend::{Backend, Real};

/// Which norm of a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Norm {
    /// The sum of the absolute values.
    L1,
    /// The root of the sum of the squares.
    #[default]
    L2,
    /// The largest absolute value.
    Inf,
}

/// A norm of `x`; sums are in the order of [`Backend::sum_pairs`].
#[must_use]
pub fn norm<B: Backend>(x: &[B::Elem], norm: Norm) -> B::Elem {
    match norm {
        Norm::L1 => B::sum_pairs(x, x, |sum, x, _| sum + x.abs()),
        Norm::L2 => B::dot(x, x).sqrt(),
        Norm::Inf => x.iter().fold(B::Elem::ZERO, |largest, x| largest.maximum(x.abs())),
    }
}

/// Scales `grads` by `max` / norm where their norm is above `max`, and returns the norm before that.
///
/// ```
/// use slabgrad::backend::Strict;
/// use slabgrad::optim::{Norm, clip_by_norm};
///
/// let mut grads = [3.0_f32, 4.0];
/// assert_eq!(clip_by_norm::<Strict<f32>>(&mut grads, 1.0, Norm::L2), 5.0);
/// assert_eq!(grads, [0.6, 0.8]);
/// ```
pub fn clip_by_norm<B: Backend>(grads: &mut [B::Elem], max: B::Elem, which: Norm) -> B::Elem {
    let norm = norm::<B>(grads, which);
    if norm > max {
        let scale = max / norm;
        grads.iter_mut().for_each(|g| *g *= scale);
    }
    norm
}

/// Brings every gradient into the range from `-max` to `max`. A NaN stays.
pub fn clip_by_value<E: Real>(grads: &mut [E], max: E) {
    for g in grads {
        if *g > max {
            *g = max;
        } else if *g < -max {
            *g = -max;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn norms_and_clipping() {
        let x = [3.0_f64, -4.0];
        assert_eq!([Norm::L1, Norm::L2, Norm::Inf].map(|which| norm::<Strict<f64>>(&x, which)), [7.0, 5.0, 4.0]);
        let mut clipped = x;
        clip_by_value(&mut clipped, 3.5);
        assert_eq!(clipped, [3.0, -3.5]);
        let mut untouched = x;
        assert_eq!(clip_by_norm::<Strict<f64>>(&mut untouched, 5.0, Norm::L2), 5.0);
        assert_eq!(untouched, x);
    }
}
