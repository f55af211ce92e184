//! Operations: one file each, with the formula, the shape rule, the kernels, the derivative, the typed builder method and
//! the tests.
//!
//! An operation is a static table, [`Op`]: its kernels, and what the planner has to know of them. Every front end runs
//! the same table. Beside it stands a `const fn` that makes a [`Spec`] from shapes and settings: the output's shape, the
//! kernels' arguments and how much memory they need. A table in a user's own crate works just as well:
//! see [`Graph::apply`](crate::graph::Graph::apply).

pub mod abs;
pub mod add;
pub mod add_scalar;
pub mod amax;
pub mod amin;
pub mod avg_pool1d;
pub mod avg_pool2d;
mod axes;
pub mod batch_norm;
pub mod bce_with_logits;
mod binary;
mod broadcast;
pub mod broadcast_to;
pub mod clamp;
mod class_loss;
pub mod compensated_sum;
pub mod concat;
mod conv;
pub mod conv1d;
pub mod conv2d;
pub mod conv_transpose2d;
pub mod cos;
pub mod cosine_similarity;
pub mod cross_entropy;
pub mod cross_entropy_of_probabilities;
pub mod div;
pub mod dot;
pub mod dropout;
pub mod elu;
pub mod embedding;
pub mod erf;
pub mod exp;
pub mod expm1;
pub mod gather;
pub mod gelu;
pub mod global_avg_pool2d;
pub mod group_norm;
pub mod gru_cell;
pub mod hardsigmoid;
pub mod hardswish;
pub mod hardtanh;
pub mod huber;
pub mod kl_div;
pub mod l1;
pub mod l2_norm;
pub mod l2_normalize;
pub mod layer_norm;
pub mod leaky_relu;
pub mod linear;
pub mod log;
pub mod log1p;
pub mod log_softmax;
pub mod logsumexp;
mod loss;
pub mod lstm_cell;
pub mod matmul;
pub mod max_pool1d;
pub mod max_pool2d;
pub mod maximum;
pub mod mean;
pub mod minimum;
pub mod mish;
pub mod mse;
pub mod mul;
pub mod mul_scalar;
pub mod neg;
pub mod nll;
pub(crate) mod norm;
pub mod pad;
pub mod permute;
mod planes;
pub mod pow;
pub mod pow_scalar;
pub mod prod;
pub mod reciprocal;
mod reduce;
pub mod reduce_by;
pub mod relu;
pub mod relu6;
pub mod reshape;
pub mod rms_norm;
pub mod rsqrt;
mod runs;
pub mod safe_div;
pub mod scale_shift;
pub mod scaled_softmax;
pub mod sigmoid;
pub mod silu;
pub mod sin;
pub mod slice;
pub mod smooth_l1;
pub mod softmax;
pub mod softplus;
pub mod sqrt;
pub mod square;
pub mod squeeze;
pub mod stack;
mod strided;
pub mod sub;
pub mod sum;
pub mod tanh;
#[cfg(test)]
mod testing;
mod unary;
pub mod unsqueeze;
pub mod upsample_nearest2d;
pub mod var;
pub mod where_;
mod window;
pub mod zeros;

pub use loss::Reduction;
pub use window::{Window1d, Window2d};

use crate::backend::{Backend, Real};
use crate::shape::Shape;

/// The largest number of tensors that an operation reads.
pub const MAX_INPUTS: usize = 3;

/// The constant arguments of a node's kernels: lengths, strides and scalars, as the operation's file lays them out.
// A program finds them as a run of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Args(pub [u32; Self::WORDS]);

impl Args {
    /// How many words there are.
    pub const WORDS: usize = 12;
    /// No arguments.
    pub const NONE: Self = Self([0; Self::WORDS]);

    /// These lengths, then zeros.
    ///
    /// # Panics
    /// With more than [`Args::WORDS`] lengths.
    #[must_use]
    pub const fn new(lengths: &[usize]) -> Self {
        let mut args = Self::NONE;
        let mut i = 0;
        while i < lengths.len() {
            args.0[i] = lengths[i] as u32;
            i += 1;
        }
        args
    }

    /// Whether all words are 0.
    pub(crate) const fn is_none(&self) -> bool {
        let mut i = 0;
        while i < Self::WORDS && self.0[i] == 0 {
            i += 1;
        }
        i == Self::WORDS
    }

    /// The same with a scalar in the words `at..at + 3`.
    ///
    /// # Panics
    /// Where these are not words.
    #[must_use]
    pub const fn with_scalar(mut self, at: usize, value: f64) -> Self {
        let bits = value.to_bits();
        self.0[at] = (value as f32).to_bits();
        self.0[at + 1] = bits as u32;
        self.0[at + 2] = (bits >> 32) as u32;
        self
    }

