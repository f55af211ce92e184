//! A reduction of the user's own: all elements, folded in ascending order into one value by a function, with the gradient that
//! another function says. Without one the gradient goes to every element alike, as that of a sum (nanograd's
//! `reduce-tensor`).
//!
//! ```
//! use slabgrad::ops::reduce_by::{self, Reducer};
//! use slabgrad::prelude::*;
//!
//! /// The product, with the product rule for elements that are not 0.
//! struct Product;
//! impl<B: Backend> Reducer<B> for Product {
//!     const NAME: &'static str = "product";
//!     fn start() -> B::Elem {
//!         B::Elem::ONE
//!     }
//!     fn fold(x: B::Elem, result: B::Elem) -> B::Elem {
//!         result * x
//!     }
//!     fn gradient(dy: B::Elem, index: usize, all: &[B::Elem]) -> B::Elem {
//!         let others = all.iter().enumerate().filter(|(i, _)| *i != index);
//!         others.fold(dy, |product, (_, &x)| product * x)
//!     }
//! }
//!
//! const fn net() -> Graph {
//!     let mut g = Graph::new();
//!     let x = g.input::<R1<3>>("x");
//!     let y = g.reduce_by::<Product, _>(x);
//!     g.output("y", y);
//!     g
//! }
//! program!(static REDUCE = net().infer());
//!
//! let mut slab = [0.0; REDUCE.slab_len()];
//! let mut memory = REDUCE.memory(&mut slab)?;
//! REDUCE.run(&mut memory, &[&[2.0, 3.0, 4.0]])?;
//! assert_eq!(REDUCE.output(&memory, "y"), Some(&[24.0][..]));
//! # Ok::<(), RunError>(())
//! ```

use super::{BackwardCall, ForwardCall, Gradient, Op, Reads, Spec};
use crate::backend::Backend;
use crate::graph::{Graph, Var};
use crate::shape::{Dims, R0, Shape};
use crate::tape::{self, Call, Expr, Storage, Tape};

/// How all elements become one value.
pub trait Reducer<B: Backend>: 'static {
    /// The operation's name.
    const NAME: &'static str;

    /// The result of no elements.
    fn start() -> B::Elem;

    /// The result with one element more.
    fn fold(x: B::Elem, result: B::Elem) -> B::Elem;

    /// The gradient with respect to element `index` of `all`, from that of the result.
    #[must_use]
    fn gradient(dy: B::Elem, index: usize, all: &[B::Elem]) -> B::Elem {
        _ = (index, all);
        dy
    }
}

/// The table of a reducer.
#[must_use]
pub const fn op<B: Backend, R: Reducer<B>>() -> &'static Op<B> {
    const {
        let x = Gradient::kernel(gradient::<B, R>, Reads::input(0));
        &Op::new(R::NAME, forward::<B, R>, [x, Gradient::None, Gradient::None])
    }
}

/// Any shape; the output is a scalar.
#[must_use]
pub const fn spec(_: Shape) -> Spec {
    Spec::new(Shape::SCALAR)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// All elements of `x`, reduced by `R`.
    #[track_caller]
    pub const fn reduce_by<R: Reducer<B>, S: Dims>(&mut self, x: Var<S>) -> Var<R0> {
        self.apply(op::<B, R>(), &[x.id()], spec(S::SHAPE))
    }
}

impl<S: Storage> Tape<S> {
    /// All elements of `x`, of any shape, reduced by `R` to a scalar.
    #[track_caller]
    pub fn reduce_by<R: Reducer<S::Backend>>(&mut self, x: tape::Handle) -> tape::Handle {
        let spec = spec(self.shape(x));
        self.record(Call::new(op::<S::Backend, R>(), Ok(spec)), tape::inputs([Some(x)]))
    }
}

impl<S: Storage> Expr<'_, S> {
    /// All elements, of any shape, reduced by `R` to a scalar.
    #[track_caller]
    #[must_use]
    pub fn reduce_by<R: Reducer<S::Backend>>(self) -> Self {
        let var = self.tape().reduce_by::<R>(self.handle());
        self.with(var)
    }
}

fn forward<B: Backend, R: Reducer<B>>(call: ForwardCall<'_, B::Elem>) {
    if let Some(y) = call.y.first_mut() {
        *y = call.x[0].iter().fold(R::start(), |result, &x| R::fold(x, result));
    }
}

fn gradient<B: Backend, R: Reducer<B>>(call: BackwardCall<'_, B::Elem>) {
    let (all, dy) = (call.x[0], call.dy.first().copied().unwrap_or_default());
    for (index, dx) in call.dx.iter_mut().enumerate() {
        let share = R::gradient(dy, index, all);
        *dx = if call.add { *dx + share } else { share };
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;
    use crate::backend::Real;

    struct Plain;

    impl<B: Backend> Reducer<B> for Plain {
        const NAME: &'static str = "plain";
        fn start() -> B::Elem {
            B::Elem::ZERO
        }
        fn fold(x: B::Elem, result: B::Elem) -> B::Elem {
            result + x
        }
    }

    struct Squares;

    impl<B: Backend> Reducer<B> for Squares {
        const NAME: &'static str = "squares";
        fn start() -> B::Elem {
            B::Elem::ZERO
        }
        fn fold(x: B::Elem, result: B::Elem) -> B::Elem {
            result + x * x
        }
        fn gradient(dy: B::Elem, index: usize, all: &[B::Elem]) -> B::Elem {
            let x = all.get(index).copied().unwrap_or_default();
            dy * (x + x)
        }
    }

    #[test]
    fn without_a_gradient_of_its_own_it_is_that_of_a_sum() {
        check(op::<_, Plain>(), spec(Shape::new([3])), &[&[1.0, 2.0, 3.0]], &[6.0], &[&[1.0; 3]]);
    }

    #[test]
    fn values_and_gradients() {
        check(op::<_, Squares>(), spec(Shape::new([3])), &[&[1.0, -2.0, 3.0]], &[14.0], &[&[2.0, -4.0, 6.0]]);
    }
}
