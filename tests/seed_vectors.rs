//! The literal vectors of `tests/golden/seed_vectors.json`, in double precision: to the bit where the file gives bits, else
//! within the tolerance that it gives. What slabgrad cannot do yet is listed by id, and has to leave the list when it can.

#![cfg(feature = "alloc")]

mod common;
#[cfg(feature = "cbor")]
#[path = "nanograd/seed_vectors.rs"]
mod nanograd;

use std::collections::BTreeSet;

use common::{is_in_library, lengths, numbers, relative_difference, run};
use serde_json::Value;
use slabgrad::graph::{Id, Name};
use slabgrad::ops::Spec;
use slabgrad::prelude::*;
use slabgrad::testing::{Outcome, run_with_state, weighted_sum};
use slabgrad::{ops, optim};

type Double = Strict<f64>;

/// Vectors that cannot be run yet, and what they wait for: a name in slabgrad.
const NOT_YET: &[(&str, &str)] = &[];

/// Sections that the tests below run (with the feature `cbor` the two about checkpoints), and those that say how to test
/// instead of what comes out: `tests/gradients.rs` holds the central differences, `tests/tape.rs` the identities.
const RUN: [&str; 13] = [
    "ops",
    "optimizers",
    "clip",
    "schedules",
    "diagnostics",
    "param_counts",
    "convergence_gates",
    "serialization_gates",
    "cbor_v1",
    "nurl_rng",
    "nurl_test_data",
    "nurl_oracle_graph",
    "nurl_drop_consts",
];
const TOLD: [&str; 4] = ["_about", "nurl_fd", "nurl_identities", "nurl_conformance_tolerances"];

fn file() -> Value {
    common::load("seed_vectors")
}

fn array<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("`{key}` is no array in {value}"))
}

fn id(entry: &Value) -> &str {
    entry["id"].as_str().expect("an entry has an id")
}

