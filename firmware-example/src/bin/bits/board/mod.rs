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
    let result = firmware_example::bits::run(&mut |label, bits| {
        print::text(label);
        print::text(" ");
        print::hex(bits);
        print::text("\n");
    });
    let after = counter::instructions();

    count("instructions ", before, after, 1);
    let before = counter::instructions();
    firmware_example::bits::update_by_adam();
    count("adam instructions ", before, counter::instructions(), firmware_example::bits::ADAM_UPDATES);
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

/// Prints the instructions between two counts, divided by how often something was done, where the board counts them.
fn count(label: &str, before: Option<u64>, after: Option<u64>, times: u64) {
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
