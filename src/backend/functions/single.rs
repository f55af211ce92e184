//! Functions of `f32`, made of + - * /, bit operations and choices between two values: the same bits on every target, no
//! double-precision unit needed, and a loop over a slice becomes vector instructions; [`sin_slice`] and [`cos_slice`] are such
//! loops with a branch for every block.
//!
//! The errors are those that `cargo bench --bench ulp` measures over all 2^32 arguments.

// Coefficients carry the digits of the value that they round to.
#![allow(clippy::excessive_precision, clippy::unreadable_literal)]
// Comparisons with numbers that are special cases.
#![allow(clippy::float_cmp)]

/// 1.5 * 2^23. A sum with it is rounded to an integer, which then is in the low bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts: the first has 16 bits, so that its product with an exponent is exact.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];

/// x e^x is 0 from here on.
const LOWEST: f32 = -120.0;

/// `x` rounded to an integer, ties to even, as a float and as an integer. |x| is at most 2^22.
#[inline(always)]
fn round(x: f32) -> (f32, i32) {
    let shifted = x + ROUND;
    (shifted - ROUND, shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed())
}

/// 2^n, for n of -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    // Not `f32::clamp`: a NaN passes here, and each line is one instruction.
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// The polynomial with these coefficients, the one of x^0 first.
#[inline(always)]
fn horner<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    const { assert!(N >= 1 && N <= 10) };
    let mut sum = coefficients[N - 1];
    // Written out: a compiler that optimizes for size leaves a loop as it is, and puts the coefficients on the stack for it.
    macro_rules! terms {
        ($($i:literal)*) => {
            $(if $i < N - 1 {
                sum = sum * x + coefficients[$i];
            })*
        };
    }
    terms!(8 7 6 5 4 3 2 1 0);
    sum
}

/// e^(x + low) = 2^n (1 + (r + t)), with |r| at most ln(2) / 2 and t of the order of r^2. |x| is at most 2^7 or so, `low`
/// much less.
#[inline(always)]
fn exp_parts(x: f32, low: f32) -> (i32, f32, f32) {
    let (n, integer) = round(x * core::f32::consts::LOG2_E);
    let high = x - n * LN_2[0];
    let low = n * LN_2[1] - low;
    let r = high - low;
    let lost = (high - r) - low;
    // (e^r - 1 - r) / r^2, relative error 2^-31 of e^r - 1.
    let p = horner(r, [0.5, 0.16666667, 0.041666485, 0.0083331987, 0.0013933048, 0.00019952584]);
    (integer, r, r * r * p + lost)
}

/// e^(x + low) as a number near 1 and two powers of two, whose product is the result. Those may be out of range; the
/// numbers are not.
#[inline(always)]
fn exp_scaled(x: f32, low: f32) -> (f32, f32, f32) {
    // Beyond these everything is infinite, or 0 even after a multiplication by x.
    let (n, r, t) = exp_parts(clamp(x, LOWEST, 89.0), low);
    let half = n >> 1;
    (1.0 + (r + t), power_of_two(half), power_of_two(n.wrapping_sub(half)))
}

/// e^x.
/// Largest error: 0.87 ulp.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let (y, s0, s1) = exp_scaled(x, 0.0);
    y * s0 * s1
}

/// e^(x + low) - 1 but for the sign of 0, from the parts of e^(x + low).
#[inline(always)]
fn exp_m1_sum((n, r, t): (i32, f32, f32)) -> f32 {
    // Half of the power of two, which is in range for n = 128 too.
    let half = power_of_two(n.wrapping_sub(1));
    let whole = half - 0.5;
    let high = whole + half * r;
    // What `high` lost: exact where n is not 0 or r is small.
    let lost = (whole - high) + half * r;
    let y = 2.0 * (high + (half * t + lost));
    // So halves of subnormal numbers are not lost.
    if r.abs() < 1e-20 && n == 0 { r } else { y }
}

/// e^x - 1.
/// Largest error: 1.06 ulp.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    exp_m1_sum(exp_parts(clamp(x, -18.0, 89.0), 0.0)).copysign(x)
}

/// The natural logarithm of 2^k m, where `f` is m - 1 and m from sqrt(1/2) to sqrt(2).
#[inline(always)]
fn ln_parts(k: f32, f: f32) -> f32 {
    // (ln(1 + f) - f + f^2 / 2) / f^3
    let p =
        horner(f, [0.33333316, -0.2500081, 0.20002298, -0.16624552, 0.14181045, -0.13128696, 0.12882225, -0.07860124]);
    let square = f * f;
    let rest = f * square * p - 0.5 * square;
    k * LN_2[0] + (f + (rest + k * LN_2[1]))
}