/// What came out, by the name that the file's `expected` has for it.
type Found = Vec<(&'static str, Vec<f64>)>;

/// The tensor `name` of an entry, with its shape: stated beside it, or a vector.
fn tensor(entry: &Value, name: &str) -> (Shape, Vec<f64>) {
    let data = numbers(&entry["inputs"][name]);
    match &entry["inputs"][format!("{name}_shape")] {
        Value::Null => (Shape::new([data.len()]), data),
        shape => (Shape::from_slice(&lengths(shape)), data),
    }
}

/// An image `[c, h, w]` as a batch of one.
fn image(entry: &Value) -> (Shape, Vec<f64>) {
    let (shape, data) = tensor(entry, "x");
    (Shape::new([1, shape.axis(0), shape.axis(1), shape.axis(2)]), data)
}

fn axes(shape: Shape) -> Vec<f64> {
    (0..shape.rank()).map(|i| f64::from(shape.axis(i) as u32)).collect()
}

/// The mean squared error of `p` against `t`, times `factor`, and its gradient for `p`.
fn mse(p: &[f64], t: &[f64], factor: f64) -> (Vec<f64>, Vec<f64>) {
    let shape = Shape::new([p.len()]);
    let spec = ops::mse::spec(shape, shape, ops::Reduction::Mean).unwrap();
    let Outcome { y, gradients, .. } = run(ops::mse::op::<Double>(), spec, &[p, t], &[factor]);
    (vec![y[0] * factor], gradients[0].clone())
}

/// The table of a binary operation.
type BinaryTable = fn(Shape, Shape) -> &'static ops::Op<Double>;

/// The gradient for `x` of half the mean squared errors of some of its rows.
fn sliced_half_mse(entry: &Value) -> Vec<f64> {
    let ((shape, x), inputs) = (tensor(entry, "x"), &entry["inputs"]);
    let (rows, targets) = if inputs["rows"].is_null() {
        (lengths(&inputs["start"]), vec![numbers(&inputs["t"])])
    } else {
        (lengths(&inputs["rows"]), array(inputs, "targets").iter().map(numbers).collect())
    };
    let len = if inputs["len"].is_null() { 1 } else { lengths(&inputs["len"])[0] };
    let mut dx = vec![0.0; x.len()];
    for (row, target) in rows.into_iter().zip(targets) {
        let spec = ops::slice::spec(shape, &[row], &[row + len], &[]).unwrap();
        let slice = |dy: &[f64]| run(ops::slice::op::<Double>(), spec, &[&x], dy);
        let (_, dy) = mse(&slice(&vec![1.0; spec.shape.len()]).y, &target, 0.5);
        dx.iter_mut().zip(&slice(&dy).gradients[0]).for_each(|(sum, dx)| *sum += dx);
    }
    dx
}

/// Runs an entry of `ops`; `None` where its operation is not there.
fn run_operation(entry: &Value) -> Option<Found> {
    let ones = |spec: Spec| vec![1.0; spec.shape.len()];
    let product = |a: (Shape, Vec<f64>), b: (Shape, Vec<f64>)| {
        let spec = ops::matmul::spec(a.0, b.0).unwrap();
        (spec.shape, run(ops::matmul::op::<Double>(), spec, &[&a.1, &b.1], &ones(spec)))
    };
    Some(match entry["op"].as_str()? {
        "softmax" => {
            let (shape, x) = tensor(entry, "x");
            let dy = vec![1.0; x.len()];
            let y = run(ops::softmax::op::<Double>(), ops::softmax::spec(shape, 0).unwrap(), &[&x], &dy).y;
            let log_spec = ops::log_softmax::spec(shape, 0).unwrap();
            vec![("y", y), ("log_y", run(ops::log_softmax::op::<Double>(), log_spec, &[&x], &dy).y)]
        }
        "matmul" => {
            let right = if entry["inputs"]["B"].is_null() { "x" } else { "B" };
            let (shape, outcome) = product(tensor(entry, "A"), tensor(entry, right));
            let [da, db] = [0, 1].map(|i| outcome.gradients[i].clone());
            vec![("y", outcome.y), ("shape", axes(shape)), ("dA_ones", da), ("dB_ones", db)]
        }
        "dot" => {
            let ((a_shape, a), (b_shape, b)) = (tensor(entry, "a"), tensor(entry, "b"));
            let spec = ops::dot::spec(a_shape, b_shape).unwrap();
            let Outcome { y, gradients, .. } = run(ops::dot::op::<Double>(), spec, &[&a, &b], &[1.0]);
            // The file has a vector of one element where slabgrad has a scalar.
            let shape = ops::unsqueeze::spec(spec.shape, 0).unwrap().shape;
            vec![("y", y), ("shape", axes(shape)), ("da", gradients[0].clone()), ("db", gradients[1].clone())]
        }
        "slice+half_mse" | "two slices, half_mse summed" => vec![("dx", sliced_half_mse(entry))],
        "sum(W*x)" => {
            let (_, outcome) = product(tensor(entry, "W"), tensor(entry, "x"));
            vec![("loss", outcome.y), ("dW", outcome.gradients[0].clone())]
        }
        "mean(X.W^T)" => {
            let ((x_shape, x), (w_shape, w)) = (tensor(entry, "X"), tensor(entry, "W"));
            let spec = ops::linear::spec(x_shape, w_shape, None).unwrap();
            let share = vec![1.0 / f64::from(spec.shape.len() as u32); spec.shape.len()];
            vec![("dW", run(ops::linear::op::<Double>(), spec, &[&x, &w], &share).gradients[1].clone())]
        }
        name @ ("mse" | "half_mse") => {
            let ((_, p), (_, t)) = (tensor(entry, "p"), tensor(entry, "t"));
            let (y, dp) = mse(&p, &t, if name == "mse" { 1.0 } else { 0.5 });
            vec![("y", y), ("dp", dp)]
        }
        "dense_identity" | "dense+mse" => {
            let ((_, x), (_, w), (b_shape, b)) = (tensor(entry, "x"), tensor(entry, "W"), tensor(entry, "b"));
            let w_shape = Shape::new([b.len(), x.len()]);
            let spec = ops::linear::spec(Shape::new([1, x.len()]), w_shape, Some(b_shape)).unwrap();
            let linear = |dy: &[f64]| run(ops::linear::op::<Double>(), spec, &[&x, &w, &b], dy);
            let y = linear(&ones(spec)).y;
            if entry["inputs"]["t"].is_null() {
                return Some(vec![("y", y)]);
            }
            let (loss, dy) = mse(&y, &tensor(entry, "t").1, 1.0);
            let [_, dw, db] = linear(&dy).gradients.try_into().expect("three operands");
            vec![("loss", loss), ("dW", dw), ("db", db)]
        }
        "conv2d" => {
            let ((x_shape, x), (w_shape, w)) = (image(entry), tensor(entry, "w"));
            let [stride, padding] = ["stride", "pad"].map(|key| lengths(&entry["inputs"][key])[0]);
            let window = Window2d::size(1).stride(stride).padding(padding);
            let spec = ops::conv2d::spec(x_shape, w_shape, None, window, 1).unwrap();
            let outcome = run(ops::conv2d::op::<Double>(), spec, &[&x, &w], &ones(spec));
            vec![("y", outcome.y), ("shape", axes(spec.shape)[1..].to_vec())]
        }
        "rmsnorm" | "batchnorm2d_train" => return run_normalisation(entry),
        "conv2d_shape" => {
            let [size, k, stride, padding] = ["hw", "k", "stride", "pad"].map(|key| lengths(&entry["inputs"][key])[0]);
            let output = Window2d::size(k).stride(stride).padding(padding).output(0, size).unwrap();
            vec![("out_hw", vec![f64::from(output as u32)])]
        }
        name @ ("global_avg_pool" | "global_avg_pool*2") => {
            let (shape, x) = image(entry);
            let spec = ops::global_avg_pool2d::spec(shape).unwrap();
            let pool = |dy: &[f64]| run(ops::global_avg_pool2d::op::<Double>(), spec, &[&x], dy);
            if name == "global_avg_pool*2" {
                return Some(vec![("dx", pool(&[2.0]).gradients[0].clone())]);
            }
            let (y, target) = (pool(&ones(spec)).y, numbers(&entry["expected"]["half_mse_target"]));
            let (_, dy) = mse(&y, &target, 0.5);
            vec![("y", y), ("dx", pool(&dy).gradients[0].clone()), ("half_mse_target", target)]
        }
        _ => return run_element_wise(entry),
    })
}

/// Runs an entry of `ops` whose operation is element-wise; `None` where it is not there.
fn run_element_wise(entry: &Value) -> Option<Found> {
    let ones = |spec: Spec| vec![1.0; spec.shape.len()];
    let unary = |op: &'static ops::Op<Double>, spec: fn(Shape) -> Spec| {
        let (shape, x) = tensor(entry, "x");
        let outcome = run(op, spec(shape), &[&x], &ones(spec(shape)));
        vec![("y", outcome.y), ("dx", outcome.gradients[0].clone())]
    };
    let binary = |op: BinaryTable, spec: fn(Shape, Shape) -> _, operands: [&str; 2], gradients: [&'static str; 2]| {
        let [(a_shape, a), (b_shape, b)] = operands.map(|name| tensor(entry, name));
        let spec: Result<Spec, slabgrad::error::ShapeError> = spec(a_shape, b_shape);
        let spec = spec.expect("the shapes broadcast");
        let Outcome { y, gradients: found, .. } = run(op(a_shape, b_shape), spec, &[&a, &b], &ones(spec));
        let mut all = vec![("y", y)];
        all.extend(gradients.into_iter().zip(found));
        all
    };
    Some(match entry["op"].as_str()? {
        "add" | "add broadcast [1]+[3], ones seed" => binary(ops::add::op, ops::add::spec, ["a", "b"], ["da", "db"]),
        "sub" => binary(ops::sub::op, ops::sub::spec, ["a", "b"], ["da", "db"]),
        "mul" => binary(ops::mul::op, ops::mul::spec, ["a", "b"], ["da", "db"]),
        "div" => binary(ops::div::op, ops::div::spec, ["a", "b"], ["da", "db"]),
        "pow" => binary(ops::pow::op, ops::pow::spec, ["x", "p"], ["dx", "dp"]),
        "relu" => unary(ops::relu::op(), ops::relu::spec),
        "sigmoid" => unary(ops::sigmoid::op(), ops::sigmoid::spec),
        "tanh" => unary(ops::tanh::op(), ops::tanh::spec),
        "sqrt" => unary(ops::sqrt::op(), ops::sqrt::spec),
        "gelu_tanh" => unary(ops::gelu::op_tanh(), ops::gelu::spec),
        "silu" => unary(ops::silu::op(), ops::silu::spec),
        "softplus" => {
            let (shape, x) = tensor(entry, "x");
            let beta = numbers(&entry["inputs"]["beta"])[0];
            let spec = ops::softplus::spec(shape, beta, ops::softplus::THRESHOLD).unwrap();
            vec![("y", run(ops::softplus::op::<Double>(), spec, &[&x], &ones(spec)).y)]
        }
        name @ ("exp(x*x)" | "x*x+x") => {
            let (shape, x) = tensor(entry, "x");
            let mut g = Graph::<Double>::new();
            let p = g.parameter_dyn(Name::new("", "x"), shape, Init::Zeros);
            let product = g.apply_dyn(ops::mul::op(shape, shape), &[p, p], ops::mul::spec(shape, shape).unwrap());
            let y = if name == "x*x+x" {
                g.apply_dyn(ops::add::op_same(), &[product, p], ops::add::spec(shape, shape).unwrap())
            } else {
                g.apply_dyn(ops::exp::op(), &[product], ops::exp::spec(shape))
            };
            g.loss_dyn(y);
            vec![("dx", differentiate(&g, &[("x", x)], &[]).1.remove(0))]
        }
        _ => return None,
    })
}

