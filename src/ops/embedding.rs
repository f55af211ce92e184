//! Embedding: the rows of a weight `[vocabulary, d]` at whole numbers of any shape `[...]`, as `[..., d]`.
//!
//! A row of the weight's gradient is the sum of `dy` over the places where it was read, in ascending order. The indices get
//! no gradient. Where they are an input, a run checks that they lie below the vocabulary; where one is computed and does
//! not, its row of `y` is NaN.

use super::{Args, BackwardCall, ForwardCall, Gradient, Op, OverGradient, Reads, Spec, strided};
use crate::backend::{Backend, Real};
use crate::error::ShapeError;
use crate::graph::{Graph, IndexDims, Var};
use crate::init::Init;
use crate::shape::{Dims, MAX_RANK, R2, Shape};
use crate::tape::Call;

/// The table.
#[must_use]
pub const fn op<B: Backend>() -> &'static Op<B> {
    const {
        let weight =
            Gradient::Kernel { run: gradient::<B>, reads: Reads::input(1), over: OverGradient::Nothing, rows: true };
        &Op::new("embedding", forward::<B>, [weight, Gradient::None, Gradient::None])
    }
}

/// The output has the shape of the indices and the weight's last axis behind.
///
/// # Errors
/// When the weight is no matrix, or the output would have more axes than there can be.
pub const fn spec(weight: Shape, indices: Shape) -> Result<Spec, ShapeError> {
    let op = "embedding";
    if weight.rank() != 2 {
        return Err(ShapeError::Rank { op, operand: "the weight", expected: "[vocabulary, d]", found: weight });
    }
    if indices.rank() == MAX_RANK {
        return Err(ShapeError::Rank { op, operand: "the indices", expected: "at most 4 axes", found: indices });
    }
    Ok(Spec::new(indices.push(weight.axis(1))).args(Args::new(&[weight.axis(1), weight.axis(0)])))
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// An embedding with a parameter `name.weight` `[V, D]`, as the annotated shape `Y`. PyTorch starts the weight with
    /// normal numbers of variance 1.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net<const A: usize>() -> Graph {
    ///     let mut g = Graph::new();
    ///     let tokens = g.indices::<R2<A, 12>>("tokens");
    ///     let h: Var<R3<A, 12, 8>> = g.embedding::<100, 8, _, _>("embedding", tokens, Init::HeNormal);
    ///     g.output("h", h);
    ///     g
    /// }
    /// program!(static NET = net::<4>().infer());
    /// ```
    ///
    /// # Panics
    /// When the annotated shape is another.
    #[track_caller]
    pub const fn embedding<const V: usize, const D: usize, I: IndexDims, Y: Dims>(
        &mut self,
        name: &'static str,
        indices: Var<I>,
        init: Init,
    ) -> Var<Y> {
        let weight = self.parameter::<R2<V, D>>(name, "weight", init);
        self.embedding_from(weight, indices)
    }

    /// The rows of a weight that is there already, as the annotated shape `Y`.
    ///
    /// # Panics
    /// When that is not the shape of the indices and `D`.
    #[track_caller]
    pub const fn embedding_from<const V: usize, const D: usize, I: IndexDims, Y: Dims>(
        &mut self,
        weight: Var<R2<V, D>>,
        indices: Var<I>,
    ) -> Var<Y> {
        self.index_below(indices.id(), V);
        self.record("", op(), &[weight.id(), indices.id()], spec(weight.shape(), I::SHAPE))
    }
}

crate::tape::methods! {
    /// The rows of a weight `[vocabulary, d]` at whole numbers `[...]`, as `[..., d]`. A fault where the shapes do not fit, or
    /// an index is not below the vocabulary.
    embedding(weight, indices)() => Call::new(op(), spec(weight, indices)).indices(1, weight.axis(0))
}

fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    let [width, ..] = call.args.lengths();
    let [weight, indices, _] = call.x;
    for (y, index) in call.y.chunks_exact_mut(width.max(1)).zip(indices) {
        let row = index.to_index().and_then(|index| weight.get(index * width..(index + 1) * width));
        match row {
            Some(row) => y.iter_mut().zip(row).for_each(|(y, &w)| *y = w),
            None => y.fill(B::Elem::choose(f32::NAN, f64::NAN)),
        }
    }
}

fn gradient<B: Backend>(mut call: BackwardCall<'_, B::Elem>) {
    let [width, ..] = call.args.lengths();
    strided::start(&mut call);
    for (dy, index) in call.dy.chunks_exact(width.max(1)).zip(call.x[1]) {
        // Rows outside of those that are asked for are skipped.
        let row = index.to_index().and_then(|index| index.checked_sub(call.first_row));
        if let Some(dw) = row.and_then(|row| call.dx.get_mut(row * width..(row + 1) * width)) {
            dw.iter_mut().zip(dy).for_each(|(dw, &dy)| *dw += dy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::gradient;
    use super::*;
    use crate::backend::Strict;
    use crate::optim::Sgd;
    use crate::plan::Training;
    use crate::program::RunError;
    use crate::shape::{R0, R3};

    #[test]
    fn values_and_gradients() {
        let spec = spec(Shape::new([3, 2]), Shape::new([2, 2])).unwrap();
        assert_eq!(spec.shape, Shape::new([2, 2, 2]));
        let (weight, indices) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 0.0, 2.0, 2.0]);
        let dy = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let (y, dw) = gradient(op::<Strict<f64>>(), spec, &[&weight, &indices], &dy, 0);
        assert_eq!(y, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0, 5.0, 6.0]);
        assert_eq!(dw, [3.0, 4.0, 0.0, 0.0, 13.0, 16.0]);
    }

    #[test]
    fn an_index_that_is_none_reads_nan() {
        let spec = spec(Shape::new([2, 1]), Shape::new([3])).unwrap();
        let (y, dw) = gradient(op::<Strict<f64>>(), spec, &[&[1.0, 2.0], &[2.0, -1.0, 1.0]], &[1.0; 3], 0);
        assert!(y[0].is_nan() && y[1].is_nan() && y[2] == 2.0, "{y:?}");
        assert_eq!(dw, [0.0, 1.0]);
    }

    const fn net() -> Graph<Strict<f32>> {
        let mut g = Graph::new();
        let tokens = g.indices::<R2<2, 3>>("tokens");
        let h: Var<R3<2, 3, 2>> = g.embedding::<7, 2, _, _>("embedding", tokens, Init::HeNormal);
        let loss: Var<R0> = g.l2_norm(h, &[]);
        g.loss(loss);
        g
    }

    #[test]
    fn rows_that_are_updated_as_they_are_computed_have_the_same_bits() {
        let train = |training: Training| {
            let tables = net().train(training).tables();
            let program = tables.program();
            let mut slab = std::vec![0.0; program.slab_len()];
            let mut memory = program.memory(&mut slab).unwrap();
            program.init(&mut memory, 1).unwrap();
            for tokens in [[0.0, 6.0, 6.0, 3.0, 4.0, 6.0], [5.0, 5.0, 1.0, 1.0, 5.0, 0.0]] {
                program.step(&mut memory, &[&tokens], &mut Sgd::new(0.1)).unwrap();
            }
            (memory.params.to_vec(), memory.grads.len())
        };
        let (whole, grads) = train(Training::with::<Sgd>());
        let (fused, none) = train(Training::with::<Sgd>().fused());
        assert_eq!((grads, none), (14, 0));
        assert_eq!(whole, fused);
    }

    #[test]
    fn a_token_outside_the_vocabulary_is_an_error() {
        let tables = net().train(Training::with::<Sgd>()).tables();
        let program = tables.program();
        let mut slab = std::vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        let tokens = [0.0, 6.0, 7.0, 3.0, 4.0, 6.0];
        let error = program.step(&mut memory, &[&tokens], &mut Sgd::new(0.1)).unwrap_err();
        assert!(matches!(error, RunError::IndexOutOfRange { .. }), "{error}");
    }
}
