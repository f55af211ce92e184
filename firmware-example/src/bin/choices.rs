//! Fine-tunes the network of `motions.rs` on the device, with one choice of what is trained after the other.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../device/mod.rs"]
mod device;

#[cfg(target_os = "none")]
mod board {
    use firmware_example::motions::{CHOICES, CHOICES_SLAB_LEN};
    use static_cell::ConstStaticCell;

    static SLAB: ConstStaticCell<[f32; CHOICES_SLAB_LEN]> = ConstStaticCell::new([0.0; CHOICES_SLAB_LEN]);

    #[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
    #[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
    fn main() -> ! {
        super::device::run(CHOICES, SLAB.take())
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this is a program for a board: `cargo xtask firmware` runs it under QEMU");
}