fn run_normalisation(entry: &Value) -> Option<Found> {
    let ones = |spec: Spec| vec![1.0; spec.shape.len()];
    Some(match entry["op"].as_str()? {
        "rmsnorm" => {
            let ((x_shape, x), (w_shape, w)) = (tensor(entry, "x"), tensor(entry, "w"));
            let spec = ops::rms_norm::spec(x_shape, Some(w_shape), 1, numbers(&entry["inputs"]["eps"])[0]).unwrap();
            vec![("y", run(ops::rms_norm::op::<Double>(), spec, &[&x, &w], &ones(spec)).y)]
        }
        "batchnorm2d_train" => {
            let ((shape, x), (channels, w), (_, b)) =
                (tensor(entry, "x"), tensor(entry, "gamma"), tensor(entry, "beta"));
            // Running statistics that are replaced by the batch's.
            let settings =
                BatchNorm::new().epsilon(numbers(&entry["inputs"]["eps"])[0]).momentum(1.0).biased_running_var();
            let spec = ops::batch_norm::spec(shape, Some(channels), Some(channels), settings).unwrap();
            let state = vec![0.0; 2 * w.len()];
            let outcome = run_with_state(ops::batch_norm::op::<Double>(), spec, &[&x, &w, &b], &state, &ones(spec));
            let (mean, variance) = outcome.state.split_at(w.len());
            vec![("y", outcome.y), ("mean", mean.to_vec()), ("var_biased", variance.to_vec())]
        }
        _ => return None,
    })
}

