//! Whole models, structure included, in slabgrad's own CBOR. `docs/FORMAT.md` describes it.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Element;
use super::cbor::{self, CborError, Item, Typed, Value, Writer, parse, shortened};
use crate::backend::Backend;
use crate::layer::registry::{Description, build, describe};
use crate::layer::{Activation, Model, Role, Setting};
use crate::shape::Shape;

const FORMAT: &str = "slabgrad-model";
const VERSION: u64 = 1;

/// Files with models in them, structure included.
impl<B: Backend> Model<B> {
    /// The model as CBOR: its layers with their settings, the shape of a sample, the seed, and all parameters (with what of
    /// them is frozen) and states. Moments, groups and the way in which parameters would start are not in it.
    ///
    /// # Errors
    /// When a layer is not one of slabgrad's own, which are told by their [`kind`](crate::layer::Layer::kind), or layers are
    /// nested more than 32 deep, or have names of more than 255 bytes.
    pub fn to_cbor(&self) -> Result<Vec<u8>, CborError> {
        let description = describe(self.layer())?;
        // What is written can be read again.
        let mut unlimited = usize::MAX;
        build::<B>(&description, "", &mut unlimited)?;
        let mut writer = Writer::new();
        writer.map(7);
        writer.text("format");
        writer.text(FORMAT);
        writer.text("version");
        writer.unsigned(VERSION);
        writer.text("element");
        writer.text(Element::of::<B::Elem>().name());
        writer.text("sample");
        writer.array(self.input_shape().rank());
        writer.axes(self.input_shape());
        writer.text("seed");
        writer.unsigned(self.seed());
        writer.text("model");
        write_layer(&mut writer, &description);
        writer.text("tensors");
        writer.array(self.tensors().count());
        for tensor in self.tensors() {
            writer.map(4);
            writer.text("name");
            writer.text(tensor.name());
            writer.text("role");
            writer.text(role_name(tensor.entry.role));
            writer.text("shape");
            writer.array(tensor.shape().rank());
            writer.axes(tensor.shape());
            writer.text("data");
            writer.elements(tensor.data);
        }
        Ok(writer.into_bytes())
    }

    /// The model that [`Model::to_cbor`] wrote. It trains, as a new one does. Memory is bounded by the length of the bytes.
    ///
    /// # Errors
    /// When the bytes are not such a model, hold another type of elements, or are damaged in a way that shows.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, CborError> {
        let file = parse(bytes)?;
        let field = |key| get(&file, "", key);
        let format = field("format")?;
        if format.text("format")? != FORMAT {
            return format.expected("format", &format!("\"{FORMAT}\""));
        }
        let version = field("version")?;
        if version.unsigned("version")? != VERSION {
            return version.expected("version", &format!("{VERSION}"));
        }
        let element = field("element")?;
        let (expected, other) = match Element::of::<B::Elem>() {
            Element::F32 => (Element::F32, Element::F64),
            Element::F64 => (Element::F64, Element::F32),
        };
        match element.text("element")? {
            found if found == expected.name() => (),
            found if found == other.name() => return Err(CborError::Element { expected, found: other }),
            _ => return element.expected("element", "\"f32\" or \"f64\""),
        }
        let sample = field("sample")?;
        let shape = cbor::shape(sample.array("sample")?, sample, "sample")?;
        let seed = field("seed")?.unsigned("seed")?;
        let description = read_layer(field("model")?, "model")?;
        let tensors = field("tensors")?;
        let read: Result<Vec<Stored<'_>>, CborError> =
            tensors.array("tensors")?.iter().enumerate().map(|(i, item)| Stored::read(item, i)).collect();
        let read = read?;
        let mut room = read.iter().fold(0, |sum: usize, tensor| sum.saturating_add(tensor.data.len()));
        let mut model = Self::new(build::<B>(&description, "", &mut room)?, shape, seed)?;
        model.fill(tensors, &read)?;
        Ok(model)
    }

    /// Fills parameters and states by their names, once all of them are known to be there.
    fn fill(&mut self, at: &Item<'_>, stored: &[Stored<'_>]) -> Result<(), CborError> {
        if self.entries.len() != stored.len() {
            let what =
                format!("the layers have {} parameters and states, here are {}", self.entries.len(), stored.len());
            return Err(at.error("tensors", what));
        }
        // Names that are there several times are met in their order.
        let mut by_name = BTreeMap::<_, VecDeque<_>>::new();
        for (i, stored) in stored.iter().enumerate() {
            by_name.entry(stored.name).or_default().push_back((i, stored));
        }
        let (mut all, mut frozen) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            let Some((i, stored)) = by_name.get_mut(entry.name.as_str()).and_then(VecDeque::pop_front) else {
                return Err(at.error("tensors", format!("`{}` {} is missing", entry.name, entry.shape)));
            };
            let path = format!("tensors[{i}]");
            if entry.shape != stored.shape {
                let what = format!("expected `{}` {}, found {}", entry.name, entry.shape, stored.shape);
                return Err(stored.item.error(&path, what));
            }
            if (entry.role == Role::State) != (stored.role == Role::State) {
                let what = format!("`{}` is {}, found {}", entry.name, role_name(entry.role), role_name(stored.role));
                return Err(stored.item.error(&path, what));
            }
            stored.data.append_to(&mut all)?;
            frozen.push(stored.role == Role::Frozen);
        }
        if frozen.contains(&true) {
            self.set_roles(&frozen, Role::Frozen);
        }
        self.load_tensors(&all);
        Ok(())
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Trained => "trained",
        Role::Frozen => "frozen",
        Role::State => "state",
    }
}

