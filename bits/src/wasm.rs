//! The same as a WebAssembly module, which imports nothing but a place to put text.

use core::fmt::{self, Write};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Receives text (UTF-8, `length` bytes at `text`).
    safe fn write(text: *const u8, length: usize);
}

struct Out;

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_ptr(), text.len());
        Ok(())
    }
}

/// Trains all networks; 0 if that went well.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let mut slab = [0.0; crate::SLAB_LEN];
    u32::from(!crate::NETS.iter().all(|net| crate::run(net, &mut slab, &mut Out).is_ok()))
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
