//! How parameters start: from a seed, the same numbers on every target.
//!
//! Every parameter has a generator of its own, seeded from the caller's seed and the parameter's name, so that its numbers
//! depend neither on the batch size, nor on what else the network holds, nor on what is frozen. The generator is
//! xoshiro256**.

use crate::backend::{Real, fill};
use crate::graph::Name;
use crate::random::Xoshiro256StarStar;
use crate::shape::Shape;

/// The distribution that a parameter is drawn from.
///
/// For a weight `[out, in, ...]` the fan-in is the product of all axes but the first, the fan-out that of all but the
/// second; for a vector both are its length.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All the same; see [`Init::constant`].
    Constant {
        /// Rounded to `f32`.
        single: f32,
        /// As given.
        double: f64,
    },
    /// Uniform over ±√(6 / fan-in) (He et al., 2015).
    HeUniform,
    /// Normal with variance 2 / fan-in (He et al., 2015).
    HeNormal,
    /// Uniform over ±√(6 / (fan-in + fan-out)) (Glorot and Bengio, 2010).
    XavierUniform,
    /// Normal with variance 2 / (fan-in + fan-out) (Glorot and Bengio, 2010).
    XavierNormal,
}

impl Init {
    /// All `value`.
    #[must_use]
    pub const fn constant(value: f64) -> Self {
        Self::Constant { single: value as f32, double: value }
    }

    /// Fills `data`, a tensor of shape `shape` named `name`.
    ///
    /// ```
    /// use slabgrad::graph::Name;
    /// use slabgrad::init::Init;
    /// use slabgrad::shape::Shape;
    ///
    /// let mut weight = [0.0_f32; 32 * 64];
    /// Init::HeUniform.fill(&mut weight, Shape::new([32, 64]), Name::new("fc1", "weight"), 42);
    /// let bound = (6.0_f32 / 64.0).sqrt();
    /// assert!(weight.iter().all(|w| w.abs() <= bound));
    /// ```
    pub fn fill<E: Real>(self, data: &mut [E], shape: Shape, name: Name<'_>, seed: u64) {
        self.distribution(shape).fill(data, seed ^ name.hash(), Some(normal));
    }

    /// What it is for a tensor of this shape.
    pub(crate) const fn distribution(self, shape: Shape) -> Distribution {
        let (fan_in, fan_out) = fans(shape);
        match self {
            Self::Zeros => Distribution::ZEROS,
            Self::Ones => Distribution::Constant { single: 1.0, double: 1.0 },
            Self::Constant { single, double } => Distribution::Constant { single, double },
            Self::HeUniform => Distribution::Uniform { fan: fan_in },
            Self::XavierUniform => Distribution::Uniform { fan: fan_in + fan_out },
            Self::HeNormal => Distribution::Normal { fan: fan_in },
            Self::XavierNormal => Distribution::Normal { fan: fan_in + fan_out },
        }
    }
}

/// An [`Init`] once the tensor's fans are known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Distribution {
    Constant {
        single: f32,
        double: f64,
    },
    /// Over ±√(6 / fan).
    Uniform {
        fan: usize,
    },
    /// With variance 2 / fan.
    Normal {
        fan: usize,
    },
}

impl Distribution {
    pub(crate) const ZEROS: Self = Self::Constant { single: 0.0, double: 0.0 };

    pub(crate) const fn is_zeros(self) -> bool {
        matches!(self, Self::Constant { single, double } if single.to_bits() == 0 && double.to_bits() == 0)
    }

    pub(crate) const fn is_normal(self) -> bool {
        matches!(self, Self::Normal { .. })
    }

    /// Fills a tensor from a seed of its own; `normal` is only asked for where the distribution is that.
    #[inline]
    pub(crate) fn fill<E: Real>(self, data: &mut [E], seed: u64, normal: Option<Normal<E>>) {
        let (variance, fan) = match self {
            Self::Constant { single, double } => return fill(data, E::choose(single, double)),
            Self::Uniform { fan } => (6, fan),
            Self::Normal { fan } => (2, fan),
        };
        let scale = (E::from_usize(variance) / E::from_usize(fan)).sqrt();
        let generator = Xoshiro256StarStar::seed_from_u64(seed);
        if !self.is_normal() {
            uniform(data, scale, generator);
        } else if let Some(normal) = normal {
            normal(data, scale, generator);
        }
    }
}

