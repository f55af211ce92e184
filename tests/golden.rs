//! Every case of every golden file, values and all gradients, in double and in single precision, through the static op
//! tables and the optimizers. `--nocapture` prints what ran; `GOLDEN_DIR` names another folder; see
//! `tests/golden/README.md`.

#![cfg(feature = "alloc")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{
    absolute_difference, elements, is_in_library, lengths, load, numbers, operations, relative_difference, shape,
    worst_element,
};
use serde_json::Value;
use slabgrad::backend::{Backend, Fast, Real, Strict};
use slabgrad::error::ShapeError;
use slabgrad::graph::{Attention, Graph, Id};
use slabgrad::ops::avg_pool2d::CountPadding;
use slabgrad::ops::batch_norm::BatchNorm;
use slabgrad::ops::cross_entropy::CrossEntropy;
use slabgrad::ops::{Op, Reduction, Spec, Window1d, Window2d};
use slabgrad::optim::{
    Adagrad, Adam, Constant, Cosine, Exponential, Group, Linear, MultiStep, Norm, Optimizer, Polynomial, RmsProp,
    Schedule, Sgd, StepDecay, Warmup, clip_by_norm, clip_by_value,
};
use slabgrad::shape::Shape;
use slabgrad::testing::{Operand, Outcome};
use slabgrad::{ops, testing};

/// In double precision |found - want| is at most this times max(1, |want|). The worst of the repository's cases is off by
/// 2e-15, a few roundings of a sum of some fifty terms; this leaves room for cases fifty times as large, and is still a
/// twentieth of what the two implementations behind the golden values differ by.
const DOUBLE: f64 = 1e-13;

/// In single precision |found - want| is at most `8 * max_abs + 1e-6`, where `max_abs` is what PyTorch's single precision
/// itself loses.
fn single_tolerance(max_abs: f64) -> f64 {
    8.0 * max_abs + 1e-6
}

/// What is not there yet, as the golden files name it, with the name that it will have in slabgrad. Exactly these are
/// missing for the repository's folder: what arrives in the library has to leave this list and be run.
const NOT_YET: &[(&str, &str)] = &[];

/// The files with one operation per case, and the others that this test reads.
const OPERATION_FILES: [&str; 10] =
    ["elementwise", "binary", "softmax", "reduce", "shape", "matmul", "conv", "pool", "norm", "loss"];
const OTHER_FILES: [&str; 3] = ["batchnorm", "optim", "schedule"];
/// Those that `tests/recurrent.rs`, `tests/seed_vectors.rs` and `tests/training.rs` read.
const ELSEWHERE: [&str; 4] = ["recurrent", "seed_vectors", "train", "train_lcg"];

/// An operation as the golden files name it, the operands in slabgrad's order (those that a case lacks are optional), the
/// attributes that `call` understands, and how to call it.
struct Row<B: Backend> {
    golden: &'static str,
    module: &'static str,
    operands: &'static [&'static str],
    settings: &'static [&'static str],
    call: fn(&Case<'_>) -> Result<Call<B>, NotYet>,
}

type Call<B> = (&'static Op<B>, Result<Spec, ShapeError>);

fn table<B: Backend>() -> [Row<B>; 25] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("relu", "relu", &["x"], &[], |c| Ok((ops::relu::op(), Ok(ops::relu::spec(c.shape("x")))))),
        row("tanh", "tanh", &["x"], &[], |c| Ok((ops::tanh::op(), Ok(ops::tanh::spec(c.shape("x")))))),
        row("sigmoid", "sigmoid", &["x"], &[], |c| Ok((ops::sigmoid::op(), Ok(ops::sigmoid::spec(c.shape("x")))))),
        row("add", "add", &["a", "b"], &[], |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::add::op(a, b), ops::add::spec(a, b)))
        }),
        row("softmax", "softmax", &["x"], &["axis"], |c| {
            Ok((ops::softmax::op(), ops::softmax::spec(c.shape("x"), c.axis("axis", "x")?)))
        }),
        row("log_softmax", "log_softmax", &["x"], &["axis"], |c| {
            Ok((ops::log_softmax::op(), ops::log_softmax::spec(c.shape("x"), c.axis("axis", "x")?)))
        }),
        row("reshape", "reshape", &["x"], &["shape"], |c| {
            Ok((ops::reshape::op(), ops::reshape::spec(c.shape("x"), shape(&c.json["output"]))))
        }),
        row("matmul", "matmul", &["a", "b"], &[], |c| {
            Ok((ops::matmul::op(), ops::matmul::spec(c.shape("a"), c.shape("b"))))
        }),
        row("linear", "linear", &["x", "w", "b"], &["weight_layout"], |c| {
            c.only("weight_layout", "out,in")?;
            Ok((ops::linear::op(), ops::linear::spec(c.shape("x"), c.shape("w"), c.optional("b"))))
        }),
        row("conv2d", "conv2d", &["x", "w", "b"], &["layout", "stride", "padding", "dilation", "groups"], |c| {
            c.only("layout", "NCHW/OIHW")?;
            let groups = c.pair("groups", 1)?[0];
            let window = c.window([1, 1])?;
            Ok((ops::conv2d::op(), ops::conv2d::spec(c.shape("x"), c.shape("w"), c.optional("b"), window, groups)))
        }),
        row("maxpool2d", "max_pool2d", &["x"], &["kernel", "stride", "padding", "dilation"], |c| {
            let window = c.window(c.pair("kernel", 1)?)?;
            Ok((ops::max_pool2d::op(), ops::max_pool2d::spec(c.shape("x"), window)))
        }),
        row("global_avgpool2d", "global_avg_pool2d", &["x"], &[], |c| {
            Ok((ops::global_avg_pool2d::op(), ops::global_avg_pool2d::spec(c.shape("x"))))
        }),
        row("cross_entropy", "cross_entropy", &["x", "target"], &["target", "reduction", "label_smoothing"], |c| {
            let op = match c.attr("target").as_str() {
                Some("index") => ops::cross_entropy::op_indices(),
                Some("probabilities") => ops::cross_entropy::op_probabilities(),
                _ => return c.not_yet("target"),
            };
            let smoothing = c.number_or("label_smoothing", 0.0);
            let settings = CrossEntropy::new().reduction(c.reduction()?).label_smoothing(smoothing);
            Ok((op, ops::cross_entropy::spec(c.shape("x"), c.shape("target"), settings)))
        }),
        row("mse", "mse", &["x", "target"], &["reduction"], |c| {
            Ok((ops::mse::op(), ops::mse::spec(c.shape("x"), c.shape("target"), c.reduction()?)))
        }),
        row("lstm_cell", "lstm_cell", &["c", "gates"], &[], |c| {
            Ok((ops::lstm_cell::op_cell(), ops::lstm_cell::spec(c.shape("c"), c.shape("gates"))))
        }),
        row("gru_cell", "gru_cell", &["h", "a", "b"], &[], |c| {
            Ok((ops::gru_cell::op(), ops::gru_cell::spec(c.shape("h"), c.shape("a"), c.shape("b"))))
        }),
        row("scaled_softmax", "scaled_softmax", &["x"], &["scale", "is_causal"], |c| {
            let causal = c.attr("is_causal") == true;
            Ok((ops::scaled_softmax::op(), ops::scaled_softmax::spec(c.shape("x"), c.number_or("scale", 1.0), causal)))
        }),
        row("zeros", "zeros", &[], &[], |c| Ok((ops::zeros::op(), Ok(ops::zeros::spec(shape(&c.json["output"])))))),
        row("l1", "l1", &["x", "target"], &["reduction"], |c| {
            Ok((ops::l1::op(), ops::l1::spec(c.shape("x"), c.shape("target"), c.reduction()?)))
        }),
        row("smooth_l1", "smooth_l1", &["x", "target"], &["reduction", "beta"], |c| {
            let (x, target, beta) = (c.shape("x"), c.shape("target"), c.number_or("beta", 1.0));
            Ok((ops::smooth_l1::op(), ops::smooth_l1::spec(x, target, beta, c.reduction()?)))
        }),
        row("huber", "huber", &["x", "target"], &["reduction", "delta"], |c| {
            let (x, target, delta) = (c.shape("x"), c.shape("target"), c.number_or("delta", 1.0));
            Ok((ops::huber::op(), ops::huber::spec(x, target, delta, c.reduction()?)))
        }),
        row("bce_with_logits", "bce_with_logits", &["x", "target"], &["reduction"], |c| {
            let (x, target) = (c.shape("x"), c.shape("target"));
            Ok((ops::bce_with_logits::op(), ops::bce_with_logits::spec(x, target, c.reduction()?)))
        }),
        row("log_probabilities+kl_div", "kl_div", &["x", "target"], &["reduction"], |c| {
            Ok((ops::kl_div::op(), ops::kl_div::spec(c.shape("x"), c.shape("target"), c.reduction()?)))
        }),
        row("log_probabilities+nll", "nll", &["x", "target"], &["reduction"], |c| {
            Ok((ops::nll::op(), ops::nll::spec(c.shape("x"), c.shape("target"), c.reduction()?)))
        }),
        row("probabilities+nll", "cross_entropy_of_probabilities", &["x", "target"], &["reduction"], |c| {
            use ops::cross_entropy_of_probabilities as entropy;
            Ok((entropy::op_indices(), entropy::spec(c.shape("x"), c.shape("target"), c.reduction()?)))
        }),
    ]
}

