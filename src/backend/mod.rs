//! Backends: the element type and the arithmetic that every kernel is written in.
//!
//! A backend is a type parameter of graphs, programs and operations. [`Strict`] gives the same bits on every machine;
//! a faster or a vendor's arithmetic is another implementation of [`Backend`].

pub(crate) mod columns;
pub(crate) mod dispatch;
mod functions;
mod panel;
mod real;
#[cfg(feature = "std")]
pub(crate) mod registry;
mod sqrt;
pub(crate) mod threads;
pub(crate) mod tile;
pub(crate) mod transpose;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
pub(crate) mod vfp;
#[cfg(target_arch = "x86_64")]
pub(crate) mod windows;

pub use real::Real;
pub(crate) use real::counted;
#[cfg(feature = "std")]
pub use registry::{MatmulKernel, UpdateKernel, register_matmul_kernel, register_update_kernel};
pub(crate) use tile::last_product;
pub use tile::{Matrix, Start};

use core::any::TypeId;
use core::marker::PhantomData;
#[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
use core::mem::MaybeUninit;

/// An element type with its arithmetic.
///
/// All methods have a default that is exact in the sense of [`Strict`]; a backend overrides what it does otherwise.
pub trait Backend: Copy + 'static {
    /// The element type.
    type Elem: Real;
    /// The same arithmetic for loops that run on a machine with fused multiply-add; `Self` where nothing is fused.
    type Fused: Backend<Elem = Self::Elem>;

    /// `a * b + c`.
    #[must_use]
    #[inline(always)]
    fn mul_add(a: Self::Elem, b: Self::Elem, c: Self::Elem) -> Self::Elem {
        a * b + c
    }

    /// e^x.
    #[must_use]
    #[inline(always)]
    fn exp(x: Self::Elem) -> Self::Elem {
        x.exp()
    }

    /// e^x - 1, accurate near 0.
    #[must_use]
    #[inline(always)]
    fn exp_m1(x: Self::Elem) -> Self::Elem {
        x.exp_m1()
    }

    /// The natural logarithm.
    #[must_use]
    #[inline(always)]
    fn ln(x: Self::Elem) -> Self::Elem {
        x.ln()
    }

    /// ln(1 + x), accurate near 0.
    #[must_use]
    #[inline(always)]
    fn ln_1p(x: Self::Elem) -> Self::Elem {
        x.ln_1p()
    }

    /// The sine of an angle in radians.
    #[must_use]
    #[inline(always)]
    fn sin(x: Self::Elem) -> Self::Elem {
        x.sin()
    }

    /// [`Backend::sin`] of every element, in place. A backend that overrides one overrides both.
    #[inline(always)]
    fn sin_slice(xs: &mut [Self::Elem]) {
        Self::Elem::sin_slice(xs);
    }

    /// The cosine of an angle in radians.
    #[must_use]
    #[inline(always)]
    fn cos(x: Self::Elem) -> Self::Elem {
        x.cos()
    }

    /// [`Backend::cos`] of every element, in place. A backend that overrides one overrides both.
    #[inline(always)]
    fn cos_slice(xs: &mut [Self::Elem]) {
        Self::Elem::cos_slice(xs);
    }

    /// The hyperbolic tangent.
    #[must_use]
    #[inline(always)]
    fn tanh(x: Self::Elem) -> Self::Elem {
        x.tanh()
    }

    /// The error function.
    #[must_use]
    #[inline(always)]
    fn erf(x: Self::Elem) -> Self::Elem {
        x.erf()
    }

    /// x to the power `exponent`, with the special cases of IEEE 754's `pow`.
    #[must_use]
    #[inline(always)]
    fn powf(x: Self::Elem, exponent: Self::Elem) -> Self::Elem {
        x.powf(exponent)
    }

    /// The logistic function 1 / (1 + e^-x), which neither overflows nor loses its small end.
    #[must_use]
    #[inline(always)]
    fn sigmoid(x: Self::Elem) -> Self::Elem {
        x.sigmoid()
    }

    /// ln(1 + e^x).
    #[must_use]
    #[inline(always)]
    fn softplus(x: Self::Elem) -> Self::Elem {
        x.softplus()
    }

    /// x / (1 + e^-x).
    #[must_use]
    #[inline(always)]
    fn silu(x: Self::Elem) -> Self::Elem {
        x.silu()
    }

    /// x tanh(ln(1 + e^x)).
    #[must_use]
    #[inline(always)]
    fn mish(x: Self::Elem) -> Self::Elem {
        x.mish()
    }

    /// x times the distribution function of the normal distribution.
    #[must_use]
    #[inline(always)]
    fn gelu(x: Self::Elem) -> Self::Elem {
        x.gelu()
    }

    /// The approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 of `gelu`.
    #[must_use]
    #[inline(always)]
    fn gelu_tanh(x: Self::Elem) -> Self::Elem {
        x.gelu_tanh()
    }

    /// The distribution function of the normal distribution.
    #[must_use]
    #[inline(always)]
    fn normal_cdf(x: Self::Elem) -> Self::Elem {
        x.normal_cdf()
    }

    /// The sum of `f` over pairs from `a` and `b`, in the one order that this project adds runs in: element `i` goes to
    /// partial sum `i % 8`, and the eight are combined in a fixed tree. So the width of a vector unit changes no bit.
    #[must_use]
    #[inline(always)]
    fn sum_pairs(
        a: &[Self::Elem],
        b: &[Self::Elem],
        f: impl Fn(Self::Elem, Self::Elem, Self::Elem) -> Self::Elem,
    ) -> Self::Elem {
        let mut lanes = no_sums();
        let (a_blocks, a_tail) = a.as_chunks::<8>();
        let (b_blocks, b_tail) = b.as_chunks::<8>();
        for (a, b) in a_blocks.iter().zip(b_blocks) {
            for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                *lane = f(*lane, a, b);
            }
        }
        for ((lane, &a), &b) in lanes.iter_mut().zip(a_tail).zip(b_tail) {
            *lane = f(*lane, a, b);
        }
        tree(lanes)
    }

    /// The sum of `x`, in the order of [`Backend::sum_pairs`].
    #[must_use]
    #[inline(always)]
    fn sum(x: &[Self::Elem]) -> Self::Elem {
        Self::sum_pairs(x, x, |sum, x, _| sum + x)
    }

    /// The dot product, in the order of [`Backend::sum_pairs`].
    #[must_use]
    #[inline(always)]
    fn dot(a: &[Self::Elem], b: &[Self::Elem]) -> Self::Elem {
        Self::sum_pairs(a, b, |sum, a, b| Self::mul_add(a, b, sum))
    }

    /// The matrix product `c = a b` or `c += a b` of `m x k` and `k x n`. Each element of `c` has one accumulator, to
    /// which the `k` products are added in ascending order.
    #[inline(always)]
    fn matmul(
        [m, n, k]: [usize; 3],
        a: Matrix<'_, Self::Elem>,
        b: Matrix<'_, Self::Elem>,
        c: &mut [Self::Elem],
        c_row: usize,
        start: Start,
    ) {
        #[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
        if tile::is_single::<Self>() {
            let sums = Sums::adding(start == Start::Output);
            let product = MatrixProduct { sizes: [m, n, k], a, b, c, c_row, sums };
            return vfp::product(&mut MaybeUninit::<vfp::Walks>::uninit(), product);
        }
        tile::matmul::<Self>([m, n, k], a, b, c, c_row, start);
    }
}

