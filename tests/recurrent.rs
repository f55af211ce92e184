//! Recurrent networks and attention against PyTorch, from `tests/golden/recurrent.json`: values and all gradients, in double
//! and in single precision.

#![cfg(feature = "alloc")]

mod common;

use common::{absolute_difference, elements, load, numbers, relative_difference, shape, worst_element};
use serde_json::Value;
use slabgrad::graph::Id;
use slabgrad::ops::{Spec, add};
use slabgrad::prelude::*;
use slabgrad::testing::{Operand, run_graph, weighted_sum};

/// As `tests/golden.rs` has them.
const DOUBLE: f64 = 1e-13;

fn compare<E: Real + Into<f64>>(what: &str, found: &[E], want: &[f64], errors: &Value) {
    let (error, limit) = if E::PRECISION > 24 {
        (relative_difference(found, want), DOUBLE)
    } else {
        (absolute_difference(found, want), 8.0 * errors[0].as_f64().unwrap_or(0.0) + 1e-6)
    };
    assert!(error <= limit, "{what}: {}; off by {error:.1e}, {limit:.0e} is allowed", worst_element(found, want));
}

fn case(name: &str) -> Value {
    let file = load("recurrent");
    let cases = file["cases"].as_array().expect("cases is an array");
    cases.iter().find(|case| case["name"] == name).unwrap_or_else(|| panic!("no case {name}")).clone()
}

const T: usize = 3;
const A: usize = 2;
const I: usize = 4;
const H: usize = 5;

