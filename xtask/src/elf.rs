//! What is in a linked program (ELF or WebAssembly): its symbols, who calls them, its sections.

use std::collections::BTreeSet;

use anyhow::Result;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

pub(crate) struct Image {
    pub(crate) symbols: Vec<Symbol>,
    /// Those that take memory in the running program; empty for WebAssembly.
    pub(crate) sections: Vec<Section>,
    is_arm: bool,
}

pub(crate) struct Symbol {
    /// Readable, without the hash.
    pub(crate) name: String,
    address: u64,
    size: u64,
    is_function: bool,
}

pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) size: u64,
    address: u64,
    is_writable: bool,
    /// Empty where the section only reserves memory.
    bytes: Vec<u8>,
}

impl Section {
    /// Bytes that have to be kept in flash, the initial values of variables among them.
    pub(crate) fn flash(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn ram(&self) -> u64 {
        if self.is_writable { self.size } else { 0 }
    }
}

impl Image {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let file = object::File::parse(bytes)?;
        let is_arm = file.architecture() == Architecture::Arm;
        let symbols = file.symbols().filter_map(|symbol| {
            // Arm's names with a dollar sign mark where code and data begin.
            let name = symbol.name().ok()?;
            let named = !name.is_empty() && !name.starts_with('$');
            named.then(|| Symbol {
                name: format!("{:#}", rustc_demangle::demangle(name)),
                // The lowest bit of an Arm function's address says that its code is Thumb.
                address: symbol.address() & if is_arm { !1 } else { !0 },
                size: symbol.size(),
                is_function: symbol.kind() == SymbolKind::Text,
            })
        });
        let mut sections = Vec::new();
        for section in file.sections() {
            let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else {
                continue;
            };
            if !sh_flags.contains(elf::SHF_ALLOC) {
                continue;
            }
            sections.push(Section {
                name: section.name()?.to_owned(),
                size: section.size(),
                address: section.address(),
                is_writable: sh_flags.contains(elf::SHF_WRITE),
                bytes: if sh_type == elf::SHT_NOBITS { Vec::new() } else { section.data()?.to_vec() },
            });
        }
        Ok(Self { symbols: symbols.collect(), sections, is_arm })
    }

    pub(crate) fn allocators(&self) -> Vec<&Symbol> {
        self.named(is_allocator)
    }

    /// What has no place in a training step on a microcontroller.
    pub(crate) fn unwanted(&self) -> Vec<&Symbol> {
        self.named(|name| is_panic(name) || is_formatting(name) || is_soft_double(name))
    }

    fn named(&self, wanted: impl Fn(&str) -> bool) -> Vec<&Symbol> {
        let symbols = self.symbols.iter();
        symbols.filter(|symbol| wanted(&symbol.name)).collect()
    }

    /// Whether these bytes are in code or data.
    pub(crate) fn contains(&self, bytes: &[u8]) -> bool {
        let mut sections = self.sections.iter();
        sections.any(|section| section.bytes.windows(bytes.len()).any(|window| window == bytes))
    }

    /// One line for each symbol, and one for each function that calls it, as far as the code tells.
    pub(crate) fn list(&self, symbols: &[&Symbol]) -> String {
        let mut lines = Vec::new();
        for symbol in symbols {
            lines.push(format!("    {}", symbol.name));
            for caller in self.callers(symbol) {
                lines.push(format!("        called by {caller}"));
            }
        }
        lines.join("\n")
    }

    /// The functions with a direct call of `callee`. Only Thumb code is understood.
    fn callers(&self, callee: &Symbol) -> BTreeSet<&str> {
        let mut callers = BTreeSet::new();
        if !self.is_arm {
            return callers;
        }
        for function in self.symbols.iter().filter(|symbol| symbol.is_function) {
            let code = self.code(function);
            let calls = thumb_calls(code, function.address);
            if calls.into_iter().any(|target| target == callee.address) {
                callers.insert(function.name.as_str());
            }
        }
        callers
    }

