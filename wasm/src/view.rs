//! Typed arrays over the module's own memory.

#![allow(unsafe_code)]

use js_sys::Float32Array;

/// The elements where they lie.
pub(crate) fn of(data: &[f32]) -> Float32Array {
    // SAFETY: this only makes a typed array of an address and a length; nothing is read here. What JavaScript does with it
    // later is within the memory of the module, and never at the same time as Rust runs: there is one thread.
    unsafe { Float32Array::view(data) }
}
