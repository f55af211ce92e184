//! Slots of flash; the record in the first one also with the checksum that belongs to it.

#![no_main]

#[path = "../../tests/common/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::slots(bytes);
    let len = bytes.get(4..8).map_or(0, |len| u32::from_le_bytes([len[0], len[1], len[2], len[3]])) as usize;
    if let Some(record) = len.checked_add(20).and_then(|end| bytes.get(..end)) {
        readers::slots(&readers::sealed(record));
    }
});