type Loss<B> = fn(Shape, Shape, Reduction) -> Call<B>;

/// The losses of log-probabilities whose golden cases start from logits.
fn after_log_softmax<B: Backend>(golden: &str) -> Option<Loss<B>> {
    match golden {
        "log_softmax+nll" => Some(|x, target, reduction| (ops::nll::op(), ops::nll::spec(x, target, reduction))),
        "kl_div" => Some(|x, target, reduction| (ops::kl_div::op(), ops::kl_div::spec(x, target, reduction))),
        _ => None,
    }
}

fn windows_and_normalisations<B: Backend>() -> [Row<B>; 11] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("conv1d", "conv1d", &["x", "w", "b"], &["layout", "stride", "padding", "dilation", "groups"], |c| {
            let groups = c.pair("groups", 1)?[0];
            let window = c.window_1d(1)?;
            Ok((ops::conv1d::op(), ops::conv1d::spec(c.shape("x"), c.shape("w"), c.optional("b"), window, groups)))
        }),
        row(
            "conv_transpose2d",
            "conv_transpose2d",
            &["x", "w", "b"],
            &["layout", "stride", "padding", "output_padding", "dilation", "groups"],
            |c| {
                c.only("layout", "NCHW/IOHW")?;
                let (groups, more) = (c.pair("groups", 1)?[0], c.pair("output_padding", 0)?);
                let (x, w, b) = (c.shape("x"), c.shape("w"), c.optional("b"));
                let window = c.window([1, 1])?;
                Ok((ops::conv_transpose2d::op(), ops::conv_transpose2d::spec(x, w, b, window, more, groups)))
            },
        ),
        row("maxpool1d", "max_pool1d", &["x"], &["kernel", "stride", "padding", "dilation"], |c| {
            let window = c.window_1d(c.pair("kernel", 1)?[0])?;
            Ok((ops::max_pool1d::op(), ops::max_pool1d::spec(c.shape("x"), window)))
        }),
        row("avgpool1d", "avg_pool1d", &["x"], &["kernel", "stride", "padding", "count_include_pad"], |c| {
            let window = c.window_1d(c.pair("kernel", 1)?[0])?;
            Ok((ops::avg_pool1d::op(), ops::avg_pool1d::spec(c.shape("x"), window, c.count_padding())))
        }),
        row("avgpool2d", "avg_pool2d", &["x"], &["kernel", "stride", "padding", "count_include_pad"], |c| {
            let window = c.window(c.pair("kernel", 1)?)?;
            Ok((ops::avg_pool2d::op(), ops::avg_pool2d::spec(c.shape("x"), window, c.count_padding())))
        }),
        row("upsample_nearest", "upsample_nearest2d", &["x"], &["scale"], |c| {
            let spec = ops::upsample_nearest2d::spec(c.shape("x"), c.pair("scale", 1)?);
            Ok((ops::upsample_nearest2d::op(), spec))
        }),
        row("layernorm", "layer_norm", &["x", "gamma", "beta"], &["normalized_dims", "eps"], |c| {
            let axes = c.pair("normalized_dims", 1)?[0];
            let (weight, bias) = (c.optional("gamma"), c.optional("beta"));
            Ok((ops::layer_norm::op(), ops::layer_norm::spec(c.shape("x"), weight, bias, axes, c.epsilon())))
        }),
        row("rmsnorm", "rms_norm", &["x", "gamma"], &["eps", "formula"], |c| {
            c.only("formula", "x/sqrt(mean(x^2)+eps)*gamma")?;
            Ok((ops::rms_norm::op(), ops::rms_norm::spec(c.shape("x"), c.optional("gamma"), 1, c.epsilon())))
        }),
        row("groupnorm", "group_norm", &["x", "gamma", "beta"], &["groups", "eps"], |c| {
            let groups = c.pair("groups", 1)?[0];
            let (weight, bias) = (c.optional("gamma"), c.optional("beta"));
            Ok((ops::group_norm::op(), ops::group_norm::spec(c.shape("x"), weight, bias, groups, c.epsilon())))
        }),
        // The steps of `batchnorm.json` are run by `Tally::batch_norm`.
        row("batchnorm2d", "batch_norm", &["x", "gamma", "beta"], &["momentum", "eps", "running_var", "init"], |c| {
            let (weight, bias) = (c.optional("gamma"), c.optional("beta"));
            Ok((ops::batch_norm::op(), ops::batch_norm::spec(c.shape("x"), weight, bias, c.batch_norm())))
        }),
        // No golden file has a case: PyTorch's masks come from another generator.
        row("dropout", "dropout", &["x"], &["p"], |c| c.not_yet("p")),
    ]
}

