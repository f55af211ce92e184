//! CBOR (RFC 8949) as a tree, for the formats of models.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::data::{Tag, Type};
use minicbor::{Decoder, Encoder};

use super::Element;
use crate::backend::Real;
use crate::layer::ModelError;
use crate::layer::registry::Unbuildable;
use crate::shape::{MAX_RANK, Shape};

/// "This is CBOR": the tag that files start with.
pub(super) const SELF_DESCRIBED: u64 = 55799;
/// How deep items may be nested in each other.
const MAX_DEPTH: usize = 160;

/// Why a model was not read from CBOR, or not written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CborError {
    /// The bytes are no CBOR, or end too early.
    Syntax {
        /// The byte at which it was noticed.
        at: usize,
        /// What is wrong.
        what: String,
    },
    /// Items are nested too deep in each other.
    Depth {
        /// The byte at which the innermost would start.
        at: usize,
    },
    /// Something follows the model.
    Trailing {
        /// The byte at which it starts.
        at: usize,
    },
    /// A part of the file is missing, or is not what it has to be.
    Field {
        /// The byte at which the part starts, or the item that lacks it.
        at: usize,
        /// Where that is in the model, such as `model.layers[2].weights`.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A layer is not one of slabgrad's, not one that the format knows, or has settings that it cannot have.
    Layer {
        /// The layer's name, with those of the layers around it; empty for the outermost.
        path: String,
        /// The kind of layer.
        kind: String,
        /// What is wrong.
        what: String,
    },
    /// The file holds another type of elements.
    Element {
        /// The model's.
        expected: Element,
        /// The file's.
        found: Element,
    },
    /// The layers do not fit each other or the sample.
    Model(ModelError),
}

impl core::fmt::Display for CborError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Syntax { at, what } => write!(f, "byte {at}: this is no CBOR, or it is cut: {what}"),
            Self::Depth { at } => write!(f, "byte {at}: items are nested more than {MAX_DEPTH} deep"),
            Self::Trailing { at } => write!(f, "byte {at}: something follows the model"),
            Self::Field { at, path, what } => write!(f, "byte {at}, `{path}`: {what}"),
            Self::Layer { path, kind, what } if path.is_empty() => write!(f, "the model, a {kind}: {what}"),
            Self::Layer { path, kind, what } => write!(f, "layer `{path}`, a {kind}: {what}"),
            Self::Element { expected, found } => {
                write!(f, "the file holds {}, the model has {}", found.name(), expected.name())
            }
            Self::Model(error) => core::fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for CborError {}

impl From<ModelError> for CborError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Unbuildable> for CborError {
    fn from(Unbuildable { path, kind, what }: Unbuildable) -> Self {
        Self::Layer { path, kind, what }
    }
}

/// An item, and the byte at which it starts.
#[derive(Debug)]
pub(super) struct Item<'b> {
    pub(super) at: usize,
    pub(super) value: Value<'b>,
}

