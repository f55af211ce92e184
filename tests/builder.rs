//! The typed methods of the element-wise operations, in constant graphs: each records the operation that it is named after.

use slabgrad::prelude::*;

type Double = Strict<f64>;

const X: [f64; 4] = [0.25, 0.5, 1.5, 4.0];
const ROW: [f64; 2] = [2.0, -0.75];

const fn unary() -> Graph<Double> {
    let mut g = Graph::new();
    let x = g.input::<R1<4>>("x");
    let outputs = [
        ("neg", g.neg(x)),
        ("abs", g.abs(x)),
        ("square", g.square(x)),
        ("sqrt", g.sqrt(x)),
        ("rsqrt", g.rsqrt(x)),
        ("reciprocal", g.reciprocal(x)),
        ("exp", g.exp(x)),
        ("expm1", g.expm1(x)),
        ("log", g.log(x)),
        ("log1p", g.log1p(x)),
        ("sin", g.sin(x)),
        ("cos", g.cos(x)),
        ("erf", g.erf(x)),
        ("clamp", g.clamp(x, 0.5, 2.0)),
        ("leaky_relu", g.leaky_relu(x, 0.01)),
        ("relu6", g.relu6(x)),
        ("elu", g.elu(x, 1.0)),
        ("softplus", g.softplus(x, 2.0)),
        ("gelu", g.gelu(x)),
        ("gelu_tanh", g.gelu_tanh(x)),
        ("silu", g.silu(x)),
        ("mish", g.mish(x)),
        ("hardsigmoid", g.hardsigmoid(x)),
        ("hardswish", g.hardswish(x)),
        ("hardtanh", g.hardtanh(x, -1.0, 1.0)),
        ("add_scalar", g.add_scalar(x, 0.75)),
        ("mul_scalar", g.mul_scalar(x, -2.0)),
        ("scale_shift", g.scale_shift(x, -2.0, 0.75)),
        ("pow_scalar", g.pow_scalar(x, 1.5)),
    ];
    let mut i = 0;
    while i < outputs.len() {
        g.output(outputs[i].0, outputs[i].1);
        i += 1;
    }
    g
}

const fn binary() -> Graph<Double> {
    let mut g = Graph::new();
    let a = g.input::<R2<2, 2>>("a");
    let row = g.input::<R1<2>>("row");
    let outputs: [(&str, Var<R2<2, 2>>); 9] = [
        ("add", g.add_broadcast(a, row)),
        ("sub", g.sub_broadcast(a, row)),
        ("mul", g.mul_broadcast(a, row)),
        ("div", g.div_broadcast(a, row)),
        ("safe_div", g.safe_div_broadcast(a, row, 0.25)),
        ("maximum", g.maximum_broadcast(a, row)),
        ("minimum", g.minimum_broadcast(a, row)),
        ("pow", g.pow_broadcast(a, row)),
        ("where", g.where_broadcast(row, a, row)),
    ];
    let mut i = 0;
    while i < outputs.len() {
        g.output(outputs[i].0, outputs[i].1);
        i += 1;
    }
    let same = [
        ("a + a", g.add(a, a)),
        ("a - a", g.sub(a, a)),
        ("a a", g.mul(a, a)),
        ("a / a", g.div(a, a)),
        ("a / (a + eps)", g.safe_div(a, a)),
        ("max(a, a)", g.maximum(a, a)),
        ("min(a, a)", g.minimum(a, a)),
        ("a^a", g.pow(a, a)),
        ("a or a", g.where_(a, a, a)),
    ];
    let mut i = 0;
    while i < same.len() {
        g.output(same[i].0, same[i].1);
        i += 1;
    }
    g
}

program!(static UNARY: Program<Double> = unary().infer());
program!(static BINARY: Program<Double> = binary().infer());

fn check(name: &str, found: &[f64], want: &[f64]) {
    let near =
        found.len() == want.len() && found.iter().zip(want).all(|(f, w)| (f - w).abs() <= 1e-14 * w.abs().max(1.0));
    assert!(near, "{name}: {found:?}, expected {want:?}");
}

#[test]
fn every_unary_method_computes_what_its_name_says() {
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let normal = |x: f64| 0.5 * (1.0 + libm::erf(x / 2.0_f64.sqrt()));
    let tanh_form =
        |x: f64| 0.5 * (1.0 + libm::tanh((2.0 / core::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)));
    let functions: [(&str, &dyn Fn(f64) -> f64); 29] = [
        ("neg", &|x| -x),
        ("abs", &f64::abs),
        ("square", &|x| x * x),
        ("sqrt", &f64::sqrt),
        ("rsqrt", &|x| 1.0 / x.sqrt()),
        ("reciprocal", &|x| 1.0 / x),
        ("exp", &libm::exp),
        ("expm1", &libm::expm1),
        ("log", &libm::log),
        ("log1p", &libm::log1p),
        ("sin", &libm::sin),
        ("cos", &libm::cos),
        ("erf", &libm::erf),
        ("clamp", &|x| x.clamp(0.5, 2.0)),
        ("leaky_relu", &|x| x),
        ("relu6", &|x| x),
        ("elu", &|x| x),
        ("softplus", &|x| libm::log1p(libm::exp(2.0 * x)) / 2.0),
        ("gelu", &|x| x * normal(x)),
        ("gelu_tanh", &|x| x * tanh_form(x)),
        ("silu", &|x| x * sigmoid(x)),
        ("mish", &|x| x * libm::tanh(libm::log1p(libm::exp(x)))),
        ("hardsigmoid", &|x| ((x + 3.0) / 6.0).min(1.0)),
        ("hardswish", &|x| x * ((x + 3.0) / 6.0).min(1.0)),
        ("hardtanh", &|x| x.min(1.0)),
        ("add_scalar", &|x| x + 0.75),
        ("mul_scalar", &|x| -2.0 * x),
        ("scale_shift", &|x| -2.0 * x + 0.75),
        ("pow_scalar", &|x| libm::pow(x, 1.5)),
    ];
    let mut slab = [0.0; UNARY.slab_len()];
    let mut memory = UNARY.memory(&mut slab).unwrap();
    UNARY.run(&mut memory, &[&X]).unwrap();
    for (name, f) in functions {
        check(name, UNARY.output(&memory, name).unwrap(), &X.map(f));
    }
}

/// A function, the output of that name, and the one where it is of `a` with itself.
type Named = (&'static str, &'static str, fn(f64, f64) -> f64);

#[test]
fn every_binary_method_computes_what_its_name_says() {
    let functions: [Named; 9] = [
        ("add", "a + a", |a, b| a + b),
        ("sub", "a - a", |a, b| a - b),
        ("mul", "a a", |a, b| a * b),
        ("div", "a / a", |a, b| a / b),
        ("safe_div", "a / (a + eps)", |a, b| a / (b + 0.25)),
        ("maximum", "max(a, a)", f64::max),
        ("minimum", "min(a, a)", f64::min),
        ("pow", "a^a", libm::pow),
        ("where", "a or a", |a, _| a),
    ];
    let mut slab = [0.0; BINARY.slab_len()];
    let mut memory = BINARY.memory(&mut slab).unwrap();
    BINARY.run(&mut memory, &[&X[..], &ROW]).unwrap();
    for (name, of_itself, f) in functions {
        let want: [f64; 4] = core::array::from_fn(|i| f(X[i], ROW[i % 2]));
        check(name, BINARY.output(&memory, name).unwrap(), &want);
        let want = X.map(|a| if name == "safe_div" { a / (a + 1e-8) } else { f(a, a) });
        check(of_itself, BINARY.output(&memory, of_itself).unwrap(), &want);
    }
}