/// All rows.
fn rows<B: Backend>() -> impl Iterator<Item = Row<B>> {
    let rows = table().into_iter().chain(windows_and_normalisations()).chain(unary()).chain(binary());
    rows.chain(reductions()).chain(moves())
}

/// The element-wise operations of one operand.
fn unary<B: Backend>() -> Vec<Row<B>> {
    let unary = |golden, module, call| Row { golden, module, operands: &["x"], settings: &[], call };
    let with = |golden, module, settings, call| Row { golden, module, operands: &["x"], settings, call };
    vec![
        unary("neg", "neg", |c| Ok((ops::neg::op(), Ok(ops::neg::spec(c.shape("x")))))),
        unary("abs", "abs", |c| Ok((ops::abs::op(), Ok(ops::abs::spec(c.shape("x")))))),
        unary("square", "square", |c| Ok((ops::square::op(), Ok(ops::square::spec(c.shape("x")))))),
        unary("sqrt", "sqrt", |c| Ok((ops::sqrt::op(), Ok(ops::sqrt::spec(c.shape("x")))))),
        unary("rsqrt", "rsqrt", |c| Ok((ops::rsqrt::op(), Ok(ops::rsqrt::spec(c.shape("x")))))),
        unary("reciprocal", "reciprocal", |c| Ok((ops::reciprocal::op(), Ok(ops::reciprocal::spec(c.shape("x")))))),
        unary("exp", "exp", |c| Ok((ops::exp::op(), Ok(ops::exp::spec(c.shape("x")))))),
        unary("expm1", "expm1", |c| Ok((ops::expm1::op(), Ok(ops::expm1::spec(c.shape("x")))))),
        unary("log", "log", |c| Ok((ops::log::op(), Ok(ops::log::spec(c.shape("x")))))),
        unary("log1p", "log1p", |c| Ok((ops::log1p::op(), Ok(ops::log1p::spec(c.shape("x")))))),
        unary("sin", "sin", |c| Ok((ops::sin::op(), Ok(ops::sin::spec(c.shape("x")))))),
        unary("cos", "cos", |c| Ok((ops::cos::op(), Ok(ops::cos::spec(c.shape("x")))))),
        unary("erf", "erf", |c| Ok((ops::erf::op(), Ok(ops::erf::spec(c.shape("x")))))),
        unary("relu6", "relu6", |c| Ok((ops::relu6::op(), Ok(ops::relu6::spec(c.shape("x")))))),
        unary("silu", "silu", |c| Ok((ops::silu::op(), Ok(ops::silu::spec(c.shape("x")))))),
        unary("mish", "mish", |c| Ok((ops::mish::op(), Ok(ops::mish::spec(c.shape("x")))))),
        unary("hardsigmoid", "hardsigmoid", |c| Ok((ops::hardsigmoid::op(), Ok(ops::hardsigmoid::spec(c.shape("x")))))),
        unary("hardswish", "hardswish", |c| Ok((ops::hardswish::op(), Ok(ops::hardswish::spec(c.shape("x")))))),
        with("gelu_erf", "gelu", &["approximate"], |c| {
            c.only("approximate", "none")?;
            Ok((ops::gelu::op_erf(), Ok(ops::gelu::spec(c.shape("x")))))
        }),
        with("gelu_tanh", "gelu", &["approximate"], |c| {
            c.only("approximate", "tanh")?;
            Ok((ops::gelu::op_tanh(), Ok(ops::gelu::spec(c.shape("x")))))
        }),
        with("leaky_relu", "leaky_relu", &["negative_slope"], |c| {
            Ok((ops::leaky_relu::op(), ops::leaky_relu::spec(c.shape("x"), c.number("negative_slope")?)))
        }),
        with("elu", "elu", &["alpha"], |c| Ok((ops::elu::op(), ops::elu::spec(c.shape("x"), c.number("alpha")?)))),
        with("softplus", "softplus", &["beta", "threshold"], |c| {
            let (beta, threshold) = (c.number("beta")?, c.number("threshold")?);
            Ok((ops::softplus::op(), ops::softplus::spec(c.shape("x"), beta, threshold)))
        }),
        with("clamp", "clamp", &["min", "max"], |c| {
            Ok((ops::clamp::op(), ops::clamp::spec(c.shape("x"), c.number("min")?, c.number("max")?)))
        }),
        with("hardtanh", "hardtanh", &["min", "max"], |c| {
            Ok((ops::hardtanh::op(), ops::hardtanh::spec(c.shape("x"), c.number("min")?, c.number("max")?)))
        }),
        with("pow2.5", "pow_scalar", &["exponent"], pow_scalar),
        with("pow3", "pow_scalar", &["exponent"], pow_scalar),
        with("scale_shift", "scale_shift", &["mul", "add"], |c| {
            Ok((ops::scale_shift::op(), Ok(ops::scale_shift::spec(c.shape("x"), c.number("mul")?, c.number("add")?))))
        }),
        with("add_scalar", "add_scalar", &["add"], |c| {
            Ok((ops::add_scalar::op(), Ok(ops::add_scalar::spec(c.shape("x"), c.number("add")?))))
        }),
        with("mul_scalar", "mul_scalar", &["mul"], |c| {
            Ok((ops::mul_scalar::op(), Ok(ops::mul_scalar::spec(c.shape("x"), c.number("mul")?))))
        }),
    ]
}

fn pow_scalar<B: Backend>(c: &Case<'_>) -> Result<Call<B>, NotYet> {
    Ok((ops::pow_scalar::op(), Ok(ops::pow_scalar::spec(c.shape("x"), c.number("exponent")?))))
}

/// The element-wise operations of several operands, but for add.
fn binary<B: Backend>() -> Vec<Row<B>> {
    let binary = |golden, module, call| Row { golden, module, operands: &["a", "b"], settings: &[], call };
    vec![
        binary("sub", "sub", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::sub::op(a, b), ops::sub::spec(a, b)))
        }),
        binary("mul", "mul", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::mul::op(a, b), ops::mul::spec(a, b)))
        }),
        binary("div", "div", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::div::op(a, b), ops::div::spec(a, b)))
        }),
        binary("maximum", "maximum", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::maximum::op(a, b), ops::maximum::spec(a, b)))
        }),
        binary("minimum", "minimum", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::minimum::op(a, b), ops::minimum::spec(a, b)))
        }),
        binary("pow", "pow", |c| {
            let (a, b) = (c.shape("a"), c.shape("b"));
            Ok((ops::pow::op(a, b), ops::pow::spec(a, b)))
        }),
        Row {
            golden: "safe_div",
            module: "safe_div",
            operands: &["a", "b"],
            settings: &["eps"],
            call: |c| {
                let (a, b) = (c.shape("a"), c.shape("b"));
                Ok((ops::safe_div::op(a, b), ops::safe_div::spec(a, b, c.number("eps")?)))
            },
        },
        Row {
            golden: "where",
            module: "where_",
            operands: &["c", "a", "b"],
            settings: &[],
            call: |x| {
                let (c, a, b) = (x.shape("c"), x.shape("a"), x.shape("b"));
                Ok((ops::where_::op(c, a, b), ops::where_::spec(c, a, b)))
            },
        },
    ]
}

