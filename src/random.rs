//! Random numbers: xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64.
//!
//! These are the numbers of the crate `rand_xoshiro`, as a test shows. Its seeding is 500 bytes larger on a microcontroller.

/// The generator.
pub(crate) struct Xoshiro256StarStar {
    state: [u64; 4],
}

// Inlined, so that a firmware's crate compiles it for size.
impl Xoshiro256StarStar {
    #[inline]
    pub(crate) fn seed_from_u64(mut seed: u64) -> Self {
        // SplitMix64 gives no two zeros in a row, so the state is never all zeros.
        let mut word = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: core::array::from_fn(|_| word()) }
    }

    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let random = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        random
    }
}

#[cfg(test)]
mod tests {
    use super::Xoshiro256StarStar;
    use rand_core::{RngCore, SeedableRng};

    #[test]
    fn the_numbers_are_those_of_the_crate_of_that_name() {
        for seed in [0, 1, 42, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
            let (mut found, mut want) =
                (Xoshiro256StarStar::seed_from_u64(seed), rand_xoshiro::Xoshiro256StarStar::seed_from_u64(seed));
            for i in 0..1000 {
                assert_eq!(found.next_u64(), want.next_u64(), "number {i} of seed {seed}");
            }
        }
    }
}
