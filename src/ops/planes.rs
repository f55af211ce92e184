//! What operations with a number for each channel share: data `[rows, channels, plane]`, walked channel by channel.

use crate::backend::dispatch::{Kernel, dispatch};
use crate::backend::{Backend, Real, tree};

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
    dispatch::<B, _>(AddSums { sums, data, plane });
}

struct AddSums<'a, E> {
    sums: &'a mut [E],
    data: &'a [E],
    plane: usize,
}

impl<E: Real> Kernel<E> for AddSums<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = E>, const VECTOR: usize>(self) {
        let Self { sums, data, plane } = self;
        for row in data.chunks_exact((sums.len() * plane).max(1)) {
            let in_fours = if VECTOR >= 32 && plane >= 8 { sums.len() / 4 * 4 } else { 0 };
            let (fours, others) = sums.split_at_mut(in_fours);
            let (planes_in_fours, planes) = row.split_at(in_fours * plane);
            for (sums, planes) in fours.chunks_exact_mut(4).zip(planes_in_fours.chunks_exact((4 * plane).max(1))) {
                sums.iter_mut().zip(four_sums(planes, plane)).for_each(|(sum, x)| *sum += x);
            }
            for (sum, plane) in others.iter_mut().zip(planes.chunks_exact(plane.max(1))) {
                *sum += sum_pairs::<C>(plane, plane, |sum, x, _| sum + x);
            }
        }
    }
}

/// The sums of four planes, each in the order of [`Backend::sum_pairs`]; side by side, since an addition waits for the one before.
#[inline(always)]
fn four_sums<E: Real>(planes: &[E], plane: usize) -> [E; 4] {
    let mut planes = planes.chunks_exact(plane.max(1)).map(<[E]>::as_chunks::<8>);
    let planes: [_; 4] = core::array::from_fn(|_| planes.next().unwrap_or_default());
    let [(a, _), (b, _), (c, _), (d, _)] = planes;
    let mut lanes = [[E::ZERO; 8]; 4];
    let add = |lanes: &mut [E; 8], x: &[E]| lanes.iter_mut().zip(x).for_each(|(lane, &x)| *lane += x);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        lanes.iter_mut().zip([a, b, c, d]).for_each(|(lanes, x)| add(lanes, x));
    }
    lanes.iter_mut().zip(planes).for_each(|(lanes, (_, rest))| add(lanes, rest));
    lanes.map(tree)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;

    #[test]
    fn sums_of_planes_side_by_side_have_the_bits_of_one_by_one() {
        for (channels, plane) in [(1, 9), (4, 8), (7, 13), (9, 1), (6, 5), (8, 196)] {
            let data: std::vec::Vec<f32> =
                (0..3 * channels * plane).map(|i| ((i * 7919) % 1009) as f32 / 97.0 - 5.0).collect();
            let (mut got, mut want) = (std::vec![-0.0; channels], std::vec![-0.0; channels]);
            add_sums::<Strict<f32>>(&mut got, &data, plane);
            for (i, plane) in data.chunks_exact(plane).enumerate() {
                want[i % channels] += Strict::<f32>::sum(plane);
            }
            let bits = |sums: &[f32]| sums.iter().map(|sum| sum.to_bits()).collect::<std::vec::Vec<_>>();
            assert_eq!(bits(&got), bits(&want), "{channels} channels of {plane}");
        }
    }
}