fn reductions<B: Backend>() -> [Row<B>; 10] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("sum", "sum", &["x"], REDUCTION, |c| Ok(c.reduce(ops::sum::op(), ops::sum::spec))),
        row("mean", "mean", &["x"], REDUCTION, |c| Ok(c.reduce(ops::mean::op(), ops::mean::spec))),
        row("prod", "prod", &["x"], REDUCTION, |c| Ok(c.reduce(ops::prod::op(), ops::prod::spec))),
        row("amax", "amax", &["x"], REDUCTION, |c| Ok(c.reduce(ops::amax::op(), ops::amax::spec))),
        row("amin", "amin", &["x"], REDUCTION, |c| Ok(c.reduce(ops::amin::op(), ops::amin::spec))),
        row("l2norm", "l2_norm", &["x"], REDUCTION, |c| Ok(c.reduce(ops::l2_norm::op(), ops::l2_norm::spec))),
        row("logsumexp", "logsumexp", &["x"], REDUCTION, |c| Ok(c.reduce(ops::logsumexp::op(), ops::logsumexp::spec))),
        row("compensated_sum", "compensated_sum", &["x"], REDUCTION, |c| {
            Ok(c.reduce(ops::compensated_sum::op(), ops::compensated_sum::spec))
        }),
        // A reduction of the user's own has no golden case.
        row("reduce_by", "reduce_by", &["x"], &[], |c| c.not_yet("reducer")),
        row("var", "var", &["x"], &["axis", "axes", "keepdim", "correction"], |c| {
            let correction = c.attr("correction").as_u64().unwrap_or(1) as usize;
            Ok((ops::var::op(), ops::var::spec(c.shape("x"), &c.axes(), correction, c.keepdim())))
        }),
    ]
}

/// Operations on shapes, and small linear algebra.
fn moves<B: Backend>() -> [Row<B>; 13] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("permute", "permute", &["x"], &["perm"], |c| {
            Ok((ops::permute::op(), ops::permute::spec(c.shape("x"), &signed(c.attr("perm")))))
        }),
        row("broadcast_to", "broadcast_to", &["x"], &["shape"], |c| {
            Ok((ops::broadcast_to::op(), ops::broadcast_to::spec(c.shape("x"), shape(&c.json["output"]))))
        }),
        row("slice", "slice", &["x"], &["start", "stop", "step"], |c| {
            let [starts, stops, steps] = ["start", "stop", "step"].map(|key| c.lengths(key));
            Ok((ops::slice::op(), ops::slice::spec(c.shape("x"), &starts, &stops, &steps)))
        }),
        row("pad", "pad", &["x"], &["before", "after", "value"], |c| {
            let value = c.attr("value").as_f64().unwrap_or(0.0);
            Ok((ops::pad::op(), ops::pad::spec(c.shape("x"), &c.lengths("before"), &c.lengths("after"), value)))
        }),
        row("concat", "concat", &["a", "b", "c"], &["axis"], |c| {
            let operands: Vec<Shape> = ["a", "b", "c"].into_iter().filter_map(|name| c.optional(name)).collect();
            Ok((ops::concat::op(), ops::concat::spec(&operands, c.axes().first().copied().unwrap_or(0))))
        }),
        row("stack", "stack", &["a", "b", "c"], &["axis"], |c| {
            let operands = ["a", "b", "c"].into_iter().filter_map(|name| c.optional(name)).count();
            Ok((ops::stack::op(), ops::stack::spec(c.shape("a"), operands, c.axes().first().copied().unwrap_or(0))))
        }),
        row("squeeze", "squeeze", &["x"], &["axis", "axes"], |c| {
            Ok((ops::squeeze::op(), ops::squeeze::spec(c.shape("x"), &c.axes())))
        }),
        row("unsqueeze", "unsqueeze", &["x"], &["axis"], |c| {
            Ok((ops::unsqueeze::op(), ops::unsqueeze::spec(c.shape("x"), c.axes().first().copied().unwrap_or(0))))
        }),
        row("gather", "gather", &["x", "idx"], &["axis"], |c| {
            let axis = c.axes().first().copied().unwrap_or(0);
            Ok((ops::gather::op(), ops::gather::spec(c.shape("x"), c.shape("idx"), axis)))
        }),
        row("embedding", "embedding", &["w", "idx"], &[], |c| {
            Ok((ops::embedding::op(), ops::embedding::spec(c.shape("w"), c.shape("idx"))))
        }),
        row("dot", "dot", &["a", "b"], &[], |c| Ok((ops::dot::op(), ops::dot::spec(c.shape("a"), c.shape("b"))))),
        row("l2_normalize", "l2_normalize", &["x"], &["axis", "eps"], |c| {
            let epsilon = c.attr("eps").as_f64().unwrap_or(ops::l2_normalize::EPSILON);
            let axis = c.axes().first().copied();
            Ok((ops::l2_normalize::op(), ops::l2_normalize::spec(c.shape("x"), axis, epsilon)))
        }),
        row("cosine_similarity", "cosine_similarity", &["a", "b"], &["axis", "eps"], |c| {
            let epsilon = c.attr("eps").as_f64().unwrap_or(ops::cosine_similarity::EPSILON);
            let (a, b, axis) = (c.shape("a"), c.shape("b"), c.axes().first().copied());
            Ok((ops::cosine_similarity::op(), ops::cosine_similarity::spec(a, b, axis, epsilon)))
        }),
    ]
}

/// The attributes of a reduction.
const REDUCTION: &[&str] = &["axis", "axes", "keepdim"];

/// Axes, of which negative ones count from behind the last.
fn signed(value: &Value) -> Vec<isize> {
    numbers(value).into_iter().map(|axis| axis as isize).collect()
}

/// What a case needs and slabgrad does not have: an operation, or `operation(setting)`.
struct NotYet(String);

struct Case<'f> {
    json: &'f Value,
}