/// x = 2^k m, with m from sqrt(1/2) to sqrt(2). `x` is positive and normal.
#[inline(always)]
fn split(x: f32) -> (i32, f32) {
    let bits = x.to_bits();
    let k = bits.wrapping_sub(core::f32::consts::FRAC_1_SQRT_2.to_bits()).cast_signed() >> 23;
    (k, f32::from_bits(bits.wrapping_sub((k as u32) << 23)))
}

/// The natural logarithm.
/// Largest error: 0.92 ulp.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    let (k, m) = split(scaled);
    let y = ln_parts(k as f32 - if subnormal { 23.0 } else { 0.0 }, m - 1.0);
    let y = if x > 0.0 { y } else { f32::NAN };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < f32::INFINITY { y } else { x }
}

/// ln(1 + x).
/// Largest error: 1.45 ulp.
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // What the sum lost, beside the larger of its terms.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let (k, m) = split(u);
    let scale = power_of_two(if k < 64 { -k } else { -64 });
    let y = ln_parts(k as f32, (m - 1.0) + lost * scale);
    let y = if x > -1.0 { y } else { f32::NAN };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    if x < f32::INFINITY { y.copysign(x) } else { x }
}

/// The hyperbolic tangent.
/// Largest error: 1.50 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let e = exp(-2.0 * a);
    let far = 1.0 - 2.0 * e / (1.0 + e);
    let z = x * x;
    // (tanh(x) - x) / x^3
    let p = horner(z, [-0.33333313, 0.13332438, -0.053836085, 0.021002345, -0.0061731283]);
    let near = a + a * z * p;
    (if a > 0.5625 { far } else { near }).copysign(x)
}

/// 2^-|n|, where 0 will do for a power that is not a normal number, and 2^-n in two factors where n is positive, else 1.
#[inline(always)]
fn shifts(n: i32) -> (f32, f32, f32) {
    let down = if n > 0 { -n } else { 0 };
    let up = if n > 0 { 0 } else { n };
    let least = down.wrapping_add(up);
    let half = down >> 1;
    (power_of_two(if least < -126 { -126 } else { least }), power_of_two(half), power_of_two(down.wrapping_sub(half)))
}

/// numerator / (1 + e^(x + low)).
#[inline(always)]
fn gate(numerator: f32, x: f32, low: f32) -> f32 {
    let (n, r, t) = exp_parts(clamp(x, LOWEST, -LOWEST), low);
    // 1 + 2^n (1 + r + t), or that divided by 2^n where it is large.
    let (power, s0, s1) = shifts(n);
    let (r, t) = if n > 0 { (r, t) } else { (r * power, t * power) };
    let (one, one_low) = normalise(1.0, power);
    let (high, low) = normalise(one, r);
    let denominator = high + ((one_low + low) + t);
    numerator / denominator * s0 * s1
}

/// 1 / (1 + e^-x).
/// Largest error: 1.56 ulp.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    gate(1.0, -x, 0.0)
}

/// x / (1 + e^-x).
/// Largest error: 1.50 ulp.
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    // Below `LOWEST` the product is 0, and so it is at minus infinity.
    gate(if x < LOWEST { LOWEST } else { x }, -x, 0.0)
}

/// x tanh(ln(1 + e^x)) = x / (e + (1 + 1 / (1 + 2 e)) / 2), with e = e^-x.
/// Largest error: 2.49 ulp.
#[inline(always)]
pub(crate) fn mish(x: f32) -> f32 {
    let x = if x < LOWEST { LOWEST } else { x };
    let (n, r, t) = exp_parts(clamp(-x, LOWEST, -LOWEST), 0.0);
    let y = 1.0 + (r + t);
    let (power, s0, s1) = shifts(n);
    let e = y * if n > 0 { 1.0 / power } else { power };
    let part = 0.5 + 0.5 / (1.0 + 2.0 * e);
    let denominator = if n > 0 { y + part * power } else { part + y * power };
    x / denominator * s0 * s1
}

/// pi / 2 in four parts. The first three have 11 bits at most, so that their products with integers below 2^13 are exact.
const PI_2: [f32; 4] = [1.5703125, 0.00048375130, 7.5495336e-8, 2.5633441e-12];

/// The largest argument that [`reduce`] is for.
const LARGE: f32 = 8192.0;

