//! Element types: `f32` and `f64` with the functions that a kernel needs, from `libm` so that they are the same on every
//! target.

use super::functions::{double, single};
use super::sqrt;

use core::fmt::{Debug, Display};
use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point element type. Implemented for `f32` and `f64`.
pub trait Real:
    Copy
    + Debug
    + Display
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Send
    + Sync
    + bytemuck::Pod
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Infinity.
    const INFINITY: Self;
    /// Bits of the significand, the hidden one included.
    const PRECISION: u32;

    /// An integer as an element, rounded to nearest.
    fn from_usize(n: usize) -> Self;
    /// The element as an integer where it is one of 0 to 2^24, else `None`.
    fn to_index(self) -> Option<usize>;
    /// Rounded to `f32`, for messages.
    fn to_f32(self) -> f32;
    /// Chooses from a constant that was rounded to both types when it was compiled, so that a microcontroller never
    /// converts a double.
    fn choose(single: f32, double: f64) -> Self;
    /// A number in [0, 1), from the top bits of `random`.
    fn unit(random: u64) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The absolute value.
    #[must_use]
    fn abs(self) -> Self;
    /// The square root, correctly rounded.
    #[must_use]
    fn sqrt(self) -> Self;
    /// e^x.
    /// In `f32` the largest error is 0.87 ulp.
    #[must_use]
    fn exp(self) -> Self;
    /// e^x - 1, accurate near 0.
    /// In `f32` the largest error is 1.06 ulp.
    #[must_use]
    fn exp_m1(self) -> Self;
    /// The natural logarithm.
    /// In `f32` the largest error is 0.92 ulp.
    #[must_use]
    fn ln(self) -> Self;
    /// ln(1 + x), accurate near 0.
    /// In `f32` the largest error is 1.45 ulp.
    #[must_use]
    fn ln_1p(self) -> Self;
    /// The sine of an angle in radians.
    /// In `f32` the largest error is 1.73 ulp.
    #[must_use]
    fn sin(self) -> Self;
    /// [`Real::sin`] of every element, in place: the same bits, sooner.
    fn sin_slice(xs: &mut [Self]);
    /// The cosine of an angle in radians.
    /// In `f32` the largest error is 1.73 ulp.
    #[must_use]
    fn cos(self) -> Self;
    /// [`Real::cos`] of every element, in place: the same bits, sooner.
    fn cos_slice(xs: &mut [Self]);
    /// The hyperbolic tangent.
    /// In `f32` the largest error is 1.50 ulp.
    #[must_use]
    fn tanh(self) -> Self;
    /// The error function.
    /// In `f32` the largest error is 1.38 ulp.
    #[must_use]
    fn erf(self) -> Self;
    /// The logistic function 1 / (1 + e^-x), which neither overflows nor loses its small end.
    /// In `f32` the largest error is 1.56 ulp.
    #[must_use]
    fn sigmoid(self) -> Self;
    /// ln(1 + e^x).
    /// In `f32` the largest error is 1.71 ulp.
    #[must_use]
    fn softplus(self) -> Self;
    /// x / (1 + e^-x).
    /// In `f32` the largest error is 1.50 ulp.
    #[must_use]
    fn silu(self) -> Self;
    /// x tanh(ln(1 + e^x)).
    /// In `f32` the largest error is 2.49 ulp.
    #[must_use]
    fn mish(self) -> Self;
    /// x times the distribution function of the normal distribution.
    /// In `f32` the largest error is 2.46 ulp.
    #[must_use]
    fn gelu(self) -> Self;
    /// The approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 of `gelu`.
    /// In `f32` the largest error is 1.50 ulp.
    #[must_use]
    fn gelu_tanh(self) -> Self;
    /// The distribution function of the normal distribution.
    /// In `f32` the largest error is 3.16 ulp.
    #[must_use]
    fn normal_cdf(self) -> Self;
    /// x to the power `exponent`, with the special cases of IEEE 754's `pow`.
    /// In `f32` the largest error is 1.18 ulp.
    #[must_use]
    fn powf(self, exponent: Self) -> Self;

    /// `self * b + c`, rounded once with `std`; without, where no target has the operation at hand, rounded twice.
    #[must_use]
    fn fused_mul_add(self, b: Self, c: Self) -> Self;

    /// The larger; NaN where one is NaN.
    #[must_use]
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        // The first comparison fails for a NaN in `self`, which is then kept.
        if other > self || other.is_nan() { other } else { self }
    }

    /// The smaller; NaN where one is NaN.
    #[must_use]
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        // As in `maximum`.
        if other < self || other.is_nan() { other } else { self }
    }

    /// Whether this is a NaN.
    #[must_use]
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
}