/// What the sums of a [`MatrixProduct`] start from.
#[derive(Clone, Copy)]
pub(crate) enum Sums<'a, E> {
    Zero,
    /// What the result holds.
    Result,
    /// A row of so many columns, in every row.
    Row(&'a [E]),
}

impl<'a, E> Sums<'a, E> {
    #[inline(always)]
    pub(crate) fn adding(add: bool) -> Self {
        if add { Self::Result } else { Self::Zero }
    }

    /// From a row that may be missing, and is empty then.
    #[inline(always)]
    pub(crate) fn from_row(row: &'a [E]) -> Self {
        if row.is_empty() { Self::Zero } else { Self::Row(row) }
    }
}

/// A matrix product, as [`Backend::matmul`] has it.
pub(crate) struct MatrixProduct<'a, E> {
    pub(crate) sizes: [usize; 3],
    pub(crate) a: Matrix<'a, E>,
    pub(crate) b: Matrix<'a, E>,
    pub(crate) c: &'a mut [E],
    pub(crate) c_row: usize,
    pub(crate) sums: Sums<'a, E>,
}

/// Sets all elements. One copy serves a microcontroller, and no general `memset` has to be linked.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn fill<E: Real>(x: &mut [E], value: E) {
    x.fill(value);
}

/// Partial sums of [`Backend::sum_pairs`] at their start. On a microcontroller the compiler must not see that they are zeros: it would
/// link a general `memset`.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
pub(crate) fn no_sums<E: Real>() -> [E; 8] {
    [if cfg!(target_os = "none") { core::hint::black_box(E::ZERO) } else { E::ZERO }; 8]
}

