//! Uses what each feature of slabgrad adds, so that it gets linked. `cargo xtask test link` builds this for every target; nobody runs
//! it.

#![cfg_attr(any(target_os = "none", all(target_family = "wasm", not(feature = "alloc"))), no_std, no_main)]

mod uses;

/// On a microcontroller, which has no operating system: where it starts, its heap, and what becomes of a panic.
#[cfg(target_os = "none")]
mod board {
    #[cfg(target_arch = "arm")]
    use cortex_m as _;
    #[cfg(feature = "defmt")]
    use defmt_semihosting as _;
    #[cfg(target_arch = "riscv32")]
    use riscv as _;

    #[cfg(feature = "alloc")]
    #[global_allocator]
    static HEAP: embedded_alloc::LlffHeap = embedded_alloc::LlffHeap::empty();

    #[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
    #[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
    fn main() -> ! {
        #[cfg(feature = "alloc")]
        {
            static mut MEMORY: [u8; 0x8000] = [0; 0x8000];
            // SAFETY: the memory is used nowhere else, and this runs once.
            unsafe { HEAP.init(&raw mut MEMORY as usize, 0x8000) }
        }
        core::hint::black_box(crate::uses::all());
        loop {
            core::hint::spin_loop();
        }
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            core::hint::spin_loop();
        }
    }
}

/// In a browser, without std and without an allocator.
#[cfg(all(target_family = "wasm", not(feature = "alloc")))]
mod module {
    /// What the page would call.
    #[unsafe(no_mangle)]
    pub extern "C" fn run() -> bool {
        crate::uses::all().is_some()
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}

#[cfg(not(any(target_os = "none", all(target_family = "wasm", not(feature = "alloc")))))]
fn main() {
    core::hint::black_box(uses::all());
}
