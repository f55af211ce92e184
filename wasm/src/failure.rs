//! Errors as JavaScript's `Error`s, with the library's text.

use alloc::string::ToString;
use core::error::Error;

use wasm_bindgen::prelude::*;

/// An `Error`. That it is made in one place, and not once for each type of error as wasm-bindgen's is, makes the module smaller.
#[derive(Debug)]
pub struct Failure(JsError);

impl Failure {
    pub(crate) fn new(text: &str) -> Self {
        Self(JsError::new(text))
    }

    #[inline(never)]
    fn of(error: &dyn Error) -> Self {
        Self::new(&error.to_string())
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        failure.0.into()
    }
}