/// The sum of so many terms in the order of [`Backend::sum_pairs`], which asks for the terms of one partial sum after the other, in the
/// order in which the tree takes them: two numbers live meanwhile, and four lie on the stack, instead of eight.
#[inline(always)]
pub(crate) fn sum_of<E: Real>(count: usize, mut term: impl FnMut(usize) -> E) -> E {
    // Sums of 1, 2 and 4 partial sums that wait for as many others. The last stays zero: each sum starts from it, so that no register
    // holds a zero.
    let mut waiting = [E::ZERO; 4];
    let mut i = 0;
    loop {
        let mut sum = waiting[3];
        while i < count {
            sum += term(i);
            i += 8;
        }
        // Partial sums come in the order 0 4 2 6 1 5 3 7: as numbers do whose bits are read from the other end.
        let (mut lane, mut bit) = (i % 8, 4);
        for place in &mut waiting[..3] {
            if lane & bit == 0 {
                *place = sum;
                break;
            }
            sum = *place + sum;
            (lane, bit) = (lane - bit, bit / 2);
        }
        if bit == 0 {
            return sum;
        }
        i = lane + bit;
    }
}

/// The sum of the partial sums of [`Backend::sum_pairs`].
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline(always))]
pub(crate) fn tree<E: Real>([l0, l1, l2, l3, l4, l5, l6, l7]: [E; 8]) -> E {
    ((l0 + l4) + (l2 + l6)) + ((l1 + l5) + (l3 + l7))
}

/// Multiply, then add; never fused, never reassociated, functions made of the same operations: the same bits on every target.
#[derive(Clone, Copy, Debug)]
pub struct Strict<T>(PhantomData<T>);

impl<T: Real> Backend for Strict<T> {
    type Elem = T;
    type Fused = Self;
}

/// As [`Strict`], but on a machine with fused multiply-add the terms of matrix products, and so of linear layers and
/// convolutions, are rounded once, after the addition, instead of twice.
///
/// A product of `k` terms is off by at most `k u / (1 - k u)` times the sum of its terms' magnitudes, where `u` is half a unit
/// in the last place of 1 (6e-8 in `f32`); for [`Strict`] the bound is `k + 1` instead of `k`. The same program on the same
/// machine gives the same bits, and so do two machines that both have the operation, whatever their vectors. It is used on
/// `aarch64` and on `x86_64` (found out when the program runs), with `std`; elsewhere this is [`Strict`] under another name.
///
/// ```
/// use slabgrad::backend::Fast;
/// use slabgrad::prelude::*;
///
/// const fn net<const N: usize>() -> Graph<Fast<f32>> {
///     let mut g = Graph::new();
///     let x = g.input::<R2<N, 4>>("x");
///     let y: Var<R2<N, 2>> = g.linear("fc", x);
///     g.output("y", y);
///     g
/// }
/// program!(static INFER: Program<Fast<f32>> = net::<1>().infer());
/// # assert_eq!(INFER.params_len(), 10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fast<T>(PhantomData<T>);

impl<T: Real> Backend for Fast<T> {
    type Elem = T;
    type Fused = Fused<T>;
}

/// The arithmetic of [`Fast`] where the machine fuses. It is no backend to name: elsewhere a fused operation is a slow
/// function.
#[derive(Clone, Copy, Debug)]
pub struct Fused<T>(PhantomData<T>);

impl<T: Real> Backend for Fused<T> {
    type Elem = T;
    type Fused = Self;

    #[inline(always)]
    fn mul_add(a: T, b: T, c: T) -> T {
        a.fused_mul_add(b, c)
    }
}

/// Whether the arithmetic is [`Strict`] or [`Fast`], so that its terms may be written in instructions.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_ours<B: Backend>() -> bool {
    let is = |backend| TypeId::of::<B>() == backend;
    is_fused::<B>() || is(TypeId::of::<Strict<B::Elem>>()) || is(TypeId::of::<Fast<B::Elem>>())
}

/// Whether it is [`Fast`] on a machine that fuses.
pub(crate) fn is_fused<B: Backend>() -> bool {
    TypeId::of::<B>() == TypeId::of::<Fused<B::Elem>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_takes_eight_strided_partial_sums_in_a_fixed_tree() {
        // 2^24 absorbs a single 1 in f32; which ones survive shows the order.
        let x: [f32; 19] = core::array::from_fn(|i| if i == 0 { 16_777_216.0 } else { 1.0 });
        let lane = |l: usize| (l..19).step_by(8).fold(0.0, |s, i| s + x[i]);
        let l: [f32; 8] = core::array::from_fn(lane);
        let want = ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
        assert_eq!(Strict::<f32>::sum(&x).to_bits(), want.to_bits());
        assert_eq!(sum_of(19, |i| x[i]).to_bits(), want.to_bits());
    }

    #[test]
    fn sigmoid_is_stable_over_the_whole_range() {
        for x in [-1e30_f32, -120.0, -88.0, -1.0, 0.0, 1.0, 120.0, 1e30] {
            let want = 1.0 / (1.0 + (-f64::from(x)).exp());
            let got = f64::from(Strict::<f32>::sigmoid(x));
            assert!((got - want).abs() <= 2e-7 * want + 1e-45, "sigmoid({x}) = {got}, expected {want}");
        }
        assert!(Strict::<f32>::sigmoid(f32::NAN).is_nan());
    }
}
