//! What the element-wise operations of one operand share: `y = f(x)` in place where nothing else reads `x`, and
//! `dx = dy f'(x)` in place of `dy`.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads};
use crate::backend::dispatch::{Kernel, dispatch};
use crate::backend::threads::{ELEMENT, ELEMENTS_OF_A_PART, Each, parts, share};
use crate::backend::{Backend, Real};
use core::marker::PhantomData;

/// An element-wise function. Its settings are scalars in the node's arguments.
pub(super) trait Unary<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;
    /// What the derivative is told from: the output unless this says [`Reads::input`] of 0, or [`Reads::NONE`]. With the
    /// output or nothing, `f` overwrites its input.
    const READS: Reads = Reads::OUTPUT;
    /// Whether `dx` is `dy` as it stands.
    const PASSES: bool = false;

    /// `y = f(x)`.
    fn value(x: B::Elem, args: &Args) -> B::Elem;

    /// `dy f'(x)`, from what is read: `y`, `x`, or 0.
    fn gradient(read: B::Elem, dy: B::Elem, args: &Args) -> B::Elem;
}

/// The table of `F`.
pub(super) const fn op<B: Backend, F: Unary<B>>() -> &'static Op<B> {
    const { &table::<B, F>() }
}

/// The same as a value.
pub(super) const fn table<B: Backend, F: Unary<B>>() -> Op<B> {
    let x = if F::PASSES { Gradient::Pass } else { Gradient::over_dy(backward::<B, F>, F::READS) };
    Op::new(F::NAME, forward::<B, F>, [x, Gradient::None, Gradient::None]).over(Over::Output)
}

/// The number as an element.
#[inline(always)]
pub(super) fn number<E: Real>(number: f64) -> E {
    E::choose(number as f32, number)
}

fn forward<B: Backend, F: Unary<B>>(call: ForwardCall<'_, B::Elem>) {
    map::<B, F>(call.y, call.args);
}

/// `y = f(y)`.
pub(super) fn map<B: Backend, F: Unary<B>>(y: &mut [B::Elem], args: &Args) {
    // A copy, so that the loop need not read them again after every element that it writes.
    let args = *args;
    share(parts(ELEMENT * y.len()), ELEMENTS_OF_A_PART, 0..y.len(), Each(y, 1), &|_, Each(y, _)| {
        dispatch::<B, _>(Values::<B, F> { y, args, function: PhantomData });
    });
}

struct Values<'a, B: Backend, F> {
    y: &'a mut [B::Elem],
    args: Args,
    function: PhantomData<F>,
}

impl<B: Backend, F: Unary<B>> Kernel<B::Elem> for Values<'_, B, F> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = B::Elem>, const VECTOR: usize>(self) {
        if cfg!(target_family = "wasm") {
            return in_blocks(self.y, None, &self.args, |y, _, args| {
                y.iter_mut().for_each(|y| *y = F::value(*y, args));
            });
        }
        for y in self.y {
            *y = F::value(*y, &self.args);
        }
    }
}

fn backward<B: Backend, F: Unary<B>>(call: BackwardCall<'_, B::Elem>) {
    let args = *call.args;
    if F::READS == Reads::NONE {
        call.dx.iter_mut().for_each(|dx| *dx = F::gradient(B::Elem::ZERO, *dx, &args));
        return;
    }
    let read = if F::READS.has(Reads::OUTPUT) { call.y } else { call.x[0] };
    map_gradient::<B, F>(call.dx, read, args);
}

/// `dx = dx f'`, from what the derivative is told from.
pub(super) fn map_gradient<B: Backend, F: Unary<B>>(dx: &mut [B::Elem], read: &[B::Elem], args: Args) {
    let (len, data) = (read.len(), (Each(dx, 1), Each(read, 1)));
    share(parts(ELEMENT * len), ELEMENTS_OF_A_PART, 0..len, data, &|_, (Each(dx, _), Each(read, _))| {
        dispatch::<B, _>(Gradients::<B, F> { dx, read, args, function: PhantomData });
    });
}

struct Gradients<'a, B: Backend, F> {
    dx: &'a mut [B::Elem],
    read: &'a [B::Elem],
    args: Args,
    function: PhantomData<F>,
}

