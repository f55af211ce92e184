//! Every case of every golden file, values and all gradients, in double and in single precision, through the optimizers and
//! the operations. These are called by the methods of a tape, and what they recorded runs as a static program, whose numbers
//! are compared with the file's; a growing tape and a fixed one have to find the same bits. `--nocapture` prints what ran; `GOLDEN_DIR` names another folder; see
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
use slabgrad::ops::conv_transpose2d::ConvTranspose2d;
use slabgrad::ops::conv1d::Conv1d;
use slabgrad::ops::conv2d::Conv2d;
use slabgrad::ops::cross_entropy::CrossEntropy;
use slabgrad::ops::{Gradient, Op, Reduction, Spec, Window1d, Window2d};
use slabgrad::optim::{
    Adagrad, Adam, Constant, Cosine, Exponential, Group, Linear, MultiStep, Norm, Optimizer, Polynomial, RmsProp,
    Schedule, Sgd, StepDecay, Warmup, clip_by_norm, clip_by_value,
};
use slabgrad::shape::Shape;
use slabgrad::tape::{FixedTape, GrowingTape, Handle, Storage, Tape};
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

/// An operation as the golden files name it, the operands in slabgrad's order (those that a case lacks are optional, and come
/// last), the attributes that `call` understands, and the method that `call` records the case's operands by.
struct Row<B: Backend> {
    golden: &'static str,
    module: &'static str,
    operands: &'static [&'static str],
    settings: &'static [&'static str],
    call: Method<B>,
}

type Method<B> = fn(&mut GrowingTape<B>, &Case<'_>, &[Handle]) -> Result<Handle, NotYet>;

/// All rows.
fn rows<B: Backend>() -> impl Iterator<Item = Row<B>> {
    let rows = layers().into_iter().chain(losses()).chain(windows_and_normalisations());
    rows.chain(unary()).chain(binary()).chain(reductions()).chain(moves())
}

/// What layers and recurrent networks are made of.
fn layers<B: Backend>() -> [Row<B>; 8] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("softmax", "softmax", &["x"], &["axis"], |t, c, v| Ok(t.softmax(v[0], c.axis("axis", "x")?))),
        row("log_softmax", "log_softmax", &["x"], &["axis"], |t, c, v| Ok(t.log_softmax(v[0], c.axis("axis", "x")?))),
        row("scaled_softmax", "scaled_softmax", &["x"], &["scale", "is_causal"], |t, c, v| {
            Ok(t.scaled_softmax(v[0], c.number_or("scale", 1.0), c.attr("is_causal") == true))
        }),
        row("matmul", "matmul", &["a", "b"], &[], |t, _, v| Ok(t.matmul(v[0], v[1]))),
        row("linear", "linear", &["x", "w", "b"], &["weight_layout"], |t, c, v| {
            c.only("weight_layout", "out,in")?;
            Ok(t.linear(v[0], v[1], optional(v, 2)))
        }),
        row("lstm_cell", "lstm_cell", &["c", "gates"], &[], |t, _, v| Ok(t.lstm_cell(v[0], v[1]))),
        row("gru_cell", "gru_cell", &["h", "a", "b"], &[], |t, _, v| Ok(t.gru_cell(v[0], v[1], v[2]))),
        row("zeros", "zeros", &[], &[], |t, c, _| Ok(t.zeros(shape(&c.json["output"])))),
    ]
}