fn check_bits(what: &str, found: &[f64], want: &Value) {
    let found: Vec<String> = found.iter().map(|x| format!("0x{:016x}", x.to_bits())).collect();
    let want: Vec<&str> = want.as_array().expect("bits are an array").iter().filter_map(Value::as_str).collect();
    assert_eq!(found, want, "{what}");
}

fn check_close(what: &str, found: &[f64], want: &[f64], tolerance: f64) {
    let near = found.len() == want.len() && found.iter().zip(want).all(|(f, w)| (f - w).abs() <= tolerance);
    assert!(near, "{what}: found {found:?}, expected {want:?} within {tolerance:e}");
}

/// The ids of `ops`, or of `optimizers`, that cannot be run.
fn not_yet(entries: &[Value], run: impl Fn(&Value) -> bool) -> Vec<String> {
    entries.iter().filter(|entry| !run(entry)).map(|entry| id(entry).to_string()).collect()
}

/// Compares everything that an entry of `ops` expects; `false` where its operation is not there.
fn check_operation(entry: &Value) -> bool {
    let Some(found) = run_operation(entry) else {
        return false;
    };
    let tolerance = entry["tol"].as_f64().unwrap_or(0.0);
    for (key, want) in entry["expected"].as_object().expect("expected is an object") {
        let what = format!("{}: {key}", id(entry));
        if want == "Division by zero" {
            // The reference refuses; ours is IEEE's.
            assert_eq!(found[0].1, [f64::INFINITY], "{what}");
            continue;
        }
        let (_, found) = found.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("{what} is not computed"));
        check_close(&what, found, &numbers(want), tolerance);
    }
    true
}

/// Steps an optimizer with the entry's gradient; after each step come the parameters, m and v.
fn descend<O: optim::Optimizer<Double>>(entry: &Value, optimizer: O) -> Vec<[Vec<f64>; 3]> {
    let (mut w, grads) = (numbers(&entry["w0"]), numbers(&entry["grad_each_step"]));
    let [mut m, mut v] = [vec![0.0; w.len()], vec![0.0; w.len()]];
    let steps = entry["steps"].as_u64().unwrap_or(2);
    let decay = ["wd", "alpha"].map(|key| entry["cfg"][key].as_f64().unwrap_or(0.0));
    // grad calls the weight decay alpha, and nanograd RMSprop's smoothing.
    let decay = if entry["cfg"]["kind"] == "rmsprop" { decay[0] } else { decay[0].max(decay[1]) };
    let group = optim::Group { weight_decay: decay, ..optim::Group::default() };
    let mut own = [0.0; 4];
    let step = |_| {
        O::update(&optimizer.begin(&mut own), &group, &mut w, &grads, [&mut m, &mut v, &mut []]);
        [w.clone(), m.clone(), v.clone()]
    };
    (0..steps).map(step).collect()
}

/// Compares everything that an entry of `optimizers` expects but the learning rate, which is private; `false` where its
/// optimizer is not there.
fn check_optimizer(entry: &Value) -> bool {
    let setting = |key: &str| entry["cfg"][key].as_f64().unwrap_or_else(|| panic!("{}: no {key}", id(entry)));
    let adam = || Adam::new(setting("lr")).betas(setting("b1"), setting("b2")).epsilon(setting("eps"));
    let steps = match id(entry) {
        "adam_torch_2" => descend(entry, adam()),
        // The entry leaves the betas and epsilon at their defaults.
        "adam_torch_wd" => descend(entry, Adam::new(setting("lr"))),
        "sgd_wd" | "nurl_sgd_l2" => descend(entry, Sgd::new(setting("lr"))),
        "sgd_nesterov" => descend(entry, Sgd::new(setting("lr")).momentum(setting("momentum")).nesterov()),
        "rmsprop" | "rmsprop_mom" => {
            let rmsprop = optim::RmsProp::new(setting("lr")).alpha(setting("alpha")).epsilon(setting("eps"));
            match entry["cfg"]["momentum"].as_f64() {
                Some(momentum) => descend(entry, rmsprop.momentum(momentum)),
                None => descend(entry, rmsprop),
            }
        }
        "nurl_adam_two_step_bitwise" => {
            let steps = descend(entry, adam().form(optim::AdamForm::Uncorrected));
            for ([w, m, v], want) in steps.iter().zip(array(entry, "trajectory")) {
                for (found, key) in [(w, "w_bits"), (m, "m_bits"), (v, "v_bits")] {
                    check_bits(&format!("{}: {key} at t = {}", id(entry), want["t"]), found, &want[key]);
                }
            }
            assert_eq!(steps.len(), array(entry, "trajectory").len());
            return true;
        }
        "sgd_mom" => descend(entry, Sgd::new(setting("lr")).momentum(setting("momentum"))),
        "nurl_clip1_sgd" => {
            let mut grads = numbers(&entry["grad_each_step"]);
            let norm = optim::clip_by_norm::<Double>(&mut grads, setting("clip"), optim::Norm::L2);
            check_close("nurl_clip1_sgd: norm", &[norm], &numbers(&entry["norm"]), 0.0);
            let mut clipped = entry.clone();
            clipped["grad_each_step"] = grads.into();
            descend(&clipped, Sgd::new(setting("lr")))
        }
        _ => return false,
    };
    let [w, ..] = steps.last().expect("there is a step");
    if id(entry) == "rmsprop_mom" {
        // nanograd's momentum gathers steps that are multiplied by the learning rate already, PyTorch's does not: one rounding
        // differs.
        check_close(id(entry), w, &numbers(&entry["w"]), 1e-15);
        return true;
    }
    check_bits(id(entry), w, &entry["bits"]);
    check_close(id(entry), w, &numbers(&entry["w"]), 0.0);
    true
}

