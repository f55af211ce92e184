//! Output, counting and the end of the programs that measure and compare, on a board.
//!
//! `core::fmt` stays out: it would be larger than the training code, and it can panic.

// Not every program uses all of it.
#![allow(dead_code)]

pub mod counter;
pub mod print;
pub mod semihosting;

use core::panic::PanicInfo;

use semihosting::exit;

/// Prints the instructions between two counts, divided by how often something was done, where the board counts them.
pub fn count(label: &str, before: Option<u64>, after: Option<u64>, times: u64) {
    if let (Some(before), Some(after)) = (before, after) {
        print::text(label);
        print::decimal(after.wrapping_sub(before) / times.max(1));
        print::text("\n");
    }
}

/// Not reachable in a correct build: `cargo xtask test` fails when this function (or its message) is in the
/// thumbv7em image.
#[panic_handler]
fn panic(_info: &PanicInfo) -> ! {
    print::text("PANIC\n");
    exit(1)
}

/// The default handler waits for a debugger for ever, which says less than a line and an exit code.
#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
unsafe fn HardFault(_frame: &cortex_m_rt::ExceptionFrame) -> ! {
    fault()
}

#[cfg(target_arch = "riscv32")]
#[unsafe(export_name = "ExceptionHandler")]
fn exception(_frame: &riscv_rt::TrapFrame) -> ! {
    fault()
}

fn fault() -> ! {
    print::text("FAULT\n");
    exit(2)
}
