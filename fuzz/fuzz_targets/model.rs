//! Models with their structure, in CBOR.

#![no_main]

#[path = "../../tests/common/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::model(bytes);
});
