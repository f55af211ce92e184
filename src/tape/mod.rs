//! Define-by-run tapes: every operation computes its value at once and appends a node; backward walks the nodes in reverse.
//! For code whose graph is decided while it runs.
//!
//! A tape owns its values. Parameters and constants are copied in; [`Tape::value`] and [`Tape::gradient`] lend them out. A
//! training loop registers its parameters once, takes a [`mark`](Tape::mark), and for each batch records, runs
//! [`backward`](Tape::backward), [`update`](Tape::update)s, and goes back with [`reset_to`](Tape::reset_to), which keeps
//! the parameters and all memory. From the second batch on nothing is allocated.
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use slabgrad::optim::Adam;
//! use slabgrad::tape::{Tape, TapeError};
//!
//! // y = 3 x + 2, from five samples.
//! let (x, y) = ([-1.0, -0.5, 0.0, 0.5, 1.0], [-1.0, 0.5, 2.0, 3.5, 5.0]);
//! let mut tape = Tape::new();
//! let (w, b) = (tape.parameter([], &[0.0]), tape.parameter([], &[0.0]));
//! let mut moments = tape.moments::<Adam>();
//! let mark = tape.mark();
//! for _ in 0..200 {
//!     let (x, y) = (tape.constant([5], &x), tape.constant([5], &y));
//!     let loss = {
//!         let scope = tape.scope();
//!         let prediction = scope.of(x) * scope.of(w) + scope.of(b);
//!         (prediction - scope.of(y)).square().mean(&[], false).handle()
//!     };
//!     tape.backward(loss)?;
//!     tape.update(&Adam::new(0.1), &mut moments)?;
//!     tape.reset_to(mark);
//! }
//! assert!((tape.value(w)[0] - 3.0).abs() < 0.01 && (tape.value(b)[0] - 2.0).abs() < 0.01);
//! # }
//! # Ok::<(), slabgrad::tape::TapeError>(())
//! ```
//!
//! # Two ways to write
//!
//! Explicit: `tape.matmul(a, b)` takes handles ([`Handle`]) and returns one. As expressions: a [`Scope`] borrows the tape, and its
//! [`Expr`]s have operators and the same methods. Handles and expressions can be mixed.
//!
//! # Faults
//!
//! No operation panics. The first fault (shapes that do not fit, no room, a handle from before a reset) is kept with its
//! operation and its shapes, and poisons the tape: what follows touches no memory. [`Tape::check`] and [`Tape::backward`]
//! return it, and [`Tape::reset_to`] clears it.
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use slabgrad::tape::Tape;
//!
//! let mut tape = Tape::new();
//! let mark = tape.mark();
//! let (a, b) = (tape.constant([2, 3], &[0.0; 6]), tape.constant([4, 2], &[0.0; 8]));
//! let y = tape.matmul(a, b);
//! let error = tape.backward(y).unwrap_err();
//! assert!(error.to_string().starts_with("matmul: columns of the left operand are 3, rows of the right operand 4"));
//! tape.reset_to(mark);
//! assert!(tape.check().is_ok());
//! # }
//! ```
//!
//! # Without an allocator
//!
//! A [`FixedTape`] works in a slab that is lent to it, with room for a fixed number of nodes.
//!
//! ```
//! use slabgrad::tape::FixedTape;
//!
//! let mut slab = [0.0; 64];
//! let mut tape: FixedTape<16> = FixedTape::in_slab(&mut slab, 2)?;
//! let w = tape.parameter([2], &[1.0, 2.0]);
//! let y = tape.square(w);
//! let loss = tape.sum(y, &[], false);
//! tape.backward(loss).unwrap();
//! assert_eq!(tape.gradient(w), Some(&[2.0, 4.0][..]));
//! # Ok::<(), slabgrad::program::RunError>(())
//! ```

mod access;
mod backward;
mod error;
mod expr;
#[cfg(feature = "alloc")]
mod function;
#[cfg(feature = "alloc")]
mod gradcheck;
#[cfg(feature = "alloc")]
mod graph;
mod leaf;
mod methods;
mod node;
mod record;
mod show;
mod storage;
mod update;