#[test]
fn every_vector_runs_or_is_listed() {
    let file = file();
    let mut missing = not_yet(array(&file, "ops"), check_operation);
    missing.extend(not_yet(array(&file, "optimizers"), check_optimizer));
    let known: Vec<&str> = RUN.into_iter().chain(TOLD).collect();
    let sections = file.as_object().expect("the file is an object").keys();
    missing.extend(sections.filter(|key| !known.contains(&key.as_str())).cloned());

    let entries = array(&file, "ops").len() + array(&file, "optimizers").len();
    println!("{entries} vectors in `ops` and `optimizers`; not there yet: {}: {}", missing.len(), missing.join(", "));
    if common::other_folder().is_none() {
        let found: BTreeSet<&str> = missing.iter().map(String::as_str).collect();
        let expected: BTreeSet<&str> = NOT_YET.iter().map(|&(id, _)| id).collect();
        assert_eq!(found, expected, "what is missing is what NOT_YET lists");
    }
    for (id, name) in NOT_YET {
        assert!(!is_in_library(name), "`{name}` is in the library now: run `{id}`");
    }
}

#[test]
fn gradients_are_clipped_only_above_the_norm() {
    let file = file();
    for case in array(&file["clip"], "cases") {
        let mut grads = numbers(&case["g"]);
        let norm = optim::clip_by_norm::<Double>(&mut grads, numbers(&case["max"])[0], optim::Norm::L2);
        check_close("the norm before clipping", &[norm], &numbers(&case["ret"]), 0.0);
        // The file has 0.6 in decimals; three times a rounded 1 / 5 is one step above it.
        check_close("the gradients after clipping", &grads, &numbers(&case["g_after"]), 2e-16);
    }
}

/// The thresholds and the recommendations are told in words; the unit tests of `diagnostics` follow them.
#[test]
fn learning_rates_are_suggested_as_by_the_reference() {
    let file = file();
    for case in array(&file["diagnostics"], "recommend_lr") {
        let found = slabgrad::diagnostics::suggest_learning_rate(1.0, numbers(&case["norm"])[0]);
        check_close(&format!("the factor for {}", case["norm"]), &[found], &numbers(&case["factor"]), 0.0);
    }
}

#[test]
fn schedules_give_the_rates_of_the_reference() {
    let file = file();
    let schedules = &file["schedules"];
    let check = |key: &str, schedule: &dyn optim::Schedule<f64>| {
        for (step, want) in schedules[key].as_object().unwrap_or_else(|| panic!("no schedule {key}")) {
            let step = step.parse().expect("a step is a number");
            check_close(&format!("{key} at {step}"), &[schedule.lr(step)], &numbers(want), 1e-15);
        }
    };
    check("cosine(1e-3,1e-5,10000,warmup500)", &optim::Warmup::new(500, optim::Cosine::new(1e-3, 1e-5, 9500)));
    check("linear(0,0.1,10)", &optim::Linear::new(0.0, 0.1, 10));
    check("step_decay(0.1,0.5,30)", &optim::StepDecay::new(0.1, 0.5, 30));
}

/// A multilayer perceptron with tanh between its layers.
fn perceptron(batch: usize, sizes: &[usize]) -> (Graph<Double>, Id) {
    let mut g = Graph::<Double>::new();
    let mut y = g.input_dyn("x", Shape::new([batch, sizes[0]]));
    for (i, (layer, pair)) in ["fc0", "fc1", "fc2"].into_iter().zip(sizes.windows(2)).enumerate() {
        if i > 0 {
            let spec = ops::tanh::spec(g.shape(y));
            y = g.apply_dyn(ops::tanh::op(), &[y], spec);
        }
        let (weight, bias) = (Shape::new([pair[1], pair[0]]), Shape::new([pair[1]]));
        let spec = ops::linear::spec(g.shape(y), weight, Some(bias)).unwrap();
        let weight = g.parameter_dyn(Name::new(layer, "weight"), weight, Init::XavierUniform);
        let bias = g.parameter_dyn(Name::new(layer, "bias"), bias, Init::Zeros);
        y = g.apply_dyn(ops::linear::op(), &[y, weight, bias], spec);
    }
    (g, y)
}