    fn code(&self, function: &Symbol) -> &[u8] {
        let code = self.sections.iter().find_map(|section| {
            let start = usize::try_from(function.address.checked_sub(section.address)?).ok()?;
            let end = start.checked_add(usize::try_from(function.size).ok()?)?;
            section.bytes.get(start..end)
        });
        code.unwrap_or_default()
    }
}

fn is_allocator(name: &str) -> bool {
    // Allocator functions have mangled names of the pseudo crate `__rustc`.
    let last = name.rsplit("::").next().unwrap_or(name);
    let rust = ["__rust_alloc", "__rust_realloc", "__rust_dealloc", "__rg_", "__rdl_"];
    let c = ["malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "sbrk", "_sbrk"];
    rust.iter().any(|prefix| last.starts_with(prefix))
        || c.contains(&last)
        || in_module(name, "alloc")
        || in_module(name, "dlmalloc")
}

fn is_panic(name: &str) -> bool {
    in_module(name, "core::panicking") || name.ends_with("rust_begin_unwind")
}

fn is_formatting(name: &str) -> bool {
    in_module(name, "core::fmt")
}

/// Whether the name, or a type in it, is a path that starts with `module`.
fn in_module(name: &str, module: &str) -> bool {
    let path = format!("{module}::");
    name.match_indices(&path).any(|(index, _)| {
        let before = name[..index].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':')
    })
}

/// Run-time functions for double precision: `__aeabi_dadd`, `__aeabi_f2d`, `__adddf3`, `__extendsfdf2`, …
fn is_soft_double(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    match last.strip_prefix("__aeabi_") {
        Some(operation) => operation.ends_with("2d") || operation.starts_with('d') || operation.starts_with("cd"),
        None => last.starts_with("__") && last.contains("df"),
    }
}

/// The targets of the instructions `bl` and `b.w` (a call in the last position) in Thumb code at `address`.
///
/// Constants between the code can look like such an instruction. That is good enough for a hint at who calls.
fn thumb_calls(code: &[u8], address: u64) -> Vec<u64> {
    let halfwords: Vec<u32> =
        code.chunks_exact(2).map(|bytes| u32::from(u16::from_le_bytes([bytes[0], bytes[1]]))).collect();
    let mut targets = Vec::new();
    for (index, pair) in halfwords.windows(2).enumerate() {
        let (first, second) = (pair[0], pair[1]);
        // Encodings BL T1 and B T4 of the Armv7-M Architecture Reference Manual, A7.7.12 and A7.7.18.
        if first >> 11 != 0b11110 || second & 0x9000 != 0x9000 {
            continue;
        }
        let sign = first >> 10 & 1;
        let i1 = !(second >> 13 ^ sign) & 1;
        let i2 = !(second >> 11 ^ sign) & 1;
        let offset = sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
        // Signed, 25 bits, from the address after the instruction.
        let offset = (offset << 7).cast_signed() >> 7;
        let next = address + 2 * index as u64 + 4;
        targets.push(next.wrapping_add_signed(offset.into()));
    }
    targets
}

#[cfg(test)]
mod tests {
    use object::{
        BinaryFormat, Endianness, SymbolFlags, SymbolScope,
        write::{self, StandardSection, SymbolSection},
    };

    use super::*;

    /// `main`, whose second instruction calls `panic_bounds_check`, which calls itself for ever.
    fn program_that_panics() -> Vec<u8> {
        let mut object = write::Object::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let text = object.section_id(StandardSection::Text);
        // nop; bl +2 (to offset 8); bx lr; b.w -4 (to itself)
        let code = [0x00, 0xbf, 0x00, 0xf0, 0x01, 0xf8, 0x70, 0x47, 0xff, 0xf7, 0xfe, 0xbf];
        object.append_section_data(text, &code, 4);
        let panic = "_RNvNtCs7ldSeZOOJos_4core9panicking18panic_bounds_check";
        for (name, value, size) in [("main", 0, 8), (panic, 8, 4)] {
            object.add_symbol(write::Symbol {
                name: name.into(),
                // The lowest bit, as a linker sets it for Thumb code.
                value: value | 1,
                size,
                kind: SymbolKind::Text,
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(text),
                flags: SymbolFlags::None,
            });
        }
        object.write().unwrap()
    }

