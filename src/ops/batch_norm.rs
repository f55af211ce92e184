//! Batch normalisation of `x` `[n, c]`, `[n, c, l]` or `[n, c, h, w]` (Ioffe and Szegedy, 2015; PyTorch's `nn.BatchNorm1d`
//! and `nn.BatchNorm2d`): `y = (x - mean) / √(variance + ε) w + b` for each channel.
//!
//! - **Training** ([`op`]): mean and (biased) variance are those of the batch, and the running statistics in the state move
//!   towards them: `running = (1 - momentum) running + momentum batch`. The running variance takes the unbiased variance
//!   of the batch as PyTorch does, or the biased one as nanograd does. A batch with a single element to a channel has no
//!   unbiased variance and leaves the running one as it was.
//! - **Inference**, and evaluation within training ([`op_eval`], for a frozen backbone): both are the running ones, which
//!   stay as they are.
//!
//! With `x̂ = (x - mean) s`, `s = 1 / √(variance + ε)` and n elements to a channel: `db = Σ dy`, `dw = Σ dy x̂`, and in
//! training `dx = w s (dy - db / n - x̂ dw / n)`, in evaluation `dx = w s dy`. Sums over a plane take 8 partial sums, those over
//! samples go in ascending order. In place where nothing else reads `x`, as in inference.

use super::norm::{Affine, check_affine, check_epsilon, record};
use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec, planes};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Var};
use crate::init::Init;
use crate::shape::{Dims, R4, Shape};
use crate::tape::{self, Call, Storage, Tape};

/// The table that trains with the statistics of the batch; weight and bias are optional.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient_x::<B>, Reads::input(0).and(Reads::input(1)).and(Reads::SAVED));
        &table("batch_norm", forward::<B>, x)
    }
}

/// The table that trains with the running statistics, and leaves them as they are.
#[must_use]
pub const fn op_eval<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient_x_eval::<B>, Reads::input(1).and(Reads::SAVED));
        &table("batch_norm_eval", forward_eval::<B>, x)
    }
}

const fn table<B: Backend>(name: &'static str, forward: super::Forward<B>, x: Gradient<B>) -> Op<B> {
    let weight = Gradient::kernel(gradient_weight::<B>, Reads::input(0).and(Reads::SAVED));
    let bias = Gradient::kernel(gradient_bias::<B>, Reads::NONE);
    Op { infer: Some(infer::<B>), ..Op::new(name, forward, [x, weight, bias]).over(Over::Output) }
}

/// `[n, c]`, `[n, c, l]` or `[n, c, h, w]`; the output has the same shape. Weight and bias, where they are there, have shape
/// `[c]`. The state is the running mean, then the running variance, `[c]` each.
///
/// # Errors
/// When `x` has another number of axes, weight or bias have another shape, `epsilon` is negative, or the momentum is not in
/// 0 to 1.
pub const fn spec(
    x: Shape,
    weight: Option<Shape>,
    bias: Option<Shape>,
    settings: BatchNorm,
) -> Result<Spec, ShapeError> {
    let (op, BatchNorm { epsilon, momentum, .. }) = ("batch_norm", settings);
    if x.rank() < 2 || x.rank() > 4 {
        let expected = "[n, c], [n, c, l] or [n, c, h, w]";
        return Err(ShapeError::Rank { op, operand: "the input", expected, found: x });
    }
    if !(momentum >= 0.0 && momentum <= 1.0) {
        return Err(ShapeError::Setting { op, rule: "the momentum is between 0 and 1", found: momentum });
    }
    let channels = x.axis(1);
    match (check_affine(op, [weight, bias], Shape::new([channels])), check_epsilon(op, epsilon)) {
        (Ok(()), Ok(())) => {}
        (Err(error), _) | (_, Err(error)) => return Err(error),
    }
    let args = Args::new(&[channels, x.product(2, x.rank()), settings.biased as usize]);
    let args = args.with_scalar(3, epsilon).with_scalar(6, momentum);
    // Forward keeps the new running statistics, then mean and scale for backward.
    let spec = Spec { saved: 4 * channels, scratch: channels, state: 2 * channels, ..Spec::new(x).args(args) };
    Ok(Spec { scratch_backward: [2 * channels, 0, 0], ..spec })
}

