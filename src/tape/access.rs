//! Looking at what lies on a tape.

use super::node::{Kind, Node};
use super::storage::Elem;
use super::{Handle, Storage, Tape};
use crate::backend::Real;
use crate::ops::{Op, Spec};
use crate::shape::Shape;

impl<S: Storage> Tape<S> {
    /// The shape of a value; that of a scalar where the handle stands for nothing.
    #[must_use]
    pub fn shape(&self, x: Handle) -> Shape {
        self.node(x).map_or(Shape::SCALAR, |node| node.spec.shape)
    }

    /// The name of the element type: `f32` or `f64`.
    #[must_use]
    pub fn dtype(&self) -> &'static str {
        if Elem::<S>::PRECISION > 24 { "f64" } else { "f32" }
    }

    /// What computed a value: an operation's name, or `parameter`, `constant`, `state`.
    #[must_use]
    pub fn name(&self, x: Handle) -> &'static str {
        self.node(x).map_or("nothing", Node::name)
    }

    /// The values that it was computed from.
    #[must_use]
    pub fn children(&self, x: Handle) -> &[Handle] {
        self.node(x).map_or(&[], Node::inputs)
    }

    /// The table and the spec that it was computed by; `None` for leaves and for functions of the user.
    #[must_use]
    pub fn operation(&self, x: Handle) -> Option<(&'static Op<S::Backend>, Spec)> {
        match self.node(x)? {
            Node { kind: Kind::Op(op), spec, .. } => Some((op, *spec)),
            _ => None,
        }
    }

    /// Whether some parameter lies behind it.
    #[must_use]
    pub fn requires_grad(&self, x: Handle) -> bool {
        self.node(x).is_some_and(|node| node.needs_gradient)
    }

    /// The elements of a value, in row-major order; none where the handle stands for nothing, or where the value is still to
    /// be computed.
    #[must_use]
    pub fn value(&self, x: Handle) -> &[Elem<S>] {
        let spaces = self.storage.spaces();
        let Some(root) = self.root(x).filter(|root| !root.pending) else { return &[] };
        let space = if root.is_parameter() { spaces.params } else { spaces.work };
        space.get(root.value_range()).unwrap_or_default()
    }

    /// The same, to be changed: for parameters, inputs that stay on the tape, and state. What was computed from it before
    /// stays as it was.
    #[must_use]
    pub fn value_mut(&mut self, x: Handle) -> &mut [Elem<S>] {
        let Some(root) = self.root(x).filter(|root| !root.pending) else { return &mut [] };
        let (range, is_parameter) = (root.value_range(), root.is_parameter());
        let spaces = self.storage.spaces_mut();
        let space = if is_parameter { spaces.params } else { spaces.work };
        space.get_mut(range).unwrap_or_default()
    }

    /// The first element of a value, such as a loss; NaN where there is none.
    #[must_use]
    pub fn item(&self, x: Handle) -> Elem<S> {
        self.value(x).first().copied().unwrap_or(Elem::<S>::choose(f32::NAN, f64::NAN))
    }

    /// The gradient of a value: of a parameter what has been added up since the last reset (0 before), of others that of the
    /// last backward. `None` where nothing has reached it, and of constants. A view such as a reshape is the same value with
    /// the same gradient.
    #[must_use]
    pub fn gradient(&self, x: Handle) -> Option<&[Elem<S>]> {
        let spaces = self.storage.spaces();
        let root = self.root(x)?;
        if root.is_parameter() {
            return spaces.grads.get(root.gradient_range());
        }
        if root.has_gradient { spaces.work.get(root.gradient_range()) } else { None }
    }

    /// All parameters, one after the other in the order in which they were registered.
    #[must_use]
    pub fn params(&self) -> &[Elem<S>] {
        self.storage.spaces().params.get(..self.params).unwrap_or_default()
    }

    /// The same, to be changed.
    #[must_use]
    pub fn params_mut(&mut self) -> &mut [Elem<S>] {
        self.storage.spaces_mut().params.get_mut(..self.params).unwrap_or_default()
    }

    /// The gradients of all parameters, laid out as they are.
    #[must_use]
    pub fn grads(&self) -> &[Elem<S>] {
        self.storage.spaces().grads.get(..self.params).unwrap_or_default()
    }

    /// The same, to be changed: for clipping, for instance.
    #[must_use]
    pub fn grads_mut(&mut self) -> &mut [Elem<S>] {
        self.storage.spaces_mut().grads.get_mut(..self.params).unwrap_or_default()
    }
}
