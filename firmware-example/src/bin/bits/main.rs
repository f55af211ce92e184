//! Runs the training and prints one line for each emitted value: the label, a space, the bits as eight hex digits.
//!
//! On a board (under QEMU) the lines leave through semihosting, and a line `instructions N` is added where the
//! board can count them. On the host they go to standard output. `cargo xtask test` compares the two.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../board/mod.rs"]
mod board;

#[cfg(target_os = "none")]
mod device;

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    let result = firmware_example::bits::run(&mut |label, bits| println!("{label} {bits:08x}"));
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(reason) => {
            println!("ERROR {reason}");
            std::process::ExitCode::FAILURE
        }
    }
}