impl<B: Backend, F: Unary<B>> Kernel<B::Elem> for Gradients<'_, B, F> {
    type Output = ();

    #[inline(always)]
    fn run<C: Backend<Elem = B::Elem>, const VECTOR: usize>(self) {
        if cfg!(target_family = "wasm") {
            return in_blocks(self.dx, Some(self.read), &self.args, |dx, read, args| {
                dx.iter_mut().zip(read).for_each(|(dx, &read)| *dx = F::gradient(read, *dx, args));
            });
        }
        for (dx, &read) in self.dx.iter_mut().zip(self.read) {
            *dx = F::gradient(read, *dx, &self.args);
        }
    }
}

/// Elements of a block.
const BLOCK: usize = 128;

/// A function of a block and of what is read beside it.
type OfBlock<E> = fn(&mut [E; BLOCK], &[E; BLOCK], &Args);

/// Hands out whole blocks; the last one is filled up with zeros. So a function is compiled to one loop of vectors: where it is
/// called for any number of elements, there is a second loop for what is left, and modules for the browser are to be small.
#[inline(never)]
fn in_blocks<E: Real>(y: &mut [E], read: Option<&[E]>, args: &Args, of_block: OfBlock<E>) {
    let zeros = [E::ZERO; BLOCK];
    let mut reads = read.unwrap_or_default().chunks(BLOCK);
    for y in y.chunks_mut(BLOCK) {
        let read = if read.is_some() { reads.next().unwrap_or_default() } else { &zeros };
        if let (Some(y), Some(read)) = (y.first_chunk_mut(), read.first_chunk()) {
            of_block(y, read, args);
        } else {
            let (mut last, mut last_read) = (zeros, zeros);
            last.iter_mut().zip(&*y).for_each(|(last, &y)| *last = y);
            last_read.iter_mut().zip(read).for_each(|(last, &read)| *last = read);
            of_block(&mut last, &last_read, args);
            y.iter_mut().zip(last).for_each(|(y, last)| *y = last);
        }
    }
}