/// A tensor as it is in the file, with as many elements as its shape says.
struct Stored<'i> {
    item: &'i Item<'i>,
    name: &'i str,
    role: Role,
    shape: Shape,
    data: Typed<'i>,
}

impl<'i> Stored<'i> {
    fn read(item: &'i Item<'i>, i: usize) -> Result<Self, CborError> {
        let path = format!("tensors[{i}]");
        let name = get(item, &path, "name")?.text(&path)?;
        let role = get(item, &path, "role")?;
        let role = match role.text(&path)? {
            "trained" => Role::Trained,
            "frozen" => Role::Frozen,
            "state" => Role::State,
            _ => return role.expected(&path, "\"trained\", \"frozen\" or \"state\""),
        };
        let shape = get(item, &path, "shape")?;
        let shape = cbor::shape(shape.array(&path)?, shape, &path)?;
        let at = get(item, &path, "data")?;
        let data = at.elements(&path)?;
        if data.len() != shape.len() {
            let what = format!("`{}` has shape {shape} and {} elements", shortened(name), data.len());
            return Err(at.error(&path, what));
        }
        Ok(Self { item, name, role, shape, data })
    }
}

/// What a map has under a key.
fn get<'i, 'b>(map: &'i Item<'b>, path: &str, key: &str) -> Result<&'i Item<'b>, CborError> {
    let Value::Map(entries) = &map.value else { return map.expected(path, "a map") };
    let found = entries.iter().find(|(name, _)| matches!(name.value, Value::Text(text) if text == key));
    found.map(|(_, value)| value).ok_or_else(|| map.error(path, format!("`{key}` is missing")))
}

fn write_layer(writer: &mut Writer, layer: &Description) {
    writer.map(3);
    writer.text("kind");
    writer.text(&layer.kind);
    writer.text("settings");
    writer.array(layer.settings.len());
    for (name, setting) in &layer.settings {
        writer.array(2);
        writer.text(name);
        match *setting {
            Setting::Size(size) => writer.unsigned(size as u64),
            Setting::Seed(seed) => writer.unsigned(seed),
            Setting::Pair([height, width]) => {
                writer.array(2);
                writer.unsigned(height as u64);
                writer.unsigned(width as u64);
            }
            Setting::Number(number) => writer.float(number),
            Setting::Flag(flag) => writer.flag(flag),
            Setting::Activation(activation) => {
                writer.array(1 + usize::from(activation.setting().is_some()));
                writer.text(activation.name());
                activation.setting().into_iter().for_each(|setting| writer.float(setting));
            }
        }
    }
    writer.text("children");
    writer.array(layer.children.len());
    for (name, child) in &layer.children {
        writer.array(2);
        writer.text(name);
        write_layer(writer, child);
    }
}