pub use error::{Cause, TapeError};
pub use expr::{Expr, Scope};
#[cfg(feature = "alloc")]
pub use gradcheck::{Gradcheck, GradcheckError, gradcheck};
pub(crate) use methods::{Call, inputs, methods};
#[cfg(feature = "alloc")]
pub use node::Backprop;
pub use node::Handle;
pub(crate) use node::Kind;
#[doc(hidden)]
pub use node::Node;
pub use show::Show;
pub use storage::Fixed;
#[cfg(feature = "alloc")]
pub use storage::Growing;
pub use storage::Storage;

use crate::backend::{Backend, Real, Strict};
use crate::ops::MAX_INPUTS;
use crate::program::RunError;
use crate::shape::Shape;
use node::NOWHERE;
use storage::Elem;

/// Values in the order in which they were computed, with all that backward needs.
pub struct Tape<S: Storage> {
    pub(crate) storage: S,
    /// Elements of parameters.
    params: usize,
    /// Elements of the work space that are in use.
    work: usize,
    /// Counts the resets, so that handles from before one are told apart.
    epoch: u32,
    /// Whether values are computed when they are needed instead of at once.
    lazy: bool,
    fault: Option<TapeError>,
}

/// A tape in a slab that is lent to it, with room for `N` nodes.
pub type FixedTape<'s, const N: usize, B = Strict<f32>> = Tape<Fixed<'s, B, N>>;

/// A tape on the heap.
#[cfg(feature = "alloc")]
pub type GrowingTape<B = Strict<f32>> = Tape<Growing<B>>;

/// How long a tape was; see [`Tape::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

#[cfg(feature = "alloc")]
impl Tape<Growing<Strict<f32>>> {
    /// An empty tape on the heap, in single precision. For another backend write
    /// `GrowingTape::<Strict<f64>>::default()`.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_storage(Growing::new())
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Default for Tape<Growing<B>> {
    fn default() -> Self {
        Self::with_storage(Growing::new())
    }
}

impl<'s, B: Backend, const N: usize> Tape<Fixed<'s, B, N>> {
    /// An empty tape in a slab: room for `params` elements of parameters, the same for their gradients, and the rest for
    /// values and the other gradients.
    ///
    /// # Errors
    /// When the slab is shorter than twice `params`.
    pub fn in_slab(slab: &'s mut [B::Elem], params: usize) -> Result<Self, RunError> {
        Ok(Self::with_storage(Fixed::new(slab, params)?))
    }
}

impl<S: Storage> Tape<S> {
    /// An empty tape in this memory.
    #[must_use]
    pub const fn with_storage(storage: S) -> Self {
        Self { storage, params: 0, work: 0, epoch: 0, lazy: false, fault: None }
    }

    /// The same, but operations only build nodes from now on: a value is computed once, with what it depends on, when an
    /// expression reads it, by [`Tape::force`], or by [`Tape::backward`].
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use slabgrad::tape::Tape;
    ///
    /// let mut tape = Tape::new().lazily();
    /// let x = tape.parameter([2], &[1.0, -2.0]);
    /// let y = tape.square(x);
    /// let unused = tape.exp(x);
    /// assert!(tape.value(y).is_empty());
    /// assert_eq!(tape.force(y), [1.0, 4.0]);
    /// assert!(tape.is_pending(unused));
    /// # }
    /// ```
    #[must_use]
    pub fn lazily(self) -> Self {
        Self { lazy: true, ..self }
    }

    /// The elements of a value, which is computed now where that has not been done.
    ///
    /// A fault where there is no room; the value is empty then.
    #[track_caller]
    pub fn force(&mut self, x: Handle) -> &[Elem<S>] {
        if self.fault.is_none()
            && self.node(x).is_some()
            && let Err(cause) = self.evaluate(x.index())
        {
            self.fail(self.name(x), &[Some(x)], cause);
        }
        self.value(x)
    }