/// |x| = n pi/2 + (r + low), where |r| is at most pi / 4: Cody and Waite's subtraction of multiples in parts.
#[inline(always)]
fn reduce(x: f32) -> (u32, f32, f32) {
    let (n, integer) = round(x * core::f32::consts::FRAC_2_PI);
    let high = (x - n * PI_2[0]) - n * PI_2[1];
    let part = n * PI_2[2];
    let r = high - part;
    (integer as u32, r, ((high - r) - part) - n * PI_2[3])
}

/// As [`reduce`], for larger numbers: the bits of 2 / pi that matter, times the significand (Payne and Hanek).
#[inline(always)]
fn reduce_large(x: f32) -> (u32, f32, f32) {
    // A word of zeros, then the bits of 2 / pi after the point.
    const W: [u32; 8] = [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
    let bits = x.to_bits();
    let significand = (bits & 0x007f_ffff) | 0x0080_0000;
    // The window of 96 bits whose first has, after the multiplication by the power of two in `x`, the weight of two
    // right angles.
    let first = (bits >> 23).wrapping_sub(120);
    let (word, shift) = (first >> 5, first & 31);
    let pick = |k: usize| {
        let w = if word >= 1 { W[k + 1] } else { W[k] };
        let w = if word >= 2 { W[k + 2] } else { w };
        let w = if word >= 3 { W[k + 3] } else { w };
        if word >= 4 { W[k + 4] } else { w }
    };
    let window = |a: u32, b: u32| (a << shift) | ((b >> 1) >> (31 - shift));
    let w = [pick(0), pick(1), pick(2), pick(3)];
    let wide = |w: u32| u64::from(significand) * u64::from(w);
    // In right angles, times 2^62.
    let product = (u64::from(significand.wrapping_mul(window(w[0], w[1]))) << 32)
        .wrapping_add(wide(window(w[1], w[2])))
        .wrapping_add(wide(window(w[2], w[3])) >> 32);
    let n = (product.wrapping_add(1 << 61) >> 62) as u32;
    let rest = product.wrapping_sub(u64::from(n) << 62);
    let sign = 0u64.wrapping_sub(rest >> 63);
    let rest = (rest ^ sign).wrapping_sub(sign);
    // 11, 11, 22 and 18 bits, which are exact floats.
    let field = |shift: u32, mask: u32| ((rest >> shift) as u32 & mask).cast_signed() as f32;
    let a = field(51, 0x7ff) * (1.0 / 2_048.0);
    let b = field(40, 0x7ff) * (1.0 / 4_194_304.0);
    let c =
        field(18, 0x3f_ffff) * (1.0 / 17_592_186_044_416.0) + field(0, 0x3_ffff) * (1.0 / 4_611_686_018_427_387_904.0);
    let high = a * PI_2[0];
    let low = b * PI_2[0] + (a * PI_2[1] + (b * PI_2[1] + (c * core::f32::consts::FRAC_PI_2 + a * PI_2[2])));
    let r = high + low;
    let low = low - (r - high);
    let flip = (sign as u32) & 0x8000_0000;
    (n, f32::from_bits(r.to_bits() ^ flip), f32::from_bits(low.to_bits() ^ flip))
}

/// The sine of n + `quarters` right angles + (r + low).
#[inline(always)]
fn sin_of_parts((n, r, low): (u32, f32, f32), quarters: u32) -> f32 {
    let n = n.wrapping_add(quarters);
    let z = r * r;
    // (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4
    let s = horner(z, [-0.16666655, 0.0083321901, -0.00019518408]);
    let c = horner(z, [0.041666646, -0.0013887307, 0.000024431932]);
    let half = 0.5 * z;
    let sin = r + (r * z * s + (low - low * half));
    let one = 1.0 - half;
    let cos = one + (((1.0 - one) - half) + (z * z * c - r * low));
    let y = if n & 1 == 0 { sin } else { cos };
    f32::from_bits(y.to_bits() ^ ((n & 2) << 30))
}

/// The sine of |x| + `quarters` right angles.
#[inline(always)]
fn sin_of_abs(x: f32, quarters: u32) -> f32 {
    let x = x.abs();
    let y = sin_of_parts(if x > LARGE { reduce_large(x) } else { reduce(x) }, quarters);
    if x < f32::INFINITY { y } else { f32::NAN }
}

/// Of every number the sine, or with 1 for `quarters` the cosine, in place. One function for both, as it is not small.
fn sin_of_all(xs: &mut [f32], quarters: u32) {
    // The sine changes its sign with the angle's.
    let odd = if quarters == 0 { 0x8000_0000 } else { 0 };
    let signed = |y: f32, x: f32| f32::from_bits(y.to_bits() ^ (x.to_bits() & odd));
    // The branch is for a whole block, so that the loop over one of small angles has none.
    for block in xs.chunks_mut(32) {
        // Not `all`, which may stop early and so would stay scalar. A NaN is not small.
        if block.iter().fold(true, |small, x| small & (x.abs() <= LARGE)) {
            block.iter_mut().for_each(|x| *x = signed(sin_of_parts(reduce(x.abs()), quarters), *x));
        } else {
            block.iter_mut().for_each(|x| *x = signed(sin_of_abs(*x, quarters), *x));
        }
    }
}

/// The sine of an angle in radians.
/// Largest error: 1.73 ulp.
#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    let y = sin_of_abs(x, 0);
    f32::from_bits(y.to_bits() ^ (x.to_bits() & 0x8000_0000))
}

