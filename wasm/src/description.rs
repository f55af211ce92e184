//! Reading what JavaScript describes: objects such as `{ type: "linear", outputs: 10 }`.

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cell::RefCell;
use core::fmt;

use slabgrad::error::Message;
use slabgrad::shape::{MAX_RANK, Shape};
use wasm_bindgen::{JsCast, JsValue};

use crate::js::{self, Array};

/// What is wrong with a description, and where.
#[derive(Debug)]
pub(crate) struct DescriptionError(String);

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for DescriptionError {}

pub(crate) type Result<T> = core::result::Result<T, DescriptionError>;

/// An object whose properties are settings. Whoever has read those that it knows calls [`Description::finish`], which finds
/// what nobody asked for: a misspelt setting is an error, not a default.
pub(crate) struct Description {
    object: JsValue,
    /// What it describes, for messages.
    what: String,
    asked: RefCell<Vec<&'static str>>,
}

impl Description {
    /// Options that may be left out as a whole.
    pub(crate) fn options(what: &str, object: JsValue) -> Result<Self> {
        let description = Self { object, what: what.to_owned(), asked: RefCell::new(Vec::new()) };
        let object = &description.object;
        if object.is_object() || object.is_undefined() || object.is_null() {
            Ok(description)
        } else {
            description.error("expected an object")
        }
    }

    /// An object with a `type`, or the type alone as a string, which is returned beside it.
    pub(crate) fn typed(what: &str, value: &JsValue) -> Result<(Self, String)> {
        if let Some(kind) = value.as_string() {
            return Ok((Self::options(&format!("{what} `{kind}`"), JsValue::UNDEFINED)?, kind));
        }
        let mut description = Self::options(what, value.clone())?;
        let Some(kind) = description.text("type")? else { return description.error("`type` is missing") };
        description.what = format!("{what} `{kind}`");
        Ok((description, kind))
    }

    pub(crate) fn error<T>(&self, text: impl fmt::Display) -> Result<T> {
        Err(DescriptionError(format!("{}: {text}", self.what)))
    }

    fn expected<T>(&self, key: &str, what: &str, found: &JsValue) -> Result<T> {
        self.error(format_args!("`{key}` is {}, expected {what}", shown(found)))
    }

    /// The property, unless it is undefined or null.
    pub(crate) fn get(&self, key: &'static str) -> Option<JsValue> {
        self.asked.borrow_mut().push(key);
        let value = js::property(&self.object, key).ok()?;
        (!value.is_undefined() && !value.is_null()).then_some(value)
    }

    fn read<T>(&self, key: &'static str, what: &str, of: impl FnOnce(&JsValue) -> Option<T>) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match of(&value) {
                Some(read) => Ok(Some(read)),
                None => self.expected(key, what, &value),
            },
        }
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>> {
        self.read(key, "a string", JsValue::as_string)
    }

    pub(crate) fn number(&self, key: &'static str) -> Result<Option<f64>> {
        self.read(key, "a number", JsValue::as_f64)
    }

    pub(crate) fn flag(&self, key: &'static str, default: bool) -> Result<bool> {
        Ok(self.read(key, "true or false", JsValue::as_bool)?.unwrap_or(default))
    }

    pub(crate) fn size(&self, key: &'static str) -> Result<Option<usize>> {
        self.read(key, "a count below 2^32", as_size)
    }

    pub(crate) fn needed_size(&self, key: &'static str) -> Result<usize> {
        match self.size(key)? {
            Some(size) => Ok(size),
            None => self.error(format_args!("`{key}` is missing")),
        }
    }

    /// A seed: a whole number that JavaScript holds exactly.
    pub(crate) fn seed(&self, key: &'static str) -> Result<Option<u64>> {
        self.read(key, "a whole number from 0 to 2^53 - 1", |value| as_whole(value, 9_007_199_254_740_991.0))
    }

    /// A height and a width, or one number for both.
    pub(crate) fn pair(&self, key: &'static str) -> Result<Option<[usize; 2]>> {
        self.read(key, "a count, or a height and a width", |value| match as_size(value) {
            Some(size) => Some([size, size]),
            None => sizes(value)?.try_into().ok(),
        })
    }

    pub(crate) fn shape(&self, key: &'static str) -> Result<Option<Shape>> {
        self.read(key, &format!("an array of at most {MAX_RANK} counts"), |value| {
            let sizes = sizes(value)?;
            (sizes.len() <= MAX_RANK).then(|| Shape::from_slice(&sizes))
        })
    }

    pub(crate) fn array(&self, key: &'static str) -> Result<Option<Array>> {
        self.read(key, "an array", |value| value.dyn_ref::<Array>().cloned())
    }

    /// The last word: all properties have been asked for.
    pub(crate) fn finish(&self) -> Result<()> {
        if !self.object.is_object() {
            return Ok(());
        }
        let asked = self.asked.borrow();
        let is_known = |key: &String| key == "type" || asked.iter().any(|asked| asked == key);
        match js::keys(&self.object).iter().filter_map(|key| key.as_string()).find(|key| !is_known(key)) {
            Some(key) => self.error(format_args!("there is no setting `{key}`; there are: {}", asked.join(", "))),
            None => Ok(()),
        }
    }
}

#[allow(clippy::float_cmp)] // Whether it is whole.
fn as_whole(value: &JsValue, max: f64) -> Option<u64> {
    let number = value.as_f64()?;
    (number >= 0.0 && number <= max && number == (number as u64) as f64).then_some(number as u64)
}

fn as_size(value: &JsValue) -> Option<usize> {
    as_whole(value, f64::from(u32::MAX)).map(|size| size as usize)
}

fn sizes(value: &JsValue) -> Option<Vec<usize>> {
    value.dyn_ref::<Array>()?.iter().map(|size| as_size(&size)).collect()
}

/// A value as it is shown in messages.
fn shown(value: &JsValue) -> String {
    match (value.as_string(), value.as_f64(), value.as_bool()) {
        (Some(text), _, _) => format!("\"{text}\""),
        (_, Some(number), _) => Message::new().decimal(number).as_str().to_owned(),
        (_, _, Some(flag)) => flag.to_string(),
        _ => value.js_typeof().as_string().map_or_else(|| "something".to_owned(), |kind| format!("of type {kind}")),
    }
}

/// A plain object with these properties.
pub(crate) fn object<const N: usize>(properties: [(&str, JsValue); N]) -> JsValue {
    let object = js::object();
    properties.iter().for_each(|(key, value)| js::set_property(&object, key, value));
    object
}
