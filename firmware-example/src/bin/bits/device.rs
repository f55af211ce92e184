//! The run on a board.

use crate::board::{count, counter, print, semihosting::exit};

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