/// The sines of angles in radians, in place: the bits of [`sin`].
pub(crate) fn sin_slice(xs: &mut [f32]) {
    sin_of_all(xs, 0);
}

/// The cosine of an angle in radians.
/// Largest error: 1.73 ulp.
#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    sin_of_abs(x, 1)
}

/// The cosines of angles in radians, in place: the bits of [`cos`].
pub(crate) fn cos_slice(xs: &mut [f32]) {
    sin_of_all(xs, 1);
}

/// The error function, as 1 - e^-q with a polynomial for q.
/// Largest error: 1.38 ulp.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let a = clamp(x.abs(), 0.0, 3.95);
    // -ln(1 - erf(a)) = a + a p(a)
    let p = horner(
        a,
        [
            0.12837917,
            0.63661987,
            0.10277089,
            -0.019115722,
            -0.00025809585,
            0.0018064972,
            -0.0007465384,
            0.0001702199,
            -2.2043123e-5,
            1.2614574e-6,
        ],
    );
    let part = a * p;
    let q = a + part;
    let low = part - (q - a);
    (-exp_m1_sum(exp_parts(-q, -low))).copysign(x)
}

/// The upper half of the significand, whose products with other halves are exact.
#[inline(always)]
fn upper(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_f000)
}

/// high + low with the rounding error of the sum in the second part; |high| is the larger.
#[inline(always)]
fn normalise(high: f32, low: f32) -> (f32, f32) {
    let sum = high + low;
    (sum, low - (sum - high))
}

/// The product of two numbers in two parts each, of which the first ones decide.
#[inline(always)]
fn product((a, a_low): (f32, f32), (b, b_low): (f32, f32)) -> (f32, f32) {
    let (a_upper, b_upper) = (upper(a), upper(b));
    let high = a_upper * b_upper;
    let rest = (a - a_upper) * b + a_upper * (b - b_upper);
    normalise(high, rest + (a * b_low + a_low * b))
}

/// P(X < x) of a normal distribution, for |x| at most 1.
#[inline(always)]
fn normal_near(x: f32) -> f32 {
    // (P(X < x) - 1/2) / x - 1/2. Both halves are exact where the two sums nearly cancel.
    let p = horner(x * x, [-0.10105772, -0.0664903, 0.0099730073, -0.0011856364, 0.00011281325, -7.4149361e-06]);
    (0.5 + 0.5 * x) + x * p
}

/// a P(X > a) of a normal distribution for `a` from 1 to 16, as the product of two numbers that do not underflow.
#[inline(always)]
fn normal_tail(a: f32) -> (f32, f32) {
    let (high, low) = product((a, 0.0), (a, 0.0));
    let (n, r, t) = exp_parts(clamp(-0.5 * high, LOWEST, 0.0), -0.5 * low);
    // e^(a^2 / 2) a P(X > a) - 3/8
    let p = horner(
        (a - 3.5) / (a + 3.5),
        [
            -0.0027919624,
            0.089427128,
            -0.12506841,
            0.099687137,
            -0.049321793,
            0.011939905,
            0.0016453448,
            -0.0018025762,
            1.0609661e-05,
            0.00022958042,
        ],
    );
    let s = r + t;
    let y = 0.375 + (p + (0.375 + p) * s);
    let half = n >> 1;
    (y * power_of_two(half), power_of_two(n.wrapping_sub(half)))
}

/// The distribution function of the normal distribution.
/// Largest error: 3.16 ulp.
#[inline(always)]
pub(crate) fn normal_cdf(x: f32) -> f32 {
    let a = clamp(x.abs(), 1.0, 16.0);
    let (y, scale) = normal_tail(a);
    let tail = y / a * scale;
    let far = if x > 0.0 { 1.0 - tail } else { tail };
    if x.abs() > 1.0 { far } else { normal_near(x) }
}

