//! Boards that QEMU emulates, and comparing what a program prints on them with what it prints on the host.

use std::{
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::process;

pub(crate) struct Board {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    program: &'static str,
    machine: &'static [&'static str],
}

pub(crate) const THUMBV7EM: Board = Board {
    name: "thumbv7em",
    target: "thumbv7em-none-eabihf",
    program: "qemu-system-arm",
    machine: &["-M", "mps2-an386", "-cpu", "cortex-m4"],
};

/// The only Cortex-M0 that QEMU has is the micro:bit's, with 16 KiB of RAM: too little for a training run, but the
/// chip takes other sizes. They have to be those of `firmware-example/memory/thumbv6m-none-eabi.x`.
pub(crate) const THUMBV6M: Board = Board {
    name: "thumbv6m",
    target: "thumbv6m-none-eabi",
    program: "qemu-system-arm",
    machine: &["-M", "microbit", "-global", "nrf51-soc.flash-size=0x100000", "-global", "nrf51-soc.sram-size=0x100000"],
};

pub(crate) const THUMBV7M: Board = Board {
    name: "thumbv7m",
    target: "thumbv7m-none-eabi",
    program: "qemu-system-arm",
    machine: &["-M", "mps2-an385"],
};

/// A Cortex-M33 that starts in its secure state.
pub(crate) const THUMBV8M: Board = Board {
    name: "thumbv8m.main",
    target: "thumbv8m.main-none-eabihf",
    program: "qemu-system-arm",
    machine: &["-M", "mps2-an505"],
};

pub(crate) const RISCV32IMC: Board = Board {
    name: "riscv32imc",
    target: "riscv32imc-unknown-none-elf",
    program: "qemu-system-riscv32",
    machine: &["-M", "virt", "-bios", "none"],
};

const BOARDS: [&Board; 5] = [&THUMBV7EM, &THUMBV8M, &THUMBV7M, &THUMBV6M, &RISCV32IMC];

/// No window and no serial port; what the program prints by semihosting goes to QEMU's standard output, so that
/// QEMU's own messages (on standard error) cannot mix with it. One instruction takes one nanosecond of the board's
/// time, which makes runs repeatable and lets timers count instructions.
const OPTIONS: &str = "-display none -serial none -monitor none -chardev stdio,id=output \
    -semihosting-config enable=on,target=native,chardev=output -icount shift=0";

/// Far more than a run takes: a program that hangs must not stop the matrix.
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) fn board(name: &str) -> Result<&'static Board> {
    let board = BOARDS.into_iter().find(|board| board.name == name);
    board.with_context(|| {
        let names = BOARDS.map(|board| board.name).join(", ");
        format!("there is no board {name}, only {names}")
    })
}

/// What a program printed on a board.
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
    /// Where the board can count them.
    pub(crate) instructions: Option<u64>,
    /// Likewise for an update of one parameter by Adam.
    pub(crate) adam_instructions: Option<u64>,
}

fn command(board: &Board, kernel: &Path, folder: &Path) -> Command {
    let mut command = Command::new(board.program);
    command.args(board.machine).args(OPTIONS.split_whitespace()).arg("-kernel").arg(kernel).current_dir(folder);
    command
}

/// Runs a program that finds its files in `folder`, and returns whether it succeeded and the bytes that it wrote.
pub(crate) fn run_in(folder: &Path, board: &Board, kernel: &Path, root: &Path) -> Result<(bool, Vec<u8>)> {
    let captured = process::capture(&mut command(board, kernel, folder), root, LIMIT)?;
    ensure!(!captured.bytes.is_empty(), "{} wrote nothing\n{}", board.program, captured.stderr);
    Ok((captured.status.success(), captured.bytes))
}

pub(crate) fn run(board: &Board, kernel: &Path, root: &Path) -> Result<Run> {
    let captured = process::capture(&mut command(board, kernel, root), root, LIMIT)?;
    let (lines, [instructions, adam_instructions]) = split_counts(&captured.stdout);
    // A wrong option of QEMU shows here and nowhere else.
    ensure!(
        captured.status.success() || !captured.stdout.is_empty(),
        "{} ended with {} and no output\n{}",
        board.program,
        captured.status,
        captured.stderr
    );
    Ok(Run { status: captured.status, lines, instructions, adam_instructions })
}

/// Takes the lines `instructions N` and `adam instructions N` out: the host has none.
fn split_counts(output: &str) -> (Vec<String>, [Option<u64>; 2]) {
    let mut counts = [None; 2];
    let mut lines = Vec::new();
    for line in output.lines() {
        let found = ["instructions ", "adam instructions "].map(|label| line.strip_prefix(label)?.parse().ok());
        match found.iter().position(Option::is_some) {
            Some(i) => counts[i] = found[i],
            None => lines.push(line.to_owned()),
        }
    }
    (lines, counts)
}

/// An error that shows the first line in which the two differ.
pub(crate) fn compare(host: &[String], board: &[String]) -> Result<()> {
    ensure!(!host.is_empty(), "the program printed nothing on the host");
    for (index, expected) in host.iter().enumerate() {
        let found = board.get(index).map_or("nothing", String::as_str);
        if found != expected {
            bail!("line {} of {} differs\n    host:  {expected}\n    board: {found}", index + 1, host.len());
        }
    }
    if let Some(extra) = board.get(host.len()) {
        bail!("the board printed more than the host's {} lines: {extra}", host.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_instruction_count_is_no_line_of_the_comparison() {
        let output = "loss 3f800000\ninstructions 5000000000\nadam instructions 25\nend 0\n";
        let (found, counts) = split_counts(output);
        assert_eq!(found, ["loss 3f800000", "end 0"]);
        assert_eq!(counts, [Some(5_000_000_000), Some(25)]);

        let (found, counts) = split_counts("instructions unknown\n");
        assert_eq!(found, ["instructions unknown"]);
        assert_eq!(counts, [None; 2]);
    }

    #[test]
    fn the_first_differing_line_is_shown() {
        let host = lines("a 1\nb 2\nc 3");
        compare(&host, &host).unwrap();

        let cases = [
            ("a 1\nb 4\nc 5", "line 2 of 3 differs\n    host:  b 2\n    board: b 4"),
            ("a 1\nb 2", "line 3 of 3 differs\n    host:  c 3\n    board: nothing"),
            ("a 1\nb 2\nc 3\nPANIC", "more than the host's 3 lines: PANIC"),
        ];
        for (board, expected) in cases {
            let error = compare(&host, &lines(board)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_empty_output_proves_nothing() {
        assert!(compare(&[], &[]).is_err());
    }

    #[test]
    fn a_board_is_found_by_its_name() {
        assert_eq!(board("riscv32imc").unwrap().target, RISCV32IMC.target);
        let error = board("z80").err().unwrap().to_string();
        assert_eq!(error, "there is no board z80, only thumbv7em, thumbv8m.main, thumbv7m, thumbv6m, riscv32imc");
    }
}
