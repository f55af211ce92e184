//! The functions of `Strict<f32>` beside a reference in double precision, and the search for the largest error.
//!
//! The references are `libm`'s functions of `f64`, and formulas of them without cancellation. They are wrong by some
//! 1e-16, which is less than 1e-8 of the last place of an `f32`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, SQRT_2};
use std::thread;

use slabgrad::backend::{Backend, Strict};

type F = Strict<f32>;

/// A function of one argument, what it should be, and what it may be wrong by.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Computes in place, many elements per call.
    pub(crate) ours: fn(&mut [f32]),
    /// Computes one, with the same bits.
    pub(crate) single: fn(f32) -> f32,
    /// `libm`'s function of `f32`, or the usual formula of those.
    pub(crate) libm: fn(f32) -> f32,
    /// In double precision.
    pub(crate) reference: fn(f64) -> f64,
    /// The largest error allowed, in units of the last place.
    pub(crate) bound: f64,
    /// What is to be the same for `x` and `-x`: negative arguments are compared with positive ones, which is faster.
    pub(crate) symmetry: Symmetry,
}

/// f(-x), told from f(x).
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Symmetry {
    None,
    /// The same.
    Even,
    /// The negative.
    Odd,
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worst {
    /// The largest error, in units of the last place.
    pub(crate) error: f64,
    /// Where that is.
    pub(crate) at: f32,
    /// How many arguments have an error above 1.
    pub(crate) above_1: u64,
}

impl Worst {
    pub(crate) fn add(&mut self, at: f32, error: f64) {
        if error > self.error {
            (self.error, self.at) = (error, at);
        }
        self.above_1 += u64::from(error > 1.0);
    }

    fn merge(self, other: Self) -> Self {
        let worse = if other.error > self.error { other } else { self };
        Self { above_1: self.above_1 + other.above_1, ..worse }
    }
}

macro_rules! functions {
    ($($name:ident, $ours:expr, $symmetry:ident, $libm:expr, $reference:expr, $bound:literal;)*) => {
        /// All functions of one argument.
        pub(crate) const FUNCTIONS: &[Function] = &[$(
            Function {
                name: stringify!($name),
                ours: $ours,
                single: F::$name,
                libm: $libm,
                reference: $reference,
                bound: $bound,
                symmetry: Symmetry::$symmetry,
            },
        )*];
    };
}

functions! {
    exp, |ys| each(ys, F::exp), None, libm::expf, libm::exp, 1.0;
    exp_m1, |ys| each(ys, F::exp_m1), None, libm::expm1f, libm::expm1, 1.25;
    ln, |ys| each(ys, F::ln), None, libm::logf, libm::log, 1.0;
    ln_1p, |ys| each(ys, F::ln_1p), None, libm::log1pf, libm::log1p, 1.5;
    sin, F::sin_slice, Odd, libm::sinf, sin, 2.0;
    cos, F::cos_slice, Even, libm::cosf, cos, 2.0;
    tanh, |ys| each(ys, F::tanh), Odd, libm::tanhf, libm::tanh, 1.5;
    erf, |ys| each(ys, F::erf), Odd, libm::erff, libm::erf, 1.5;
    sigmoid, |ys| each(ys, F::sigmoid), None, sigmoid_f32, sigmoid, 1.75;
    softplus, |ys| each(ys, F::softplus), None, |x| libm::log1pf(libm::expf(x)), softplus, 2.0;
    silu, |ys| each(ys, F::silu), None, |x| x * sigmoid_f32(x), |x| product(x, sigmoid), 1.75;
    mish, |ys| each(ys, F::mish), None,
        |x| x * libm::tanhf(libm::log1pf(libm::expf(x))), |x| product(x, tanh_softplus), 2.5;
    gelu, |ys| each(ys, F::gelu), None,
        |x| 0.5 * x * (1.0 + libm::erff(x * FRAC_1_SQRT_2 as f32)), |x| product(x, normal_cdf), 2.5;
    gelu_tanh, |ys| each(ys, F::gelu_tanh), None, gelu_tanh_f32, |x| product(x, gelu_tanh_factor), 1.75;
    normal_cdf, |ys| each(ys, F::normal_cdf), None, |x| 0.5 * libm::erfcf(-x * FRAC_1_SQRT_2 as f32), normal_cdf, 3.25;
}

/// A loop that becomes vector instructions where the function has no branch.
#[inline(always)]
fn each(ys: &mut [f32], f: impl Fn(f32) -> f32) {
    ys.iter_mut().for_each(|y| *y = f(*y));
}

pub(crate) fn sin(x: f64) -> f64 {
    if x.abs() < 8192.0 || !x.is_finite() {
        return libm::sin(x);
    }
    let y = sin_of_large(x.abs(), 0);
    if x < 0.0 { -y } else { y }
}

pub(crate) fn cos(x: f64) -> f64 {
    if x.abs() < 8192.0 || !x.is_finite() { libm::cos(x) } else { sin_of_large(x.abs(), 1) }
}

/// The sine of `x`, an `f32` from 2^13 on, and some right angles. As `libm`'s, which takes ten times as long.
fn sin_of_large(x: f64, right_angles: u128) -> f64 {
    // The bits of 2 / pi after the point.
    const HIGH: u128 = 0xa2f9_836e_4e44_1529_fc27_57d1_f534_ddc0;
    const LOW: u128 = 0xdb62_9599_3c43_9041_fe51_63ab_debb_c561;
    // x = significand 2^exponent
    let exponent = (x.to_bits() >> 52) as i32 - 1023 - 23;
    let significand = u128::from((x.to_bits() & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000) >> 29);
    // Bits of 2 / pi before these give multiples of four right angles.
    let skip = (exponent - 2).max(0);
    let window = if skip == 0 { HIGH } else { HIGH << skip | LOW >> (128 - skip) };
    // In right angles, times 2^point.
    let product = significand * (window >> 24);
    let point = 104 - (exponent - skip);
    let n = (product + (1 << (point - 1))) >> point;
    let rest = product.wrapping_sub(n << point).cast_signed() as f64;
    let r = rest / (1_u128 << point) as f64 * FRAC_PI_2;
    match (n + right_angles) % 4 {
        0 => libm::sin(r),
        1 => libm::cos(r),
        2 => -libm::sin(r),
        _ => -libm::cos(r),
    }
}

fn sigmoid_f32(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

fn gelu_tanh_f32(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::tanhf(0.797_884_6 * (x + 0.044_715 * x * x * x)))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn softplus(x: f64) -> f64 {
    // The comparison is so written that a NaN is the sum's first term.
    (if x < 0.0 { 0.0 } else { x }) + libm::log1p(libm::exp(-x.abs()))
}

/// tanh(ln(1 + e^x)) = n / (n + 2), with n = e^x (e^x + 2).
fn tanh_softplus(x: f64) -> f64 {
    let e = libm::exp(x);
    if x > 40.0 { 1.0 } else { e * (e + 2.0) / (e * (e + 2.0) + 2.0) }
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// (1 + tanh(u)) / 2, where 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
fn gelu_tanh_factor(x: f64) -> f64 {
    sigmoid(SQRT_2 * FRAC_2_SQRT_PI * (x + 0.044_715 * x * x * x))
}

/// x f(x), for an f that is 0 for very negative numbers, minus infinity among them.
fn product(x: f64, f: fn(f64) -> f64) -> f64 {
    if x < -1000.0 { -0.0 } else { x * f(x) }
}

/// Whether these are the same bits, or both NaN.
#[inline(always)]
pub(crate) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// The distance between two numbers in units of the last place of an `f32` at `expected`. Infinite where one is a NaN and
/// the other is not, and where zeros differ in sign.
#[inline(always)]
pub(crate) fn error(got: f32, expected: f64) -> f64 {
    let difference = (f64::from(got) - expected).abs();
    // The exponent of `expected`, but no less than that of the subnormal numbers.
    let exponent = (expected.to_bits() >> 52 & 0x7ff).max(1023 - 126);
    if difference < f64::INFINITY && exponent < 1023 + 128 && expected != 0.0 {
        // Times 2^23, over the power of two at or below `expected`.
        return difference * f64::from_bits((2 * 1023 + 23 - exponent) << 52);
    }
    special_error(got, expected)
}

/// [`error`] at zeros, at infinities and beyond the range, and at NaNs.
#[cold]
#[inline(never)]
fn special_error(got: f32, expected: f64) -> f64 {
    if got.is_nan() || expected.is_nan() {
        return if got.is_nan() == expected.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if expected == 0.0 {
        let same_sign = got.is_sign_negative() == expected.is_sign_negative();
        return if same_sign { f64::from(got.to_bits() & 0x7fff_ffff) } else { f64::INFINITY };
    }
    // As far as the next power of two goes, an infinity is that.
    let overflow = f64::from(f32::MAX) + UNIT_AT_MAX;
    let near = |x: f64| if x.abs() > overflow { overflow.copysign(x) } else { x };
    (near(got.into()) - near(expected)).abs() / UNIT_AT_MAX
}

/// 2^104, the distance of the largest numbers.
const UNIT_AT_MAX: f64 = (1_u128 << 104) as f64;

/// The largest error of `function` over every `stride`-th `f32`, by two threads. It is infinite where a slice gives other
/// bits than a single argument.
pub(crate) fn sweep(function: &Function, stride: u32) -> Worst {
    const LEN: u32 = 1024;
    const SIGN: u32 = 1 << 31;
    let last = (SIGN - 1) / stride;
    let blocks = last / LEN + 1;
    let part = |blocks: std::ops::Range<u32>, sign: u32| {
        let mut worst = Worst::default();
        for block in blocks {
            // What is left of the last block repeats the last argument.
            let bits = |i: usize| (block * LEN + i as u32).min(last) * stride;
            let arguments: [f32; LEN as usize] = std::array::from_fn(|i| f32::from_bits(bits(i) | sign));
            let mut results = arguments;
            (function.ours)(&mut results);
            for (&x, &y) in arguments.iter().zip(&results) {
                worst.add(x, error(y, (function.reference)(x.into())));
                if !same(y, (function.single)(x)) {
                    worst.add(x, f64::INFINITY);
                }
            }
            if function.symmetry != Symmetry::None {
                let mut mirrored = arguments.map(|x| -x);
                (function.ours)(&mut mirrored);
                let flip = if function.symmetry == Symmetry::Odd { SIGN } else { 0 };
                for (&x, (&y, &m)) in arguments.iter().zip(results.iter().zip(&mirrored)) {
                    if !same(m, f32::from_bits(y.to_bits() ^ flip)) {
                        worst.add(-x, f64::INFINITY);
                    }
                }
            }
        }
        worst
    };
    thread::scope(|scope| {
        if function.symmetry == Symmetry::None {
            let negative = scope.spawn(|| part(0..blocks, SIGN));
            part(0..blocks, 0).merge(negative.join().expect("the other half panicked"))
        } else {
            // Large numbers take longer than small ones.
            let middle = blocks / 2;
            let large = scope.spawn(move || part(middle..blocks, 0));
            let worst = part(0..middle, 0).merge(large.join().expect("the other half panicked"));
            // Each stands for its mirror image too.
            Worst { above_1: 2 * worst.above_1, ..worst }
        }
    })
}

/// The largest allowed error of `powf`.
pub(crate) const POWF_BOUND: f64 = 1.5;

/// The largest error of `powf` over `samples` pairs from a seed, a quarter of them each: any two numbers; a base from all
/// numbers and one from 1/2 to 2, with results over the whole range; small integers as exponents.
pub(crate) fn sample_powf(samples: u32) -> (Worst, f32) {
    let mut worst = Worst::default();
    let mut exponent = 0.0;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in 0..samples {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (a, b) = (state as u32, (state >> 32) as u32);
        let unit = |bits: u32| f64::from(bits) / 4_294_967_296.0;
        let over_range = |x: f32| (unit(b) * 200.0 - 106.0) / libm::log(x.into());
        let (x, y) = match i % 4 {
            0 => (f32::from_bits(a), f32::from_bits(b)),
            1 => (f32::from_bits(a >> 1), over_range(f32::from_bits(a >> 1)) as f32),
            2 => {
                let x = (0.5 + 1.5 * unit(a)) as f32;
                (x, over_range(x) as f32)
            }
            _ => ((unit(a) * 128.0 - 64.0) as f32, (b % 41) as f32 - 20.0),
        };
        let found = error(Strict::<f32>::powf(x, y), libm::pow(x.into(), y.into()));
        if found > worst.error {
            exponent = y;
        }
        worst.add(x, found);
    }
    (worst, exponent)
}