/// `dx = product(dy, f'(x))`, in place of `dy`, for a derivative that is computed many elements per call.
#[inline(always)]
pub(super) fn gradient_by_slices<E: Real>(
    x: &[E],
    dx: &mut [E],
    derivative: impl Fn(&mut [E]),
    product: impl Fn(E, E) -> E,
) {
    // The derivative is computed in place, and `x` is not to be written.
    const LEN: usize = 32;
    for (x, dx) in x.chunks(LEN).zip(dx.chunks_mut(LEN)) {
        let mut block = [E::ZERO; LEN];
        let block = block.get_mut(..x.len()).unwrap_or_default();
        block.iter_mut().zip(x).for_each(|(d, &x)| *d = x);
        derivative(block);
        dx.iter_mut().zip(block).for_each(|(dx, d)| *dx = product(*dx, *d));
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::{BLOCK, in_blocks};
    use crate::backend::Strict;

    type Table = &'static Op<Strict<f32>>;

    /// The output and the gradient of its sum, by the kernels alone: programs refuse inputs that are not finite.
    fn run(op: Table, args: &Args, x: f32) -> (f32, f32) {
        let (mut y, mut dx) = ([x], [1.0]);
        run_slice(op, args, &[x], &mut y, &mut dx);
        (y[0], dx[0])
    }

    /// From `y` that holds `x`, and `dx` that holds `dy`.
    fn run_slice(op: Table, args: &Args, x: &[f32], y: &mut [f32], dx: &mut [f32]) {
        (op.forward)(ForwardCall { args, x: [&[]; 3], y, saved: &mut [], scratch: &mut [], state: &[] });
        if let Gradient::Kernel { run, .. } = op.backward[0] {
            let (x, scratch) = ([x, &[], &[]], &mut [][..]);
            run(BackwardCall { args, x, y, saved: &[], dy: &[], dx, add: false, scratch, first_row: 0 });
        }
    }

    #[test]
    fn blocks_are_filled_up_and_hold_every_element() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let numbers = |offset: usize| (0..len).map(|i| (i + offset) as f32).collect::<std::vec::Vec<_>>();
            let (mut alone, mut beside, read) = (numbers(1), numbers(1), numbers(5));
            in_blocks(&mut alone, None, &Args::NONE, |y, _, _| y.iter_mut().for_each(|y| *y += 0.5));
            in_blocks(&mut beside, Some(&read), &Args::NONE, |y, read, _| {
                y.iter_mut().zip(read).for_each(|(y, read)| *y = *y * 10.0 + read);
            });
            assert!(alone.iter().zip(numbers(1)).all(|(&y, x)| y == x + 0.5), "{len}: {alone:?}");
            assert!(
                beside.iter().zip(numbers(1).iter().zip(&read)).all(|(&y, (x, read))| y == x * 10.0 + read),
                "{len}"
            );
        }
    }

    fn activations() -> [(Table, Args); 13] {
        let none = Args::NONE;
        let x = Shape::new([1]);
        [
            (relu::op(), none),
            (relu6::op(), none),
            (sigmoid::op(), none),
            (tanh::op(), none),
            (leaky_relu::op(), leaky_relu::spec(x, 0.01).unwrap().args),
            (elu::op(), elu::spec(x, 1.0).unwrap().args),
            (softplus::op(), softplus::spec(x, 1.0, softplus::THRESHOLD).unwrap().args),
            (gelu::op_erf(), none),
            (gelu::op_tanh(), none),
            (silu::op(), none),
            (mish::op(), none),
            (hardsigmoid::op(), none),
            (hardswish::op(), none),
        ]
    }

    #[test]
    fn activations_are_finite_over_the_whole_range() {
        for (op, args) in activations() {
            for x in [0.0, 1e-45, 1e-38, 1.0, 88.0, 89.0, 104.0, 1e4, 1e19, 1e30, f32::MAX] {
                for x in [x, -x] {
                    let (y, dx) = run(op, &args, x);
                    assert!(y.is_finite() && dx.abs() < 1.2, "{} of {x}: {y}, gradient {dx}", op.name);
                }
            }
        }
    }

    #[test]
    fn a_nan_goes_through() {
        let x = Shape::new([1]);
        let others: [(Table, Args); 20] = [
            (neg::op(), Args::NONE),
            (abs::op(), Args::NONE),
            (square::op(), Args::NONE),
            (sqrt::op(), Args::NONE),
            (rsqrt::op(), Args::NONE),
            (reciprocal::op(), Args::NONE),
            (exp::op(), Args::NONE),
            (expm1::op(), Args::NONE),
            (log::op(), Args::NONE),
            (log1p::op(), Args::NONE),
            (sin::op(), Args::NONE),
            (cos::op(), Args::NONE),
            (erf::op(), Args::NONE),
            (clamp::op(), clamp::spec(x, -1.0, 1.0).unwrap().args),
            (hardtanh::op(), hardtanh::spec(x, -1.0, 1.0).unwrap().args),
            (add_scalar::op(), add_scalar::spec(x, 1.0).args),
            (mul_scalar::op(), mul_scalar::spec(x, 2.0).args),
            (scale_shift::op(), scale_shift::spec(x, 2.0, 1.0).args),
            (pow_scalar::op(), pow_scalar::spec(x, 3.0).args),
            (pow_scalar::op(), pow_scalar::spec(x, 0.5).args),
        ];
        for (op, args) in activations().into_iter().chain(others) {
            assert!(run(op, &args, f32::NAN).0.is_nan(), "{} of NaN", op.name);
        }
    }

    #[test]
    fn sin_and_cos_of_a_slice_are_those_of_its_elements() {
        // Both sides of the limit up to which neighbours are computed together, and what is left of a block.
        let x: [f32; 75] = core::array::from_fn(|i| (i as f32 - 20.0) * if i % 40 == 39 { 1e5 } else { 0.7 });
        let all: [(Table, fn(f32) -> f32, fn(f32) -> f32); 2] = [
            (sin::op(), Strict::<f32>::sin, Strict::<f32>::cos),
            (cos::op(), Strict::<f32>::cos, |x| -Strict::<f32>::sin(x)),
        ];
        for (op, value, derivative) in all {
            let (mut y, mut dx) = (x, [3.0; 75]);
            run_slice(op, &Args::NONE, &x, &mut y, &mut dx);
            assert_eq!(y, x.map(value), "{}", op.name);
            assert_eq!(dx, x.map(|x| 3.0 * derivative(x)), "gradient of {}", op.name);
        }
    }
}