impl<'f> Case<'f> {
    fn op(&self) -> &'f str {
        self.attr("op").as_str().unwrap_or_else(|| panic!("{}: no attrs.op", self.json["name"]))
    }

    fn attr(&self, key: &str) -> &'f Value {
        &self.json["attrs"][key]
    }

    fn optional(&self, input: &str) -> Option<Shape> {
        self.json["inputs"].get(input).map(shape)
    }

    fn shape(&self, input: &str) -> Shape {
        self.optional(input).unwrap_or_else(|| panic!("{}: no input `{input}`", self.json["name"]))
    }

    fn number_or(&self, key: &str, default: f64) -> f64 {
        self.attr(key).as_f64().unwrap_or(default)
    }

    fn not_yet<T>(&self, setting: &str) -> Result<T, NotYet> {
        Err(NotYet(format!("{}({setting})", self.op())))
    }

    /// Requires that an attribute, where there is one, has this value.
    fn only(&self, key: &str, value: &str) -> Result<(), NotYet> {
        match self.attr(key) {
            Value::Null => Ok(()),
            found if found == value => Ok(()),
            _ => self.not_yet(key),
        }
    }

    /// An attribute for both directions (height, width): two lengths, or one for both.
    fn pair(&self, key: &str, default: usize) -> Result<[usize; 2], NotYet> {
        match self.attr(key) {
            Value::Null => Ok([default; 2]),
            value @ (Value::Number(_) | Value::Array(_)) => match lengths(value)[..] {
                [both] => Ok([both; 2]),
                [height, width] => Ok([height, width]),
                _ => self.not_yet(key),
            },
            _ => self.not_yet(key),
        }
    }

    /// A window of this size with the stride, padding and dilation of the case.
    fn window(&self, size: [usize; 2]) -> Result<Window2d, NotYet> {
        let window = Window2d::rect(size).padding_hw(self.pair("padding", 0)?).dilation_hw(self.pair("dilation", 1)?);
        Ok(if self.attr("stride").is_null() { window } else { window.stride_hw(self.pair("stride", 1)?) })
    }

    /// An attribute that is a number.
    fn number(&self, key: &str) -> Result<f64, NotYet> {
        self.attr(key).as_f64().map_or_else(|| self.not_yet(key), Ok)
    }

    /// The same over one axis.
    fn window_1d(&self, size: usize) -> Result<Window1d, NotYet> {
        let [padding, dilation] = [self.pair("padding", 0)?[0], self.pair("dilation", 1)?[0]];
        let window = Window1d::size(size).padding(padding).dilation(dilation);
        Ok(if self.attr("stride").is_null() { window } else { window.stride(self.pair("stride", 1)?[0]) })
    }

    fn count_padding(&self) -> CountPadding {
        if self.attr("count_include_pad") == false { CountPadding::No } else { CountPadding::Yes }
    }

    fn epsilon(&self) -> f64 {
        self.attr("eps").as_f64().unwrap_or(1e-5)
    }

    fn batch_norm(&self) -> BatchNorm {
        BatchNorm::new().epsilon(self.epsilon()).momentum(self.attr("momentum").as_f64().unwrap_or(0.1))
    }

    /// An axis of `input`; negative ones count from behind the last.
    fn axis(&self, key: &str, input: &str) -> Result<usize, NotYet> {
        match self.attr(key).as_i64() {
            Some(axis) if axis < 0 => Ok(self.shape(input).rank() - axis.unsigned_abs() as usize),
            Some(axis) => Ok(axis.unsigned_abs() as usize),
            None => self.not_yet(key),
        }
    }

    /// The axes of a case, under `axis` or `axes`; none where it names none.
    fn axes(&self) -> Vec<isize> {
        ["axis", "axes"].map(|key| self.attr(key)).into_iter().filter(|axes| !axes.is_null()).flat_map(signed).collect()
    }

    fn keepdim(&self) -> bool {
        self.attr("keepdim").as_bool().unwrap_or(false)
    }

    /// The lengths of an attribute; none where the case lacks it.
    fn lengths(&self, key: &str) -> Vec<usize> {
        if self.attr(key).is_null() { Vec::new() } else { lengths(self.attr(key)) }
    }

    /// A reduction over the axes of the case.
    fn reduce<B: Backend>(
        &self,
        op: &'static Op<B>,
        spec: fn(Shape, &[isize], bool) -> Result<Spec, ShapeError>,
    ) -> Call<B> {
        (op, spec(self.shape("x"), &self.axes(), self.keepdim()))
    }

    fn reduction(&self) -> Result<Reduction, NotYet> {
        match self.attr("reduction").as_str() {
            None | Some("mean") => Ok(Reduction::Mean),
            Some("batchmean") => Ok(Reduction::BatchMean),
            Some("sum") => Ok(Reduction::Sum),
            Some("none") => Ok(Reduction::None),
            _ => self.not_yet("reduction"),
        }
    }
}

