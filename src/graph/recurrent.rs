//! Recurrent networks over a fixed number of steps, written in the operations of the builder: every step uses the same
//! parameters, whose gradients add up.

use super::{Graph, Id, Name, Var};
use crate::backend::Backend;
use crate::error::ShapeError;
use crate::init::Init;
use crate::ops::{Spec, add, gru_cell, linear, lstm_cell};
use crate::shape::{R2, Shape};

/// The parameters of a recurrent cell with `gates` times as many rows as units, as PyTorch names them.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    weight_ih: Id,
    weight_hh: Id,
    bias_ih: Id,
    bias_hh: Id,
}

/// A long short-term memory cell with `I` input features and `H` units: its parameters in a graph.
#[derive(Clone, Copy, Debug)]
pub struct LstmCell<const I: usize, const H: usize>(Parameters);

/// A gated recurrent unit with `I` input features and `H` units: its parameters in a graph.
#[derive(Clone, Copy, Debug)]
pub struct GruCell<const I: usize, const H: usize>(Parameters);

/// What a long short-term memory hands on from step to step.
#[derive(Clone, Copy, Debug)]
pub struct LstmState<const A: usize, const H: usize> {
    /// The hidden state, which is the cell's output.
    pub h: Var<R2<A, H>>,
    /// The cell.
    pub c: Var<R2<A, H>>,
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The parameters of a long short-term memory cell: `name.weight_ih` `[4 H, I]`, `name.weight_hh` `[4 H, H]`,
    /// `name.bias_ih` and `name.bias_hh` `[4 H]`, with the gates in PyTorch's order (input, forget, cell, output). Weights
    /// start as [`Init::XavierUniform`], biases at 0.
    #[track_caller]
    pub const fn lstm_cell<const I: usize, const H: usize>(&mut self, name: &'static str) -> LstmCell<I, H> {
        LstmCell(self.recurrent_parameters(name, I, H, 4 * H))
    }

    /// One step of a long short-term memory on a batch of `A`.
    #[track_caller]
    pub const fn lstm_step<const A: usize, const I: usize, const H: usize>(
        &mut self,
        cell: LstmCell<I, H>,
        x: Var<R2<A, I>>,
        LstmState { h, c }: LstmState<A, H>,
    ) -> LstmState<A, H> {
        let of_x = self.affine(x.id(), cell.0.weight_ih, cell.0.bias_ih);
        let of_h = self.affine(h.id(), cell.0.weight_hh, cell.0.bias_hh);
        let shape = self.shape(of_x);
        let gates = self.apply_dyn(add::op_same(), &[of_x, of_h], expect(add::spec(shape, shape)));
        let gates = self.apply_dyn(lstm_cell::op_gates(), &[gates], expect(lstm_cell::spec_gates(shape)));
        let spec = expect(lstm_cell::spec(c.shape(), shape));
        let c = self.apply_dyn(lstm_cell::op_cell(), &[c.id(), gates], spec);
        let h = self.apply_dyn(lstm_cell::op_hidden(), &[c, gates], spec);
        LstmState { h: Var::new(h), c: Var::new(c) }
    }