fn losses<B: Backend>() -> [Row<B>; 9] {
    let row = |golden, module, settings, call| Row { golden, module, operands: &["x", "target"], settings, call };
    [
        row("cross_entropy", "cross_entropy", &["target", "reduction", "label_smoothing"], |t, c, v| {
            // The method tells them apart by their shapes.
            if !["index", "probabilities"].iter().any(|kind| c.attr("target") == kind) {
                return c.not_yet("target");
            }
            let smoothing = c.number_or("label_smoothing", 0.0);
            let settings = CrossEntropy::new().reduction(c.reduction()?).label_smoothing(smoothing);
            Ok(t.cross_entropy(v[0], v[1], settings))
        }),
        row("mse", "mse", &["reduction"], |t, c, v| Ok(t.mse(v[0], v[1], c.reduction()?))),
        row("l1", "l1", &["reduction"], |t, c, v| Ok(t.l1(v[0], v[1], c.reduction()?))),
        row("smooth_l1", "smooth_l1", &["reduction", "beta"], |t, c, v| {
            Ok(t.smooth_l1(v[0], v[1], c.number_or("beta", 1.0), c.reduction()?))
        }),
        row("huber", "huber", &["reduction", "delta"], |t, c, v| {
            Ok(t.huber(v[0], v[1], c.number_or("delta", 1.0), c.reduction()?))
        }),
        row("bce_with_logits", "bce_with_logits", &["reduction"], |t, c, v| {
            Ok(t.bce_with_logits(v[0], v[1], c.reduction()?))
        }),
        row("log_probabilities+kl_div", "kl_div", &["reduction"], |t, c, v| Ok(t.kl_div(v[0], v[1], c.reduction()?))),
        row("log_probabilities+nll", "nll", &["reduction"], |t, c, v| Ok(t.nll(v[0], v[1], c.reduction()?))),
        row("probabilities+nll", "cross_entropy_of_probabilities", &["reduction"], |t, c, v| {
            Ok(t.cross_entropy_of_probabilities(v[0], v[1], c.reduction()?))
        }),
    ]
}

/// A loss of log-probabilities by the static tables, and by the method.
struct AfterLogSoftmax<B: Backend> {
    op: &'static Op<B>,
    spec: fn(Shape, Shape, Reduction) -> Result<Spec, ShapeError>,
    method: fn(&mut GrowingTape<B>, Handle, Handle, Reduction) -> Handle,
}

/// The losses of log-probabilities whose golden cases start from logits.
fn after_log_softmax<B: Backend>(golden: &str) -> Option<AfterLogSoftmax<B>> {
    match golden {
        "log_softmax+nll" => {
            Some(AfterLogSoftmax { op: ops::nll::op(), spec: ops::nll::spec, method: |t, x, y, r| t.nll(x, y, r) })
        }
        "kl_div" => Some(AfterLogSoftmax {
            op: ops::kl_div::op(),
            spec: ops::kl_div::spec,
            method: |t, x, y, r| t.kl_div(x, y, r),
        }),
        _ => None,
    }
}

