//! nanograd's checkpoints, version 1: an association list of Scheme in CBOR, written as its `cbor` egg writes it.
//!
//! Symbols are tag 39 over a text. A pair `(key . atom)` is tag 6049280 over `[key, atom]`; `(key a b ...)` is the plain array
//! `[key, a, b, ...]`, since that is a list. Weights of dense layers are `[out, in]`, as slabgrad's: nanograd makes them with
//! `(list output-dim input-dim)` and multiplies a batch by their transpose.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Element;
use super::cbor::{self, CborError, Item, Value, Writer, parse, shortened};
use crate::backend::Backend;
use crate::layer::registry::{Description, MAX_NAME, describe, joined};
use crate::layer::{Activation, Conv2d, Flatten, Layer, Linear, Model, Role, Sequential, Setting, TensorView};
use crate::ops::{conv2d, linear};
use crate::shape::Shape;

const SYMBOL: u64 = 39;
const PAIR: u64 = 6_049_280;
const FORMAT: &str = "nanograd-checkpoint";
const VERSION: u64 = 1;

/// What nanograd calls an activation.
const ACTIVATIONS: [(&str, Activation); 6] = [
    ("ReLU", Activation::Relu),
    ("Tanh", Activation::Tanh),
    ("Sigmoid", Activation::Sigmoid),
    ("Identity", Activation::Identity),
    ("GeLU", Activation::GeluTanh),
    ("SiLU", Activation::Silu),
];

/// nanograd's checkpoints.
impl<B: Backend> Model<B> {
    /// The model as a checkpoint that nanograd's `load-model` reads (version 1 of its format): dense layers, `Conv2d` with
    /// square windows, `Flatten` and `Sequential`, with the activations `ReLU`, `Tanh`, `Sigmoid`, `Identity`, `GeLU` (which is
    /// [`Activation::GeluTanh`]) and `SiLU`. nanograd has activations only as settings of layers: one that follows a dense
    /// layer or a convolution without one becomes that.
    ///
    /// # Errors
    /// When nanograd has no such layer, or not with these settings: the error names it.
    pub fn to_nanograd(&self) -> Result<Vec<u8>, CborError> {
        let description = describe(self.layer())?;
        let mut writer = Writer::new();
        writer.array(3);
        symbol_pair(&mut writer, "format", FORMAT);
        pair(&mut writer, "version");
        writer.unsigned(VERSION);
        let mut tensors = self.tensors();
        let mut layers = LayerWriter::<B> { writer, tensors: &mut tensors };
        layers.layer(&description, None, "", "model", 0)?;
        Ok(layers.writer.into_bytes())
    }

    /// The model in a checkpoint of nanograd's. Layers in a container keep their names where these are different, not
    /// empty, without dots, and of at most 255 bytes; else their places are their names. The shape of a sample can be left out where the first
    /// layer is dense; convolutions take images of any size.
    ///
    /// ```
    /// use slabgrad::layer::{Activation, Model, Sequential};
    ///
    /// let net = Sequential::new().linear("hidden", 2, 8).activation(Activation::Tanh).linear("out", 8, 1);
    /// let model: Model = Model::new(net, [2], 1)?;
    /// let bytes = model.to_nanograd()?;
    /// let read: Model = Model::from_nanograd(&bytes, None)?;
    /// assert_eq!(read.tensor("hidden.weight").unwrap().data, model.tensor("hidden.weight").unwrap().data);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the bytes are not such a checkpoint, hold another type of elements, have a layer that is not known, or the layers do
    /// not fit each other or the sample.
    pub fn from_nanograd(bytes: &[u8], sample: Option<Shape>) -> Result<Self, CborError> {
        let file = parse(bytes)?;
        let top = Fields::of(file.array("")?, &file, String::new());
        let format = top.get("format")?;
        if format.name()? != FORMAT {
            return format.item.expected("format", &format!("the symbol {FORMAT}"));
        }
        let version = top.get("version")?;
        if version.atom()?.unsigned("version")? != VERSION {
            return version.item.expected("version", &format!("version {VERSION}"));
        }
        let mut reader = Reader::<B> { elements: Vec::new(), frozen: Vec::new(), inputs: None };
        let (layer, _) = reader.layer(&top.get("model")?.fields()?, true)?;
        let sample = sample.or_else(|| reader.inputs.map(|inputs| Shape::new([inputs])));
        let Some(sample) = sample else {
            let what = "the first layer is not dense, so that the shape of a sample has to be given";
            return Err(file.error("model", what));
        };
        let mut model = Self::new(layer, sample, 0)?;
        if reader.frozen.contains(&true) {
            model.set_roles(&reader.frozen, Role::Frozen);
        }
        model.load_tensors(&reader.elements);
        Ok(model)
    }
}