    #[test]
    fn a_panic_is_found_with_its_callers() {
        let image = Image::parse(&program_that_panics()).unwrap();
        let found = image.unwanted();
        assert_eq!(
            image.list(&found),
            "    core::panicking::panic_bounds_check\n        \
             called by core::panicking::panic_bounds_check\n        \
             called by main"
        );
        assert!(image.allocators().is_empty());
    }

    #[test]
    fn bytes_are_found_in_sections() {
        let image = Image::parse(&program_that_panics()).unwrap();
        assert!(image.contains(&[0x70, 0x47]));
        assert!(!image.contains(b"PANIC"));
    }

    #[test]
    fn a_file_that_is_no_program_is_an_error() {
        assert!(Image::parse(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn allocators_are_known_by_name() {
        let yes = [
            "__rustc::__rust_alloc",
            "__rustc::__rust_alloc_zeroed",
            "__rustc::__rdl_dealloc",
            "__rg_realloc",
            "__rust_alloc_error_handler",
            "malloc",
            "alloc::raw_vec::handle_error",
            "<alloc::string::String as core::clone::Clone>::clone",
            "<dlmalloc::Dlmalloc>::malloc",
        ];
        for name in yes {
            assert!(is_allocator(name), "{name}");
        }
        let no = [
            "main",
            "slabgrad::plan::alloc::offsets",
            "my_alloc::run",
            "firmware_example::SLAB",
            "core::num::from_alloc",
        ];
        for name in no {
            assert!(!is_allocator(name), "{name}");
        }
    }

    #[test]
    fn panics_and_formatting_are_known_by_name() {
        let yes = [
            "core::panicking::panic_fmt",
            "__rustc::rust_begin_unwind",
            "rust_begin_unwind",
            "core::fmt::write",
            "<core::fmt::Formatter>::pad",
            "<u32 as core::fmt::Display>::fmt",
        ];
        for name in yes {
            assert!(is_panic(name) || is_formatting(name), "{name}");
        }
        for name in ["main", "my_core::fmt::write", "slabgrad::core::fmt::x"] {
            assert!(!is_panic(name) && !is_formatting(name), "{name}");
        }
    }

    #[test]
    fn double_precision_is_known_by_name() {
        let yes = [
            "__aeabi_dadd",
            "__aeabi_dcmplt",
            "__aeabi_cdcmple",
            "__aeabi_f2d",
            "__aeabi_ui2d",
            "__adddf3",
            "__extendsfdf2",
            "__truncdfsf2",
            "__fixdfsi",
            "compiler_builtins::float::add::__adddf3",
        ];
        for name in yes {
            assert!(is_soft_double(name), "{name}");
        }
        let no = [
            "__aeabi_fadd",
            "__aeabi_uldivmod",
            "__aeabi_memcpy",
            "__aeabi_f2iz",
            "__addsf3",
            "__edata",
            "sdf_distance",
        ];
        for name in no {
            assert!(!is_soft_double(name), "{name}");
        }
    }

    #[test]
    fn a_call_backwards_is_decoded() {
        // bl -8: from address 0x100 to 0xfc.
        assert_eq!(thumb_calls(&[0xff, 0xf7, 0xfc, 0xff], 0x100), [0xfc]);
        // Two instructions that are no call: movs r0, #0; bx lr.
        assert!(thumb_calls(&[0x00, 0x20, 0x70, 0x47], 0x100).is_empty());
    }
}
