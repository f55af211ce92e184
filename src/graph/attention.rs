//! Scaled dot-product attention, and several heads of it, written in the operations of the builder.

use super::{Graph, Id, Name, Var};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::init::Init;
use crate::ops::{Op, Spec, linear, matmul, permute, reshape, scaled_softmax, slice};
use crate::shape::{R3, Shape};
use crate::tape::{self, Expr, Storage, Tape};

/// How attention weighs.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    scale: Option<f64>,
    causal: bool,
}

impl Attention {
    /// All keys, with scores divided by the root of the number of features.
    #[must_use]
    pub const fn new() -> Self {
        Self { scale: None, causal: false }
    }

    /// Each query sees only the keys up to its own place.
    #[must_use]
    pub const fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    /// With scores multiplied by this.
    #[must_use]
    pub const fn scale(self, scale: f64) -> Self {
        Self { scale: Some(scale), ..self }
    }

    /// What the scores of these queries are multiplied by.
    const fn scale_for(&self, q: Shape) -> f64 {
        match self.scale {
            Some(scale) => scale,
            None => 1.0 / root(q.axis_from_end(0)),
        }
    }
}

impl Default for Attention {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// `softmax(q kᵀ / √D) v` for each of `A` samples: `T` queries and `S` keys of `D` features, and a value of `E` features
    /// for each key (Vaswani et al., *Attention Is All You Need*, 2017).
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R3<1, 6, 4>>("x");
    ///     let y = g.scaled_dot_product_attention(x, x, x, Attention::new().causal());
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// ```
    ///
    /// # Panics
    /// When the scale is not finite.
    #[track_caller]
    pub const fn scaled_dot_product_attention<
        const A: usize,
        const T: usize,
        const S: usize,
        const D: usize,
        const E: usize,
    >(
        &mut self,
        q: Var<R3<A, T, D>>,
        k: Var<R3<A, S, D>>,
        v: Var<R3<A, S, E>>,
        settings: Attention,
    ) -> Var<R3<A, T, E>> {
        match self.scaled_dot_product_attention_dyn(q.id(), k.id(), v.id(), settings) {
            Ok(y) => Var::new(y),
            Err(error) => panic!("{}", error.message("").as_str()),
        }
    }

    /// The same by shapes as values: `[..., t, d]`, `[..., s, d]` and `[..., s, e]` give `[..., t, e]`.
    ///
    /// # Errors
    /// When the shapes do not fit, or the scale is not finite.
    #[track_caller]
    pub const fn scaled_dot_product_attention_dyn(
        &mut self,
        q: Id,
        k: Id,
        v: Id,
        settings: Attention,
    ) -> Result<Id, ShapeError> {
        let scale = settings.scale_for(self.shape(q));
        let spec = matmul::spec_nt(self.shape(q), self.shape(k));
        let scores = match self.try_apply(matmul::op_nt(), &[q, k], spec) {
            Ok(scores) => scores,
            error => return error,
        };
        let spec = scaled_softmax::spec(self.shape(scores), scale, settings.causal);
        let weights = match self.try_apply(scaled_softmax::op(), &[scores], spec) {
            Ok(weights) => weights,
            error => return error,
        };
        self.try_apply(matmul::op(), &[weights, v], matmul::spec(self.shape(weights), self.shape(v)))
    }

    /// Attention of `x` to itself by several heads, each over its part of the `E` features, between two linear layers
    /// (PyTorch's `MultiheadAttention` with `batch_first`): parameters `name.in_proj_weight` `[3 E, E]` and
    /// `name.in_proj_bias` `[3 E]` for queries, keys and values, `name.out_proj.weight` `[E, E]` and `name.out_proj.bias`
    /// `[E]`. Weights start as [`Init::XavierUniform`], biases at 0.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R3<1, 6, 8>>("x");
    ///     let y = g.multi_head_attention("attn", x, 2, Attention::new().causal());
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// assert_eq!(NET.params_len(), 4 * 8 * 8 + 4 * 8);
    /// ```
    ///
    /// # Panics
    /// When the features cannot be divided among the heads, or the scale is not finite.
    #[track_caller]
    pub const fn multi_head_attention<const A: usize, const T: usize, const E: usize>(
        &mut self,
        name: &'static str,
        x: Var<R3<A, T, E>>,
        heads: usize,
        settings: Attention,
    ) -> Var<R3<A, T, E>> {
        let (weight, bias) = (Init::XavierUniform, Init::Zeros);
        let parameters = [
            self.parameter_dyn(Name::new(name, "in_proj_weight"), Shape::new([3 * E, E]), weight),
            self.parameter_dyn(Name::new(name, "in_proj_bias"), Shape::new([3 * E]), bias),
            self.parameter_dyn(Name::new(name, "out_proj.weight"), Shape::new([E, E]), weight),
            self.parameter_dyn(Name::new(name, "out_proj.bias"), Shape::new([E]), bias),
        ];
        match self.multi_head_attention_dyn(x.id(), parameters, heads, settings) {
            Ok(y) => Var::new(y),
            Err(error) => panic!("{}", error.message(name).as_str()),
        }
    }

