//! What is called of JavaScript's own. Declared here, since `js-sys` would leave the adapters of all closures that it knows in the
//! module, in use or not.

use alloc::vec::Vec;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// An array of anything.
    #[wasm_bindgen(is_type_of = JsValue::is_array, typescript_type = "any[]")]
    #[derive(Clone, Debug)]
    pub type Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new() -> Array;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn length(this: &Array) -> u32;
    #[wasm_bindgen(method, indexing_getter)]
    pub(crate) fn get(this: &Array, i: u32) -> JsValue;
    #[wasm_bindgen(method)]
    pub(crate) fn push(this: &Array, value: &JsValue);

    #[wasm_bindgen(js_namespace = Object)]
    pub(crate) fn keys(object: &JsValue) -> Array;
    #[wasm_bindgen(js_namespace = Reflect, js_name = get, catch)]
    pub(crate) fn property(object: &JsValue, key: &str) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_namespace = Reflect, js_name = set)]
    pub(crate) fn set_property(object: &JsValue, key: &str, value: &JsValue);

    #[wasm_bindgen(js_name = Uint8Array)]
    pub(crate) type Bytes;
    #[wasm_bindgen(constructor, js_class = "Uint8Array")]
    pub(crate) fn new(bytes: &JsValue) -> Bytes;
    #[wasm_bindgen(method, js_class = "Uint8Array")]
    pub(crate) fn slice(this: &Bytes) -> Vec<u8>;

    #[wasm_bindgen(js_name = Float32Array)]
    pub(crate) type Floats;
    /// A copy of the numbers.
    #[wasm_bindgen(constructor, js_class = "Float32Array")]
    pub(crate) fn new(data: &[f32]) -> Floats;
    /// The numbers where they lie: `Object` returns the view that it is handed. What JavaScript does with it later is within the
    /// module's memory, and never at the same time as Rust runs.
    #[wasm_bindgen(js_name = Object)]
    pub(crate) fn view(data: &[f32]) -> JsValue;
    /// An empty object.
    #[wasm_bindgen(js_name = Object)]
    pub(crate) fn object() -> JsValue;
}

impl Array {
    pub(crate) fn iter(&self) -> impl Iterator<Item = JsValue> {
        (0..self.length()).map(|i| self.get(i))
    }
}
