//! What operations with a number for each channel share: data `[rows, channels, plane]`, walked channel by channel.

use crate::backend::{Backend, Real};

/// Multiplies every element of `data` by the value of its channel; nothing where there are no values.
#[inline(never)]
pub(super) fn multiply<E: Real>(data: &mut [E], values: &[E], plane: usize) {
    map(data, values, plane, |x, value| x * value);
}

/// Adds the value of its channel to every element of `data`, likewise.
#[inline(never)]
pub(super) fn add<E: Real>(data: &mut [E], values: &[E], plane: usize) {
    map(data, values, plane, |x, value| x + value);
}

/// Subtracts the value of its channel from every element of `data`, likewise.
#[inline(never)]
pub(super) fn subtract<E: Real>(data: &mut [E], values: &[E], plane: usize) {
    map(data, values, plane, |x, value| x - value);
}

fn map<E: Real>(data: &mut [E], values: &[E], plane: usize, f: impl Fn(E, E) -> E) {
    if values.is_empty() {
        return;
    }
    for row in data.chunks_exact_mut((values.len() * plane).max(1)) {
        if plane == 1 {
            row.iter_mut().zip(values).for_each(|(x, &value)| *x = f(*x, value));
        } else {
            for (plane, &value) in row.chunks_exact_mut(plane.max(1)).zip(values) {
                plane.iter_mut().for_each(|x| *x = f(*x, value));
            }
        }
    }
}

/// Adds to each channel's sum the sum of each of its planes, rows in ascending order.
pub(super) fn add_sums<B: Backend>(sums: &mut [B::Elem], data: &[B::Elem], plane: usize) {
    for row in data.chunks_exact((sums.len() * plane).max(1)) {
        for (sum, plane) in sums.iter_mut().zip(row.chunks_exact(plane.max(1))) {
            *sum += sum_pairs::<B>(plane, plane, |sum, x, _| sum + x);
        }
    }
}

/// As [`Backend::sum_pairs`], to the bit where `f` adds to its first argument, but quick for a plane of one element.
#[inline(always)]
pub(super) fn sum_pairs<B: Backend>(
    a: &[B::Elem],
    b: &[B::Elem],
    f: impl Fn(B::Elem, B::Elem, B::Elem) -> B::Elem,
) -> B::Elem {
    match (a, b) {
        (&[a], &[b]) => f(B::Elem::ZERO, a, b),
        _ => B::sum_pairs(a, b, f),
    }
}