fn windows_and_normalisations<B: Backend>() -> [Row<B>; 13] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("conv1d", "conv1d", &["x", "w", "b"], &["layout", "stride", "padding", "dilation", "groups"], |t, c, v| {
            let [stride, padding] = [c.pair("stride", 1)?[0], c.pair("padding", 0)?[0]];
            let settings = Conv1d::kernel(c.shape("w").axis(2)).stride(stride).padding(padding);
            let settings = settings.dilation(c.pair("dilation", 1)?[0]).groups(c.pair("groups", 1)?[0]);
            Ok(t.conv1d(v[0], v[1], optional(v, 2), settings))
        }),
        row("conv2d", "conv2d", &["x", "w", "b"], &["layout", "stride", "padding", "dilation", "groups"], |t, c, v| {
            c.only("layout", "NCHW/OIHW")?;
            let [stride, padding] = [c.pair("stride", 1)?, c.pair("padding", 0)?];
            let settings = Conv2d::kernel_hw(c.kernel()).stride_hw(stride).padding_hw(padding);
            let settings = settings.dilation_hw(c.pair("dilation", 1)?).groups(c.pair("groups", 1)?[0]);
            Ok(t.conv2d(v[0], v[1], optional(v, 2), settings))
        }),
        row(
            "conv_transpose2d",
            "conv_transpose2d",
            &["x", "w", "b"],
            &["layout", "stride", "padding", "output_padding", "dilation", "groups"],
            |t, c, v| {
                c.only("layout", "NCHW/IOHW")?;
                let [stride, padding] = [c.pair("stride", 1)?, c.pair("padding", 0)?];
                let settings = ConvTranspose2d::kernel_hw(c.kernel()).stride_hw(stride).padding_hw(padding);
                let settings = settings.output_padding_hw(c.pair("output_padding", 0)?);
                let settings = settings.dilation_hw(c.pair("dilation", 1)?).groups(c.pair("groups", 1)?[0]);
                Ok(t.conv_transpose2d(v[0], v[1], optional(v, 2), settings))
            },
        ),
        row("maxpool1d", "max_pool1d", &["x"], &["kernel", "stride", "padding", "dilation"], |t, c, v| {
            Ok(t.max_pool1d(v[0], c.window_1d(c.pair("kernel", 1)?[0])?))
        }),
        row("maxpool2d", "max_pool2d", &["x"], &["kernel", "stride", "padding", "dilation"], |t, c, v| {
            Ok(t.max_pool2d(v[0], c.window(c.pair("kernel", 1)?)?))
        }),
        row("avgpool1d", "avg_pool1d", &["x"], &["kernel", "stride", "padding", "count_include_pad"], |t, c, v| {
            Ok(t.avg_pool1d(v[0], c.window_1d(c.pair("kernel", 1)?[0])?, c.count_padding()))
        }),
        row("avgpool2d", "avg_pool2d", &["x"], &["kernel", "stride", "padding", "count_include_pad"], |t, c, v| {
            Ok(t.avg_pool2d(v[0], c.window(c.pair("kernel", 1)?)?, c.count_padding()))
        }),
        row("global_avgpool2d", "global_avg_pool2d", &["x"], &[], |t, _, v| Ok(t.global_avg_pool2d(v[0]))),
        row("upsample_nearest", "upsample_nearest2d", &["x"], &["scale"], |t, c, v| {
            Ok(t.upsample_nearest2d(v[0], c.pair("scale", 1)?))
        }),
        row("layernorm", "layer_norm", &["x", "gamma", "beta"], &["normalized_dims", "eps"], |t, c, v| {
            Ok(t.layer_norm(v[0], optional(v, 1), optional(v, 2), c.pair("normalized_dims", 1)?[0], c.epsilon()))
        }),
        row("rmsnorm", "rms_norm", &["x", "gamma"], &["eps", "formula"], |t, c, v| {
            c.only("formula", "x/sqrt(mean(x^2)+eps)*gamma")?;
            Ok(t.rms_norm(v[0], optional(v, 1), 1, c.epsilon()))
        }),
        row("groupnorm", "group_norm", &["x", "gamma", "beta"], &["groups", "eps"], |t, c, v| {
            Ok(t.group_norm(v[0], optional(v, 1), optional(v, 2), c.pair("groups", 1)?[0], c.epsilon()))
        }),
        // The steps of `batchnorm.json` are run by `Tally::batch_norm`.
        row("batchnorm2d", "batch_norm", &["x", "gamma", "beta"], &["momentum", "eps"], |_, c, _| c.not_yet("steps")),
    ]
}

