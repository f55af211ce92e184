//! Where a tape keeps its nodes and elements: memory that is lent to it, or the heap.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::Node;
use super::error::Cause;
#[cfg(feature = "alloc")]
use super::node::NOWHERE;
use crate::backend::Backend;
use crate::program::{RunError, Space};

/// The memory of a tape: [`Fixed`] or, with `alloc`, [`Growing`].
pub trait Storage: sealed::Sealed {
    /// The element type and its arithmetic.
    type Backend: Backend;

    #[doc(hidden)]
    fn spaces(&self) -> Spaces<'_, Self::Backend>;

    #[doc(hidden)]
    fn spaces_mut(&mut self) -> SpacesMut<'_, Self::Backend>;

    /// Makes room for this many elements in a space.
    #[doc(hidden)]
    fn reserve(&mut self, space: Space, len: usize) -> Result<(), Cause>;

    #[doc(hidden)]
    fn push(&mut self, node: Node<Self::Backend>) -> Result<(), Cause>;

    #[doc(hidden)]
    fn truncate(&mut self, nodes: usize);
}

/// The elements of a tape.
pub(super) type Elem<S> = <<S as Storage>::Backend as Backend>::Elem;

mod sealed {
    pub trait Sealed {}
}

/// All that a storage holds.
#[doc(hidden)]
pub struct Spaces<'a, B: Backend> {
    pub(crate) nodes: &'a [Node<B>],
    pub(super) params: &'a [B::Elem],
    pub(super) grads: &'a [B::Elem],
    pub(crate) work: &'a [B::Elem],
}

/// The same, to be changed.
#[doc(hidden)]
pub struct SpacesMut<'a, B: Backend> {
    pub(crate) nodes: &'a mut [Node<B>],
    pub(super) params: &'a mut [B::Elem],
    pub(super) grads: &'a mut [B::Elem],
    pub(crate) work: &'a mut [B::Elem],
}

/// A slab that is lent to the tape, and room for `N` nodes: no allocator is needed.
pub struct Fixed<'s, B: Backend, const N: usize> {
    nodes: heapless::Vec<Node<B>, N>,
    params: &'s mut [B::Elem],
    grads: &'s mut [B::Elem],
    work: &'s mut [B::Elem],
}

impl<'s, B: Backend, const N: usize> Fixed<'s, B, N> {
    /// Splits a slab: room for `params` elements of parameters, the same for their gradients, and the rest for values and
    /// the other gradients.
    ///
    /// # Errors
    /// When the slab is shorter than twice `params`.
    pub fn new(slab: &'s mut [B::Elem], params: usize) -> Result<Self, RunError> {
        let too_short = RunError::SlabLength { expected: params.saturating_mul(2), found: slab.len() };
        let (params_space, rest) = slab.split_at_mut_checked(params).ok_or(too_short)?;
        let (grads, work) = rest.split_at_mut_checked(params).ok_or(too_short)?;
        Ok(Self { nodes: heapless::Vec::new(), params: params_space, grads, work })
    }
}

impl<B: Backend, const N: usize> sealed::Sealed for Fixed<'_, B, N> {}

impl<B: Backend, const N: usize> Storage for Fixed<'_, B, N> {
    type Backend = B;

    fn spaces(&self) -> Spaces<'_, B> {
        Spaces { nodes: &self.nodes, params: self.params, grads: self.grads, work: self.work }
    }

    fn spaces_mut(&mut self) -> SpacesMut<'_, B> {
        SpacesMut { nodes: &mut self.nodes, params: self.params, grads: self.grads, work: self.work }
    }

    fn reserve(&mut self, space: Space, len: usize) -> Result<(), Cause> {
        let room = if matches!(space, Space::Work) { self.work.len() } else { self.params.len() };
        if len <= room { Ok(()) } else { Err(Cause::Memory { space, needed: len, room }) }
    }

    fn push(&mut self, node: Node<B>) -> Result<(), Cause> {
        self.nodes.push(node).map_err(|_| Cause::Nodes { room: N })
    }

    fn truncate(&mut self, nodes: usize) {
        self.nodes.truncate(nodes);
    }
}

/// Vectors that grow as they have to and never shrink: once a loop has seen its largest step, it allocates nothing.
#[cfg(feature = "alloc")]
pub struct Growing<B: Backend> {
    nodes: Vec<Node<B>>,
    params: Vec<B::Elem>,
    grads: Vec<B::Elem>,
    work: Vec<B::Elem>,
}

#[cfg(feature = "alloc")]
impl<B: Backend> Growing<B> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), params: Vec::new(), grads: Vec::new(), work: Vec::new() }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Default for Growing<B> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> sealed::Sealed for Growing<B> {}

#[cfg(feature = "alloc")]
impl<B: Backend> Storage for Growing<B> {
    type Backend = B;

    fn spaces(&self) -> Spaces<'_, B> {
        Spaces { nodes: &self.nodes, params: &self.params, grads: &self.grads, work: &self.work }
    }

    fn spaces_mut(&mut self) -> SpacesMut<'_, B> {
        let Self { nodes, params, grads, work } = self;
        SpacesMut { nodes, params, grads, work }
    }

    #[inline]
    fn reserve(&mut self, space: Space, len: usize) -> Result<(), Cause> {
        let vec = match space {
            Space::Params => &mut self.params,
            Space::Grads => &mut self.grads,
            _ => &mut self.work,
        };
        if len <= vec.len() { Ok(()) } else { grow(vec, space, len) }
    }

    fn push(&mut self, node: Node<B>) -> Result<(), Cause> {
        let room = self.nodes.len();
        self.nodes.try_reserve(1).map_err(|_| Cause::Nodes { room })?;
        self.nodes.push(node);
        Ok(())
    }

    fn truncate(&mut self, nodes: usize) {
        self.nodes.truncate(nodes);
    }
}

/// The largest length of a space: places in it are stored as `u32`, of which one says that there is none.
#[cfg(feature = "alloc")]
pub(super) const MAX_PLACE: usize = NOWHERE as usize - 1;

#[cfg(feature = "alloc")]
#[cold]
fn grow<E: Copy + Default>(vec: &mut Vec<E>, space: Space, len: usize) -> Result<(), Cause> {
    if len > MAX_PLACE || vec.try_reserve(len - vec.len()).is_err() {
        return Err(Cause::Memory { space, needed: len, room: vec.len() });
    }
    vec.resize(len, E::default());
    Ok(())
}