macro_rules! real {
    ($t:ident, $precision:literal, |$single:ident, $double:ident| $own:ident, $unit:path, $sqrt:path, $functions:ident) => {
        #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss, clippy::cast_lossless, clippy::float_cmp)]
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $t::INFINITY;
            const PRECISION: u32 = $precision;

            #[inline(always)]
            fn from_usize(n: usize) -> Self {
                n as u32 as $t
            }
            #[inline(always)]
            fn to_index(self) -> Option<usize> {
                let index = self as u32;
                (index as $t == self && index <= 1 << 24).then_some(index as usize)
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn choose($single: f32, $double: f64) -> Self {
                $own
            }
            #[inline(always)]
            fn unit(random: u64) -> Self {
                $unit(random)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $sqrt(self)
            }
            #[inline(always)]
            #[allow(clippy::disallowed_methods)] // What is banned elsewhere is asked for here.
            fn fused_mul_add(self, b: Self, c: Self) -> Self {
                #[cfg(feature = "std")]
                return self.mul_add(b, c);
                #[cfg(not(feature = "std"))]
                return self * b + c;
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $functions::exp(self)
            }
            #[inline(always)]
            fn exp_m1(self) -> Self {
                $functions::exp_m1(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $functions::ln(self)
            }
            #[inline(always)]
            fn ln_1p(self) -> Self {
                $functions::ln_1p(self)
            }
            #[inline(always)]
            fn sin(self) -> Self {
                $functions::sin(self)
            }
            #[inline(always)]
            fn sin_slice(xs: &mut [Self]) {
                $functions::sin_slice(xs);
            }
            #[inline(always)]
            fn cos(self) -> Self {
                $functions::cos(self)
            }
            #[inline(always)]
            fn cos_slice(xs: &mut [Self]) {
                $functions::cos_slice(xs);
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $functions::tanh(self)
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $functions::erf(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> Self {
                $functions::sigmoid(self)
            }
            #[inline(always)]
            fn softplus(self) -> Self {
                $functions::softplus(self)
            }
            #[inline(always)]
            fn silu(self) -> Self {
                $functions::silu(self)
            }
            #[inline(always)]
            fn mish(self) -> Self {
                $functions::mish(self)
            }
            #[inline(always)]
            fn gelu(self) -> Self {
                $functions::gelu(self)
            }
            #[inline(always)]
            fn gelu_tanh(self) -> Self {
                $functions::gelu_tanh(self)
            }
            #[inline(always)]
            fn normal_cdf(self) -> Self {
                $functions::normal_cdf(self)
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $functions::powf(self, exponent)
            }
        }
    };
}

#[allow(clippy::cast_precision_loss)]
fn unit_f32(random: u64) -> f32 {
    (random >> 40) as u32 as f32 * (1.0 / 16_777_216.0)
}

#[allow(clippy::cast_precision_loss)]
fn unit_f64(random: u64) -> f64 {
    (random >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

real!(f32, 24, |single, _double| single, unit_f32, sqrt::sqrt_f32, single);
real!(f64, 53, |_single, double| double, unit_f64, sqrt::sqrt_f64, double);

/// Two counts as elements, of which the second is the larger. Elements are made of 32 bits: larger counts are halved together
/// until they fit.
pub(crate) fn counted<E: Real>(counts: [usize; 2]) -> [E; 2] {
    let excess = (usize::BITS - counts[1].leading_zeros()).saturating_sub(u32::BITS);
    counts.map(|count| E::from_usize(count >> excess))
}