    /// The words as lengths.
    #[must_use]
    #[inline(always)]
    pub fn lengths(&self) -> [usize; Self::WORDS] {
        // Element by element: of `map` a compiler that optimizes for size makes a loop over copies.
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.0;
        [
            a as usize, b as usize, c as usize, d as usize, e as usize, f as usize, g as usize, h as usize, i as usize,
            j as usize, k as usize, l as usize,
        ]
    }

    /// The scalar in the words `AT..AT + 3`.
    #[must_use]
    #[inline(always)]
    pub fn scalar<E: Real, const AT: usize>(&self) -> E {
        const { assert!(AT + 3 <= Self::WORDS) };
        let bits = u64::from(self.0[AT + 2]) << 32 | u64::from(self.0[AT + 1]);
        E::choose(f32::from_bits(self.0[AT]), f64::from_bits(bits))
    }
}

/// What an operation makes of its operands' shapes: the output's shape, the kernels' arguments, the memory they need.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The shape of the output.
    pub shape: Shape,
    /// The arguments of all kernels.
    pub args: Args,
    /// Elements that forward keeps for backward.
    pub saved: usize,
    /// Elements that forward needs while it runs.
    pub scratch: usize,
    /// Elements that the gradient for each input needs while it is computed.
    pub scratch_backward: [usize; MAX_INPUTS],
    /// Elements of state, such as running statistics; `saved` begins with room for the new one.
    pub state: usize,
}

impl Spec {
    /// An output of this shape, without arguments or memory.
    #[must_use]
    pub const fn new(shape: Shape) -> Self {
        Self { shape, args: Args::NONE, saved: 0, scratch: 0, scratch_backward: [0; MAX_INPUTS], state: 0 }
    }

    /// The same with these arguments.
    #[must_use]
    pub const fn args(self, args: Args) -> Self {
        Self { args, ..self }
    }
}

/// The operands of a forward kernel.
// What lies in memory comes first, as a program finds it.
#[repr(C)]
pub struct ForwardCall<'a, E> {
    /// The inputs; empty where there is none.
    pub x: [&'a [E]; MAX_INPUTS],
    /// The output. What it holds before is unspecified, or input 0 with [`Over::Output`].
    pub y: &'a mut [E],
    /// Kept for backward. What it holds before is unspecified, or input 0 with [`Over::Saved`].
    pub saved: &'a mut [E],
    /// Free for use.
    pub scratch: &'a mut [E],
    /// The node's state, such as running statistics, as it was; empty where there is none. In a training program the
    /// kernel leaves the new state at the start of `saved`, and the runner takes it over once the loss is known to be
    /// finite.
    pub state: &'a [E],
    /// The node's arguments.
    pub args: &'a Args,
}

/// The operands of a backward kernel, which computes the gradient of the loss with respect to one input.
// What lies in memory comes first, as a program finds it.
#[repr(C)]
pub struct BackwardCall<'a, E> {
    /// The inputs that the kernel [`reads`](Gradient::Kernel::reads); the others are empty.
    pub x: [&'a [E]; MAX_INPUTS],
    /// The gradient with respect to the input. With [`OverGradient`] it holds `dy` or `saved` before.
    pub dx: &'a mut [E],
    /// What forward kept, where it is read.
    pub saved: &'a [E],
    /// Free for use.
    pub scratch: &'a mut [E],
    /// The output, where it is read.
    pub y: &'a [E],
    /// The gradient with respect to the output.
    pub dy: &'a [E],
    /// The node's arguments.
    pub args: &'a Args,
    /// Whether to add to `dx` instead of writing it.
    pub add: bool,
    /// Where `dx` is a run of whole rows of the gradient ([`Gradient::Kernel::rows`]): the first one's index.
    pub first_row: usize,
}

/// A forward kernel.
pub type Forward<B> = fn(ForwardCall<'_, <B as Backend>::Elem>);
/// A backward kernel.
pub type Backward<B> = fn(BackwardCall<'_, <B as Backend>::Elem>);

/// Which buffer of a forward kernel holds input 0 when it starts: the same memory where nothing reads the input later,
/// else a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// None.
    Nothing,
    /// The output, which has the length of input 0.
    Output,
    /// What is kept for backward, which has the length of input 0.
    Saved,
}

/// Which operand a backward kernel's `dx` holds when it starts, likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverGradient {
    /// None: the kernel writes `dx`, or adds to it.
    Nothing,
    /// The gradient with respect to the output, which has the length of the input.
    Dy,
    /// What forward kept, which has the length of the input.
    Saved,
}

/// What a backward kernel reads, beside `dy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads(u8);