/// How deep this goes is bounded by how deep items are nested.
fn read_layer(item: &Item<'_>, path: &str) -> Result<Description, CborError> {
    let kind = get(item, path, "kind")?.text(path)?.to_owned();
    let mut settings = Vec::new();
    for setting in get(item, path, "settings")?.array(path)? {
        let [name, value] = setting.array(path)? else { return setting.expected(path, "a name and a value") };
        let name = name.text(path)?;
        settings.push((name.to_owned(), read_setting(value, name, &format!("{path}.{}", shortened(name)))?));
    }
    let mut children = Vec::new();
    for (i, child) in get(item, path, "children")?.array(path)?.iter().enumerate() {
        let path = format!("{path}.children[{i}]");
        let [name, layer] = child.array(&path)? else { return child.expected(&path, "a name and a layer") };
        children.push((String::from(name.text(&path)?), read_layer(layer, &path)?));
    }
    Ok(Description { kind, settings, children })
}

fn read_setting(item: &Item<'_>, name: &str, path: &str) -> Result<Setting, CborError> {
    Ok(match &item.value {
        Value::Unsigned(seed) if name == "seed" => Setting::Seed(*seed),
        Value::Unsigned(_) => Setting::Size(item.size(path)?),
        Value::Float(number) => Setting::Number(*number),
        Value::Bool(flag) => Setting::Flag(*flag),
        Value::Array(items) => match items.as_slice() {
            [height, width] if matches!(height.value, Value::Unsigned(_)) => {
                Setting::Pair([height.size(path)?, width.size(path)?])
            }
            [name, setting @ ..] if setting.len() < 2 => {
                let setting = match setting.first().map(|setting| (setting, &setting.value)) {
                    None => None,
                    Some((_, &Value::Float(number))) => Some(number),
                    Some((setting, _)) => return setting.expected(path, "a number"),
                };
                match Activation::from_name(name.text(path)?, setting) {
                    Some(activation) => Setting::Activation(activation),
                    None => return name.expected(path, "the name of an activation"),
                }
            }
            _ => return item.expected(path, "two counts, or an activation"),
        },
        _ => return item.expected(path, "a setting"),
    })
}

#[cfg(feature = "std")]
mod file {
    use std::io::{self, Write};
    use std::path::Path;

    use super::super::file::replace;
    use super::{Backend, CborError, Model};

    /// Why a model's file was not read or written.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum ModelFileError {
        /// The operating system's error.
        Io(io::Error),
        /// The file is no model, or the model cannot be written.
        Cbor(CborError),
    }

    impl core::fmt::Display for ModelFileError {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            match self {
                Self::Io(error) => core::fmt::Display::fmt(error, f),
                Self::Cbor(error) => core::fmt::Display::fmt(error, f),
            }
        }
    }

    impl core::error::Error for ModelFileError {}

    impl From<io::Error> for ModelFileError {
        fn from(error: io::Error) -> Self {
            Self::Io(error)
        }
    }

    impl From<CborError> for ModelFileError {
        fn from(error: CborError) -> Self {
            Self::Cbor(error)
        }
    }

    /// Files.
    impl<B: Backend> Model<B> {
        /// Writes [`Model::to_cbor`] to a file, which is replaced as a whole or not at all.
        ///
        /// ```
        /// use slabgrad::layer::{Activation, Model, Sequential};
        ///
        /// # let path = std::env::temp_dir().join(format!("slabgrad-doc-{}.cbor", std::process::id()));
        /// let net = Sequential::new().linear("hidden", 2, 8).activation(Activation::Tanh).linear("out", 8, 1);
        /// let model: Model = Model::new(net, [2], 1)?;
        /// model.save_model(&path)?;
        /// let loaded: Model = Model::load_model(&path)?;
        /// assert_eq!(loaded.tensor("out.weight").unwrap().data, model.tensor("out.weight").unwrap().data);
        /// # std::fs::remove_file(path)?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        /// As [`Model::to_cbor`], and those of the operating system; an older file is still there then.
        pub fn save_model(&self, path: impl AsRef<Path>) -> Result<(), ModelFileError> {
            let bytes = self.to_cbor()?;
            Ok(replace(path.as_ref(), |file| file.write_all(&bytes))?)
        }

        /// The model in a file that [`Model::save_model`] has written.
        ///
        /// # Errors
        /// As [`Model::from_cbor`], and when the file cannot be read.
        pub fn load_model(path: impl AsRef<Path>) -> Result<Self, ModelFileError> {
            Ok(Self::from_cbor(&std::fs::read(path)?)?)
        }
    }
}

#[cfg(feature = "std")]
pub use file::ModelFileError;