    /// A long short-term memory over `T` steps, with the parameters of [`Graph::lstm_cell`]. Returns the hidden state after
    /// every step, and what a further step would start from. Without a state it starts from zeros.
    ///
    /// ```
    /// use slabgrad::prelude::*;
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let xs = [g.input::<R2<1, 3>>("x0"), g.input("x1"), g.input("x2")];
    ///     let (hs, _) = g.lstm::<1, 3, 8, 3>("lstm", xs, None);
    ///     let y: Var<R2<1, 2>> = g.linear("fc", hs[2]);
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static NET = net().infer());
    /// assert_eq!(NET.params_len(), 32 * 3 + 32 * 8 + 32 + 32 + 2 * 8 + 2);
    /// ```
    #[track_caller]
    pub const fn lstm<const A: usize, const I: usize, const H: usize, const T: usize>(
        &mut self,
        name: &'static str,
        xs: [Var<R2<A, I>>; T],
        state: Option<LstmState<A, H>>,
    ) -> ([Var<R2<A, H>>; T], LstmState<A, H>) {
        let cell = self.lstm_cell::<I, H>(name);
        let mut state = match state {
            Some(state) => state,
            None => LstmState { h: self.zeros(), c: self.zeros() },
        };
        let mut hs = [state.h; T];
        let mut step = 0;
        while step < T {
            state = self.lstm_step(cell, xs[step], state);
            hs[step] = state.h;
            step += 1;
        }
        (hs, state)
    }

    /// The parameters of a gated recurrent unit: `name.weight_ih` `[3 H, I]`, `name.weight_hh` `[3 H, H]`, `name.bias_ih` and
    /// `name.bias_hh` `[3 H]`, with the parts in PyTorch's order (reset gate, update gate, candidate). Weights start as
    /// [`Init::XavierUniform`], biases at 0.
    #[track_caller]
    pub const fn gru_cell<const I: usize, const H: usize>(&mut self, name: &'static str) -> GruCell<I, H> {
        GruCell(self.recurrent_parameters(name, I, H, 3 * H))
    }

    /// One step of a gated recurrent unit on a batch of `A`: the next hidden state, which is its output.
    #[track_caller]
    pub const fn gru_step<const A: usize, const I: usize, const H: usize>(
        &mut self,
        cell: GruCell<I, H>,
        x: Var<R2<A, I>>,
        h: Var<R2<A, H>>,
    ) -> Var<R2<A, H>> {
        let of_x = self.affine(x.id(), cell.0.weight_ih, cell.0.bias_ih);
        let of_h = self.affine(h.id(), cell.0.weight_hh, cell.0.bias_hh);
        let spec = gru_cell::spec(h.shape(), self.shape(of_x), self.shape(of_h));
        self.record("", gru_cell::op(), &[h.id(), of_x, of_h], spec)
    }

    /// A gated recurrent unit over `T` steps, with the parameters of [`Graph::gru_cell`]: the hidden state after every step.
    /// Without a state it starts from zeros.
    #[track_caller]
    pub const fn gru<const A: usize, const I: usize, const H: usize, const T: usize>(
        &mut self,
        name: &'static str,
        xs: [Var<R2<A, I>>; T],
        state: Option<Var<R2<A, H>>>,
    ) -> [Var<R2<A, H>>; T] {
        let cell = self.gru_cell::<I, H>(name);
        let mut h = match state {
            Some(h) => h,
            None => self.zeros(),
        };
        let mut hs = [h; T];
        let mut step = 0;
        while step < T {
            h = self.gru_step(cell, xs[step], h);
            hs[step] = h;
            step += 1;
        }
        hs
    }

    #[track_caller]
    const fn recurrent_parameters(
        &mut self,
        name: &'static str,
        features: usize,
        hidden: usize,
        rows: usize,
    ) -> Parameters {
        let (weight, bias) = (Init::XavierUniform, Init::Zeros);
        Parameters {
            weight_ih: self.parameter_dyn(Name::new(name, "weight_ih"), Shape::new([rows, features]), weight),
            weight_hh: self.parameter_dyn(Name::new(name, "weight_hh"), Shape::new([rows, hidden]), weight),
            bias_ih: self.parameter_dyn(Name::new(name, "bias_ih"), Shape::new([rows]), bias),
            bias_hh: self.parameter_dyn(Name::new(name, "bias_hh"), Shape::new([rows]), bias),
        }
    }

    /// `x Wᵀ + b`.
    #[track_caller]
    const fn affine(&mut self, x: Id, weight: Id, bias: Id) -> Id {
        let spec = expect(linear::spec(self.shape(x), self.shape(weight), Some(self.shape(bias))));
        self.apply_dyn(linear::op(), &[x, weight, bias], spec)
    }
}

/// The spec of shapes that fit by construction, unless the cell is of another graph.
const fn expect(spec: Result<Spec, ShapeError>) -> Spec {
    match spec {
        Ok(spec) => spec,
        Err(error) => panic!("{}", error.message("").as_str()),
    }
}