fn symbol(writer: &mut Writer, name: &str) {
    writer.tag(SYMBOL);
    writer.text(name);
}

/// The start of a pair; an atom follows.
fn pair(writer: &mut Writer, key: &str) {
    writer.tag(PAIR);
    writer.array(2);
    symbol(writer, key);
}

fn symbol_pair(writer: &mut Writer, key: &str, value: &str) {
    pair(writer, key);
    symbol(writer, value);
}

/// The start of an entry whose value is a list; `len` elements follow.
fn list(writer: &mut Writer, key: &str, len: usize) {
    writer.array(len + 1);
    symbol(writer, key);
}

struct LayerWriter<'a, 'm, B: Backend> {
    writer: Writer,
    /// In the order in which layers ask for them.
    tensors: &'a mut dyn Iterator<Item = TensorView<'m, B::Elem>>,
}

impl<B: Backend> LayerWriter<'_, '_, B> {
    fn error<T>(layer: &Description, path: &str, what: impl Into<String>) -> Result<T, CborError> {
        Err(CborError::Layer { path: path.to_owned(), kind: layer.kind.clone(), what: what.into() })
    }

    /// Writes a layer as an element of a list, or with a key as an entry. `then` is the activation layer behind it.
    fn layer(
        &mut self,
        layer: &Description,
        then: Option<Activation>,
        path: &str,
        name: &str,
        depth: usize,
    ) -> Result<(), CborError> {
        let start = |writer: &mut Writer, len: usize, kind: &str| {
            if depth == 0 {
                list(writer, "model", len);
            } else {
                writer.array(len);
            }
            symbol_pair(writer, "type", kind);
            pair(writer, "name");
            writer.text(if depth == 0 { &layer.kind } else { name });
        };
        match layer.kind.as_str() {
            "Linear" => {
                start(&mut self.writer, 8, "dense-layer");
                self.size(layer, "inputs", "input-size");
                self.size(layer, "outputs", "output-size");
                self.tensors(layer, path)?;
                self.activation(layer, then, path)
            }
            "Conv2d" => {
                let conv = Square::of(layer, path)?;
                start(&mut self.writer, 11, "conv2d-layer");
                self.size(layer, "inputs", "in-channels");
                self.size(layer, "outputs", "out-channels");
                for (key, size) in [("kernel-size", conv.kernel), ("stride", conv.stride), ("padding", conv.padding)] {
                    pair(&mut self.writer, key);
                    self.writer.unsigned(size as u64);
                }
                self.tensors(layer, path)?;
                self.activation(layer, then, path)
            }
            "Flatten" => {
                start(&mut self.writer, 2, "flatten-layer");
                Ok(())
            }
            "Sequential" => {
                let children = with_activations(&layer.children);
                start(&mut self.writer, 3, "sequential");
                list(&mut self.writer, "layers", children.len());
                for (name, child, then) in children {
                    self.layer(child, then, &joined(path, name), name, depth + 1)?;
                }
                Ok(())
            }
            kind if activation_layer(kind).is_some() => Self::error(
                layer,
                path,
                "nanograd has activations only behind dense layers and convolutions without one",
            ),
            _ => Self::error(layer, path, "nanograd's checkpoints have no such layer"),
        }
    }

    fn size(&mut self, layer: &Description, setting: &str, key: &str) {
        pair(&mut self.writer, key);
        self.writer.unsigned(size_of_setting(layer, setting) as u64);
    }

    /// The element type, `weights` and `biases`.
    fn tensors(&mut self, layer: &Description, path: &str) -> Result<(), CborError> {
        symbol_pair(&mut self.writer, "dtype", Element::of::<B::Elem>().name());
        self.tensor(layer, path, "weight", "weights")?;
        if setting(layer, "bias") == Some(Setting::Flag(true)) {
            return self.tensor(layer, path, "bias", "biases");
        }
        pair(&mut self.writer, "biases");
        self.writer.flag(false);
        Ok(())
    }

