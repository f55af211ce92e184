//! Nodes of a tape, and the handles by which they are known.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;

use crate::backend::Backend;
use crate::ops::{MAX_INPUTS, Op, Spec};
use crate::optim::Group;
use crate::shape::Shape;

/// A value on a tape. It can be copied and costs nothing; the tape owns what it stands for. After a
/// [`reset_to`](super::Tape::reset_to) past its node it stands for nothing, and its use is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handle {
    index: u32,
    epoch: u32,
}

impl Handle {
    /// What a poisoned tape returns.
    pub(crate) const NONE: Self = Self { index: NOWHERE, epoch: 0 };

    pub(super) const fn new(index: usize, epoch: u32) -> Self {
        Self { index: index as u32, epoch }
    }

    /// Its place on the tape.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    pub(super) const fn epoch(self) -> u32 {
        self.epoch
    }
}

/// No place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The operands of a user's backward function, which writes `dx`; the tape adds it up.
#[cfg(feature = "alloc")]
pub struct Backprop<'a, E> {
    /// For which input the gradient is, counted from 0.
    pub input: usize,
    /// The inputs; empty where there is none.
    pub x: [&'a [E]; MAX_INPUTS],
    /// The output.
    pub y: &'a [E],
    /// The gradient with respect to the output.
    pub dy: &'a [E],
    /// The gradient with respect to the input, all 0.
    pub dx: &'a mut [E],
}

/// A user's backward function.
#[cfg(feature = "alloc")]
pub(super) type BackwardFn<E> = Box<dyn Fn(Backprop<'_, E>)>;

pub(crate) enum Kind<B: Backend> {
    /// Its value and its gradient have spaces of their own.
    Parameter(Group<B::Elem>),
    Constant,
    /// Changed by forward kernels, not trained.
    State,
    Op(&'static Op<B>),
    #[cfg(feature = "alloc")]
    Function(&'static str, BackwardFn<B::Elem>),
}

/// A recorded value.
#[allow(clippy::struct_excessive_bools)]
pub struct Node<B: Backend> {
    pub(super) kind: Kind<B>,
    pub(crate) spec: Spec,
    /// Elements of the value: kept, since every use asks for it.
    len: usize,
    pub(super) inputs: [Handle; MAX_INPUTS],
    pub(super) input_count: u8,
    /// The node whose value and gradient it shares: itself, unless it is a view.
    pub(super) root: u32,
    pub(super) epoch: u32,
    /// Where the value starts: that of a parameter among the parameters, others in the work space.
    pub(super) value: u32,
    /// Where that starts what forward kept for backward.
    pub(super) saved: u32,
    /// The node of the state that the operation uses.
    pub(super) state: u32,
    /// Where the gradient starts, if it has memory: that of a parameter among the gradients, others in the work space.
    pub(super) gradient: u32,
    /// The length of the work space once the node was recorded.
    pub(super) top: u32,
    /// Whether some parameter lies behind it.
    pub(super) needs_gradient: bool,
    /// Whether the gradient has been computed: of a parameter since the last reset, of others in the last backward.
    pub(super) has_gradient: bool,
    /// Whether the value that backward started from depends on it.
    pub(super) visited: bool,
    /// Whether the value is still to be computed; a view is never.
    pub(super) pending: bool,
    /// Whether it is about to be.
    pub(super) wanted: bool,
    /// The elements are whole numbers below this, or any numbers where it is 0.
    pub(super) classes: u32,
}

impl<B: Backend> Node<B> {
    /// A leaf of this shape.
    pub(super) const fn leaf(kind: Kind<B>, shape: Shape) -> Self {
        let needs_gradient = matches!(kind, Kind::Parameter(_));
        Self {
            kind,
            spec: Spec::new(shape),
            len: shape.len(),
            inputs: [Handle::NONE; MAX_INPUTS],
            input_count: 0,
            root: 0,
            epoch: 0,
            value: 0,
            saved: 0,
            state: NOWHERE,
            gradient: NOWHERE,
            top: 0,
            needs_gradient,
            has_gradient: false,
            visited: false,
            pending: false,
            wanted: false,
            classes: 0,
        }
    }

    pub(super) const fn set_spec(&mut self, spec: Spec) {
        self.spec = spec;
        self.len = spec.shape.len();
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_parameter(&self) -> bool {
        matches!(self.kind, Kind::Parameter(_))
    }

    pub(crate) const fn is_state(&self) -> bool {
        matches!(self.kind, Kind::State)
    }

    pub(crate) fn value_range(&self) -> core::ops::Range<usize> {
        self.value as usize..self.value as usize + self.len
    }

    pub(super) fn gradient_range(&self) -> core::ops::Range<usize> {
        self.gradient as usize..self.gradient as usize + self.len
    }

    pub(super) fn inputs(&self) -> &[Handle] {
        self.inputs.get(..usize::from(self.input_count)).unwrap_or_default()
    }

    pub(super) const fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Parameter(_) => "parameter",
            Kind::Constant => "constant",
            Kind::State => "state",
            Kind::Op(op) => op.name,
            #[cfg(feature = "alloc")]
            Kind::Function(name, _) => name,
        }
    }
}
