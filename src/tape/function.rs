//! Operations of the user's own as closures.

use alloc::boxed::Box;

use super::node::{Backprop, Kind, Node};
use super::storage::Elem;
use super::{Cause, Expr, Handle, Storage, Tape};
use crate::backend::Real;
use crate::ops::MAX_INPUTS;
use crate::program::Space;
use crate::shape::Shape;

impl<S: Storage> Tape<S> {
    /// Records a function of up to three values: `forward` writes the output of shape `shape`, which is 0 before, from the
    /// inputs, at once also on a lazy tape; `backward` writes the gradient for one of them. For one that runs without an allocator, and in all front
    /// ends, write an operation's table: see [`Tape::apply`].
    ///
    /// A fault where there are more than three inputs, or there is no room.
    ///
    /// ```
    /// use slabgrad::tape::Tape;
    ///
    /// // y = 2 x.
    /// let mut tape = Tape::new();
    /// let x = tape.parameter([3], &[1.0, 2.0, 3.0]);
    /// let y = tape.function(
    ///     "double",
    ///     &[x],
    ///     [3],
    ///     |[x, ..], y| y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x),
    ///     |call| call.dx.iter_mut().zip(call.dy).for_each(|(dx, dy)| *dx = 2.0 * dy),
    /// );
    /// tape.backward_from(y, &[1.0, 10.0, 100.0])?;
    /// assert_eq!(tape.value(y), [2.0, 4.0, 6.0]);
    /// assert_eq!(tape.gradient(x), Some(&[2.0, 20.0, 200.0][..]));
    /// # Ok::<(), slabgrad::tape::TapeError>(())
    /// ```
    #[track_caller]
    pub fn function(
        &mut self,
        name: &'static str,
        inputs: &[Handle],
        shape: impl Into<Shape>,
        forward: impl FnOnce([&[Elem<S>]; MAX_INPUTS], &mut [Elem<S>]),
        backward: impl Fn(Backprop<'_, Elem<S>>) + 'static,
    ) -> Handle {
        if self.fault.is_some() {
            return Handle::NONE;
        }
        let node = Node::leaf(Kind::Function(name, Box::new(backward)), shape.into());
        match self.try_function(node, inputs, forward) {
            Ok(var) => var,
            Err(cause) => {
                let mut operands = [None; MAX_INPUTS];
                operands.iter_mut().zip(inputs).for_each(|(operand, &input)| *operand = Some(input));
                self.fail(name, &operands, cause)
            }
        }
    }

    fn try_function(
        &mut self,
        mut node: Node<S::Backend>,
        inputs: &[Handle],
        forward: impl FnOnce([&[Elem<S>]; MAX_INPUTS], &mut [Elem<S>]),
    ) -> Result<Handle, Cause> {
        self.set_inputs(&mut node, inputs.iter().copied())?;
        for input in inputs {
            self.evaluate(input.index())?;
        }
        let (start, len) = (self.work, node.len());
        let end = start.saturating_add(len);
        self.storage.reserve(Space::Work, end)?;
        node.value = start as u32;
        let (x, y, _) = super::record::operands(self.storage.spaces_mut(), &node, start);
        let y = y.get_mut(..len).unwrap_or_default();
        y.fill(Elem::<S>::ZERO);
        forward(x, y);
        self.push(node, end)
    }

    /// Reduces all elements, in their order, to one value: `reducer` takes an element and what the ones before it gave, at first
    /// `start`. `gradient` says what reaches an element, from the gradient of the result, the element's place, and all
    /// elements (nanograd's `reduce-tensor`); `|dy, _, _| dy` is that of a sum. [`ops::reduce_by`](crate::ops::reduce_by)
    /// does the same without an allocator.
    ///
    /// ```
    /// use slabgrad::tape::Tape;
    ///
    /// let mut tape = Tape::new();
    /// let x = tape.parameter([3], &[1.0, -2.0, 3.0]);
    /// let y = tape.reduce(x, 0.0, |x, sum| sum + x * x, |dy, i, all| dy * 2.0 * all[i]);
    /// tape.backward(y)?;
    /// assert_eq!(tape.item(y), 14.0);
    /// assert_eq!(tape.gradient(x), Some(&[2.0, -4.0, 6.0][..]));
    /// # Ok::<(), slabgrad::tape::TapeError>(())
    /// ```
    #[track_caller]
    pub fn reduce(
        &mut self,
        x: Handle,
        start: Elem<S>,
        reducer: impl Fn(Elem<S>, Elem<S>) -> Elem<S>,
        gradient: impl Fn(Elem<S>, usize, &[Elem<S>]) -> Elem<S> + 'static,
    ) -> Handle {
        self.function(
            "reduce",
            &[x],
            Shape::SCALAR,
            |[x, ..], y| y.fill(x.iter().fold(start, |result, &x| reducer(x, result))),
            move |Backprop { x: [x, ..], dy, dx, .. }| {
                let dy = dy.first().copied().unwrap_or_default();
                dx.iter_mut().enumerate().for_each(|(i, dx)| *dx = gradient(dy, i, x));
            },
        )
    }
}

impl<S: Storage> Expr<'_, S> {
    /// As [`Tape::function`], of this value and `others`.
    #[track_caller]
    #[must_use]
    pub fn function(
        self,
        name: &'static str,
        others: &[Self],
        shape: impl Into<Shape>,
        forward: impl FnOnce([&[Elem<S>]; MAX_INPUTS], &mut [Elem<S>]),
        backward: impl Fn(Backprop<'_, Elem<S>>) + 'static,
    ) -> Self {
        let inputs: alloc::vec::Vec<Handle> =
            core::iter::once(self).chain(others.iter().copied()).map(Self::handle).collect();
        let var = self.tape().function(name, &inputs, shape, forward, backward);
        self.with(var)
    }

    /// As [`Tape::reduce`].
    #[track_caller]
    #[must_use]
    pub fn reduce(
        self,
        start: Elem<S>,
        reducer: impl Fn(Elem<S>, Elem<S>) -> Elem<S>,
        gradient: impl Fn(Elem<S>, usize, &[Elem<S>]) -> Elem<S> + 'static,
    ) -> Self {
        let var = self.tape().reduce(self.handle(), start, reducer, gradient);
        self.with(var)
    }
}