/// The element-wise operations of one operand.
fn unary<B: Backend>() -> Vec<Row<B>> {
    let unary = |golden, module, call| Row { golden, module, operands: &["x"], settings: &[], call };
    let with = |golden, module, settings, call| Row { golden, module, operands: &["x"], settings, call };
    vec![
        unary("relu", "relu", |t, _, v| Ok(t.relu(v[0]))),
        unary("tanh", "tanh", |t, _, v| Ok(t.tanh(v[0]))),
        unary("sigmoid", "sigmoid", |t, _, v| Ok(t.sigmoid(v[0]))),
        unary("neg", "neg", |t, _, v| Ok(t.neg(v[0]))),
        unary("abs", "abs", |t, _, v| Ok(t.abs(v[0]))),
        unary("square", "square", |t, _, v| Ok(t.square(v[0]))),
        unary("sqrt", "sqrt", |t, _, v| Ok(t.sqrt(v[0]))),
        unary("rsqrt", "rsqrt", |t, _, v| Ok(t.rsqrt(v[0]))),
        unary("reciprocal", "reciprocal", |t, _, v| Ok(t.reciprocal(v[0]))),
        unary("exp", "exp", |t, _, v| Ok(t.exp(v[0]))),
        unary("expm1", "expm1", |t, _, v| Ok(t.expm1(v[0]))),
        unary("log", "log", |t, _, v| Ok(t.log(v[0]))),
        unary("log1p", "log1p", |t, _, v| Ok(t.log1p(v[0]))),
        unary("sin", "sin", |t, _, v| Ok(t.sin(v[0]))),
        unary("cos", "cos", |t, _, v| Ok(t.cos(v[0]))),
        unary("erf", "erf", |t, _, v| Ok(t.erf(v[0]))),
        unary("relu6", "relu6", |t, _, v| Ok(t.relu6(v[0]))),
        unary("silu", "silu", |t, _, v| Ok(t.silu(v[0]))),
        unary("mish", "mish", |t, _, v| Ok(t.mish(v[0]))),
        unary("hardsigmoid", "hardsigmoid", |t, _, v| Ok(t.hardsigmoid(v[0]))),
        unary("hardswish", "hardswish", |t, _, v| Ok(t.hardswish(v[0]))),
        with("gelu_erf", "gelu", &["approximate"], |t, c, v| {
            c.only("approximate", "none")?;
            Ok(t.gelu(v[0]))
        }),
        with("gelu_tanh", "gelu", &["approximate"], |t, c, v| {
            c.only("approximate", "tanh")?;
            Ok(t.gelu_tanh(v[0]))
        }),
        with("leaky_relu", "leaky_relu", &["negative_slope"], |t, c, v| {
            Ok(t.leaky_relu(v[0], c.number("negative_slope")?))
        }),
        with("elu", "elu", &["alpha"], |t, c, v| Ok(t.elu(v[0], c.number("alpha")?))),
        with("softplus", "softplus", &["beta", "threshold"], |t, c, v| {
            Ok(t.softplus(v[0], c.number("beta")?, c.number("threshold")?))
        }),
        with("clamp", "clamp", &["min", "max"], |t, c, v| Ok(t.clamp(v[0], c.number("min")?, c.number("max")?))),
        with("hardtanh", "hardtanh", &["min", "max"], |t, c, v| {
            Ok(t.hardtanh(v[0], c.number("min")?, c.number("max")?))
        }),
        with("pow2.5", "pow_scalar", &["exponent"], |t, c, v| Ok(t.pow_scalar(v[0], c.number("exponent")?))),
        with("pow3", "pow_scalar", &["exponent"], |t, c, v| Ok(t.pow_scalar(v[0], c.number("exponent")?))),
        with("scale_shift", "scale_shift", &["mul", "add"], |t, c, v| {
            Ok(t.scale_shift(v[0], c.number("mul")?, c.number("add")?))
        }),
        with("add_scalar", "add_scalar", &["add"], |t, c, v| Ok(t.add_scalar(v[0], c.number("add")?))),
        with("mul_scalar", "mul_scalar", &["mul"], |t, c, v| Ok(t.mul_scalar(v[0], c.number("mul")?))),
        // No golden file has a case: PyTorch's masks come from another generator.
        with("dropout", "dropout", &["p"], |_, c, _| c.not_yet("p")),
    ]
}

/// The element-wise operations of several operands.
fn binary<B: Backend>() -> [Row<B>; 9] {
    let binary = |golden, module, call| Row { golden, module, operands: &["a", "b"], settings: &[], call };
    [
        binary("add", "add", |t, _, v| Ok(t.add(v[0], v[1]))),
        binary("sub", "sub", |t, _, v| Ok(t.sub(v[0], v[1]))),
        binary("mul", "mul", |t, _, v| Ok(t.mul(v[0], v[1]))),
        binary("div", "div", |t, _, v| Ok(t.div(v[0], v[1]))),
        binary("maximum", "maximum", |t, _, v| Ok(t.maximum(v[0], v[1]))),
        binary("minimum", "minimum", |t, _, v| Ok(t.minimum(v[0], v[1]))),
        binary("pow", "pow", |t, _, v| Ok(t.pow(v[0], v[1]))),
        Row {
            settings: &["eps"],
            ..binary("safe_div", "safe_div", |t, c, v| Ok(t.safe_div(v[0], v[1], c.number("eps")?)))
        },
        Row { operands: &["c", "a", "b"], ..binary("where", "where_", |t, _, v| Ok(t.where_(v[0], v[1], v[2]))) },
    ]
}