impl Reads {
    /// Nothing more.
    pub const NONE: Self = Self(0);
    /// The output.
    pub const OUTPUT: Self = Self(1 << MAX_INPUTS);
    /// What forward kept.
    pub const SAVED: Self = Self(1 << (MAX_INPUTS + 1));

    /// Input `i`.
    #[must_use]
    pub const fn input(i: usize) -> Self {
        Self(1 << i)
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is read.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How the gradient reaches one input of an operation.
#[derive(Clone, Copy)]
pub enum Gradient<B: Backend> {
    /// It does not: the input is not differentiable.
    None,
    /// It is the output's gradient as it stands.
    Pass,
    /// A kernel computes it.
    Kernel {
        /// The kernel.
        run: Backward<B>,
        /// What it reads beside `dy`.
        reads: Reads,
        /// What `dx` holds when it starts.
        over: OverGradient,
        /// Whether it can compute any run of rows (along the first axis) of the gradient by itself, so that a fused
        /// program never holds all of it.
        rows: bool,
    },
}

impl<B: Backend> Gradient<B> {
    /// A kernel that writes or adds, and reads these.
    #[must_use]
    pub const fn kernel(run: Backward<B>, reads: Reads) -> Self {
        Self::Kernel { run, reads, over: OverGradient::Nothing, rows: false }
    }

    /// A kernel that turns `dy` into `dx` in place, and reads these.
    #[must_use]
    pub const fn over_dy(run: Backward<B>, reads: Reads) -> Self {
        Self::Kernel { run, reads, over: OverGradient::Dy, rows: false }
    }
}

/// How many products each output of an operation sums. The gradients of inputs 0 and 1 take as many multiply-adds as the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// None that are counted: it works element by element, or moves elements.
    None,
    /// One for each element of a row of input 0: a matrix product.
    Row,
    /// One for each element of an entry of input 1 along its first axis: a convolution, whose weight it is.
    Weight,
    /// Turned around: so many for each element of input 0. A transposed convolution.
    WeightOfInput,
}

/// An operation: its kernels, and what the planner has to know of them.
pub struct Op<B: Backend> {
    /// The operation's name.
    pub name: &'static str,
    /// Computes the output.
    pub forward: Forward<B>,
    /// What forward may overwrite.
    pub over: Over,
    /// Computes the output in a program that only infers, where that is something else.
    pub infer: Option<Forward<B>>,
    /// The gradients with respect to the inputs.
    pub backward: [Gradient<B>; MAX_INPUTS],
    /// The output is input 0 under another shape: no kernel runs, and both are the same memory.
    pub view: bool,
    /// Computes the rectified output: programs run it where relu follows and nothing else reads the output.
    pub with_relu: Option<Forward<B>>,
    /// Computes the gradient with respect to input 0, and relu's, whose output that is, in one pass; it reads input 0 as well.
    /// Programs run it where nothing else contributes to the gradient of relu's output.
    pub behind_relu: Option<Backward<B>>,
    /// Whether this is relu itself.
    pub is_relu: bool,
    /// How many multiply-adds it takes.
    pub terms: Terms,
    /// How many words of the arguments its kernels read, from the first on. A program keeps no others: there they hold anything.
    pub words: usize,
}

impl<B: Backend> Op<B> {
    /// A table with this forward kernel and these gradients, that overwrites nothing.
    #[must_use]
    pub const fn new(name: &'static str, forward: Forward<B>, backward: [Gradient<B>; MAX_INPUTS]) -> Self {
        Self {
            name,
            forward,
            over: Over::Nothing,
            infer: None,
            backward,
            view: false,
            with_relu: None,
            behind_relu: None,
            is_relu: false,
            terms: Terms::None,
            words: Args::WORDS,
        }
    }

    /// The same with a kernel that rectifies the output, too.
    #[must_use]
    pub const fn with_relu(self, forward: Forward<B>) -> Self {
        Self { with_relu: Some(forward), ..self }
    }

    /// The same with a kernel for the gradient with respect to input 0 that goes on through relu.
    #[must_use]
    pub const fn behind_relu(self, backward: Backward<B>) -> Self {
        Self { behind_relu: Some(backward), ..self }
    }

    /// The same with so many products to an output.
    #[must_use]
    pub const fn terms(self, terms: Terms) -> Self {
        Self { terms, ..self }
    }

    /// The same with kernels that read no more than so many words of the arguments.
    ///
    /// # Panics
    /// With more than [`Args::WORDS`].
    #[must_use]
    pub const fn words(self, words: usize) -> Self {
        assert!(words <= Args::WORDS, "arguments have 12 words");
        Self { words, ..self }
    }

    /// The same with this buffer starting as input 0.
    #[must_use]
    pub const fn over(self, over: Over) -> Self {
        Self { over, ..self }
    }
}
