//! Slab images, as they are and with the checksum that belongs to them.

#![no_main]

#[path = "../../tests/common/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::image(bytes);
    readers::image(&readers::sealed(bytes));
});
