//! Matrix products of all small sizes: a machine's own tile has edges, odd ends and ways to lie for each operand.

use slabgrad::backend::{Backend, Matrix, Start};
use slabgrad::prelude::*;

const SIZES: core::ops::RangeInclusive<usize> = 1..=9;

/// Hands out a hash of the results for each number of rows.
pub fn multiply(emit: &mut dyn FnMut(&'static str, u32)) {
    for m in SIZES {
        let mut hash = 0x811c_9dc5;
        for n in SIZES {
            for k in 1..=4 {
                for way in 0..8 {
                    // FNV-1a, over words.
                    product([m, n, k], way, &mut |bits| hash = (hash ^ bits).wrapping_mul(0x0100_0193));
                }
            }
        }
        emit("products", hash);
    }
}

/// One product; the bits of `way` say whether `a` and `b` are transposed, and whether it is added to what there is.
fn product([m, n, k]: [usize; 3], way: usize, each: &mut dyn FnMut(u32)) {
    let (a, b, mut c) = (values::<36>(m), values::<36>(16 + n), values::<99>(32 + k));
    let matrix = |data, rows, columns, transposed| {
        if transposed { Matrix { data, row: 1, col: rows } } else { Matrix { data, row: columns, col: 1 } }
    };
    let (a, b) = (matrix(&a, m, k, way & 1 != 0), matrix(&b, k, n, way & 2 != 0));
    Strict::<f32>::matmul([m, n, k], a, b, &mut c, n + 2, Start::adding(way & 4 != 0));
    for c in c {
        each(c.to_bits());
    }
}

fn values<const N: usize>(seed: usize) -> [f32; N] {
    core::array::from_fn(|i| ((i * 7919 + seed) % 1009) as f32 / 97.0 - 5.0)
}
