//! Fine-tunes the network of `motions.rs` in the library on the device.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../device/mod.rs"]
mod device;

#[cfg(target_os = "none")]
mod board {
    use firmware_example::motions::FINE_TUNING;
    use static_cell::ConstStaticCell;

    static SLAB: ConstStaticCell<[f32; FINE_TUNING.slab_len()]> = ConstStaticCell::new([0.0; FINE_TUNING.slab_len()]);

    #[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
    #[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
    fn main() -> ! {
        const { assert!(FINE_TUNING.ram_bytes() <= 32 * 1024, "more than 32 KB of RAM") };
        super::device::run(&[("motions", &FINE_TUNING)], SLAB.take())
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this is a program for a board: `cargo xtask firmware` runs it under QEMU");
}