/// What a batch normalisation has beside the shape that it works on.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm {
    pub(crate) epsilon: f64,
    pub(crate) momentum: f64,
    pub(crate) biased: bool,
    pub(crate) eval: bool,
    pub(crate) affine: Affine,
}

impl BatchNorm {
    /// With ε = 1e-5, momentum 0.1, a weight and a bias; the running variance is unbiased.
    #[must_use]
    pub const fn new() -> Self {
        Self { epsilon: 1e-5, momentum: 0.1, biased: false, eval: false, affine: Affine::WeightAndBias }
    }

    /// With this ε, which keeps a variance of 0 from being divided by.
    #[must_use]
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// With this weight of the current batch in the running statistics.
    #[must_use]
    pub const fn momentum(self, momentum: f64) -> Self {
        Self { momentum, ..self }
    }

    /// With a running variance of the biased variances of the batches, as nanograd has it.
    #[must_use]
    pub const fn biased_running_var(self) -> Self {
        Self { biased: true, ..self }
    }

    /// In training too, normalises by the running statistics and leaves them as they are.
    #[must_use]
    pub const fn eval(self) -> Self {
        Self { eval: true, ..self }
    }

    /// Without weight and bias.
    #[must_use]
    pub const fn without_affine(self) -> Self {
        Self { affine: Affine::Nothing, ..self }
    }
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// Batch normalisation of `[n, c]` or `[n, c, l]`, with parameters `name.weight`, which starts as ones, and `name.bias`,
    /// as zeros, and states `name.running_mean`, as zeros, and `name.running_var`, as ones; all `[c]`.
    ///
    /// # Panics
    /// When `x` has another number of axes.
    #[track_caller]
    pub const fn batch_norm1d<S: Dims>(&mut self, name: &'static str, x: Var<S>) -> Var<S> {
        self.batch_norm1d_with(name, x, BatchNorm::new())
    }

    /// The same with these settings.
    ///
    /// # Panics
    /// As [`Graph::batch_norm1d`].
    #[track_caller]
    pub const fn batch_norm1d_with<S: Dims>(&mut self, name: &'static str, x: Var<S>, settings: BatchNorm) -> Var<S> {
        if S::SHAPE.rank() > 3 {
            let (operand, expected) = ("the input", "[n, c] or [n, c, l]");
            let error = ShapeError::Rank { op: "batch_norm1d", operand, expected, found: S::SHAPE };
            return self.record(name, op(), &[x.id()], Err(error));
        }
        self.batch_norm(name, x, settings)
    }

    /// Batch normalisation of images, with parameters `name.weight`, which starts as ones, and `name.bias`, as zeros, and
    /// states `name.running_mean`, as zeros, and `name.running_var`, as ones; all `[C]`.
    #[track_caller]
    pub const fn batch_norm2d<const A: usize, const C: usize, const H: usize, const W: usize>(
        &mut self,
        name: &'static str,
        x: Var<R4<A, C, H, W>>,
    ) -> Var<R4<A, C, H, W>> {
        self.batch_norm(name, x, BatchNorm::new())
    }

    /// The same with these settings.
    #[track_caller]
    pub const fn batch_norm2d_with<const A: usize, const C: usize, const H: usize, const W: usize>(
        &mut self,
        name: &'static str,
        x: Var<R4<A, C, H, W>>,
        settings: BatchNorm,
    ) -> Var<R4<A, C, H, W>> {
        self.batch_norm(name, x, settings)
    }

    #[track_caller]
    const fn batch_norm<S: Dims>(&mut self, name: &'static str, x: Var<S>, settings: BatchNorm) -> Var<S> {
        let channels = Shape::new([S::SHAPE.axis(1)]);
        let [weight, bias] = settings.affine.shapes(channels);
        let spec = spec(x.shape(), weight, bias, settings);
        let mean = self.state(name, "running_mean", channels, Init::Zeros);
        self.state(name, "running_var", channels, Init::Ones);
        let op = if settings.eval { op_eval() } else { op() };
        let y = record(self, name, op, x.id(), [weight, bias], spec);
        self.with_state(mean);
        y
    }
}

