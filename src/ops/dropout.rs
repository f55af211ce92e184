//! Dropout (Srivastava et al., 2014): each element is 0 with probability p and `x / (1 - p)` otherwise; in inference `y = x`,
//! in place. `dx` is `dy` under the same mask.
//!
//! The mask is a pure function of a seed, the number of the training step and the element's place, in 32-bit integers, and
//! so the same on every target and in every precision: Philox4x32-10 (Salmon et al., *Parallel random numbers: as easy as
//! 1, 2, 3*, 2011), whose key is the seed and whose counter is (place / 4, stream, step). An element is dropped where the
//! upper 24 bits of its word lie below p 2^24. Backward makes the mask again instead of keeping it.
//!
//! The step is counted in the state, in two elements of 24 bits each, the lower one first, which single precision holds
//! exactly; whoever wants other masks with the same seed sets the upper one. It advances with every training step that
//! succeeds.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, Id, Kind, Name, Var};
use crate::init::Init;
use crate::shape::{Dims, Shape};
use crate::tape::{self, Call, Storage, Tape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let x = Gradient::over_dy(gradient::<B>, Reads::SAVED);
        let table = Op::new("dropout", forward::<B>, [x, Gradient::None, Gradient::None]).over(Over::Output);
        &Op { infer: Some(infer::<B>), ..table }
    }
}

/// Any shape; the output has the same. The state is the counter of steps, `[2]`. Operations with the same seed have
/// different masks where their `stream` differs.
///
/// # Errors
/// When the probability is not in 0 to 1.
pub const fn spec(x: Shape, settings: Dropout, stream: u32) -> Result<Spec, ShapeError> {
    let p = settings.p;
    if !(p >= 0.0 && p <= 1.0) {
        let rule = "the probability is between 0 and 1";
        return Err(ShapeError::Setting { op: "dropout", rule, found: p });
    }
    let threshold = (p * WORD as f64 + 0.5) as u32;
    let scale = if threshold == WORD { 0.0 } else { 1.0 / (1.0 - p) };
    let mut args = Args::NONE.with_scalar(4, scale);
    args.0[0] = threshold;
    args.0[1] = stream;
    args.0[2] = settings.seed as u32;
    args.0[3] = (settings.seed >> 32) as u32;
    Ok(Spec { saved: COUNTER, state: COUNTER, ..Spec::new(x).args(args) })
}

/// Elements of the counter.
const COUNTER: usize = 2;
/// One more than the largest number in an element of the counter, and than that of which a threshold is a part.
const WORD: u32 = 1 << 24;

/// What a dropout has.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    pub(crate) p: f64,
    pub(crate) seed: u64,
}

impl Dropout {
    /// Drops elements with probability `p`, from seed 0.
    #[must_use]
    pub const fn new(p: f64) -> Self {
        Self { p, seed: 0 }
    }

    /// From this seed.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// Sets elements to 0 with probability `p` and divides the others by `1 - p`, in training. All of a graph's dropouts
    /// share the state `dropout.counter`, and each has a mask of its own.
    ///
    /// # Panics
    /// When `p` is not in 0 to 1.
    #[track_caller]
    pub const fn dropout<S: Dims>(&mut self, x: Var<S>, p: f64) -> Var<S> {
        self.dropout_with(x, Dropout::new(p))
    }

    /// The same with these settings.
    ///
    /// # Panics
    /// As [`Graph::dropout`].
    #[track_caller]
    pub const fn dropout_with<S: Dims>(&mut self, x: Var<S>, settings: Dropout) -> Var<S> {
        let counter = self.dropout_counter();
        let stream = self.dropouts(counter);
        let y = self.record("", op(), &[x.id()], spec(S::SHAPE, settings, stream));
        self.with_state(counter);
        y
    }

    /// How many dropouts there are: the stream of the next one, whatever else the graph holds.
    const fn dropouts(&self, counter: Id) -> u32 {
        let (mut count, mut i) = (0, 0);
        while i < self.nodes().len() {
            if let Some(state) = self.nodes()[i].state
                && state.index() == counter.index()
            {
                count += 1;
            }
            i += 1;
        }
        count
    }

    /// The counter of training steps, recorded where it is not there yet.
    #[track_caller]
    const fn dropout_counter(&mut self) -> Id {
        let name = Name::new("dropout", "counter");
        let mut i = 0;
        while i < self.nodes().len() {
            if matches!(self.nodes()[i].kind, Kind::State { .. }) && self.nodes()[i].name.equals(&name) {
                return Id::new(i);
            }
            i += 1;
        }
        self.state("dropout", "counter", Shape::new([COUNTER]), Init::Zeros)
    }
}

crate::tape::methods! {
    /// Sets elements to 0 with the settings' probability `p` and divides the others by `1 - p`. The mask is a function of the
    /// seed, the counter, which backward advances, and `stream`: dropouts that share a counter get one each. In evaluation
    /// leave it out.
    ///
    /// A fault where `p` is not in 0 to 1, or `counter` is not as [`Tape::dropout_counter`]
    /// makes it.
    dropout(x)(counter: tape::Handle, settings: Dropout, stream: u32) => {
        Call::new(op(), spec(x, settings, stream)).with_state(counter)
    }
}

impl<S: Storage> Tape<S> {
    /// The counter of steps that [dropouts](Tape::dropout) share: a state `[2]` that starts at 0, and that every backward through
    /// one of them sets to the next step.
    ///
    /// A fault where there is no room.
    #[track_caller]
    pub fn dropout_counter(&mut self) -> tape::Handle {
        self.zero_state(Shape::new([COUNTER]))
    }
}

