//! Start, output and end of the program on a board.
//!
//! `core::fmt` stays out: it would be larger than the training code, and it can panic.

mod counter;
mod print;
mod semihosting;

use core::panic::PanicInfo;

use semihosting::exit;

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    counter::start();
    let before = counter::instructions();
    let result = firmware_example::run(&mut |label, bits| {
        print::text(label);
        print::text(" ");
        print::hex(bits);
        print::text("\n");
    });
    let after = counter::instructions();

    if let (Some(before), Some(after)) = (before, after) {
        print::text("instructions ");
        print::decimal(after.wrapping_sub(before));
        print::text("\n");
    }
    match result {
        Ok(()) => exit(0),
        Err(reason) => {
            print::text("ERROR ");
            print::text(reason);
            print::text("\n");
            exit(1)
        }
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