fn reductions<B: Backend>() -> [Row<B>; 10] {
    let row = |golden, module, settings, call| Row { golden, module, operands: &["x"], settings, call };
    [
        row("sum", "sum", REDUCTION, |t, c, v| Ok(t.sum(v[0], &c.axes(), c.keepdim()))),
        row("mean", "mean", REDUCTION, |t, c, v| Ok(t.mean(v[0], &c.axes(), c.keepdim()))),
        row("prod", "prod", REDUCTION, |t, c, v| Ok(t.prod(v[0], &c.axes(), c.keepdim()))),
        row("amax", "amax", REDUCTION, |t, c, v| Ok(t.amax(v[0], &c.axes(), c.keepdim()))),
        row("amin", "amin", REDUCTION, |t, c, v| Ok(t.amin(v[0], &c.axes(), c.keepdim()))),
        row("l2norm", "l2_norm", REDUCTION, |t, c, v| Ok(t.l2_norm(v[0], &c.axes(), c.keepdim()))),
        row("logsumexp", "logsumexp", REDUCTION, |t, c, v| Ok(t.logsumexp(v[0], &c.axes(), c.keepdim()))),
        row("compensated_sum", "compensated_sum", REDUCTION, |t, c, v| {
            Ok(t.compensated_sum(v[0], &c.axes(), c.keepdim()))
        }),
        // A reduction of the user's own has no golden case.
        row("reduce_by", "reduce_by", &[], |_, c, _| c.not_yet("reducer")),
        row("var", "var", &["axis", "axes", "keepdim", "correction"], |t, c, v| {
            let correction = c.attr("correction").as_u64().unwrap_or(1) as usize;
            Ok(t.var(v[0], &c.axes(), correction, c.keepdim()))
        }),
    ]
}

/// Operations on shapes, and small linear algebra.
fn moves<B: Backend>() -> [Row<B>; 14] {
    let row = |golden, module, operands, settings, call| Row { golden, module, operands, settings, call };
    [
        row("reshape", "reshape", &["x"], &["shape"], |t, c, v| Ok(t.reshape(v[0], shape(&c.json["output"])))),
        row("permute", "permute", &["x"], &["perm"], |t, c, v| Ok(t.permute(v[0], &signed(c.attr("perm"))))),
        row("broadcast_to", "broadcast_to", &["x"], &["shape"], |t, c, v| {
            Ok(t.broadcast_to(v[0], shape(&c.json["output"])))
        }),
        row("slice", "slice", &["x"], &["start", "stop", "step"], |t, c, v| {
            Ok(t.slice(v[0], &c.lengths("start"), &c.lengths("stop"), &c.lengths("step")))
        }),
        row("pad", "pad", &["x"], &["before", "after", "value"], |t, c, v| {
            Ok(t.pad(v[0], &c.lengths("before"), &c.lengths("after"), c.number_or("value", 0.0)))
        }),
        row("concat", "concat", &["a", "b", "c"], &["axis"], |t, c, v| Ok(t.concat(v, c.first_axis().unwrap_or(0)))),
        row("stack", "stack", &["a", "b", "c"], &["axis"], |t, c, v| Ok(t.stack(v, c.first_axis().unwrap_or(0)))),
        row("squeeze", "squeeze", &["x"], &["axis", "axes"], |t, c, v| Ok(t.squeeze(v[0], &c.axes()))),
        row("unsqueeze", "unsqueeze", &["x"], &["axis"], |t, c, v| Ok(t.unsqueeze(v[0], c.first_axis().unwrap_or(0)))),
        row("gather", "gather", &["x", "idx"], &["axis"], |t, c, v| {
            Ok(t.gather(v[0], v[1], c.first_axis().unwrap_or(0)))
        }),
        row("embedding", "embedding", &["w", "idx"], &[], |t, _, v| Ok(t.embedding(v[0], v[1]))),
        row("dot", "dot", &["a", "b"], &[], |t, _, v| Ok(t.dot(v[0], v[1]))),
        row("l2_normalize", "l2_normalize", &["x"], &["axis", "eps"], |t, c, v| {
            Ok(t.l2_normalize(v[0], c.first_axis(), c.number_or("eps", ops::l2_normalize::EPSILON)))
        }),
        row("cosine_similarity", "cosine_similarity", &["a", "b"], &["axis", "eps"], |t, c, v| {
            let epsilon = c.number_or("eps", ops::cosine_similarity::EPSILON);
            Ok(t.cosine_similarity(v[0], v[1], c.first_axis(), epsilon))
        }),
    ]
}