    /// Whether a value is still to be computed.
    #[must_use]
    pub fn is_pending(&self, x: Handle) -> bool {
        self.root(x).is_some_and(|root| root.pending)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes().is_empty()
    }

    /// The length so far, to come back to with [`Tape::reset_to`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.len())
    }

    /// Drops the nodes that were recorded since the mark, sets the gradients of what remains to 0, and clears a fault. All
    /// memory is kept for what comes next.
    pub fn reset_to(&mut self, mark: Mark) {
        self.storage.truncate(mark.0);
        self.fault = None;
        self.epoch = self.epoch.wrapping_add(1);
        self.work = self.nodes().last().map_or(0, |node| node.top as usize);
        self.forget_values_behind(self.work);
        let (mut params, spaces) = (0, self.storage.spaces_mut());
        for node in spaces.nodes {
            node.has_gradient = false;
            if node.is_parameter() {
                params = node.value_range().end;
            } else {
                node.gradient = NOWHERE;
            }
        }
        self.params = params;
        spaces.grads.get_mut(..params).unwrap_or_default().fill(Real::ZERO);
    }

    /// Values that a lazy tape computed behind this length of the work space are still to be computed again.
    fn forget_values_behind(&mut self, work: usize) {
        for node in self.storage.spaces_mut().nodes {
            // Left over where there was no room to compute it.
            node.wanted = false;
            let is_computed = matches!(node.kind, Kind::Op(op) if !op.view);
            node.pending |= is_computed && node.saved as usize + node.spec.saved > work;
        }
    }

    /// Whether all went well since the last reset.
    ///
    /// # Errors
    /// The first fault.
    pub const fn check(&self) -> Result<(), TapeError> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Elements in use beside parameters and their gradients: what a [`FixedTape`] of the same work would need.
    #[must_use]
    pub const fn work_len(&self) -> usize {
        self.work
    }

    pub(crate) fn nodes(&self) -> &[Node<S::Backend>] {
        self.storage.spaces().nodes
    }

    /// The node of a handle that still stands for something.
    fn node(&self, x: Handle) -> Option<&Node<S::Backend>> {
        self.nodes().get(x.index()).filter(|node| node.epoch == x.epoch())
    }

    fn node_mut(&mut self, x: Handle) -> Option<&mut Node<S::Backend>> {
        self.storage.spaces_mut().nodes.get_mut(x.index()).filter(|node| node.epoch == x.epoch())
    }

    fn root(&self, x: Handle) -> Option<&Node<S::Backend>> {
        self.nodes().get(self.node(x)?.root as usize)
    }

    /// Appends a node, whose memory in the work space ends at `top`. A view has its root set.
    fn push(&mut self, mut node: Node<S::Backend>, top: usize) -> Result<Handle, Cause> {
        let index = self.len();
        if !matches!(node.kind, Kind::Op(op) if op.view) {
            node.root = index as u32;
        }
        node.epoch = self.epoch;
        node.top = top as u32;
        self.storage.push(node)?;
        self.work = top;
        Ok(Handle::new(index, self.epoch))
    }

    /// Keeps the first fault.
    #[track_caller]
    fn fail(&mut self, op: &'static str, inputs: &[Option<Handle>], cause: Cause) -> Handle {
        let error = self.error(op, inputs, cause);
        self.fault.get_or_insert(error);
        Handle::NONE
    }

    #[track_caller]
    fn error(&self, op: &'static str, inputs: &[Option<Handle>], cause: Cause) -> TapeError {
        let (mut shapes, mut count) = ([Shape::SCALAR; MAX_INPUTS], 0);
        for (shape, &input) in shapes.iter_mut().zip(inputs.iter().flatten()) {
            *shape = self.shape(input);
            count += 1;
        }
        TapeError {
            op,
            cause,
            shapes,
            count,
            #[cfg(feature = "std")]
            location: core::panic::Location::caller(),
        }
    }
}