/// What the cases of a file came to.
#[derive(Default)]
struct Tally {
    cases: usize,
    run: usize,
    /// The worst |found - want| / max(1, |want|) in double precision.
    double: f64,
    /// The worst |found - want| in single precision, as a part of the tolerance.
    single: f64,
    not_yet: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Tally {
    fn count(&mut self, result: Result<(), NotYet>) {
        self.cases += 1;
        match result {
            Ok(()) => self.run += 1,
            Err(NotYet(name)) => *self.not_yet.entry(name).or_default() += 1,
        }
    }

    fn compare<E: Real + Into<f64>>(&mut self, what: &str, found: &[E], want: &[f64], max_abs: f64) {
        let (error, limit, worst) = if E::PRECISION > 24 {
            (relative_difference(found, want), DOUBLE, &mut self.double)
        } else {
            (absolute_difference(found, want) / single_tolerance(max_abs), 1.0, &mut self.single)
        };
        *worst = worst.max(error);
        if error > limit {
            let (element, bits) = (worst_element(found, want), 8 * size_of::<E>());
            self.failures.push(format!("{what}, f{bits}: {element}; off by {error:.1e}, {limit:.0e} is allowed"));
        }
    }

    /// Runs one operation, forward and backward, and compares the output and all gradients that the case has.
    fn operation<B: Backend<Elem: Into<f64>>>(&mut self, json: &Value) -> Result<(), NotYet> {
        let case = Case { json };
        if let Some(loss) = after_log_softmax::<B>(case.op()) {
            let reduction = case.reduction()?;
            self.graph::<B>(json, &["x", "target"], |g, ids| {
                let log_softmax = ops::log_softmax::spec(g.shape(ids[0]), 1).unwrap();
                let y = g.apply_dyn(ops::log_softmax::op(), &ids[..1], log_softmax);
                let (op, spec) = loss(g.shape(y), g.shape(ids[1]), reduction);
                g.apply_dyn(op, &[y, ids[1]], spec.unwrap())
            });
            return Ok(());
        }
        if case.op() == "sdpa" {
            let causal = case.attr("is_causal") == true;
            let settings = if causal { Attention::new().causal() } else { Attention::new() };
            let settings = case.attr("scale").as_f64().map_or(settings, |scale| settings.scale(scale));
            self.graph::<B>(json, &["q", "k", "v"], |g, ids| {
                g.scaled_dot_product_attention_dyn(ids[0], ids[1], ids[2], settings).unwrap()
            });
            return Ok(());
        }
        let Some(row) = rows::<B>().find(|row| row.golden == case.op()) else {
            return Err(NotYet(case.op().to_string()));
        };
        let (attrs, inputs) = (json["attrs"].as_object(), json["inputs"].as_object());
        let (attrs, inputs) = (attrs.expect("attrs is an object"), inputs.expect("inputs is an object"));
        let mut settings = attrs.iter().filter(|(key, value)| *key != "op" && !value.is_null() && *value != false);
        let unknown_setting = settings.find(|(key, _)| !row.settings.contains(&key.as_str())).map(|(key, _)| key);
        let unknown_operand = inputs.keys().find(|key| !row.operands.contains(&key.as_str()));
        if let Some(key) = unknown_setting.or(unknown_operand) {
            return case.not_yet(key);
        }

        let name = format!("{} of {}", json["name"], row.golden);
        let (op, spec) = (row.call)(&case)?;
        let spec = spec.unwrap_or_else(|error| panic!("{name} is refused: {error}"));
        assert_eq!(spec.shape, shape(&json["output"]), "{name}: the output's shape");
        let operands: Vec<&str> = row.operands.iter().copied().filter(|&name| inputs.contains_key(name)).collect();
        let data: Vec<Vec<B::Elem>> = operands.iter().map(|&name| elements(&numbers(&inputs[name]))).collect();
        let data: Vec<&[B::Elem]> = data.iter().map(Vec::as_slice).collect();
        let outcome = testing::run(op, spec, &data, &elements(&numbers(&json["grad_output"])));

        self.outcome(&name, json, &operands, &outcome);
        Ok(())
    }

    /// The same for a case that takes several operations.
    fn graph<B: Backend<Elem: Into<f64>>>(
        &mut self,
        json: &Value,
        operands: &[&str],
        build: impl FnOnce(&mut Graph<B>, &[Id]) -> Id,
    ) {
        let tensors: Vec<&Value> = operands.iter().map(|&name| &json["inputs"][name]).collect();
        let data: Vec<Vec<B::Elem>> = tensors.iter().map(|tensor| elements(&numbers(tensor))).collect();
        let operand = |(i, data)| Operand {
            shape: shape(tensors[i]),
            data: Vec::as_slice(data),
            differentiable: !json["grads"][operands[i]].is_null(),
        };
        let inputs: Vec<_> = data.iter().enumerate().map(operand).collect();
        let outcome = testing::run_graph(&inputs, &elements(&numbers(&json["grad_output"])), build);
        self.outcome(&json["name"].to_string(), json, operands, &outcome);
    }

    /// Compares the output and all gradients that the case has.
    fn outcome<E: Real + Into<f64>>(&mut self, name: &str, json: &Value, operands: &[&str], found: &Outcome<E>) {
        let max_abs = |tensor: &str| json["f32_err"][tensor][0].as_f64().unwrap_or(0.0);
        self.compare(&format!("{name}: output"), &found.y, &numbers(&json["output"]), max_abs("output"));
        for (input, want) in json["grads"].as_object().expect("grads is an object") {
            let i = operands.iter().position(|name| name == input).expect("a gradient is of an input");
            self.compare(&format!("{name}: d{input}"), &found.gradients[i], &numbers(want), max_abs(input));
        }
    }

    /// Runs three training steps of a batch normalisation, with the running statistics that each leaves to the next, then a
    /// step in evaluation.
    fn batch_norm<B: Backend<Elem: Into<f64>>>(&mut self, json: &Value) -> Result<(), NotYet> {
        let case = Case { json };
        if case.op() != "batchnorm2d" {
            return Err(NotYet(case.op().to_string()));
        }
        let tensor = |value: &Value| elements::<B::Elem>(&numbers(value));
        let [weight, bias] = ["gamma", "beta"].map(|name| tensor(&json["inputs"][name]));
        let channels = [0.0, 1.0].map(|initial| vec![initial; weight.len()]).concat();
        let mut state = elements::<B::Elem>(&channels);
        for (i, step) in json["steps"].as_array().expect("steps is an array").iter().enumerate() {
            let mode = step["mode"].as_str().expect("a step has a mode");
            let op = if mode == "train" { ops::batch_norm::op() } else { ops::batch_norm::op_eval() };
            let (x, affine) = (shape(&step["x"]), Some(Shape::new([weight.len()])));
            let spec = ops::batch_norm::spec(x, affine, affine, case.batch_norm()).expect("the shapes fit");
            let (x, dy) = (tensor(&step["x"]), tensor(&step["grad_output"]));
            let outcome = testing::run_with_state::<B>(op, spec, &[&x, &weight, &bias], &state, &dy);

            let max_abs = |tensor: &str| step["f32_err"][tensor][0].as_f64().unwrap_or(0.0);
            let (mean, variance) = outcome.state.split_at(weight.len());
            let found = [("output", &outcome.y[..]), ("running_mean", mean), ("running_var", variance)];
            for (name, found) in found {
                self.compare(&format!("batch_norm, step {i}: {name}"), found, &numbers(&step[name]), max_abs(name));
            }
            for (name, found) in ["x", "gamma", "beta"].iter().zip(&outcome.gradients) {
                let want = numbers(&step["grads"][name]);
                self.compare(&format!("batch_norm, step {i} ({mode}): d{name}"), found, &want, max_abs(name));
            }
            state = outcome.state;
        }
        Ok(())
    }

    /// Runs an optimizer over the fixed gradients; parameters after every step and moments at the end are compared.
    fn optimizer<B: Backend<Elem: Into<f64>>>(&mut self, file: &Value, case: &Value) -> Result<(), NotYet> {
        let class = case["torch_class"].as_str().unwrap_or_default();
        let hyper = case["hyper"].as_object().expect("hyper is an object");
        let is_set = |value: &Value| value.as_f64().map_or(value != false && !value.is_null(), |x| x != 0.0);
        let settings: &[&str] = match class {
            "SGD" => &["lr", "momentum", "dampening", "weight_decay", "nesterov"],
            "Adam" | "AdamW" => &["lr", "betas", "eps", "weight_decay", "amsgrad"],
            "RMSprop" => &["lr", "momentum", "alpha", "eps", "centered", "weight_decay"],
            "Adagrad" => &["lr", "lr_decay", "eps", "weight_decay"],
            _ => return Err(NotYet(class.to_string())),
        };
        if let Some((key, _)) = hyper.iter().find(|(key, value)| is_set(value) && !settings.contains(&key.as_str())) {
            return Err(NotYet(format!("{class}({key})")));
        }
        let numbers_of = |key: &str| elements::<B::Elem>(&numbers(&hyper[key]));
        let number = |key: &str| numbers_of(key)[0];
        let has = |key: &str| is_set(&hyper[key]);
        let rate = number("lr");
        let adam = || {
            let betas = numbers_of("betas");
            let adam = Adam::new(rate).betas(betas[0], betas[1]).epsilon(number("eps"));
            if class == "AdamW" { adam.decoupled() } else { adam }
        };
        let rmsprop = || RmsProp::new(rate).alpha(number("alpha")).epsilon(number("eps"));
        match class {
            "SGD" if !has("momentum") => self.steps::<B, _>(file, case, &Sgd::new(rate), &[]),
            "SGD" => {
                let sgd = Sgd::new(rate).momentum(number("momentum")).dampening(number("dampening"));
                let sgd = if has("nesterov") { sgd.nesterov() } else { sgd };
                self.steps::<B, _>(file, case, &sgd, &["momentum_buffer"]);
            }
            "RMSprop" => match (has("momentum"), has("centered")) {
                (false, false) => self.steps::<B, _>(file, case, &rmsprop(), &["square_avg"]),
                (true, false) => {
                    let rmsprop = rmsprop().momentum(number("momentum"));
                    self.steps::<B, _>(file, case, &rmsprop, &["square_avg", "momentum_buffer"]);
                }
                (false, true) => {
                    self.steps::<B, _>(file, case, &rmsprop().centered(), &["square_avg", "grad_avg"]);
                }
                (true, true) => {
                    let rmsprop = rmsprop().momentum(number("momentum")).centered();
                    self.steps::<B, _>(file, case, &rmsprop, &["square_avg", "momentum_buffer", "grad_avg"]);
                }
            },
            "Adagrad" => {
                let adagrad = Adagrad::new(rate).learning_rate_decay(number("lr_decay")).epsilon(number("eps"));
                self.steps::<B, _>(file, case, &adagrad, &["sum"]);
            }
            _ if has("amsgrad") => {
                self.steps::<B, _>(file, case, &adam().amsgrad(), &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]);
            }
            _ => self.steps::<B, _>(file, case, &adam(), &["exp_avg", "exp_avg_sq"]),
        }
        Ok(())
    }