crate::tape::methods! {
    /// Batch normalisation of `x` `[n, c]`, `[n, c, l]` or `[n, c, h, w]` with weight and bias `[c]`, and statistics as
    /// [`Tape::batch_norm_statistics`] makes them, which backward moves towards the
    /// batch's; in [evaluation](BatchNorm::eval) it normalises by them and they stay. Whether the settings have weight and
    /// bias means nothing here.
    ///
    /// A fault where shapes or settings do not fit, `statistics` is no state of twice the channels, or there is a bias without
    /// a weight.
    batch_norm(x; weight, bias)(statistics: tape::Handle, settings: BatchNorm) => {
        let op = if settings.eval { op_eval() } else { op() };
        Call::new(op, spec(x, weight, bias, settings)).with_state(statistics)
    }
}

impl<S: Storage> Tape<S> {
    /// The state of a [batch normalisation](Tape::batch_norm), `[2, channels]`: a running mean of zeros, then a running variance
    /// of ones.
    ///
    /// A fault where there is no room.
    #[track_caller]
    pub fn batch_norm_statistics(&mut self, channels: usize) -> tape::Handle {
        let statistics = self.zero_state(Shape::from([2, channels]));
        self.value_mut(statistics).iter_mut().skip(channels).for_each(|variance| *variance = Real::ONE);
        statistics
    }
}

/// The arguments of the kernels, read once.
struct Settings<E> {
    channels: usize,
    plane: usize,
    biased: bool,
    epsilon: E,
    momentum: E,
}

impl<E: Real> Settings<E> {
    fn new(args: &Args) -> Self {
        let [channels, plane, biased, ..] = args.lengths();
        Self { channels, plane, biased: biased != 0, epsilon: args.scalar::<E, 3>(), momentum: args.scalar::<E, 6>() }
    }

    /// The four things that forward keeps: the new running mean and variance, the mean, and the scale.
    fn kept<'s>(&self, saved: &'s mut [E]) -> [&'s mut [E]; 4] {
        let mut parts = saved.chunks_exact_mut(self.channels.max(1));
        core::array::from_fn(|_| parts.next().unwrap_or_default())
    }

    /// The mean and the scale among them.
    fn mean_and_scale<'s>(&self, saved: &'s [E]) -> (&'s [E], &'s [E]) {
        let mut parts = saved.chunks_exact(self.channels.max(1)).skip(2);
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    }

    /// The running mean and variance.
    fn running<'s>(&self, state: &'s [E]) -> (&'s [E], &'s [E]) {
        state.split_at_checked(self.channels).unwrap_or_default()
    }

    fn scale(&self, variance: E) -> E {
        E::ONE / (variance + self.epsilon).sqrt()
    }

    /// `x̂ w + b` in place of `x`.
    fn normalise(&self, y: &mut [E], (mean, scale): (&[E], &[E]), weight: &[E], bias: &[E]) {
        planes::subtract(y, mean, self.plane);
        planes::multiply(y, scale, self.plane);
        planes::multiply(y, weight, self.plane);
        planes::add(y, bias, self.plane);
    }

    /// Adds to `sums`, for each channel, the sum of `f(sum, mean, x, dy)`.
    #[inline(always)]
    fn add_sums<B: Backend<Elem = E>>(
        &self,
        sums: &mut [E],
        mean: &[E],
        x: &[E],
        dy: &[E],
        f: impl Fn(E, E, E, E) -> E,
    ) {
        let (plane, row) = (self.plane.max(1), (self.channels * self.plane).max(1));
        for (x, dy) in x.chunks_exact(row).zip(dy.chunks_exact(row)) {
            let planes = x.chunks_exact(plane).zip(dy.chunks_exact(plane));
            for ((sum, &mean), (x, dy)) in sums.iter_mut().zip(mean).zip(planes) {
                *sum += planes::sum_pairs::<B>(x, dy, |sum, x, dy| f(sum, mean, x, dy));
            }
        }
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let [new_mean, new_variance, mean, scale] = settings.kept(call.saved);
    let n = call.y.len() / settings.channels.max(1);
    let (count, one) = (B::Elem::from_usize(n), B::Elem::ONE);

    mean.fill(B::Elem::ZERO);
    planes::add_sums::<B>(mean, call.y, settings.plane);
    mean.iter_mut().for_each(|mean| *mean = *mean / count);
    // First the sums of squares lie where the scale will.
    scale.fill(B::Elem::ZERO);
    settings.add_sums::<B>(scale, mean, call.y, call.y, |sum, mean, x, _| B::mul_add(x - mean, x - mean, sum));

    let momentum = settings.momentum;
    let moved = |old: B::Elem, batch: B::Elem| (one - momentum) * old + momentum * batch;
    let (old_mean, old_variance) = settings.running(call.state);
    for ((new, &old), &mean) in new_mean.iter_mut().zip(old_mean).zip(&*mean) {
        *new = moved(old, mean);
    }
    let divisor = if settings.biased { count } else { count - one };
    for ((new, &old), &squares) in new_variance.iter_mut().zip(old_variance).zip(&*scale) {
        *new = if n == 1 && !settings.biased { old } else { moved(old, squares / divisor) };
    }
    scale.iter_mut().for_each(|scale| *scale = settings.scale(*scale / count));
    settings.normalise(call.y, (mean, scale), call.x[1], call.x[2]);
}

