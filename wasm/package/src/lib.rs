//! The module of the npm package: what `slabgrad-wasm` exports, without std, with an allocator, and with panics that trap. A
//! module has no console that std could write a panic's text to, so the texts are left out.

#![cfg_attr(target_family = "wasm", no_std)]

pub use slabgrad_wasm::*;

#[cfg(target_family = "wasm")]
mod runtime {
    #[global_allocator]
    static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}
