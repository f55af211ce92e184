//! The same run as a WebAssembly module without an allocator: the host imports nothing but a place to put results.

use core::panic::PanicInfo;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Receives a label (UTF-8, `length` bytes at `label`) and the bits of a value.
    safe fn emit(label: *const u8, length: usize, bits: u32);
}

/// Trains. Returns 0, or 1 if the run failed; the reason then arrives as the last label.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let mut emit_pair = |label: &'static str, bits| emit(label.as_ptr(), label.len(), bits);
    match super::run(&mut emit_pair) {
        Ok(()) => 0,
        Err(reason) => {
            emit_pair(reason, 0);
            1
        }
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
