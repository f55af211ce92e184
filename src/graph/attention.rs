//! Scaled dot-product attention, written in the operations of the builder.

use super::{Graph, Id, Var};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::ops::{matmul, scaled_softmax};
use crate::shape::R3;

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
    pub const fn scaled_dot_product_attention_dyn(
        &mut self,
        q: Id,
        k: Id,
        v: Id,
        settings: Attention,
    ) -> Result<Id, ShapeError> {
        let scale = match settings.scale {
            Some(scale) => scale,
            None => 1.0 / root(self.shape(q).axis_from_end(0)),
        };
        let spec = match matmul::spec_nt(self.shape(q), self.shape(k)) {
            Ok(spec) => spec,
            Err(error) => return Err(error),
        };
        let scores = self.apply_dyn(matmul::op_nt(), &[q, k], spec);
        let spec = match scaled_softmax::spec(spec.shape, scale, settings.causal) {
            Ok(spec) => spec,
            Err(error) => return Err(error),
        };
        let weights = self.apply_dyn(scaled_softmax::op(), &[scores], spec);
        match matmul::spec(spec.shape, self.shape(v)) {
            Ok(spec) => Ok(self.apply_dyn(matmul::op(), &[weights, v], spec)),
            Err(error) => Err(error),
        }
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
