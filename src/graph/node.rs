//! Nodes, and the handles and names by which they are known.

use core::marker::PhantomData;

use crate::backend::Backend;
use crate::error::Message;
use crate::init::Init;
use crate::ops::{MAX_INPUTS, Op, Spec};
use crate::shape::{Dims, Shape};

/// A value of a graph, without its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(u32);

impl Id {
    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// Its place in the order of recording.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value of a graph with its shape `S` as a type.
#[derive(Debug)]
pub struct Var<S> {
    id: Id,
    shape: PhantomData<S>,
}

impl<S> Clone for Var<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Var<S> {}

impl<S> Var<S> {
    pub(crate) const fn new(id: Id) -> Self {
        Self { id, shape: PhantomData }
    }

    /// The value without its shape.
    #[must_use]
    pub const fn id(self) -> Id {
        self.id
    }
}

impl<S: Dims> Var<S> {
    /// The shape as a value.
    #[must_use]
    pub const fn shape(self) -> Shape {
        S::SHAPE
    }
}

/// The shape of `A` class indices. It is no [`Dims`], so that nobody computes with them as if they were amounts.
#[derive(Clone, Copy, Debug)]
pub struct Indices<const A: usize>;

/// The shape of indices of several axes: whole numbers from 0. It is no [`Dims`] either.
#[derive(Clone, Copy, Debug)]
pub struct IndexTensor<S>(PhantomData<S>);

/// The shape of indices as a type: [`Indices`] or [`IndexTensor`].
pub trait IndexDims: 'static {
    /// The shape as a value.
    const SHAPE: Shape;
}

impl<const A: usize> IndexDims for Indices<A> {
    const SHAPE: Shape = Shape::new([A]);
}

impl<S: Dims> IndexDims for IndexTensor<S> {
    const SHAPE: Shape = S::SHAPE;
}

/// A name such as `conv1.weight`, in two parts because constants cannot join strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Name<'n> {
    /// What stands before the last dot, or nothing.
    pub scope: &'n str,
    /// What stands behind it.
    pub leaf: &'n str,
}

impl<'n> Name<'n> {
    /// `scope.leaf`, or `leaf` where `scope` is empty.
    #[must_use]
    pub const fn new(scope: &'n str, leaf: &'n str) -> Self {
        Self { scope, leaf }
    }

    pub(crate) const fn len(&self) -> usize {
        let dot = if self.scope.is_empty() { 0 } else { 1 };
        self.scope.len() + dot + self.leaf.len()
    }

    /// The byte at `i` of the joined name.
    const fn byte(&self, i: usize) -> u8 {
        let scope = self.scope.as_bytes();
        if i < scope.len() {
            scope[i]
        } else if !scope.is_empty() {
            if i == scope.len() { b'.' } else { self.leaf.as_bytes()[i - scope.len() - 1] }
        } else {
            self.leaf.as_bytes()[i]
        }
    }

    /// Whether the name is `prefix`, or starts with `prefix` and a dot, or `prefix` is empty.
    #[must_use]
    pub const fn is_within(&self, prefix: &str) -> bool {
        let prefix = prefix.as_bytes();
        if prefix.is_empty() {
            return true;
        }
        if prefix.len() > self.len() {
            return false;
        }
        let mut i = 0;
        while i < prefix.len() {
            if prefix[i] != self.byte(i) {
                return false;
            }
            i += 1;
        }
        prefix.len() == self.len() || self.byte(prefix.len()) == b'.'
    }

    /// Whether both are the same when joined.
    #[must_use]
    pub const fn equals(&self, other: &Name<'_>) -> bool {
        let mut same = self.len() == other.len();
        let mut i = 0;
        while same && i < self.len() {
            same = self.byte(i) == other.byte(i);
            i += 1;
        }
        same
    }

    /// FNV-1a of the joined name.
    pub(crate) const fn hash(&self) -> u64 {
        const fn add(mut hash: u64, mut bytes: &[u8]) -> u64 {
            // Without an index, so that there is no panic where it runs on a microcontroller.
            while let [byte, rest @ ..] = bytes {
                hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
                bytes = rest;
            }
            hash
        }
        let dot = if self.scope.is_empty() { "" } else { "." };
        let hash = add(0xcbf2_9ce4_8422_2325, self.scope.as_bytes());
        add(add(hash, dot.as_bytes()), self.leaf.as_bytes())
    }

