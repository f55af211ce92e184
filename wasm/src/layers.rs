//! From descriptions to layers. What a layer takes from the one before it (features, channels) need not be said: it is
//! known when the layer is recorded.

use alloc::{boxed::Box, format};

use slabgrad::layer::{
    Activation, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, GlobalAvgPool2d,
    GroupNorm, Layer, LayerNorm, Linear, MaxPool2d, Recorder, Residual, RmsNorm, Sequential,
};
use slabgrad::ops::avg_pool2d::CountPadding;
use slabgrad::ops::{Window2d, batch_norm, conv1d, conv2d, dropout, linear};
use slabgrad::prelude::Strict;
use slabgrad::shape::Shape;
use slabgrad::tape::Handle;
use wasm_bindgen::JsValue;

use crate::description::{Description, Result};
use crate::js::Array;

type Backend = Strict<f32>;
type AnyLayer = Box<dyn Layer<Backend>>;

/// How deep layers may be nested in each other.
const MAX_NESTING: usize = 32;

/// A layer that is made for the shape of its input.
struct Fitted<F> {
    kind: &'static str,
    make: F,
}

impl<L: Layer<Backend>, F: Fn(Shape) -> L> Layer<Backend> for Fitted<F> {
    fn kind(&self) -> &'static str {
        self.kind
    }
    fn forward(&self, recorder: &mut Recorder<'_, Backend>, x: Handle) -> Handle {
        let shape = recorder.tape().shape(x);
        (self.make)(shape).forward(recorder, x)
    }
}

fn fitted<L: Layer<Backend> + 'static>(kind: &'static str, make: impl Fn(Shape) -> L + 'static) -> AnyLayer {
    Box::new(Fitted { kind, make })
}

/// The features of `[..., features]`.
fn features(x: Shape) -> usize {
    if x.rank() == 0 { 0 } else { x.axis_from_end(0) }
}

/// The channels of `[n, channels, ...]`.
fn channels(x: Shape) -> usize {
    if x.rank() < 2 { 0 } else { x.axis(1) }
}

/// The layers of an array, and the shape of a sample, where the array begins with it:
/// `{ type: "input", shape: [1, 8, 8] }`.
pub(crate) fn network(layers: &Array) -> Result<(Sequential, Option<Shape>)> {
    let mut input = None;
    if let Ok((description, kind)) = Description::typed("layer 0", &layers.get(0))
        && kind == "input"
    {
        let Some(shape) = description.shape("shape")? else { return description.error("`shape` is missing") };
        description.finish()?;
        input = Some(shape);
    }
    let rest = layers.iter().skip(usize::from(input.is_some()));
    Ok((sequence(rest, MAX_NESTING)?, input))
}

/// Layers one after the other; one without a name is named by its place, as in PyTorch.
fn sequence(layers: impl Iterator<Item = JsValue>, depth: usize) -> Result<Sequential> {
    let mut sequence = Sequential::new();
    for (i, value) in layers.enumerate() {
        let (description, kind) = Description::typed(&format!("layer {i}"), &value)?;
        let name = description.text("name")?;
        let made = layer(&description, &kind, depth)?;
        description.finish()?;
        sequence = match name {
            Some(name) => sequence.named(name, made),
            None => sequence.push(made),
        };
    }
    Ok(sequence)
}

