//! A tensor of zeros: a value without operands, such as the state that a recurrent network starts from.

use super::{ForwardCall, Gradient, Op, Spec};
use crate::backend::{Backend, Real};
use crate::graph::{Graph, Var};
use crate::shape::{Dims, Shape};
use crate::tape::{self, Call, Expr, Scope, Storage, Tape};

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const { &Op::new("zeros", forward::<B>, [Gradient::None, Gradient::None, Gradient::None]) }
}

/// The output has the shape `y`.
#[must_use]
pub const fn spec(y: Shape) -> Spec {
    Spec::new(y)
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// Zeros.
    #[track_caller]
    pub const fn zeros<S: Dims>(&mut self) -> Var<S> {
        self.apply(op::<B>(), &[], spec(S::SHAPE))
    }
}

impl<S: Storage> Tape<S> {
    /// Zeros, such as the state that a recurrent network starts from.
    #[track_caller]
    pub fn zeros(&mut self, shape: impl Into<Shape>) -> tape::Handle {
        self.record(Call::new(op(), Ok(spec(shape.into()))), tape::inputs([]))
    }
}

impl<'t, S: Storage> Scope<'t, S> {
    /// As [`Tape::zeros`].
    #[track_caller]
    pub fn zeros(&'t self, shape: impl Into<Shape>) -> Expr<'t, S> {
        self.of(self.tape().zeros(shape))
    }
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    call.y.fill(B::Elem::ZERO);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn zeros_run_without_inputs() {
        let mut g = Graph::<Strict<f32>>::new();
        let y = g.zeros::<R2<2, 3>>();
        g.output("y", y);
        let tables = g.infer().tables();
        let program = tables.program();
        let mut slab = std::vec![1.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.run(&mut memory, &[]).unwrap();
        assert_eq!(program.output(&memory, "y"), Some(&[0.0; 6][..]));
    }
}