fn forward_eval<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let [new_mean, new_variance, mean, scale] = settings.kept(call.saved);
    let (old_mean, old_variance) = settings.running(call.state);
    for (to, from) in [(new_mean, old_mean), (&mut *mean, old_mean), (new_variance, old_variance)] {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    }
    scale.iter_mut().zip(old_variance).for_each(|(scale, &variance)| *scale = settings.scale(variance));
    settings.normalise(call.y, (mean, scale), call.x[1], call.x[2]);
}

fn infer<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let (mean, variance) = settings.running(call.state);
    let scale = call.scratch;
    scale.iter_mut().zip(variance).for_each(|(scale, &variance)| *scale = settings.scale(variance));
    settings.normalise(call.y, (mean, scale), call.x[1], call.x[2]);
}

fn gradient_x<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let (mean, scale) = settings.mean_and_scale(call.saved);
    let ([x, weight, _], dx) = (call.x, call.dx);
    let count = B::Elem::from_usize(dx.len() / settings.channels.max(1));

    let (shift, slope) = call.scratch.split_at_mut_checked(settings.channels).unwrap_or_default();
    shift.fill(B::Elem::ZERO);
    planes::add_sums::<B>(shift, dx, settings.plane);
    shift.iter_mut().for_each(|shift| *shift = *shift / count);
    slope.fill(B::Elem::ZERO);
    settings.add_sums::<B>(slope, mean, x, dx, |sum, mean, x, dy| B::mul_add(dy, x - mean, sum));
    slope.iter_mut().zip(scale).for_each(|(slope, &scale)| *slope = *slope * scale * scale / count);

    let (plane, row) = (settings.plane.max(1), (settings.channels * settings.plane).max(1));
    for (dx, x) in dx.chunks_exact_mut(row).zip(x.chunks_exact(row)) {
        let planes = dx.chunks_exact_mut(plane).zip(x.chunks_exact(plane));
        for (((dx, x), &mean), (&shift, &slope)) in planes.zip(mean).zip(shift.iter().zip(&*slope)) {
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = *dx - shift - (x - mean) * slope;
            }
        }
    }
    planes::multiply(dx, scale, settings.plane);
    planes::multiply(dx, weight, settings.plane);
}

fn gradient_x_eval<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let (_, scale) = settings.mean_and_scale(call.saved);
    planes::multiply(call.dx, scale, settings.plane);
    planes::multiply(call.dx, call.x[1], settings.plane);
}