fn layer(description: &Description, kind: &str, depth: usize) -> Result<AnyLayer> {
    let d = description;
    if depth == 0 {
        return d.error(format_args!("layers are nested more than {MAX_NESTING} deep"));
    }
    Ok(match kind {
        "linear" => {
            let (outputs, activation) = (d.needed_size("outputs")?, activation_of(d)?);
            let settings = linear::Linear::new();
            let settings = if d.flag("bias", true)? { settings } else { settings.without_bias() };
            fitted("Linear", move |x| Linear::new(features(x), outputs).settings(settings).activation(activation))
        }
        "conv1d" => {
            let (outputs, activation) = (d.needed_size("outputs")?, activation_of(d)?);
            let settings = conv1d::Conv1d::kernel(d.needed_size("kernel")?).stride(d.size("stride")?.unwrap_or(1));
            let settings = settings.padding(d.size("padding")?.unwrap_or(0)).dilation(d.size("dilation")?.unwrap_or(1));
            let settings = settings.groups(d.size("groups")?.unwrap_or(1));
            let settings = if d.flag("bias", true)? { settings } else { settings.without_bias() };
            fitted("Conv1d", move |x| Conv1d::new(channels(x), outputs, settings).activation(activation))
        }
        "conv2d" => {
            let (outputs, activation) = (d.needed_size("outputs")?, activation_of(d)?);
            let settings = conv2d::Conv2d::kernel_hw(needed_pair(d, "kernel")?);
            let settings = settings.stride_hw(d.pair("stride")?.unwrap_or([1, 1]));
            let settings = settings.padding_hw(d.pair("padding")?.unwrap_or([0, 0]));
            let settings = settings.dilation_hw(d.pair("dilation")?.unwrap_or([1, 1]));
            let settings = settings.groups(d.size("groups")?.unwrap_or(1));
            let settings = if d.flag("bias", true)? { settings } else { settings.without_bias() };
            fitted("Conv2d", move |x| Conv2d::new(channels(x), outputs, settings).activation(activation))
        }
        "maxPool2d" => Box::new(MaxPool2d::new(window(d)?)),
        "avgPool2d" => {
            let padding = if d.flag("countPadding", true)? { CountPadding::Yes } else { CountPadding::No };
            Box::new(AvgPool2d::new(window(d)?).count_padding(padding))
        }
        "globalAvgPool2d" => Box::new(GlobalAvgPool2d),
        "flatten" => Box::new(Flatten),
        "embedding" => Box::new(Embedding::new(d.needed_size("count")?, d.needed_size("size")?)),
        "dropout" => {
            let Some(p) = d.number("p")? else { return d.error("`p` is missing") };
            Box::new(Dropout::new(dropout::Dropout::new(p).seed(d.seed("seed")?.unwrap_or(0))))
        }
        "batchNorm1d" | "batchNorm2d" => {
            let mut settings = batch_norm::BatchNorm::new();
            settings = d.number("epsilon")?.map_or(settings, |epsilon| settings.epsilon(epsilon));
            settings = d.number("momentum")?.map_or(settings, |momentum| settings.momentum(momentum));
            settings = if d.flag("affine", true)? { settings } else { settings.without_affine() };
            if kind == "batchNorm1d" {
                fitted("BatchNorm1d", move |x| BatchNorm1d::new(channels(x)).settings(settings))
            } else {
                fitted("BatchNorm2d", move |x| BatchNorm2d::new(channels(x)).settings(settings))
            }
        }
        "layerNorm" => {
            let (epsilon, affine) = (d.number("epsilon")?.unwrap_or(1e-5), d.flag("affine", true)?);
            fitted("LayerNorm", move |x| {
                let layer = LayerNorm::new([features(x)]).epsilon(epsilon);
                if affine { layer } else { layer.without_affine() }
            })
        }
        "rmsNorm" => {
            let (epsilon, affine) = (d.number("epsilon")?.unwrap_or(1e-5), d.flag("affine", true)?);
            fitted("RmsNorm", move |x| {
                let layer = RmsNorm::new([features(x)]).epsilon(epsilon);
                if affine { layer } else { layer.without_affine() }
            })
        }
        "groupNorm" => {
            let (groups, affine) = (d.needed_size("groups")?, d.flag("affine", true)?);
            let epsilon = d.number("epsilon")?.unwrap_or(1e-5);
            fitted("GroupNorm", move |x| {
                let layer = GroupNorm::new(groups, channels(x)).epsilon(epsilon);
                if affine { layer } else { layer.without_affine() }
            })
        }
        "sequential" => Box::new(sequence(needed_layers(d)?.iter(), depth - 1)?),
        "residual" => {
            let residual = Residual::new(sequence(needed_layers(d)?.iter(), depth - 1)?);
            match d.array("shortcut")? {
                Some(shortcut) => Box::new(residual.shortcut(sequence(shortcut.iter(), depth - 1)?)),
                None => Box::new(residual),
            }
        }
        name => match activation(name, d.number("setting")?) {
            Some(activation) => Box::new(activation),
            None => return d.error("there is no layer of this type"),
        },
    })
}

fn needed_layers(d: &Description) -> Result<Array> {
    match d.array("layers")? {
        Some(layers) => Ok(layers),
        None => d.error("`layers` is missing"),
    }
}

fn needed_pair(d: &Description, key: &'static str) -> Result<[usize; 2]> {
    match d.pair(key)? {
        Some(pair) => Ok(pair),
        None => d.error(format_args!("`{key}` is missing")),
    }
}

/// Windows of `size`, next to each other unless `stride` says otherwise.
fn window(d: &Description) -> Result<Window2d> {
    let size = needed_pair(d, "size")?;
    let window = Window2d::rect(size).stride_hw(d.pair("stride")?.unwrap_or(size));
    Ok(window.padding_hw(d.pair("padding")?.unwrap_or([0, 0])).dilation_hw(d.pair("dilation")?.unwrap_or([1, 1])))
}

fn activation_of(d: &Description) -> Result<Activation> {
    match d.get("activation") {
        None => Ok(Activation::Identity),
        Some(value) => activation_from(d, &value),
    }
}

fn activation_from(d: &Description, value: &JsValue) -> Result<Activation> {
    let (settings, name) = Description::typed("activation", value)?;
    let found = activation(&name, settings.number("setting")?);
    settings.finish()?;
    match found {
        Some(activation) => Ok(activation),
        None => d.error(format_args!("there is no activation `{name}`")),
    }
}

/// The activation of a name as JavaScript writes it: `relu`, `leakyRelu`; capital letters make no difference.
fn activation(name: &str, setting: Option<f64>) -> Option<Activation> {
    let found = Activation::ALL.into_iter().find(|activation| activation.name().eq_ignore_ascii_case(name))?;
    Activation::from_name(found.name(), setting)
}