    pub(crate) const fn write(&self, text: Message) -> Message {
        let text = if self.scope.is_empty() { text } else { text.text(self.scope).text(".") };
        text.text(self.leaf)
    }

    /// The bytes of the joined name.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + use<'n> {
        let dot: &[u8] = if self.scope.is_empty() { b"" } else { b"." };
        self.scope.bytes().chain(dot.iter().copied()).chain(self.leaf.bytes())
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.bytes().eq(other.bytes())
    }
}

impl core::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.write(Message::new()).as_str())
    }
}

/// What a node is.
#[derive(Clone, Copy)]
pub(crate) enum Kind<B: Backend> {
    Input {
        /// The elements are whole numbers below this, or any finite numbers where it is 0.
        classes: u32,
    },
    Parameter {
        init: Init,
        frozen: bool,
    },
    /// Kept from run to run, changed by forward kernels, not trained.
    State {
        init: Init,
    },
    Op(&'static Op<B>),
}

/// A recorded value.
#[derive(Clone, Copy)]
pub(crate) struct Node<'n, B: Backend> {
    pub(crate) kind: Kind<B>,
    /// Of an input or a parameter.
    pub(crate) name: Name<'n>,
    /// Under which a run leaves it to be read.
    pub(crate) output: Option<&'n str>,
    pub(crate) inputs: [Id; MAX_INPUTS],
    pub(crate) input_count: u8,
    /// The first of the states that the operation uses; further ones follow it without a gap.
    pub(crate) state: Option<Id>,
    pub(crate) spec: Spec,
}

impl<B: Backend> Node<'_, B> {
    pub(crate) const EMPTY: Self = Self::of(Shape::SCALAR);

    /// An input of this shape.
    pub(crate) const fn of(shape: Shape) -> Self {
        Self {
            kind: Kind::Input { classes: 0 },
            name: Name::new("", ""),
            output: None,
            inputs: [Id(0); MAX_INPUTS],
            input_count: 0,
            state: None,
            spec: Spec::new(shape),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.spec.shape.len()
    }

    /// The arguments that its kernels read, where it has kernels; none where they are all zeros.
    pub(crate) const fn args(&self) -> Option<&[u32]> {
        match self.op() {
            Some(op) if !op.view && self.spec.args.is_none() => Some(&[]),
            Some(op) if !op.view => Some(self.spec.args.0.split_at(op.words).0),
            _ => None,
        }
    }

    /// The elements of the largest buffer that the node may need.
    pub(crate) const fn largest_buffer(&self) -> usize {
        let mut largest = self.len();
        let spec = &self.spec;
        let others = [spec.saved, spec.scratch, spec.state];
        let mut i = 0;
        while i < others.len() + MAX_INPUTS {
            let len = if i < others.len() { others[i] } else { spec.scratch_backward[i - others.len()] };
            if len > largest {
                largest = len;
            }
            i += 1;
        }
        largest
    }

    pub(crate) const fn op(&self) -> Option<&'static Op<B>> {
        match self.kind {
            Kind::Op(op) => Some(op),
            _ => None,
        }
    }

    pub(crate) const fn is_trained(&self) -> bool {
        matches!(self.kind, Kind::Parameter { frozen: false, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_join_their_parts() {
        let name = Name::new("block.conv1", "weight");
        assert_eq!(std::format!("{name}"), "block.conv1.weight");
        assert!(name == *"block.conv1.weight");
        assert!(name.equals(&Name::new("block", "conv1.weight")));
        for (prefix, within) in [("", true), ("block", true), ("block.conv1", true), ("block.conv", false)] {
            assert_eq!(name.is_within(prefix), within, "{prefix}");
        }
        assert!(Name::new("", "scale").is_within("scale") && !Name::new("", "scale").is_within("scale.x"));
    }
}