    /// The same by shapes as values, for `x` `[a, t, e]` and parameters that are there already, in the order above.
    ///
    /// # Errors
    /// When the shapes do not fit, the features cannot be divided among the heads, or the scale is not finite.
    #[track_caller]
    pub const fn multi_head_attention_dyn(
        &mut self,
        x: Id,
        [in_weight, in_bias, out_weight, out_bias]: [Id; 4],
        heads: usize,
        settings: Attention,
    ) -> Result<Id, ShapeError> {
        let (op, shape) = ("multi_head_attention", self.shape(x));
        if shape.rank() != 3 {
            return Err(ShapeError::Rank {
                op,
                operand: "the input",
                expected: "[batch, steps, features]",
                found: shape,
            });
        }
        let (batch, steps, features) = (shape.axis(0), shape.axis(1), shape.axis(2));
        if heads == 0 || !features.is_multiple_of(heads) {
            let (what, against) = ("features to be divided are", "heads are");
            return Err(ShapeError::Length { op, what, found: features, against, expected: heads });
        }
        // Queries, keys and values of all heads, then one after the other: [3, batch, heads, steps, features of a head].
        let projected = match self.try_linear(x, in_weight, in_bias) {
            Ok(projected) => projected,
            error => return error,
        };
        let split = Shape::new([batch, steps, 3, heads, features / heads]);
        let split = match self.try_apply(reshape::op(), &[projected], reshape::spec(self.shape(projected), split)) {
            Ok(split) => split,
            error => return error,
        };
        let spec = permute::spec(self.shape(split), &[2, 0, 3, 1, 4]);
        let split = match self.try_apply(permute::op(), &[split], spec) {
            Ok(split) => split,
            error => return error,
        };
        let mut qkv = [split; 3];
        let mut part = 0;
        while part < 3 {
            let spec = slice::spec(self.shape(split), &[part], &[part + 1], &[]);
            qkv[part] = match self.try_apply(slice::op(), &[split], spec) {
                Ok(part) => part,
                error => return error,
            };
            part += 1;
        }
        let [q, k, v] = qkv;
        let y = match self.scaled_dot_product_attention_dyn(q, k, v, settings) {
            Ok(y) => y,
            error => return error,
        };
        let y = match self.try_apply(permute::op(), &[y], permute::spec(self.shape(y), &[0, 1, 3, 2, 4])) {
            Ok(y) => y,
            error => return error,
        };
        match self.try_apply(reshape::op(), &[y], reshape::spec(self.shape(y), shape)) {
            Ok(y) => self.try_linear(y, out_weight, out_bias),
            error => error,
        }
    }

    #[track_caller]
    const fn try_linear(&mut self, x: Id, weight: Id, bias: Id) -> Result<Id, ShapeError> {
        let spec = linear::spec(self.shape(x), self.shape(weight), Some(self.shape(bias)));
        self.try_apply(linear::op(), &[x, weight, bias], spec)
    }

    #[track_caller]
    const fn try_apply(
        &mut self,
        op: &'static Op<B>,
        inputs: &[Id],
        spec: Result<Spec, ShapeError>,
    ) -> Result<Id, ShapeError> {
        match spec {
            Ok(spec) => Ok(self.apply_dyn(op, inputs, spec)),
            Err(error) => Err(error),
        }
    }
}

impl<S: Storage> Tape<S> {
    /// `softmax(q kᵀ / √d) v` of queries `[..., t, d]`, keys `[..., s, d]` and values `[..., s, e]`, as `[..., t, e]`; see
    /// [`Graph::scaled_dot_product_attention`]. A fault where the shapes do not fit, or the scale is not finite.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &mut self,
        q: tape::Handle,
        k: tape::Handle,
        v: tape::Handle,
        settings: Attention,
    ) -> tape::Handle {
        let scores = self.matmul_nt(q, k);
        let weights = self.scaled_softmax(scores, settings.scale_for(self.shape(q)), settings.causal);
        self.matmul(weights, v)
    }
}

impl<S: Storage> Expr<'_, S> {
    /// As [`Tape::scaled_dot_product_attention`], with these queries.
    #[track_caller]
    #[must_use]
    pub fn scaled_dot_product_attention(self, k: Self, v: Self, settings: Attention) -> Self {
        let var = self.tape().scaled_dot_product_attention(self.handle(), k.handle(), v.handle(), settings);
        self.with(var)
    }
}

/// The square root of `n`, by Newton's method from above, for constants.
const fn root(n: usize) -> f64 {
    let n = n as f64;
    if n < 1.0 {
        return 0.0;
    }
    let mut root = n;
    loop {
        let next = f64::midpoint(root, n / root);
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact_to_the_last_place() {
        for n in (0..5000).chain([1 << 20, usize::MAX >> 12]) {
            let want = libm::sqrt(n as f64);
            let off = (root(n) - want).abs();
            assert!(off <= want * f64::EPSILON + 1e-150, "root({n}) = {}, expected {want}", root(n));
        }
    }
}