#[test]
fn networks_have_as_many_parameters_as_the_reference() {
    let convolution = |channels: usize, outputs: usize, kernel: usize| {
        let mut g = Graph::<Double>::new();
        let (x, bias) = (Shape::new([1, channels, kernel, kernel]), Shape::new([outputs]));
        let weight = Shape::new([outputs, channels, kernel, kernel]);
        let spec = ops::conv2d::spec(x, weight, Some(bias), Window2d::size(kernel).stride(1), 1).unwrap();
        let x = g.input_dyn("x", x);
        let weight = g.parameter_dyn(Name::new("conv", "weight"), weight, Init::Zeros);
        let bias = g.parameter_dyn(Name::new("conv", "bias"), bias, Init::Zeros);
        let y = g.apply_dyn(ops::conv2d::op(), &[x, weight, bias], spec);
        (g, y)
    };
    let file = file();
    for (name, want) in file["param_counts"].as_object().expect("param_counts is an object") {
        let Some(want) = want.as_u64() else { continue };
        // `dense 3->4`, `mlp 3-5-4-1` or `conv 3->8 k3`.
        let sizes: Vec<usize> = name.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse).collect();
        let (mut g, y) = match sizes[..] {
            [channels, outputs, kernel] if name.starts_with("conv") => convolution(channels, outputs, kernel),
            _ => perceptron(1, &sizes),
        };
        g.output_dyn("y", y);
        assert_eq!(g.infer().tables().program().params_len() as u64, want, "parameters of {name}");
    }
}

/// Trains a perceptron on the mean squared error, sample (or batch) by sample. Returns the mean loss of each epoch, and the
/// parameters. They start from `init`, or from seed 1.
fn learn(
    sizes: &[usize],
    init: Option<&[f64]>,
    samples: &[(&[f64], &[f64])],
    epochs: usize,
    mut optimizer: impl optim::Optimizer<Double>,
) -> (Vec<f64>, Vec<f64>) {
    let batch = samples[0].0.len() / sizes[0];
    let (mut g, y) = perceptron(batch, sizes);
    let shape = g.shape(y);
    let target = g.input_dyn("target", shape);
    let loss = g.apply_dyn(ops::mse::op(), &[y, target], ops::mse::spec(shape, shape, ops::Reduction::Mean).unwrap());
    g.loss_dyn(loss);
    let tables = g.train(Training::with::<Adam>()).tables();
    let program = tables.program();
    let mut slab = vec![0.0; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    program.init(&mut memory, 1).unwrap();
    if let Some(init) = init {
        memory.params.copy_from_slice(init);
    }
    let mut step = |&(x, y): &(&[f64], &[f64])| program.step(&mut memory, &[x, y], &mut optimizer).unwrap();
    let epoch = |_| samples.iter().map(&mut step).sum::<f64>() / f64::from(samples.len() as u32);
    let losses = (0..epochs).map(epoch).collect();
    (losses, memory.params.to_vec())
}

/// The eight of the reference's thirteen gates whose data is stated or does not matter, without rmsprop. Its half of a
/// squared error trains as the whole one does at half the rate.
#[test]
fn small_problems_are_learned_as_well_as_by_the_reference() {
    let line = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5].map(|x: f64| ([x], [3.0 * x + 2.0]));
    let samples: Vec<(&[f64], &[f64])> = line.iter().map(|(x, y)| (&x[..], &y[..])).collect();
    let (_, params) = learn(&[1, 1], Some(&[0.5, 0.5]), &samples, 50, Sgd::new(0.05));
    let [w, b] = params[..] else { panic!("a line has two parameters") };
    let near = (w - 3.0).abs() <= 0.5 && (b - 2.0).abs() <= 0.5 && (3.0 * w + b - 11.0).abs() <= 1.0;
    assert!(near, "y = 3 x + 2 is learned as {w} x + {b}");

    let line = [0.0, 1.0, 2.0, 3.0].map(|x: f64| ([x], [2.0 * x + 1.0]));
    let samples: Vec<(&[f64], &[f64])> = line.iter().map(|(x, y)| (&x[..], &y[..])).collect();
    let (losses, _) = learn(&[1, 1], Some(&[0.0, 0.0]), &samples, 30, Sgd::new(0.05));
    assert!(losses[29] / 2.0 < 0.5, "y = 2 x + 1 by SGD: {losses:?}");
    let (losses, _) = learn(&[1, 1], Some(&[0.0, 0.0]), &samples, 30, Adam::new(0.1));
    assert!(losses[29] / 2.0 < 0.1, "y = 2 x + 1 by Adam: {losses:?}");

    let (losses, _) = learn(&[1, 1], Some(&[0.0, 0.0]), &[(&[1.0], &[3.0])], 1, Sgd::new(0.05));
    check_close("half the squared error of x = 1, t = 3 from zeros", &[losses[0] / 2.0], &[4.5], 0.0);

    let xor: (&[f64], &[f64]) = (&[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], &[0.0, 1.0, 1.0, 0.0]);
    let (losses, _) = learn(&[2, 4, 1], None, &[xor], 50, Adam::new(0.1));
    assert!(losses[49] / 2.0 < 0.3, "exclusive or: {losses:?}");
    let (losses, _) = learn(&[2, 4, 1], None, &[xor], 10, Sgd::new(0.0));
    assert!(losses.iter().all(|loss| loss.to_bits() == losses[0].to_bits()), "rate 0 keeps the loss: {losses:?}");

    let (losses, _) = learn(&[1, 20, 20, 1], None, &[(&[0.0, 1.0], &[1.0, -1.0])], 200, Adam::new(0.01));
    assert!(losses[199] / 2.0 < 0.01, "two points are overfitted: {losses:?}");

    let (x, square) = ([-2.0, -1.0, 0.0, 1.0, 2.0], [4.0, 1.0, 0.0, 1.0, 4.0]);
    let (losses, _) = learn(&[1, 8, 1], None, &[(&x, &square)], 100, Adam::new(0.01));
    assert!(losses[99] <= losses[0] / 2.0, "the loss of y = x^2 halves: {losses:?}");
    let (losses, _) = learn(&[1, 1], None, &[(&x, &x.map(|x| 2.0 * x))], 100, Adam::new(0.1));
    assert!(losses.iter().any(|&loss| loss < 0.01), "y = 2 x: {losses:?}");
}