/// Runs a recurrent graph from the case's values; its outputs in order are the rows of the case's output. The inputs, the
/// states and the step's outputs are compared with the case, and so are all gradients.
fn check<B: Backend<Elem: Into<f64>>>(case: &Value, build: fn(&mut Graph<B>) -> Vec<(&'static str, Id)>) {
    let mut g = Graph::<B>::new();
    let outputs = build(&mut g);
    let dy = numbers(&case["grad_output"]);
    let dy: Vec<Vec<B::Elem>> = dy.chunks(A * H).map(elements).collect();
    let mut loss: Option<Id> = None;
    for ((&(name, y), seed), dy) in outputs.iter().zip(["dy0", "dy1", "dy2", "dy3"]).zip(&dy) {
        let seed = g.input_dyn(seed, Shape::new([dy.len()]));
        let term = g.apply_dyn(weighted_sum(), &[y, seed], Spec::new(Shape::SCALAR));
        let scalar = add::spec(Shape::SCALAR, Shape::SCALAR).unwrap();
        loss = Some(loss.map_or(term, |loss| g.apply_dyn(add::op_same(), &[loss, term], scalar)));
        g.output_dyn(name, y);
    }
    assert_eq!(dy.len(), outputs.len(), "the case's outputs");
    g.loss_dyn(loss.unwrap());

    let tables = g.train(Training::with_slots(0).keep_outputs()).tables();
    let program = tables.program();
    let mut slab = vec![B::Elem::ZERO; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    // Inputs of steps are parameters here, so that they have gradients: `x.0` is the first part of `x`.
    let part = |tensors: &Value, name: &str| match name.strip_prefix("x.") {
        Some(step) => numbers(&tensors["x"]).chunks(A * I).nth(step.parse().unwrap()).unwrap().to_vec(),
        None => numbers(&tensors[name.strip_prefix("rnn.").unwrap_or(name)]),
    };
    let names: Vec<String> = program.tensors().iter().map(|tensor| tensor.name.to_string()).collect();
    for name in &names {
        let value: Vec<B::Elem> = elements(&part(&case["inputs"], name));
        program.tensor_mut(&mut memory, name).unwrap().copy_from_slice(&value);
    }
    let fed: Vec<&[B::Elem]> = dy.iter().map(Vec::as_slice).collect();
    program.gradients(&mut memory, &fed).unwrap();

    let want = numbers(&case["output"]);
    for ((name, _), want) in outputs.iter().zip(want.chunks(A * H)) {
        compare(name, program.output(&memory, name).unwrap(), want, &case["f32_err"]["output"]);
    }
    for name in &names {
        let tensor = if name.starts_with("x.") { "x" } else { name.strip_prefix("rnn.").unwrap_or(name) };
        let (found, want) = (program.gradient(&memory, name).unwrap(), part(&case["grads"], name));
        compare(&format!("the gradient of {name}"), found, &want, &case["f32_err"][tensor]);
    }
}

/// The inputs of the steps, as parameters.
fn steps<B: Backend>(g: &mut Graph<B>) -> [Var<R2<A, I>>; T] {
    ["0", "1", "2"].map(|step| g.parameter("x", step, Init::Zeros))
}

fn lstm<B: Backend>(g: &mut Graph<B>) -> Vec<(&'static str, Id)> {
    let xs = steps(g);
    let state = LstmState { h: g.parameter("", "h0", Init::Zeros), c: g.parameter("", "c0", Init::Zeros) };
    let (hs, state) = g.lstm::<A, I, H, T>("rnn", xs, Some(state));
    vec![("h1", hs[0].id()), ("h2", hs[1].id()), ("h3", hs[2].id()), ("c3", state.c.id())]
}

fn gru<B: Backend>(g: &mut Graph<B>) -> Vec<(&'static str, Id)> {
    let xs = steps(g);
    let h = g.parameter("", "h0", Init::Zeros);
    let hs = g.gru::<A, I, H, T>("rnn", xs, Some(h));
    vec![("h1", hs[0].id()), ("h2", hs[1].id()), ("h3", hs[2].id())]
}

#[test]
fn a_long_short_term_memory_over_three_steps() {
    check::<Strict<f64>>(&case("lstm"), lstm);
    check::<Strict<f32>>(&case("lstm"), lstm);
}

#[test]
fn a_gated_recurrent_unit_over_three_steps() {
    check::<Strict<f64>>(&case("gru"), gru);
    check::<Strict<f32>>(&case("gru"), gru);
}

fn check_attention<B: Backend<Elem: Into<f64>>>(name: &str, operands: &[&str], build: fn(&mut Graph<B>, &[Id]) -> Id) {
    let case = case(name);
    let tensors: Vec<&Value> = operands.iter().map(|&operand| &case["inputs"][operand]).collect();
    let data: Vec<Vec<B::Elem>> = tensors.iter().map(|tensor| elements(&numbers(tensor))).collect();
    let operand = |(i, data)| Operand { shape: shape(tensors[i]), data: Vec::as_slice(data), differentiable: true };
    let inputs: Vec<_> = data.iter().enumerate().map(operand).collect();
    let found = run_graph(&inputs, &elements(&numbers(&case["grad_output"])), build);
    compare(&format!("{name}: output"), &found.y, &numbers(&case["output"]), &case["f32_err"]["output"]);
    for (operand, gradient) in operands.iter().zip(&found.gradients) {
        let want = numbers(&case["grads"][operand]);
        compare(&format!("{name}: d{operand}"), gradient, &want, &case["f32_err"][operand]);
    }
}

#[test]
fn causal_attention() {
    fn causal<B: Backend>(g: &mut Graph<B>, ids: &[Id]) -> Id {
        g.scaled_dot_product_attention_dyn(ids[0], ids[1], ids[2], Attention::new().causal()).unwrap()
    }
    check_attention::<Strict<f64>>("attention_causal", &["q", "k", "v"], causal);
    check_attention::<Strict<f32>>("attention_causal", &["q", "k", "v"], causal);
}

#[test]
fn attention_by_several_heads() {
    fn all<B: Backend>(g: &mut Graph<B>, ids: &[Id]) -> Id {
        g.multi_head_attention_dyn(ids[0], [ids[1], ids[2], ids[3], ids[4]], 2, Attention::new()).unwrap()
    }
    fn causal<B: Backend>(g: &mut Graph<B>, ids: &[Id]) -> Id {
        g.multi_head_attention_dyn(ids[0], [ids[1], ids[2], ids[3], ids[4]], 2, Attention::new().causal()).unwrap()
    }
    let operands = ["x", "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"];
    check_attention::<Strict<f64>>("multi_head", &operands, all);
    check_attention::<Strict<f32>>("multi_head", &operands, all);
    check_attention::<Strict<f64>>("multi_head_causal", &operands, causal);
    check_attention::<Strict<f32>>("multi_head_causal", &operands, causal);
}

#[test]
fn heads_that_do_not_divide_the_features_are_an_error() {
    let mut g = Graph::<Strict<f32>>::new();
    let x = g.input_dyn("x", Shape::new([1, 4, 6]));
    let error = g.multi_head_attention_dyn(x, [x; 4], 4, Attention::new()).unwrap_err();
    assert_eq!(error.to_string(), "multi_head_attention: features to be divided are 6, heads are 4");
}

/// The same network as constants: one with zeros to start from, one that hands its state over from run to run.
#[test]
fn a_sequence_in_pieces_gives_the_bits_of_the_whole() {
    const fn whole() -> Graph {
        let mut g = Graph::new();
        let xs = [g.input("x0"), g.input("x1"), g.input("x2")];
        let (hs, state) = g.lstm::<A, I, H, T>("rnn", xs, None);
        let ys = g.gru::<A, H, H, T>("top", hs, None);
        g.output("c", state.c);
        g.output("y", ys[2]);
        g
    }
    const fn step() -> Graph {
        let mut g = Graph::new();
        let x = g.input("x");
        let state = LstmState { h: g.input("h0"), c: g.input("c0") };
        let top = g.input("top0");
        let (hs, state) = g.lstm::<A, I, H, 1>("rnn", [x], Some(state));
        let ys = g.gru::<A, H, H, 1>("top", hs, Some(top));
        g.output("h", state.h);
        g.output("c", state.c);
        g.output("y", ys[0]);
        g
    }
    program!(static WHOLE = whole().infer());
    program!(static STEP = step().infer());
    let mut slab = [0.0; WHOLE.slab_len()];
    let mut memory = WHOLE.memory(&mut slab).unwrap();
    WHOLE.init(&mut memory, 1).unwrap();
    let xs = [1, 2, 3].map(|seed| elements::<f32>(&common::Lcg(seed).values(A * I, 1.0)));
    WHOLE.run(&mut memory, &[&xs[0], &xs[1], &xs[2]]).unwrap();

    let mut step_slab = [0.0; STEP.slab_len()];
    let mut step_memory = STEP.memory(&mut step_slab).unwrap();
    STEP.init(&mut step_memory, 1).unwrap();
    let mut state = [[0.0; A * H]; 3];
    for x in &xs {
        let [h, c, y] = state;
        STEP.run(&mut step_memory, &[x, &h, &c, &y]).unwrap();
        state = ["h", "c", "y"].map(|name| STEP.output(&step_memory, name).unwrap().try_into().unwrap());
    }
    assert_eq!(WHOLE.output(&memory, "c"), Some(&state[1][..]), "the cell");
    assert_eq!(WHOLE.output(&memory, "y"), Some(&state[2][..]), "the unit on top");
}
