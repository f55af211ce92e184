//! Functions of `f64`: those of `libm`, and what is made of them.

pub(crate) use libm::{cos, erf, exp, expm1 as exp_m1, log as ln, log1p as ln_1p, pow as powf, sin, tanh};

use core::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// The sines of angles in radians, in place.
#[inline(always)]
pub(crate) fn sin_slice(xs: &mut [f64]) {
    xs.iter_mut().for_each(|x| *x = sin(*x));
}

/// The cosines of angles in radians, in place.
#[inline(always)]
pub(crate) fn cos_slice(xs: &mut [f64]) {
    xs.iter_mut().for_each(|x| *x = cos(*x));
}

/// 1 / (1 + e^-x), computed from e^-|x| so that it neither overflows nor loses its small end.
#[inline(always)]
pub(crate) fn sigmoid(x: f64) -> f64 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The distribution function of the normal distribution.
#[inline(always)]
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// x f(x), where f(x) is 0 for very negative numbers and x may be minus infinity.
#[inline(always)]
fn times(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    let x = if x < -1000.0 { -1000.0 } else { x };
    x * f(x)
}

/// x times the distribution function of the normal distribution.
#[inline(always)]
pub(crate) fn gelu(x: f64) -> f64 {
    times(x, normal_cdf)
}

/// x (1 + tanh(u)) / 2 = x / (1 + e^-2u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
#[inline(always)]
pub(crate) fn gelu_tanh(x: f64) -> f64 {
    times(x, |x| sigmoid(SQRT_2 * FRAC_2_SQRT_PI * (x + 0.044_715 * x * x * x)))
}

/// x / (1 + e^-x).
#[inline(always)]
pub(crate) fn silu(x: f64) -> f64 {
    times(x, sigmoid)
}

/// ln(1 + e^x).
#[inline(always)]
pub(crate) fn softplus(x: f64) -> f64 {
    let more = if x < 0.0 { 0.0 } else { x };
    more + ln_1p(exp(-x.abs()))
}

/// x tanh(ln(1 + e^x)) = x / (e + (1 + 1 / (1 + 2 e)) / 2), with e = e^-x.
#[inline(always)]
pub(crate) fn mish(x: f64) -> f64 {
    let x = if x < -1000.0 { -1000.0 } else { x };
    let e = exp(-x);
    x / (e + (0.5 + 0.5 / (1.0 + 2.0 * e)))
}