/// An operand that the case may lack.
fn optional(operands: &[Handle], i: usize) -> Option<Handle> {
    operands.get(i).copied()
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

    /// The height and width of the weight.
    fn kernel(&self) -> [usize; 2] {
        let weight = self.shape("w");
        [weight.axis(2), weight.axis(3)]
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

    fn first_axis(&self) -> Option<isize> {
        self.axes().first().copied()
    }

    fn keepdim(&self) -> bool {
        self.attr("keepdim").as_bool().unwrap_or(false)
    }

    /// The lengths of an attribute; none where the case lacks it.
    fn lengths(&self, key: &str) -> Vec<usize> {
        if self.attr(key).is_null() { Vec::new() } else { lengths(self.attr(key)) }
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
        if let Some(AfterLogSoftmax { op, spec, method }) = after_log_softmax::<B>(case.op()) {
            let reduction = case.reduction()?;
            let build = |g: &mut Graph<B>, ids: &[Id]| {
                let log_softmax = ops::log_softmax::spec(g.shape(ids[0]), 1).unwrap();
                let y = g.apply_dyn(ops::log_softmax::op(), &ids[..1], log_softmax);
                g.apply_dyn(op, &[y, ids[1]], spec(g.shape(y), g.shape(ids[1]), reduction).unwrap())
            };
            self.graph::<B>(json, &["x", "target"], build, |tape, leaves| {
                let y = tape.log_softmax(leaves[0], 1);
                method(tape, y, leaves[1], reduction)
            });
            return Ok(());
        }
        if case.op() == "sdpa" {
            let causal = case.attr("is_causal") == true;
            let settings = if causal { Attention::new().causal() } else { Attention::new() };
            let settings = case.attr("scale").as_f64().map_or(settings, |scale| settings.scale(scale));
            let build = |g: &mut Graph<B>, ids: &[Id]| {
                g.scaled_dot_product_attention_dyn(ids[0], ids[1], ids[2], settings).unwrap()
            };
            self.graph::<B>(json, &["q", "k", "v"], build, |tape, leaves| {
                tape.scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], settings)
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
        let names: Vec<&str> = row.operands.iter().copied().filter(|&name| inputs.contains_key(name)).collect();
        let data: Vec<Vec<B::Elem>> = names.iter().map(|&name| elements(&numbers(&inputs[name]))).collect();
        let data: Vec<&[B::Elem]> = data.iter().map(Vec::as_slice).collect();
        let dy: Vec<B::Elem> = elements(&numbers(&json["grad_output"]));
        let operand = |(&name, &data)| Operand { shape: shape(&inputs[name]), data, differentiable: false };
        let mut operands: Vec<_> = names.iter().zip(&data).map(operand).collect();

        // Which table the method records says which of the operands are differentiable.
        let mut tape = GrowingTape::<B>::default();
        let leaves = record(&mut tape, &operands);
        let y = (row.call)(&mut tape, &case, &leaves)?;
        tape.check().unwrap_or_else(|error| panic!("{name} is refused: {error}"));
        let (op, spec) = tape.operation(y).expect("the method records one node");
        assert_eq!(spec.shape, shape(&json["output"]), "{name}: the output's shape");
        let outcome = testing::run(op, spec, &data, &dy);
        self.outcome(&name, json, &names, &outcome);

        for (operand, gradient) in operands.iter_mut().zip(&op.backward) {
            operand.differentiable = op.view || !matches!(gradient, Gradient::None);
        }
        let mut tape = GrowingTape::<B>::default();
        let leaves = record(&mut tape, &operands);
        let y = (row.call)(&mut tape, &case, &leaves)?;
        self.same_bits(&format!("{name} on a growing tape"), &mut tape, &leaves, y, &dy, &outcome);

        let scratch = spec.scratch + spec.scratch_backward.iter().sum::<usize>();
        let params = tape.params().len();
        let mut slab = vec![B::Elem::ZERO; 2 * params + tape.work_len() + scratch];
        let mut tape = FixedTape::<4, B>::in_slab(&mut slab, params).expect("there is room for the parameters");
        let leaves = record(&mut tape, &operands);
        let y = tape.apply(op, &leaves, Ok(spec));
        self.same_bits(&format!("{name} on a fixed tape"), &mut tape, &leaves, y, &dy, &outcome);
        Ok(())
    }

    /// Runs backward on a tape, and requires what the static engine found, bit for bit.
    fn same_bits<B: Backend<Elem: Into<f64>>, S: Storage<Backend = B>>(
        &mut self,
        name: &str,
        tape: &mut Tape<S>,
        leaves: &[Handle],
        y: Handle,
        dy: &[B::Elem],
        want: &Outcome<B::Elem>,
    ) {
        if let Err(error) = tape.backward_from(y, dy) {
            self.failures.push(format!("{name}: {error}"));
            return;
        }
        let gradients = leaves.iter().map(|&leaf| tape.gradient(leaf).unwrap_or_default());
        let found = [tape.value(y)].into_iter().chain(gradients);
        for (i, (found, want)) in found.zip([&want.y].into_iter().chain(&want.gradients)).enumerate() {
            self.require_bits(&format!("{name}, output and gradients, number {i}"), found, want);
        }
    }

    fn require_bits<E: Real + Into<f64>>(&mut self, what: &str, found: &[E], want: &[E]) {
        let bits = |x: &[E]| x.iter().map(|&x| x.into().to_bits()).collect::<Vec<_>>();
        if bits(found) != bits(want) {
            let bits = 8 * size_of::<E>();
            self.failures.push(format!("{what}, f{bits}: found {found:?}, the static engine has {want:?}"));
        }
    }

    /// The same for a case that takes several operations, built in a graph and recorded by methods.
    fn graph<B: Backend<Elem: Into<f64>>>(
        &mut self,
        json: &Value,
        operands: &[&str],
        build: impl FnOnce(&mut Graph<B>, &[Id]) -> Id,
        method: impl FnOnce(&mut GrowingTape<B>, &[Handle]) -> Handle,
    ) {
        let tensors: Vec<&Value> = operands.iter().map(|&name| &json["inputs"][name]).collect();
        let data: Vec<Vec<B::Elem>> = tensors.iter().map(|tensor| elements(&numbers(tensor))).collect();
        let operand = |(i, data)| Operand {
            shape: shape(tensors[i]),
            data: Vec::as_slice(data),
            differentiable: !json["grads"][operands[i]].is_null(),
        };
        let inputs: Vec<_> = data.iter().enumerate().map(operand).collect();
        let dy: Vec<B::Elem> = elements(&numbers(&json["grad_output"]));
        let outcome = testing::run_graph(&inputs, &dy, build);
        let name = json["name"].to_string();
        self.outcome(&name, json, operands, &outcome);

        let mut tape = GrowingTape::<B>::default();
        let leaves = record(&mut tape, &inputs);
        let y = method(&mut tape, &leaves);
        self.same_bits(&format!("{name} on a growing tape"), &mut tape, &leaves, y, &dy, &outcome);
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
        let affine = Shape::new([weight.len()]);
        let mut tape = GrowingTape::<B>::default();
        let parameters = [tape.parameter(affine, &weight), tape.parameter(affine, &bias)];
        let statistics = tape.batch_norm_statistics(weight.len());
        let mark = tape.mark();
        for (i, step) in json["steps"].as_array().expect("steps is an array").iter().enumerate() {
            let mode = step["mode"].as_str().expect("a step has a mode");
            let op = if mode == "train" { ops::batch_norm::op() } else { ops::batch_norm::op_eval() };
            let shape = shape(&step["x"]);
            let spec = ops::batch_norm::spec(shape, Some(affine), Some(affine), case.batch_norm());
            let (x, dy) = (tensor(&step["x"]), tensor(&step["grad_output"]));
            let operands = [&x[..], &weight, &bias];
            let outcome = testing::run_with_state::<B>(op, spec.expect("the shapes fit"), &operands, &state, &dy);

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

            let settings = if mode == "train" { case.batch_norm() } else { case.batch_norm().eval() };
            let x = tape.parameter(shape, &x);
            let y = tape.batch_norm(x, Some(parameters[0]), Some(parameters[1]), statistics, settings);
            let (name, leaves) = (format!("batch_norm on a tape, step {i}"), [x, parameters[0], parameters[1]]);
            self.same_bits(&name, &mut tape, &leaves, y, &dy, &outcome);
            self.require_bits(&format!("{name}: statistics"), tape.value(statistics), &outcome.state);
            tape.reset_to(mark);
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

/// Puts operands on a tape: parameters where they are differentiable, constants elsewhere.
fn record<B: Backend, S: Storage<Backend = B>>(tape: &mut Tape<S>, operands: &[Operand<'_, B::Elem>]) -> Vec<Handle> {
    let leaf = |&Operand { shape, data, differentiable }: &Operand<'_, B::Elem>| {
        if differentiable { tape.parameter(shape, data) } else { tape.constant(shape, data) }
    };
    operands.iter().map(leaf).collect()
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