    fn tensor(&mut self, layer: &Description, path: &str, leaf: &str, key: &str) -> Result<(), CborError> {
        let name = joined(path, leaf);
        let Some(tensor) = self.tensors.next().filter(|tensor| tensor.name() == name) else {
            return Self::error(layer, path, format!("the model has no parameter `{name}` at this place"));
        };
        list(&mut self.writer, key, 4);
        symbol_pair(&mut self.writer, "dtype", Element::of::<B::Elem>().name());
        list(&mut self.writer, "shape", tensor.shape().rank());
        self.writer.axes(tensor.shape());
        pair(&mut self.writer, "requires-grad");
        self.writer.flag(!tensor.is_frozen());
        pair(&mut self.writer, "data");
        self.writer.elements(tensor.data);
        Ok(())
    }

    fn activation(&mut self, layer: &Description, then: Option<Activation>, path: &str) -> Result<(), CborError> {
        let own = match setting(layer, "activation") {
            Some(Setting::Activation(activation)) => activation,
            _ => Activation::Identity,
        };
        let activation = then.unwrap_or(own);
        let Some((name, _)) = ACTIVATIONS.iter().find(|(_, known)| *known == activation) else {
            return Self::error(layer, path, format!("nanograd has no activation {activation}"));
        };
        list(&mut self.writer, "activation", 2);
        symbol_pair(&mut self.writer, "type", "activation");
        pair(&mut self.writer, "name");
        self.writer.text(name);
        Ok(())
    }
}

/// The activation that a kind of layer is, where nanograd has it too.
fn activation_layer(kind: &str) -> Option<Activation> {
    ACTIVATIONS.iter().map(|(_, activation)| *activation).find(|activation| activation.name() == kind)
}

/// Layers with the activations that follow them; the identity alone is left out.
fn with_activations(children: &[(String, Description)]) -> Vec<(&str, &Description, Option<Activation>)> {
    let mut all: Vec<(&str, &Description, Option<Activation>)> = Vec::new();
    for (name, child) in children {
        let activation = activation_layer(&child.kind);
        if activation == Some(Activation::Identity) {
            continue;
        }
        if let (Some(activation), Some((_, before, then @ None))) = (activation, all.last_mut())
            && setting(before, "activation") == Some(Setting::Activation(Activation::Identity))
        {
            *then = Some(activation);
            continue;
        }
        all.push((name, child, None));
    }
    all
}

fn setting(layer: &Description, name: &str) -> Option<Setting> {
    layer.settings.iter().find(|(found, _)| found == name).map(|&(_, setting)| setting)
}

fn size_of_setting(layer: &Description, name: &str) -> usize {
    match setting(layer, name) {
        Some(Setting::Size(size)) => size,
        _ => 0,
    }
}

/// A convolution as nanograd has it.
struct Square {
    kernel: usize,
    stride: usize,
    padding: usize,
}

impl Square {
    fn of(layer: &Description, path: &str) -> Result<Self, CborError> {
        let error = |what: String| CborError::Layer { path: path.to_owned(), kind: layer.kind.clone(), what };
        let pair = |name: &str| match setting(layer, name) {
            Some(Setting::Pair([height, width])) if height == width => Ok(height),
            _ => Err(error(format!("nanograd's convolutions have the same {name} in both directions"))),
        };
        if pair("dilation")? != 1 || size_of_setting(layer, "groups") != 1 {
            return Err(error("nanograd's convolutions have neither dilation nor groups".to_owned()));
        }
        if setting(layer, "bias") != Some(Setting::Flag(true)) {
            return Err(error("nanograd's convolutions have a bias".to_owned()));
        }
        Ok(Self { kernel: pair("kernel")?, stride: pair("stride")?, padding: pair("padding")? })
    }
}

/// An association list.
struct Fields<'i, 'b> {
    entries: &'i [Item<'b>],
    at: &'i Item<'b>,
    path: String,
}

/// The value of an entry of an association list, in either encoding: what the tagged pair has behind its key, or the elements
/// of the plain array behind its key.
struct Field<'i, 'b> {
    item: &'i Item<'b>,
    value: Either<'i, 'b>,
    path: String,
}

enum Either<'i, 'b> {
    Tagged(&'i Item<'b>),
    Plain(&'i [Item<'b>]),
}

