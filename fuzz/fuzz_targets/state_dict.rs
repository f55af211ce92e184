//! Files of the `safetensors` format.

#![no_main]

#[path = "../../tests/common/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::state_dict(bytes);
});
