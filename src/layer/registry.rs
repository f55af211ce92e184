//! slabgrad's own layers by kind: descriptions of layers as data, and layers from descriptions.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{
    Activation, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, GlobalAvgPool2d,
    GroupNorm, Layer, LayerNorm, Linear, MaxPool2d, Residual, RmsNorm, Sequential, Setting,
};
use crate::backend::Backend;
use crate::ops::avg_pool2d::CountPadding;
use crate::ops::{Window2d, batch_norm, conv1d, conv2d, dropout, linear};
use crate::shape::{MAX_RANK, Shape};

/// How deep layers may be nested in each other.
pub(crate) const MAX_NESTING: usize = 32;

/// Bytes that a layer's name may have: every parameter's name repeats those of the layers around it.
pub(crate) const MAX_NAME: usize = 255;

/// A layer as data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    pub(crate) kind: String,
    pub(crate) settings: Vec<(String, Setting)>,
    pub(crate) children: Vec<(String, Self)>,
}

/// Why a layer cannot be described or made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unbuildable {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) what: String,
}

/// The path of a child.
pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The layer and all within it as data.
pub(crate) fn describe<B: Backend>(layer: &dyn Layer<B>) -> Result<Description, Unbuildable> {
    describe_within(layer, "", MAX_NESTING)
}

fn describe_within<B: Backend>(layer: &dyn Layer<B>, path: &str, depth: usize) -> Result<Description, Unbuildable> {
    let kind = layer.kind().to_owned();
    if depth == 0 {
        let what = format!("layers are nested more than {MAX_NESTING} deep");
        return Err(Unbuildable { path: path.to_owned(), kind, what });
    }
    let settings = layer.settings().into_iter().map(|(name, setting)| (name.to_owned(), setting)).collect();
    let child = |(name, child): (&str, &dyn Layer<B>)| {
        Ok((name.to_owned(), describe_within(child, &joined(path, name), depth - 1)?))
    };
    let children: Result<Vec<_>, Unbuildable> = layer.children().into_iter().map(child).collect();
    Ok(Description { kind, settings, children: children? })
}

/// The layer that a description is of. Its parameters and states have at most `room` elements, which are taken from it.
pub(crate) fn build<B: Backend>(
    description: &Description,
    path: &str,
    room: &mut usize,
) -> Result<Box<dyn Layer<B>>, Unbuildable> {
    let layer = Maker { description, path, room }.layer::<B>()?;
    let settings = layer.settings();
    let same = settings.len() == description.settings.len()
        && settings.iter().zip(&description.settings).all(|((a, x), (b, y))| a == b && x == y)
        && layer.children().len() == description.children.len();
    if same { Ok(layer) } else { Err(unbuildable(description, path, "its settings are not those of such a layer")) }
}

fn unbuildable(description: &Description, path: &str, what: impl Into<String>) -> Unbuildable {
    Unbuildable { path: path.to_owned(), kind: description.kind.clone(), what: what.into() }
}

struct Maker<'a> {
    description: &'a Description,
    path: &'a str,
    room: &'a mut usize,
}