/// Draws from a normal distribution with this deviation. A program points to it where it needs it, so that others do not have it
/// in flash.
pub(crate) type Normal<E> = fn(&mut [E], E, Xoshiro256StarStar);

/// The fan-in and the fan-out of a tensor.
const fn fans(shape: Shape) -> (usize, usize) {
    match shape.rank() {
        0 | 1 => (shape.len(), shape.len()),
        rank => (shape.product(1, rank), shape.axis(0) * shape.product(2, rank)),
    }
}

fn uniform<E: Real>(data: &mut [E], bound: E, mut random: Xoshiro256StarStar) {
    for x in data {
        let unit = E::unit(random.next_u64());
        *x = (unit + unit - E::ONE) * bound;
    }
}

/// Marsaglia's polar method (1964), which needs a logarithm and a root but no sine.
pub(crate) fn normal<E: Real>(data: &mut [E], deviation: E, mut random: Xoshiro256StarStar) {
    let mut side = || {
        let unit = E::unit(random.next_u64());
        unit + unit - E::ONE
    };
    for pair in data.chunks_mut(2) {
        let (u, v, s) = loop {
            let (u, v) = (side(), side());
            let s = u * u + v * v;
            if s < E::ONE && s > E::ZERO {
                break (u, v, s);
            }
        };
        let scale = deviation * (-(E::from_usize(2) * s.ln() / s)).sqrt();
        for (x, z) in pair.iter_mut().zip([u, v]) {
            *x = z * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_one_of_the_reference_vectors() {
        let mut random = Xoshiro256StarStar::seed_from_u64(42);
        let first: [u64; 3] = core::array::from_fn(|_| random.next_u64());
        assert_eq!(first, [0x1578_0b2e_0c2e_c716, 0x6104_d986_6d11_3a7e, 0xae17_5332_39e4_99a1]);
        assert_eq!(f64::unit(first[0]), 0.083_862_971_059_882_16);
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes of numbers")]
    fn moments_are_those_of_the_distributions() {
        let shape = Shape::new([200, 50]);
        let want = [
            (Init::HeUniform, 2.0 / 50.0),
            (Init::HeNormal, 2.0 / 50.0),
            (Init::XavierUniform, 2.0 / 250.0),
            (Init::XavierNormal, 2.0 / 250.0),
        ];
        for (init, variance) in want {
            let mut data = std::vec![0.0_f64; shape.len()];
            init.fill(&mut data, shape, Name::new("fc", "weight"), 7);
            let n = shape.len() as f64;
            let mean = data.iter().sum::<f64>() / n;
            let found = data.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            assert!(mean.abs() < 4.0 * (variance / n).sqrt(), "{init:?}: mean {mean}");
            assert!((found / variance - 1.0).abs() < 0.06, "{init:?}: variance {found}, expected {variance}");
        }
    }

    #[test]
    fn single_precision_starts_at_the_same_point() {
        let shape = Shape::new([8, 1, 3, 3]);
        for init in [Init::HeUniform, Init::HeNormal, Init::XavierUniform, Init::XavierNormal] {
            let (mut single, mut double) = ([0.0_f32; 72], [0.0_f64; 72]);
            init.fill(&mut single, shape, Name::new("conv1", "weight"), 3);
            init.fill(&mut double, shape, Name::new("conv1", "weight"), 3);
            for (s, d) in single.iter().zip(double) {
                assert!((f64::from(*s) - d).abs() < 1e-5, "{init:?}: {s} and {d}");
            }
        }
    }

    #[test]
    fn a_name_and_a_seed_decide_the_numbers() {
        let draw = |leaf, seed| {
            let mut data = [0.0_f32; 4];
            Init::HeUniform.fill(&mut data, Shape::new([1, 4]), Name::new("fc", leaf), seed);
            data.map(f32::to_bits)
        };
        assert_eq!(draw("weight", 1), draw("weight", 1));
        assert_ne!(draw("weight", 1), draw("weight", 2));
        assert_ne!(draw("weight", 1), draw("bias", 1));
    }
}