/// The first numbers in [0, 1) of the generator that initialises parameters, seeded with 42.
fn units_of_seed_42<const N: usize>() -> [f64; N] {
    // A parameter's seed is the caller's, exclusive-or the FNV-1a hash of its name: of an empty one, the hash's basis. With
    // six inputs He's bound is sqrt(6 / 6), so that an element is 2 u - 1, and u comes back without rounding.
    let mut x = [0.0; N];
    Init::HeUniform.fill(&mut x, Shape::new([N / 6, 6]), Name::new("", ""), 0x2a ^ 0xcbf2_9ce4_8422_2325);
    x.map(|x| f64::midpoint(x, 1.0))
}

#[test]
fn parameters_are_drawn_from_the_reference_generator() {
    let file = file();
    let units = units_of_seed_42::<12>();
    let words = array(&file["nurl_rng"], "seed42_first8_u64");
    for (i, (unit, word)) in units.iter().zip(words).enumerate() {
        let word = word.as_str().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        let want = <f64 as Real>::unit(word.expect("a word is hexadecimal"));
        assert_eq!(unit.to_bits(), want.to_bits(), "number {i} is {unit}, expected {want}");
    }
    check_close("the first number", &units[..1], &numbers(&file["nurl_rng"]["seed42_first_u01"]), 0.0);

    // Test data of grad: 0.3 + u and u - 0.5 in turns.
    let units = units_of_seed_42::<48>();
    let [xa, xb] = ["xa", "xb"].map(|key| numbers(&file["nurl_test_data"][key]));
    let found: (Vec<f64>, Vec<f64>) = units.chunks(2).map(|u| (0.3 + u[0], u[1] - 0.5)).unzip();
    assert_eq!(found, (xa, xb));
    let serial = found.0.iter().map(|x| x * x).sum::<f64>();
    assert_eq!(format!("0x{:016x}", serial.to_bits()), file["nurl_test_data"]["sum_xa_sq_bits"]);
}