/// A symbol's name. A text stands for a symbol too.
fn name_of<'b>(item: &Item<'b>) -> Option<&'b str> {
    match &item.value {
        Value::Text(text) => Some(text),
        Value::Tag(SYMBOL, inner) => match inner.value {
            Value::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The key of an entry of an association list, and what follows it.
fn entry<'i, 'b>(item: &'i Item<'b>) -> Option<(&'b str, Either<'i, 'b>)> {
    match &item.value {
        Value::Tag(PAIR, inner) => match &inner.value {
            Value::Array(items) => match items.as_slice() {
                [key, value] => Some((name_of(key)?, Either::Tagged(value))),
                _ => None,
            },
            _ => None,
        },
        Value::Array(items) => {
            let (key, rest) = items.split_first()?;
            Some((name_of(key)?, Either::Plain(rest)))
        }
        _ => None,
    }
}

impl<'i, 'b> Fields<'i, 'b> {
    const fn of(entries: &'i [Item<'b>], at: &'i Item<'b>, path: String) -> Self {
        Self { entries, at, path }
    }

    fn get(&self, key: &str) -> Result<Field<'i, 'b>, CborError> {
        let path = joined(&self.path, key);
        for item in self.entries {
            match entry(item) {
                Some((found, value)) if found == key => return Ok(Field { item, value, path }),
                Some(_) => (),
                None => return item.expected(&self.path, "a pair of a symbol and a value"),
            }
        }
        Err(self.at.error(&self.path, format!("`{key}` is missing")))
    }

    fn size(&self, key: &str) -> Result<usize, CborError> {
        let field = self.get(key)?;
        field.atom()?.size(&field.path)
    }

    /// An error about the whole of it.
    fn error(&self, what: String) -> CborError {
        self.at.error(&self.path, what)
    }
}

impl<'i, 'b> Field<'i, 'b> {
    /// The one value.
    fn atom(&self) -> Result<&'i Item<'b>, CborError> {
        match self.value {
            Either::Tagged(value) | Either::Plain([value]) => Ok(value),
            Either::Plain(_) => self.item.expected(&self.path, "one value"),
        }
    }

    /// A symbol or text.
    fn name(&self) -> Result<&'b str, CborError> {
        let atom = self.atom()?;
        name_of(atom).map_or_else(|| atom.expected(&self.path, "a symbol"), Ok)
    }

    /// The elements of a list. Where the list itself is the one element behind the key, it is that; `is_element` tells one of
    /// its elements from a list of them.
    fn list(&self, is_element: impl Fn(&Item<'b>) -> bool) -> Result<&'i [Item<'b>], CborError> {
        match self.value {
            Either::Tagged(value) => match &value.value {
                Value::Array(items) => Ok(items),
                _ => value.expected(&self.path, "a list"),
            },
            Either::Plain([value]) if !is_element(value) => match &value.value {
                Value::Array(items) => Ok(items),
                _ => value.expected(&self.path, "a list"),
            },
            Either::Plain(items) => Ok(items),
        }
    }

    /// An association list.
    fn fields(&self) -> Result<Fields<'i, 'b>, CborError> {
        Ok(Fields::of(self.list(|item| entry(item).is_some())?, self.item, self.path.clone()))
    }
}

/// Gathers the elements of all tensors while it makes layers, so that a model never has more than the file.
struct Reader<B: Backend> {
    elements: Vec<B::Elem>,
    /// Of each tensor.
    frozen: Vec<bool>,
    /// The inputs of the first layer, where that is dense.
    inputs: Option<usize>,
}

impl<B: Backend> Reader<B> {
    /// The layer, and its name. `first`: nothing comes before it.
    fn layer<'b>(&mut self, fields: &Fields<'_, 'b>, first: bool) -> Result<(Box<dyn Layer<B>>, &'b str), CborError> {
        let (kind, name) = (fields.get("type")?, fields.get("name")?.name()?);
        let layer: Box<dyn Layer<B>> = match kind.name()? {
            "dense-layer" => Box::new(self.dense(fields, first)?),
            "conv2d-layer" => Box::new(self.conv(fields)?),
            "flatten-layer" => Box::new(Flatten),
            "sequential" => Box::new(self.sequential(fields, first)?),
            unknown => {
                let (path, kind) = (fields.path.clone(), shortened(unknown));
                return Err(CborError::Layer { path, kind, what: "this layer of nanograd's is not known".to_owned() });
            }
        };
        Ok((layer, name))
    }

    fn sequential(&mut self, fields: &Fields<'_, '_>, first: bool) -> Result<Sequential<B>, CborError> {
        let field = fields.get("layers")?;
        // A layer starts with an entry, a list of layers with a layer.
        let is_layer = |item: &Item<'_>| match &item.value {
            Value::Array(items) => items.first().is_none_or(|first| entry(first).is_some()),
            _ => true,
        };
        let mut layers = Vec::new();
        for (i, item) in field.list(is_layer)?.iter().enumerate() {
            let path = format!("{}[{i}]", field.path);
            let fields = Fields::of(item.array(&path)?, item, path);
            layers.push(self.layer(&fields, first && i == 0)?);
        }
        let mut names: Vec<&str> = layers.iter().map(|(_, name)| *name).collect();
        names.sort_unstable();
        let usable = names.iter().all(|name| !name.is_empty() && name.len() <= MAX_NAME && !name.contains('.'))
            && names.windows(2).all(|pair| pair[0] != pair[1]);
        let mut sequential = Sequential::new();
        for (i, (layer, name)) in layers.into_iter().enumerate() {
            sequential = sequential.named(if usable { name.to_owned() } else { i.to_string() }, layer);
        }
        Ok(sequential)
    }

    fn dense(&mut self, fields: &Fields<'_, '_>, first: bool) -> Result<Linear, CborError> {
        let (inputs, outputs) = (fields.size("input-size")?, fields.size("output-size")?);
        let bias = self.tensors(fields, Shape::new([outputs, inputs]))?;
        if first {
            self.inputs = Some(inputs);
        }
        let settings = linear::Linear { bias, ..linear::Linear::new() };
        Ok(Linear::new(inputs, outputs).settings(settings).activation(activation(fields)?))
    }

    fn conv(&mut self, fields: &Fields<'_, '_>) -> Result<Conv2d, CborError> {
        let (inputs, outputs) = (fields.size("in-channels")?, fields.size("out-channels")?);
        let (kernel, stride, padding) = (fields.size("kernel-size")?, fields.size("stride")?, fields.size("padding")?);
        let bias = self.tensors(fields, Shape::new([outputs, inputs, kernel, kernel]))?;
        let settings = conv2d::Conv2d::kernel(kernel).stride(stride).padding(padding);
        let settings = conv2d::Conv2d { bias, ..settings };
        Ok(Conv2d::new(inputs, outputs, settings).activation(activation(fields)?))
    }

    /// The weights, which have this shape, and the biases; returns whether there are any.
    fn tensors(&mut self, fields: &Fields<'_, '_>, weight: Shape) -> Result<bool, CborError> {
        dtype(fields)?;
        self.tensor(&fields.get("weights")?, weight)?;
        let biases = fields.get("biases")?;
        if matches!(biases.value, Either::Tagged(value) | Either::Plain([value]) if matches!(value.value, Value::Bool(false)))
        {
            return Ok(false);
        }
        self.tensor(&biases, weight.prefix(1))?;
        Ok(true)
    }

    fn tensor(&mut self, field: &Field<'_, '_>, expected: Shape) -> Result<(), CborError> {
        let fields = field.fields()?;
        let (dtype, axes, data) = (dtype(&fields)?, fields.get("shape")?, fields.get("data")?);
        let axes = axes.list(|item| !matches!(item.value, Value::Array(_)))?;
        let shape = cbor::shape(axes, field.item, &fields.path)?;
        if shape != expected {
            return Err(fields.error(format!("expected shape {expected}, found {shape}")));
        }
        let item = data.atom()?;
        let elements = item.elements(&data.path)?;
        if elements.element != dtype {
            return Err(
                item.error(&data.path, format!("the elements are {}, not {}", elements.element.name(), dtype.name()))
            );
        }
        if elements.len() != shape.len() {
            let what = format!("shape {shape} has {} elements, here are {}", shape.len(), elements.len());
            return Err(item.error(&data.path, what));
        }
        let trained = fields.get("requires-grad")?;
        self.frozen.push(!trained.atom()?.flag(&trained.path)?);
        elements.append_to(&mut self.elements)
    }
}

fn dtype(fields: &Fields<'_, '_>) -> Result<Element, CborError> {
    let field = fields.get("dtype")?;
    match field.name()? {
        "f32" => Ok(Element::F32),
        "f64" => Ok(Element::F64),
        _ => field.item.expected(&field.path, "the symbol f32 or f64"),
    }
}

fn activation(fields: &Fields<'_, '_>) -> Result<Activation, CborError> {
    let fields = fields.get("activation")?.fields()?;
    let kind = fields.get("type")?;
    if kind.name()? != "activation" {
        return kind.item.expected(&kind.path, "the symbol activation");
    }
    let field = fields.get("name")?;
    let name = field.name()?;
    let known = ACTIVATIONS.iter().find(|(known, _)| *known == name).map(|(_, activation)| *activation);
    known.ok_or_else(|| field.item.error(&field.path, format!("nanograd has no activation `{}`", shortened(name))))
}