    fn steps<B, O>(&mut self, file: &Value, case: &Value, optimizer: &O, moments: &[&str])
    where
        B: Backend<Elem: Into<f64>>,
        O: Optimizer<B>,
    {
        optimizer.check().expect("the settings are possible");
        let steps = lengths(&file["steps"])[0];
        let mut own = [B::Elem::ZERO; 4];
        let coefficients: Vec<O::Coefficients> = (0..steps).map(|_| optimizer.begin(&mut own)).collect();
        let decay = elements(&numbers(&case["hyper"]["weight_decay"]))[0];
        let group = Group { weight_decay: decay, ..Group::default() };
        for tensor in ["w", "b"] {
            let name = format!("{} {tensor}", case["name"]);
            let mut params: Vec<B::Elem> = elements(&numbers(&file["init"][tensor]));
            let max_abs = case["f32_err_final"][tensor][0].as_f64().unwrap_or(0.0);
            let mut slots: [Vec<B::Elem>; 3] = std::array::from_fn(|_| vec![B::Elem::ZERO; params.len()]);
            for (step, coefficients) in coefficients.iter().enumerate() {
                let grads: Vec<B::Elem> = elements(&row_of(&file["grads"][tensor], step));
                O::update(coefficients, &group, &mut params, &grads, slots.each_mut().map(|slot| &mut slot[..]));
                let want = row_of(&case["params"][tensor], step);
                self.compare(&format!("{name} after step {step}"), &params, &want, max_abs);
            }
            for (slot, &moment) in slots.iter().zip(moments) {
                let want = &case["final_state"][tensor][moment];
                assert!(want.is_object(), "{name}: the file has no {moment}");
                self.compare(&format!("{name} {moment}"), slot, &numbers(want), max_abs);
            }
        }
    }

    /// Clips by a norm. PyTorch divides by the norm plus 1e-6, slabgrad by the norm, so the golden values are scaled.
    fn clip_norm<B: Backend<Elem: Into<f64>>>(&mut self, file: &Value, case: &Value) -> Result<(), NotYet> {
        let which = match case["norm_type"].as_f64() {
            Some(2.0) => Norm::L2,
            Some(1.0) => Norm::L1,
            _ if case["norm_type"] == "inf" => Norm::Inf,
            _ => return Err(NotYet("clip_grad_norm(norm_type)".to_string())),
        };
        let max = numbers(&case["max_norm"])[0];
        for (step, want) in case["steps"].as_array().expect("steps is an array").iter().enumerate() {
            let grads = ["w", "b"].map(|tensor| row_of(&file["grads"][tensor], step)).concat();
            let mut grads: Vec<B::Elem> = elements(&grads);
            let norm = clip_by_norm::<B>(&mut grads, elements(&[max])[0], which);
            let torch = numbers(&want["total_norm"])[0];
            let scale = if torch > max { max / torch } else { 1.0 } / f64::min(1.0, max / (torch + 1e-6));
            let clipped = ["w", "b"].map(|tensor| numbers(&want["clipped"][tensor])).concat();
            let clipped: Vec<f64> = clipped.iter().map(|g| g * scale).collect();
            self.compare(&format!("clip to {max}, step {step}: norm"), &[norm], &[torch], 0.0);
            self.compare(&format!("clip to {max}, step {step}: gradients"), &grads, &clipped, 0.0);
        }
        Ok(())
    }

    fn clip_value<B: Backend<Elem: Into<f64>>>(&mut self, file: &Value) {
        let case = &file["clip_grad_value"];
        let max = numbers(&case["clip_value"])[0];
        for (step, want) in case["steps"].as_array().expect("steps is an array").iter().enumerate() {
            for tensor in ["w", "b"] {
                let mut grads: Vec<B::Elem> = elements(&row_of(&file["grads"][tensor], step));
                clip_by_value(&mut grads, elements(&[max])[0]);
                let want = numbers(&want[tensor]);
                self.compare(&format!("clip values to {max}, step {step}: {tensor}"), &grads, &want, 0.0);
            }
        }
    }