#[derive(Debug)]
pub(super) enum Value<'b> {
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(&'b str),
    Bytes(&'b [u8]),
    Array(Vec<Item<'b>>),
    Map(Vec<(Item<'b>, Item<'b>)>),
    Tag(u64, Box<Item<'b>>),
    /// What no model has: negative integers, null and other simple values.
    Other(Type),
}

/// The one item that `bytes` are, without the tag that says that they are CBOR. What it takes is a multiple of the bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Item<'_>, CborError> {
    let mut decoder = Decoder::new(bytes);
    let item = item(&mut decoder, MAX_DEPTH)?;
    if decoder.position() < bytes.len() {
        return Err(CborError::Trailing { at: decoder.position() });
    }
    Ok(match item.value {
        Value::Tag(SELF_DESCRIBED, inner) => *inner,
        _ => item,
    })
}

fn item<'b>(decoder: &mut Decoder<'b>, depth: usize) -> Result<Item<'b>, CborError> {
    let at = decoder.position();
    if depth == 0 {
        return Err(CborError::Depth { at });
    }
    let syntax = |error: minicbor::decode::Error| CborError::Syntax { at, what: error.to_string() };
    let kind = decoder.datatype().map_err(syntax)?;
    let value = match kind {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Value::Unsigned(decoder.u64().map_err(syntax)?),
        Type::F32 | Type::F64 => Value::Float(decoder.f64().map_err(syntax)?),
        Type::Bool => Value::Bool(decoder.bool().map_err(syntax)?),
        Type::String => Value::Text(decoder.str().map_err(syntax)?),
        Type::Bytes => Value::Bytes(decoder.bytes().map_err(syntax)?),
        Type::Tag => {
            let tag = decoder.tag().map_err(syntax)?;
            Value::Tag(tag.as_u64(), Box::new(item(decoder, depth - 1)?))
        }
        // What headers say about lengths is not reserved: memory grows with what is there.
        Type::Array | Type::ArrayIndef => {
            let mut left = decoder.array().map_err(syntax)?;
            let mut items = Vec::new();
            while more(decoder, &mut left)? {
                items.push(item(decoder, depth - 1)?);
            }
            Value::Array(items)
        }
        Type::Map | Type::MapIndef => {
            let mut left = decoder.map().map_err(syntax)?;
            let mut entries = Vec::new();
            while more(decoder, &mut left)? {
                entries.push((item(decoder, depth - 1)?, item(decoder, depth - 1)?));
            }
            Value::Map(entries)
        }
        Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int | Type::Null | Type::Undefined | Type::Simple => {
            decoder.skip().map_err(syntax)?;
            Value::Other(kind)
        }
        _ => return Err(CborError::Syntax { at, what: format!("{kind} is not read") }),
    };
    Ok(Item { at, value })
}

/// Whether another element follows; `left` is how many there are, where that is known beforehand.
fn more(decoder: &mut Decoder<'_>, left: &mut Option<u64>) -> Result<bool, CborError> {
    if let Some(left) = left {
        let more = *left > 0;
        *left = left.saturating_sub(1);
        return Ok(more);
    }
    let at = decoder.position();
    let kind = decoder.datatype().map_err(|error| CborError::Syntax { at, what: error.to_string() })?;
    if kind == Type::Break {
        decoder.set_position(at + 1);
    }
    Ok(kind != Type::Break)
}

impl<'b> Item<'b> {
    /// An error about this item.
    pub(super) fn error(&self, path: &str, what: impl Into<String>) -> CborError {
        CborError::Field { at: self.at, path: path.to_owned(), what: what.into() }
    }

    pub(super) fn expected<T>(&self, path: &str, what: &str) -> Result<T, CborError> {
        let found = match &self.value {
            Value::Unsigned(number) => format!("the integer {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Bool(flag) => format!("{flag}"),
            Value::Text(text) => format!("the text \"{}\"", shortened(text)),
            Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Value::Array(items) => format!("an array of {}", items.len()),
            Value::Map(entries) => format!("a map of {}", entries.len()),
            Value::Tag(tag, _) => format!("something tagged {tag}"),
            Value::Other(kind) => format!("{kind}"),
        };
        Err(self.error(path, format!("expected {what}, found {found}")))
    }

    pub(super) fn text(&self, path: &str) -> Result<&'b str, CborError> {
        match self.value {
            Value::Text(text) => Ok(text),
            _ => self.expected(path, "a text"),
        }
    }

    pub(super) fn flag(&self, path: &str) -> Result<bool, CborError> {
        match self.value {
            Value::Bool(flag) => Ok(flag),
            _ => self.expected(path, "true or false"),
        }
    }

    pub(super) fn unsigned(&self, path: &str) -> Result<u64, CborError> {
        match self.value {
            Value::Unsigned(number) => Ok(number),
            _ => self.expected(path, "an integer"),
        }
    }

    /// A count, which is at most 2^32 - 1 as axes are.
    pub(super) fn size(&self, path: &str) -> Result<usize, CborError> {
        match u32::try_from(self.unsigned(path)?) {
            Ok(size) => Ok(size as usize),
            Err(_) => self.expected(path, "an integer below 2^32"),
        }
    }

    pub(super) fn array(&self, path: &str) -> Result<&[Self], CborError> {
        match &self.value {
            Value::Array(items) => Ok(items),
            _ => self.expected(path, "an array"),
        }
    }

