//! The number of instructions that QEMU has executed, exact and repeatable under `-icount shift=0`.

// A board without a counter has to say so, and all have the same signature.
#![allow(clippy::unnecessary_wraps)]

/// The MPS2 board of the Cortex-M4F has no instruction counter, but with `-icount shift=0` one instruction takes one nanosecond of
/// the board's time, and its timer counts down at 25 MHz: one tick is 40 instructions.
#[cfg(mps2_an386)]
mod board {
    const CONTROL: *mut u32 = 0x4000_0000 as *mut u32;
    const VALUE: *mut u32 = 0x4000_0004 as *mut u32;
    const RELOAD: *mut u32 = 0x4000_0008 as *mut u32;
    const INSTRUCTIONS_PER_TICK: u64 = 40;

    pub fn start() {
        // SAFETY: registers of the CMSDK timer of MPS2 AN386, the board that this binary is made for.
        unsafe {
            RELOAD.write_volatile(u32::MAX);
            VALUE.write_volatile(u32::MAX);
            CONTROL.write_volatile(1);
        }
    }

    pub fn instructions() -> Option<u64> {
        // SAFETY: as in `start`.
        let ticks = u32::MAX - unsafe { VALUE.read_volatile() };
        Some(u64::from(ticks) * INSTRUCTIONS_PER_TICK)
    }
}

/// RISC-V has a counter of retired instructions.
#[cfg(target_arch = "riscv32")]
mod board {
    use core::arch::asm;

    pub fn start() {}

    pub fn instructions() -> Option<u64> {
        loop {
            let (low, high, high_again): (u32, u32, u32);
            // SAFETY: reading the counter has no effect, and the program runs in machine mode.
            unsafe {
                asm!(
                    "csrr {high}, minstreth",
                    "csrr {low}, minstret",
                    "csrr {high_again}, minstreth",
                    high = out(reg) high,
                    low = out(reg) low,
                    high_again = out(reg) high_again,
                    options(nomem, nostack),
                );
            }
            // Otherwise the low half overflowed between the reads.
            if high == high_again {
                return Some(u64::from(high) << 32 | u64::from(low));
            }
        }
    }
}

/// The other boards are for looking at bits.
#[cfg(all(target_arch = "arm", not(mps2_an386)))]
mod board {
    pub fn start() {}

    pub fn instructions() -> Option<u64> {
        None
    }
}

pub use board::{instructions, start};