    /// The rates of a schedule, step by step.
    fn schedule<B: Backend<Elem: Into<f64>>>(&mut self, case: &Value) -> Result<(), NotYet> {
        let name = case["name"].as_str().unwrap_or_default();
        let attrs = case["attrs"].as_object().expect("attrs is an object");
        let known: &[&str] = match name {
            "constant" => &["lr"],
            "step" => &["lr", "step_size", "gamma"],
            "multistep" => &["lr", "milestones", "gamma"],
            "exponential" => &["lr", "gamma"],
            "cosine" => &["lr", "T_max", "eta_min", "formula"],
            "linear_warmup" => &["lr", "start_factor", "total_iters", "formula"],
            "polynomial" => &["lr", "total_iters", "power", "formula"],
            "warmup_cosine" => &["lr", "warmup", "total", "eta_min", "formula"],
            _ => return Err(NotYet(format!("schedule {name}"))),
        };
        if let Some(key) = attrs.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(NotYet(format!("schedule {name}({key})")));
        }
        let number = |key: &str| elements::<B::Elem>(&numbers(&attrs[key]))[0];
        let count = |key: &str| attrs[key].as_u64().unwrap_or_else(|| panic!("{name}: {key} is no count")) as usize;
        let rate = number("lr");
        let milestones: Vec<usize> = attrs.get("milestones").map(lengths).unwrap_or_default();
        let lr: Box<dyn Fn(usize) -> B::Elem> = match name {
            "constant" => Box::new(move |t| Constant(rate).lr(t)),
            "step" => {
                let schedule = StepDecay::new(rate, number("gamma"), count("step_size"));
                Box::new(move |t| schedule.lr(t))
            }
            "multistep" => {
                let gamma = number("gamma");
                Box::new(move |t| MultiStep::new(rate, gamma, &milestones).lr(t))
            }
            "exponential" => {
                let schedule = Exponential::new(rate, number("gamma"));
                Box::new(move |t| schedule.lr(t))
            }
            "cosine" => {
                let schedule = Cosine::new(rate, number("eta_min"), count("T_max"));
                Box::new(move |t| schedule.lr(t))
            }
            "linear_warmup" => {
                let schedule = Linear::new(rate * number("start_factor"), rate, count("total_iters"));
                Box::new(move |t| schedule.lr(t))
            }
            "polynomial" => {
                let schedule = Polynomial::new(rate, B::Elem::ZERO, count("total_iters"), count("power"));
                Box::new(move |t| schedule.lr(t))
            }
            _ => {
                let (warmup, total) = (count("warmup"), count("total"));
                let schedule = Warmup::new(warmup, Cosine::new(rate, number("eta_min"), total - warmup));
                Box::new(move |t| schedule.lr(t))
            }
        };
        for (t, &want) in numbers(&case["lr"]).iter().enumerate() {
            self.compare(&format!("schedule {name}, step {t}"), &[lr(t)], &[want], 0.0);
        }
        Ok(())
    }
}

/// What lies at index `i` of the first axis.
fn row_of(tensor: &Value, i: usize) -> Vec<f64> {
    let shape = shape(tensor);
    let len = shape.product(1, shape.rank());
    numbers(tensor)[i * len..(i + 1) * len].to_vec()
}

fn run_file(name: &str, file: &Value) -> Tally {
    let mut tally = Tally::default();
    let cases = |key: &str| file[key].as_array().unwrap_or_else(|| panic!("{name}.json has no array `{key}`"));
    for case in cases("cases") {
        let result = match name {
            "optim" => {
                let double = tally.optimizer::<Strict<f64>>(file, case);
                double.and_then(|()| tally.optimizer::<Strict<f32>>(file, case))
            }
            "schedule" => {
                let double = tally.schedule::<Strict<f64>>(case);
                double.and_then(|()| tally.schedule::<Strict<f32>>(case))
            }
            "batchnorm" => {
                let double = tally.batch_norm::<Strict<f64>>(case);
                double.and_then(|()| tally.batch_norm::<Strict<f32>>(case))
            }
            _ => {
                let double = tally.operation::<Strict<f64>>(case).and_then(|()| tally.operation::<Fast<f64>>(case));
                double
                    .and_then(|()| tally.operation::<Strict<f32>>(case))
                    .and_then(|()| tally.operation::<Fast<f32>>(case))
            }
        };
        tally.count(result);
    }
    if name == "optim" {
        for case in cases("clip_grad_norm") {
            let double = tally.clip_norm::<Strict<f64>>(file, case);
            let result = double.and_then(|()| tally.clip_norm::<Strict<f32>>(file, case));
            tally.count(result);
        }
        tally.clip_value::<Strict<f64>>(file);
        tally.clip_value::<Strict<f32>>(file);
        tally.count(Ok(()));
        let known =
            ["schema", "group", "torch", "init", "grads", "steps", "cases", "clip_grad_norm", "clip_grad_value"];
        for key in file.as_object().expect("optim.json is an object").keys() {
            if !known.contains(&key.as_str()) {
                tally.count(Err(NotYet(key.clone())));
            }
        }
    }
    tally
}

#[test]
fn every_golden_case_runs_or_is_listed() {
    let is_own = common::other_folder().is_none();
    let folder = common::other_folder().unwrap_or_else(common::own_folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names: BTreeSet<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.to_string()))
        .filter(|name| !ELSEWHERE.contains(&name.as_str()))
        .collect();
    let expected: BTreeSet<String> = OPERATION_FILES.iter().chain(&OTHER_FILES).map(ToString::to_string).collect();
    assert!(!is_own || names == expected, "files in {}: {names:?}, expected {expected:?}", folder.display());

    println!("{:<12} {:>5} {:>5}  {:>10}  {:>15}", "file", "cases", "run", "f64 error", "f32 / tolerance");
    let mut total = Tally::default();
    for name in &names {
        let file = load(name);
        let tally = run_file(name, &file);
        println!("{name:<12} {:>5} {:>5}  {:>10.1e}  {:>15.3}", tally.cases, tally.run, tally.double, tally.single);
        total.cases += tally.cases;
        total.run += tally.run;
        total.failures.extend(tally.failures);
        for (name, count) in tally.not_yet {
            *total.not_yet.entry(name).or_default() += count;
        }
    }
    let missing: usize = total.not_yet.values().sum();
    let list: Vec<String> = total.not_yet.iter().map(|(name, count)| format!("{name} x {count}")).collect();
    println!("{} cases, {} run. not there yet: {missing} cases: {}", total.cases, total.run, list.join(", "));

    assert!(total.run > 0, "no case of {} was run", folder.display());
    assert_eq!(total.run + missing, total.cases, "cases that were run and cases that are not there yet are all cases");
    assert!(total.failures.is_empty(), "{} failures:\n{}", total.failures.len(), total.failures.join("\n"));
    if is_own {
        let found: BTreeSet<&str> = total.not_yet.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = NOT_YET.iter().map(|&(name, _)| name).collect();
        assert_eq!(found, expected, "what is missing is what NOT_YET lists");
    }
}

#[test]
fn every_operation_of_the_library_is_in_the_table() {
    let rows: Vec<_> = rows::<Strict<f64>>().collect();
    for operation in operations() {
        assert!(rows.iter().any(|row| row.module == operation), "`{operation}` is in no row");
    }
    for row in &rows {
        assert!(operations().contains(&row.module), "a row names `{}`, which is no operation", row.module);
    }
    for (golden, name) in NOT_YET {
        assert!(!is_in_library(name), "`{name}` is in the library now: run the golden cases of `{golden}`");
    }
}