/// Ten rounds of Philox4x32.
fn philox([mut a, mut b, mut c, mut d]: [u32; 4], [mut key, mut other_key]: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (x, y) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        [a, b, c, d] = [(y >> 32) as u32 ^ b ^ key, y as u32, (x >> 32) as u32 ^ d ^ other_key, x as u32];
        key = key.wrapping_add(0x9e37_79b9);
        other_key = other_key.wrapping_add(0xbb67_ae85);
    }
    [a, b, c, d]
}

/// The counter in `state`; what is no number of it counts as 0.
fn read<E: Real>(state: &[E]) -> [u32; COUNTER] {
    let mut words = state.iter().map(|word| word.to_index().unwrap_or_default() as u32 % WORD);
    [words.next().unwrap_or_default(), words.next().unwrap_or_default()]
}

/// Puts `data` under the mask of step `counter`.
fn mask<E: Real>(args: &Args, [low, high]: [u32; COUNTER], data: &mut [E]) {
    let [threshold, stream, seed, seed_high, ..] = args.0;
    let scale = args.scalar::<E, 4>();
    for (block, four) in data.chunks_mut(4).enumerate() {
        let random = philox([block as u32, stream, low, high], [seed, seed_high]);
        for (x, random) in four.iter_mut().zip(random) {
            *x = if random >> 8 < threshold { E::ZERO } else { *x * scale };
        }
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [low, high] = read(call.state);
    let next = match low + 1 {
        WORD => [0, (high + 1) % WORD],
        low => [low, high],
    };
    // The mask is that of the new counter, so that one pair of numbers is both the new state and what backward needs.
    for (saved, next) in call.saved.iter_mut().zip(next) {
        *saved = B::Elem::from_usize(next as usize);
    }
    mask(call.args, next, call.y);
}

/// `y` is `x` already.
fn infer<B: Backend>(_: ForwardCall<'_, B::Elem>) {}

fn gradient<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    mask(call.args, read(call.saved), call.dx);
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::backend::Strict;
    use crate::testing::{Outcome, run_with_state};

    fn run<E: Real>(settings: Dropout, stream: u32, x: &[E], state: &[E]) -> Outcome<E> {
        let spec = spec(Shape::new([x.len()]), settings, stream).unwrap();
        run_with_state(op::<Strict<E>>(), spec, &[x], state, &vec![E::ONE; x.len()])
    }

    #[test]
    fn the_generator_gives_the_known_answers_of_its_authors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let (counter, key) = ([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
        assert_eq!(philox(counter, key), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn a_mask_is_the_same_in_both_precisions_forward_and_backward() {
        let single = run(Dropout::new(0.25).seed(7), 3, &[3.0_f32; 10], &[5.0, 1.0]);
        let double = run(Dropout::new(0.25).seed(7), 3, &[3.0_f64; 10], &[5.0, 1.0]);
        assert_eq!(double.y, [4.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0, 4.0, 4.0]);
        assert_eq!(single.y, double.y.iter().map(|&y| y as f32).collect::<Vec<_>>());
        assert_eq!(double.gradients[0], double.y.iter().map(|y| y / 3.0).collect::<Vec<_>>());
    }

    #[test]
    fn seed_stream_and_step_each_change_the_mask() {
        let y = |seed, stream, state: [f64; 2]| run(Dropout::new(0.5).seed(seed), stream, &[1.0; 64], &state).y;
        let one = y(1, 1, [0.0, 0.0]);
        assert_eq!(one, y(1, 1, [0.0, 0.0]));
        let others = [y(2, 1, [0.0, 0.0]), y(1 << 32, 1, [0.0, 0.0]), y(1, 2, [0.0, 0.0])];
        let later = [y(1, 1, [1.0, 0.0]), y(1, 1, [0.0, 1.0])];
        assert!(others.iter().chain(&later).all(|other| *other != one));
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes of numbers")]
    fn about_as_many_elements_are_dropped_as_asked() {
        for p in [0.1, 0.5, 0.9] {
            let y = run(Dropout::new(p), 0, &vec![1.0_f64; 20_000], &[0.0, 0.0]).y;
            let dropped = y.iter().filter(|&&y| y == 0.0).count() as f64;
            let deviation = (20_000.0 * p * (1.0 - p)).sqrt();
            assert!((dropped - 20_000.0 * p).abs() < 4.0 * deviation, "{dropped} of 20000 with p = {p}");
            assert!(y.iter().all(|&y| y == 0.0 || y == 1.0 / (1.0 - p)));
        }
    }

    #[test]
    fn nothing_and_everything_can_be_dropped() {
        let x = [1.5, f64::INFINITY, -0.0];
        let kept = run(Dropout::new(0.0), 0, &x, &[0.0, 0.0]);
        assert_eq!((kept.y, &kept.gradients[0]), (x.to_vec(), &vec![1.0; 3]));
        let dropped = run(Dropout::new(1.0), 0, &x, &[0.0, 0.0]);
        assert_eq!((dropped.y, &dropped.gradients[0]), (vec![0.0; 3], &vec![0.0; 3]));
        let error = spec(Shape::new([3]), Dropout::new(1.5), 0).unwrap_err();
        assert_eq!(std::format!("{error}"), "dropout: the probability is between 0 and 1, found 1.5");
    }

    #[test]
    fn the_counter_carries_at_24_bits() {
        let after = |state: [f32; 2]| run(Dropout::new(0.5), 0, &[1.0; 4], &state).state;
        assert_eq!(after([0.0, 0.0]), [1.0, 0.0]);
        assert_eq!(after([16_777_214.0, 3.0]), [16_777_215.0, 3.0]);
        assert_eq!(after([16_777_215.0, 3.0]), [0.0, 4.0]);
        assert_eq!(after([f32::NAN, -1.0]), [1.0, 0.0]);
    }
}
