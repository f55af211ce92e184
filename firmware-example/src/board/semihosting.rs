//! Arm's semihosting calls, which QEMU answers: output, and ending the program with an exit code.
//!
//! The numbers are those of Arm's "Semihosting" document, which the RISC-V specification adopts.

use core::arch::asm;

const SYS_WRITE0: usize = 0x04;
const SYS_EXIT_EXTENDED: usize = 0x20;
const ADP_STOPPED_APPLICATION_EXIT: usize = 0x2_0026;

/// Prints bytes up to the first zero; all of them must belong to the array, so the last one has to be zero.
pub fn write0<const N: usize>(zero_terminated: &[u8; N]) {
    if zero_terminated.last() == Some(&0) {
        // SAFETY: the call reads from the pointer up to the first zero, which is inside of the array.
        unsafe { call(SYS_WRITE0, zero_terminated.as_ptr()) };
    }
}

/// Ends the program; QEMU exits with `code`.
pub fn exit(code: usize) -> ! {
    let block = [ADP_STOPPED_APPLICATION_EXIT, code];
    // SAFETY: the call reads the two words of `block`.
    unsafe { call(SYS_EXIT_EXTENDED, block.as_ptr().cast()) };
    // Only a debugger that ignores the call comes here.
    loop {
        core::hint::spin_loop();
    }
}

/// # Safety
///
/// `parameter` has to point to what the operation reads.
unsafe fn call(operation: usize, parameter: *const u8) {
    #[cfg(target_arch = "arm")]
    // SAFETY: the breakpoint traps to the host, which changes no register but r0.
    unsafe {
        asm!("bkpt #0xab", inlateout("r0") operation => _, in("r1") parameter, options(nostack));
    }
    #[cfg(target_arch = "riscv32")]
    // SAFETY: this sequence traps to the host, which changes no register but a0. It must be these three uncompressed
    // instructions, and QEMU wants them in one page.
    unsafe {
        asm!(
            ".balign 16",
            ".option push",
            ".option norvc",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inlateout("a0") operation => _,
            in("a1") parameter,
            options(nostack),
        );
    }
}