fn gradient_weight<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    let settings = Settings::<B::Elem>::new(call.args);
    let (mean, scale) = settings.mean_and_scale(call.saved);
    let (plane, row) = (settings.plane.max(1), (settings.channels * settings.plane).max(1));
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    for (x, dy) in call.x[0].chunks_exact(row).zip(call.dy.chunks_exact(row)) {
        let planes = x.chunks_exact(plane).zip(dy.chunks_exact(plane));
        for ((dw, (x, dy)), (&mean, &scale)) in call.dx.iter_mut().zip(planes).zip(mean.iter().zip(scale)) {
            *dw += planes::sum_pairs::<B>(dy, x, |sum, dy, x| B::mul_add(dy, (x - mean) * scale, sum));
        }
    }
}

fn gradient_bias<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    if !call.add {
        call.dx.fill(B::Elem::ZERO);
    }
    let [_, plane, ..] = call.args.lengths();
    planes::add_sums::<B>(call.dx, call.dy, plane);
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::super::testing::check;
    use super::*;
    use crate::backend::Strict;
    use crate::testing::run_with_state;

    #[test]
    fn values_and_gradients() {
        // Two samples with two channels, which become -1 and 1; ε = 0.
        let (x, w, b) = ([-1.0, 4.0, 3.0, 6.0], [2.0, 3.0], [10.0, 20.0]);
        let shape = Some(Shape::new([2]));
        let spec = spec(Shape::new([2, 2]), shape, shape, BatchNorm::new().epsilon(0.0)).unwrap();
        check(op(), spec, &[&x, &w, &b], &[8.0, 17.0, 12.0, 23.0], &[&[0.0; 4], &[0.0; 2], &[2.0; 2]]);
    }

    /// The state after a step on two samples of two channels from running means 1, 2 and variances 3, 4.
    fn state_after(op: &'static Op<Strict<f64>>, settings: BatchNorm, x: &[f64]) -> Vec<f64> {
        let spec = spec(Shape::new([x.len() / 2, 2]), None, None, settings.epsilon(0.0).momentum(0.25)).unwrap();
        run_with_state(op, spec, &[x], &[1.0, 2.0, 3.0, 4.0], &vec![1.0; x.len()]).state
    }

    #[test]
    fn running_statistics_move_towards_the_batch() {
        // Means 1 and 5, biased variances 4 and 1, unbiased ones 8 and 2.
        let x = [-1.0, 4.0, 3.0, 6.0];
        assert_eq!(state_after(op(), BatchNorm::new(), &x), [1.0, 2.75, 4.25, 3.5]);
        assert_eq!(state_after(op(), BatchNorm::new().biased_running_var(), &x), [1.0, 2.75, 3.25, 3.25]);
        assert_eq!(state_after(op_eval(), BatchNorm::new(), &x), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_single_element_has_no_unbiased_variance() {
        assert_eq!(state_after(op(), BatchNorm::new(), &[5.0, 6.0]), [2.0, 3.0, 3.0, 4.0]);
        assert_eq!(state_after(op(), BatchNorm::new().biased_running_var(), &[5.0, 6.0]), [2.0, 3.0, 2.25, 3.0]);
    }

    #[test]
    fn evaluation_normalises_by_the_state() {
        let shape = Some(Shape::new([2]));
        let spec = spec(Shape::new([1, 2]), shape, shape, BatchNorm::new().epsilon(0.0)).unwrap();
        let state = [1.0, 2.0, 4.0, 25.0];
        let inputs: [&[f64]; 3] = [&[5.0, 12.0], &[3.0, 10.0], &[0.5, 0.25]];
        let outcome = run_with_state(op_eval::<Strict<f64>>(), spec, &inputs, &state, &[1.0, 2.0]);
        assert_eq!(outcome.y, [6.5, 20.25]);
        assert_eq!(outcome.gradients, [[1.5, 4.0], [2.0, 4.0], [1.0, 2.0]]);
    }
}