impl Maker<'_> {
    fn error<T>(&self, what: impl Into<String>) -> Result<T, Unbuildable> {
        Err(unbuildable(self.description, self.path, what))
    }

    fn find(&self, name: &str) -> Option<Setting> {
        self.description.settings.iter().find(|(found, _)| found == name).map(|&(_, setting)| setting)
    }

    fn get<T>(&self, name: &str, what: &str, of: impl Fn(Setting) -> Option<T>) -> Result<T, Unbuildable> {
        match self.find(name) {
            None => self.error(format!("the setting `{name}` is missing")),
            Some(setting) => match of(setting) {
                Some(value) => Ok(value),
                None => self.error(format!("the setting `{name}` is {setting}, expected {what}")),
            },
        }
    }

    fn size(&self, name: &str) -> Result<usize, Unbuildable> {
        self.get(name, "a count below 2^32", |setting| match setting {
            Setting::Size(size) if u32::try_from(size).is_ok() => Some(size),
            _ => None,
        })
    }

    fn pair(&self, name: &str) -> Result<[usize; 2], Unbuildable> {
        self.get(name, "a height and a width", |setting| match setting {
            Setting::Pair(pair) => Some(pair),
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Result<f64, Unbuildable> {
        self.get(name, "a number", |setting| match setting {
            Setting::Number(number) => Some(number),
            _ => None,
        })
    }

    fn flag(&self, name: &str) -> Result<bool, Unbuildable> {
        self.get(name, "true or false", |setting| match setting {
            Setting::Flag(flag) => Some(flag),
            _ => None,
        })
    }

    fn activation(&self) -> Result<Activation, Unbuildable> {
        self.get("activation", "an activation", |setting| match setting {
            Setting::Activation(activation) => Some(activation),
            _ => None,
        })
    }

    /// Takes a tensor of these axes from the room; before the layer is made, since a model asks for the memory at once.
    fn take(&mut self, count: usize, axes: &[usize]) -> Result<(), Unbuildable> {
        let len = axes.iter().fold(count, |len, &axis| len.saturating_mul(axis));
        match self.room.checked_sub(len) {
            Some(room) => *self.room = room,
            None => {
                return self.error(format!("it has more parameters ({len}) than are left in the file ({})", self.room));
            }
        }
        Ok(())
    }

    /// `inputs`, `outputs` and `bias` of a layer whose weight has `[outputs, inputs / groups, ...kernel]`.
    fn weighted(&mut self, groups: usize, kernel: &[usize]) -> Result<(usize, usize, bool), Unbuildable> {
        let (inputs, outputs, bias) = (self.size("inputs")?, self.size("outputs")?, self.flag("bias")?);
        let window = kernel.iter().fold(1, |len, &axis| usize::saturating_mul(len, axis));
        self.take(1, &[outputs, inputs / groups.max(1), window])?;
        self.take(usize::from(bias), &[outputs])?;
        if kernel.iter().any(|&size| u32::try_from(size).is_err()) {
            return self.error("the kernel is larger than 2^32 - 1");
        }
        Ok((inputs, outputs, bias))
    }

    fn window(&self) -> Result<Window2d, Unbuildable> {
        let window = Window2d::rect(self.pair("kernel")?).stride_hw(self.pair("stride")?);
        Ok(window.padding_hw(self.pair("padding")?).dilation_hw(self.pair("dilation")?))
    }

    /// The axes that a normalisation is made for.
    fn axes(&self) -> Result<Shape, Unbuildable> {
        let mut axes = Vec::new();
        for (name, setting) in &self.description.settings {
            match setting {
                Setting::Size(size) if name == "axis" && axes.len() < MAX_RANK && u32::try_from(*size).is_ok() => {
                    axes.push(*size);
                }
                _ if name == "axis" => return self.error(format!("it is for at most {MAX_RANK} axes below 2^32")),
                _ => (),
            }
        }
        Ok(Shape::from_slice(&axes))
    }

    fn batch_norm(&mut self) -> Result<(usize, batch_norm::BatchNorm), Unbuildable> {
        let (channels, affine) = (self.size("channels")?, self.flag("weight")?);
        self.take(if affine { 4 } else { 2 }, &[channels])?;
        let settings = batch_norm::BatchNorm::new().epsilon(self.number("epsilon")?).momentum(self.number("momentum")?);
        let settings = batch_norm::BatchNorm { biased: self.flag("biased")?, ..settings };
        let settings = if self.find("eval").is_some() { settings.eval() } else { settings };
        Ok((channels, if affine { settings } else { settings.without_affine() }))
    }

    fn child<B: Backend>(&mut self, name: &str, child: &Description) -> Result<Box<dyn Layer<B>>, Unbuildable> {
        if name.len() > MAX_NAME {
            return self
                .error(format!("the name of a layer in it has {} bytes, at most {MAX_NAME} are possible", name.len()));
        }
        build(child, &joined(self.path, name), self.room)
    }

    fn layer<B: Backend>(mut self) -> Result<Box<dyn Layer<B>>, Unbuildable> {
        Ok(match self.description.kind.as_str() {
            "Linear" => {
                let (inputs, outputs, bias) = self.weighted(1, &[])?;
                let settings = linear::Linear { bias, ..linear::Linear::new() };
                Box::new(Linear::new(inputs, outputs).settings(settings).activation(self.activation()?))
            }
            "Conv2d" => {
                let (window, groups) = (self.window()?, self.size("groups")?);
                let (inputs, outputs, bias) = self.weighted(groups, &window.size)?;
                let settings = conv2d::Conv2d { window, groups, bias, ..conv2d::Conv2d::kernel(1) };
                Box::new(Conv2d::new(inputs, outputs, settings).activation(self.activation()?))
            }
            "Conv1d" => {
                let (kernel, groups) = (self.size("kernel")?, self.size("groups")?);
                let (inputs, outputs, bias) = self.weighted(groups, &[kernel])?;
                let settings = conv1d::Conv1d::kernel(kernel).stride(self.size("stride")?).groups(groups);
                let settings = settings.padding(self.size("padding")?).dilation(self.size("dilation")?);
                let settings = if bias { settings } else { settings.without_bias() };
                Box::new(Conv1d::new(inputs, outputs, settings).activation(self.activation()?))
            }
            "Embedding" => {
                let (count, size) = (self.size("count")?, self.size("size")?);
                self.take(1, &[count, size])?;
                Box::new(Embedding::new(count, size))
            }
            "Flatten" => Box::new(Flatten),
            "MaxPool2d" => Box::new(MaxPool2d::new(self.window()?)),
            "AvgPool2d" => {
                let padding = if self.flag("count_padding")? { CountPadding::Yes } else { CountPadding::No };
                Box::new(AvgPool2d::new(self.window()?).count_padding(padding))
            }
            "GlobalAvgPool2d" => Box::new(GlobalAvgPool2d),
            "Dropout" => {
                let settings = dropout::Dropout::new(self.number("p")?);
                match self.find("seed") {
                    Some(Setting::Seed(seed)) => Box::new(Dropout::new(settings.seed(seed))),
                    _ => Box::new(Dropout::new(settings)),
                }
            }
            "Sequential" => {
                let mut layers = Sequential::new();
                for (name, child) in &self.description.children {
                    layers = layers.named(name.as_str(), self.child(name, child)?);
                }
                Box::new(layers)
            }
            "Residual" => match self.description.children.as_slice() {
                [(block, inner)] if block == "block" => Box::new(Residual::new(self.child("block", inner)?)),
                [(block, inner), (shortcut, other)] if block == "block" && shortcut == "shortcut" => {
                    let residual = Residual::new(self.child("block", inner)?);
                    Box::new(residual.shortcut(self.child("shortcut", other)?))
                }
                _ => return self.error("it has a child `block` and perhaps a child `shortcut`"),
            },
            _ => return self.normalisation_or_activation(),
        })
    }

    fn normalisation_or_activation<B: Backend>(mut self) -> Result<Box<dyn Layer<B>>, Unbuildable> {
        Ok(match self.description.kind.as_str() {
            "BatchNorm1d" => {
                let (channels, settings) = self.batch_norm()?;
                Box::new(BatchNorm1d::new(channels).settings(settings))
            }
            "BatchNorm2d" => {
                let (channels, settings) = self.batch_norm()?;
                Box::new(BatchNorm2d::new(channels).settings(settings))
            }
            "LayerNorm" => {
                let (shape, affine) = (self.axes()?, self.flag("weight")?);
                self.take(if affine { 2 } else { 0 }, &[shape.len()])?;
                let layer = LayerNorm::new(shape).epsilon(self.number("epsilon")?);
                Box::new(if affine { layer } else { layer.without_affine() })
            }
            "RmsNorm" => {
                let (shape, affine) = (self.axes()?, self.flag("weight")?);
                self.take(usize::from(affine), &[shape.len()])?;
                let layer = RmsNorm::new(shape).epsilon(self.number("epsilon")?);
                Box::new(if affine { layer } else { layer.without_affine() })
            }
            "GroupNorm" => {
                let (groups, channels, affine) = (self.size("groups")?, self.size("channels")?, self.flag("weight")?);
                self.take(if affine { 2 } else { 0 }, &[channels])?;
                let layer = GroupNorm::new(groups, channels).epsilon(self.number("epsilon")?);
                Box::new(if affine { layer } else { layer.without_affine() })
            }
            kind => {
                let setting = self.find("setting").is_some().then(|| self.number("setting")).transpose()?;
                match Activation::from_name(kind, setting) {
                    Some(activation) => Box::new(activation),
                    None => return self.error("this is no layer of slabgrad's own".to_string()),
                }
            }
        })
    }
}