    /// The elements of a typed array (RFC 8746).
    pub(super) fn elements(&self, path: &str) -> Result<Typed<'b>, CborError> {
        let what = "a typed array of f32 or f64 (tag 85, 86, 81 or 82)";
        let Value::Tag(tag, inner) = &self.value else { return self.expected(path, what) };
        let (element, big_endian) = match tag {
            85 => (Element::F32, false),
            86 => (Element::F64, false),
            81 => (Element::F32, true),
            82 => (Element::F64, true),
            _ => return self.expected(path, what),
        };
        let Value::Bytes(bytes) = inner.value else { return inner.expected(path, "a byte string") };
        if !bytes.len().is_multiple_of(element.size()) {
            return Err(inner.error(path, format!("{} bytes are not whole {}", bytes.len(), element.name())));
        }
        Ok(Typed { element, big_endian, bytes })
    }
}

/// The start of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A shape from its axes.
pub(super) fn shape(axes: &[Item<'_>], at: &Item<'_>, path: &str) -> Result<Shape, CborError> {
    if axes.len() > MAX_RANK {
        return Err(at.error(path, format!("a tensor has at most {MAX_RANK} axes, this has {}", axes.len())));
    }
    let sizes: Result<Vec<usize>, CborError> = axes.iter().map(|axis| axis.size(path)).collect();
    Ok(Shape::from_slice(&sizes?))
}

/// The elements of a tensor as they are in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typed<'b> {
    pub(super) element: Element,
    big_endian: bool,
    bytes: &'b [u8],
}

impl Typed<'_> {
    pub(super) const fn len(&self) -> usize {
        self.bytes.len() / self.element.size()
    }

    /// Appends them to `all`.
    pub(super) fn append_to<E: Real>(&self, all: &mut Vec<E>) -> Result<(), CborError> {
        let expected = Element::of::<E>();
        if self.element != expected {
            return Err(CborError::Element { expected, found: self.element });
        }
        let single =
            |bytes: [u8; 4]| if self.big_endian { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) };
        let double =
            |bytes: [u8; 8]| if self.big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
        match self.element {
            Element::F32 => all.extend(self.bytes.as_chunks().0.iter().map(|&x| E::choose(single(x), 0.0))),
            Element::F64 => all.extend(self.bytes.as_chunks().0.iter().map(|&x| E::choose(0.0, double(x)))),
        }
        Ok(())
    }
}

/// Writes to a vector, which does not fail. Integers and lengths are in their shortest form.
pub(super) struct Writer(Encoder<Vec<u8>>);

impl Writer {
    /// With the tag that says that it is CBOR.
    pub(super) fn new() -> Self {
        let mut writer = Self(Encoder::new(Vec::new()));
        writer.tag(SELF_DESCRIBED);
        writer
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_writer()
    }

    pub(super) fn tag(&mut self, tag: u64) {
        let _ = self.0.tag(Tag::new(tag));
    }

    pub(super) fn unsigned(&mut self, number: u64) {
        let _ = self.0.u64(number);
    }

    pub(super) fn float(&mut self, number: f64) {
        let _ = self.0.f64(number);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        let _ = self.0.bool(flag);
    }

    pub(super) fn text(&mut self, text: &str) {
        let _ = self.0.str(text);
    }

    pub(super) fn array(&mut self, len: usize) {
        let _ = self.0.array(len as u64);
    }

    pub(super) fn map(&mut self, len: usize) {
        let _ = self.0.map(len as u64);
    }

    pub(super) fn axes(&mut self, shape: Shape) {
        (0..shape.rank()).for_each(|axis| self.unsigned(shape.axis(axis) as u64));
    }

    /// A little-endian typed array.
    pub(super) fn elements<E: Real>(&mut self, elements: &[E]) {
        self.tag(if Element::of::<E>() == Element::F64 { 86 } else { 85 });
        let bytes: &[u8] = bytemuck::must_cast_slice(elements);
        let _ = self.0.bytes_len(bytes.len() as u64);
        if cfg!(target_endian = "big") {
            bytes.chunks_exact(size_of::<E>()).for_each(|x| self.0.writer_mut().extend(x.iter().rev()));
        } else {
            self.0.writer_mut().extend_from_slice(bytes);
        }
    }
}