/// x times the distribution function of the normal distribution.
/// Largest error: 2.46 ulp.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    let (y, scale) = normal_tail(clamp(x.abs(), 1.0, 16.0));
    let product = y * scale;
    let far = if x > 0.0 { x - product } else { -product };
    if x.abs() > 1.0 { far } else { x * normal_near(x) }
}

/// x (1 + tanh(u)) / 2 = x / (1 + e^-2u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
/// Largest error: 1.50 ulp.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    // 2 sqrt(2 / pi), and that times 0.044715, in two parts.
    const FIRST: (f32, f32) = (1.5957692, -4.534068e-08);
    const THIRD: (f32, f32) = (0.071354814, 2.3988325e-09);
    let a = (clamp(x.abs(), 0.0, 16.0), 0.0);
    let (cubic, cubic_low) = product(product(a, a), THIRD);
    let sum = FIRST.0 + cubic;
    let part = sum - FIRST.0;
    let lost = (FIRST.0 - (sum - part)) + (cubic - part);
    let (high, low) = product(normalise(sum, lost + (cubic_low + FIRST.1)), a);
    let (high, low) = if x < 0.0 { (high, low) } else { (-high, -low) };
    gate(clamp(x, -16.0, f32::INFINITY), high, low)
}

/// ln(1 + e^x).
/// Largest error: 1.71 ulp.
#[inline(always)]
pub(crate) fn softplus(x: f32) -> f32 {
    let more = if x < 0.0 { 0.0 } else { x };
    more + ln_1p(exp(-x.abs()))
}

/// 2 / 3 less what it is as an `f32`.
const THIRDS_LOW: f32 = -1.9868215e-8;

/// ln(x) in two parts, for a positive number.
#[inline(always)]
fn ln_pair(x: f32) -> (f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let (k, m) = split(if subnormal { x * 8_388_608.0 } else { x });
    let k = k as f32 - if subnormal { 23.0 } else { 0.0 };
    let f = m - 1.0;
    // 2 + f, and s = f / (2 + f), in two parts.
    let (g, g_low) = normalise(2.0, f);
    let reciprocal = 1.0 / g;
    let s = f * reciprocal;
    let (s_upper, g_upper) = (upper(s), upper(g));
    let rest = ((f - s_upper * g_upper) - s_upper * (g - g_upper)) - (s - s_upper) * g;
    let s_low = (rest - s * g_low) * reciprocal;
    // 2 atanh(s) = 2 s + s^3 (2 / 3 + s^2 p(s^2))
    let square = product((s, s_low), (s, s_low));
    let p = horner(square.0, [0.40000153, 0.28547072, 0.23420389]);
    let (cubic, cubic_low) = product(product(square, (s, s_low)), normalise(0.6666667, square.0 * p + THIRDS_LOW));
    let (high, low) = normalise(k * LN_2[0], 2.0 * s);
    normalise(high, low + (cubic + (2.0 * s_low + (cubic_low + k * LN_2[1]))))
}

/// x^y, with the special cases of IEEE 754's `pow`.
/// Largest error: 1.18 ulp.
#[inline(always)]
pub(crate) fn powf(x: f32, y: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    // 2^23 as an addend rounds to an integer, whose last bit then is the number's; from 2^24 on all are even.
    let shifted = if b < 8_388_608.0 { b + 8_388_608.0 } else { b };
    let integer = b >= 8_388_608.0 || shifted - 8_388_608.0 == b;
    let odd = integer && shifted < 16_777_216.0 && shifted.to_bits() & 1 == 1;

    // No power with an exponent beyond 2^32 is finite and not 0, but that of 1.
    let (high, low) = product((clamp(y, -4.3e9, 4.3e9), 0.0), ln_pair(a));
    let (e, s0, s1) = exp_scaled(high, if high.abs() < 128.0 { low } else { 0.0 });
    let power = e * s0 * s1;
    let limit = if (y > 0.0) == (a < 1.0) { 0.0 } else { f32::INFINITY };
    let power = if a == 0.0 || a == f32::INFINITY { limit } else { power };
    let power = if a == 1.0 { 1.0 } else { power };
    let power = if x.is_sign_negative() && odd { -power } else { power };
    let power = if x < 0.0 && !integer && a < f32::INFINITY { f32::NAN } else { power };
    let power = if x.is_nan() || y.is_nan() { x + y } else { power };
    if x == 1.0 || y == 0.0 { 1.0 } else { power }
}