/// The loss of a graph, and the gradients of these parameters, from these values.
fn differentiate(g: &Graph<Double>, params: &[(&str, Vec<f64>)], inputs: &[&[f64]]) -> (f64, Vec<Vec<f64>>) {
    let tables = g.train(Training::with_slots(0)).tables();
    let program = tables.program();
    let mut slab = vec![0.0; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    for (name, value) in params {
        program.tensor_mut(&mut memory, name).expect("the graph has the parameter").copy_from_slice(value);
    }
    let loss = program.gradients(&mut memory, inputs).unwrap();
    let gradient = |(name, _): &(&str, _)| program.gradient(&memory, name).expect("it is trained").to_vec();
    (loss, params.iter().map(gradient).collect())
}

/// The first of three parts of grad's oracle graph: a dense net with softmax against the mean squared error.
const fn oracle_1() -> Graph<Double> {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 5>>("X");
    let t = g.input::<R2<8, 3>>("T");
    let (w1, b1) = (g.parameter::<R2<5, 7>>("", "W1", Init::Zeros), g.parameter::<R1<7>>("", "b1", Init::Zeros));
    let (w2, b2) = (g.parameter::<R2<7, 3>>("", "W2", Init::Zeros), g.parameter::<R1<3>>("", "b2", Init::Zeros));
    let z = g.matmul(x, w1);
    let z: Var<R2<8, 7>> = g.add_broadcast(z, b1);
    let h = g.relu(z);
    let z = g.matmul(h, w2);
    let z: Var<R2<8, 3>> = g.add_broadcast(z, b2);
    let s = g.softmax(z, 1);
    let loss = g.mse(s, t);
    g.loss(loss);
    g
}

/// The second part: a transpose, a reshape, a slice and a concatenation. Half of a value is its product with half of the
/// identity, and the mean of squares a mean squared error against 0, both exactly.
const fn oracle_2() -> Graph<Double> {
    let mut g = Graph::new();
    let a = g.parameter::<R2<3, 4>>("", "A", Init::Zeros);
    let half = g.input::<R2<4, 4>>("half");
    let zero = g.input::<R2<4, 4>>("zero");
    let b: Var<R2<4, 3>> = g.transpose(a, 0, 1);
    let b = g.tanh(b);
    let b: Var<R2<2, 6>> = g.reshape(b);
    let d: Var<R2<2, 4>> = g.slice(b, &[0, 1], &[2, 5]);
    let half_d = g.matmul(d, half);
    let e: Var<R2<4, 4>> = g.concat(d, half_d, 0);
    let loss = g.mse(e, zero);
    g.loss(loss);
    g
}

/// The third part: the sum of the sigmoids of a batched matrix product.
const fn oracle_3() -> Graph<Double> {
    let mut g = Graph::new();
    let q = g.input::<R3<2, 2, 3>>("Q");
    let p = g.parameter::<R3<2, 3, 2>>("", "P", Init::Zeros);
    let ones = g.input::<R3<2, 2, 2>>("ones");
    let y = g.bmm(q, p);
    let y = g.sigmoid(y);
    let loss = g.apply(weighted_sum(), &[y.id(), ones.id()], Spec::new(Shape::SCALAR));
    g.loss(loss);
    g
}

/// The losses add up, so each part stands for itself.
#[test]
fn the_oracle_graph_has_the_gradients_of_the_reference() {
    let file = file();
    let oracle = &file["nurl_oracle_graph"];
    let fill = |name: &str| -> Vec<f64> {
        let phase = match name {
            "T" => 3.0,
            "W1" | "b1" | "W2" | "b2" => 2.0,
            _ => 1.0,
        };
        let (shape, scale) = (lengths(&oracle["tensors"][name][0]), numbers(&oracle["tensors"][name][1])[0]);
        let len: usize = shape.iter().product();
        (0..len).map(|k| libm::sin(0.7 * f64::from(k as u32) + phase) * scale).collect()
    };
    let check = |loss_name: &str, g: &Graph<Double>, names: &[&'static str], inputs: &[&[f64]], weight: f64| {
        let params: Vec<_> = names.iter().map(|&name| (name, fill(name))).collect();
        let (loss, gradients) = differentiate(g, &params, inputs);
        let want = numbers(&oracle["values"][loss_name]);
        assert!(relative_difference(&[loss], &want) <= 1e-14, "{loss_name} is {loss}, expected {want:?}");
        for (name, gradient) in names.iter().zip(&gradients) {
            let want = numbers(&oracle["values"][format!("g{name}")]);
            let found: Vec<f64> = gradient.iter().map(|g| g * weight).collect();
            check_close(&format!("the gradient of {loss_name} for {name}"), &found, &want, 1e-16);
        }
    };
    check("L1", &oracle_1(), &["W1", "b1", "W2", "b2"], &[&fill("X"), &fill("T")], 1.0);
    let half: Vec<f64> = (0..16).map(|i| if i % 5 == 0 { 0.5 } else { 0.0 }).collect();
    check("L2", &oracle_2(), &["A"], &[&half, &[0.0; 16]], 0.3);
    check("L3", &oracle_3(), &["P"], &[&fill("Q"), &[1.0; 8]], 0.1);
}

#[test]
fn the_sum_of_the_squares_of_a_product() {
    const fn net() -> Graph<Double> {
        let mut g = Graph::new();
        let x = g.input::<R2<2, 2>>("X");
        let zero = g.input::<R2<2, 2>>("zero");
        let w = g.parameter::<R2<2, 2>>("", "W", Init::Zeros);
        let y = g.matmul(x, w);
        let loss = g.mse_with(y, zero, ops::Reduction::Sum);
        g.loss(loss);
        g
    }
    let file = file();
    let case = &file["nurl_drop_consts"];
    let [w, x] = ["W", "X"].map(|key| numbers(&case[key]));
    let (loss, gradients) = differentiate(&net(), &[("W", w)], &[&x, &[0.0; 4]]);
    check_close("the loss", &[loss], &numbers(&case["loss_value"]), 1e-14);
    check_close("dW", &gradients[0], &numbers(&case["dW"]), 1e-14);
}
