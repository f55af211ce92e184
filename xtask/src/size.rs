//! What training the standard workloads takes on a Cortex-M4F: instructions and stack of a step, counted under QEMU, and flash
//! and RAM of the program that trains and does nothing else.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{
    elf::{Image, Section},
    firmware, instructions, process,
    qemu::{self, THUMBV7EM},
    workspace::Workspace,
};

const TABLE: &str = "firmware-example/size.txt";

/// By how much a number may exceed the table's, or fall below it unnoticed.
const PERCENT: u64 = 2;

const PROGRAMS: [&str; 8] = ["w1", "w1_fast", "w1_fused", "w2", "w2_fast", "w3", "w3_fast", "xor"];

/// The numbers of a program: of a step, and in bytes. `flash` has the vector table besides code and constants; `ram` is the slab,
/// without samples and stack.
const COLUMNS: [&str; 5] = ["instructions", "code+rodata", "flash", "ram", "stack"];

/// What no program may exceed, by program and column; a KB is 1,000 bytes, and 43.3 of them are rounded.
const TARGETS: [(&str, [Option<u64>; COLUMNS.len()]); 8] = [
    ("w1", [Some(226_000), Some(8_000), None, Some(43_349), Some(300)]),
    ("w1_fast", [Some(200_000), Some(8_000), None, Some(43_349), Some(300)]),
    ("w1_fused", [None, None, None, Some(36_000), None]),
    ("w2", [Some(34_000_000), None, None, None, None]),
    ("w2_fast", [Some(34_000_000), None, None, None, None]),
    ("w3", [Some(270_000_000), None, None, None, None]),
    ("w3_fast", [Some(270_000_000), None, None, None, None]),
    ("xor", [None, None, Some(6_000), Some(1_000), None]),
];

type Row = (&'static str, [u64; COLUMNS.len()]);

/// `cargo xtask size`, and a check: measures, and compares with the table.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let path = workspace.root.join(TABLE);
    let table = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows = measure(workspace)?;
    println!("{}", write(&rows));
    let above = above_targets(&rows);
    ensure!(above.is_empty(), "above what is aimed at: {}", above.join("; "));
    let wrong = differences(&rows, &table)?;
    ensure!(wrong.is_empty(), "{}; `cargo xtask size --update` writes {TABLE}", wrong.join("; "));
    Ok(format!("{} programs without allocator, formatting, double precision or panics, as {TABLE} says", rows.len()))
}

/// `cargo xtask size --update`
pub(crate) fn update(workspace: &Workspace) -> Result<()> {
    let table = write(&measure(workspace)?);
    print!("{table}");
    fs::write(workspace.root.join(TABLE), table).with_context(|| format!("cannot write {TABLE}"))
}

fn measure(workspace: &Workspace) -> Result<Vec<Row>> {
    let bare = build(workspace, "steps,bare")?;
    let measuring = build(workspace, "steps")?;
    let programs = PROGRAMS.into_iter().zip(bare.iter().zip(&measuring));
    programs.map(|(program, (bare, measuring))| row(workspace, program, bare, measuring)).collect()
}

/// Links all programs with these features.
fn build(workspace: &Workspace, features: &str) -> Result<Vec<Image>> {
    let bins = PROGRAMS.map(|program| format!("--bin {program}")).join(" ");
    let arguments = format!("build --release --target {} --features {features} {bins}", THUMBV7EM.target);
    process::run(&mut workspace.firmware_cargo(&arguments), &workspace.root)?;
    let images = PROGRAMS.iter().map(|program| {
        let image = firmware::read(&workspace.firmware_file(THUMBV7EM.target, program))?;
        let found = image.unwanted();
        ensure!(found.is_empty(), "{program} has no use for these:\n{}", image.list(&found));
        firmware::without_allocator(&image, "main")?;
        Ok(image)
    });
    images.collect()
}

fn row(workspace: &Workspace, program: &'static str, bare: &Image, measuring: &Image) -> Result<Row> {
    let run = qemu::run(&THUMBV7EM, &workspace.firmware_file(THUMBV7EM.target, program), &workspace.root)?;
    ensure!(run.status.success(), "{program} ended with {}", run.status);
    println!("{program}: bytes of flash/RAM {}; with what measures {}", sections(bare), sections(measuring));
    println!("    bytes: {}", run.lines.join(", "));
    let instructions = run.instructions.context("the program counts no instructions")?;
    let flash = |wanted: fn(&&Section) -> bool| bare.sections.iter().filter(wanted).map(Section::flash).sum();
    let number = |label: &str| {
        let number = run.lines.iter().find_map(|line| line.strip_prefix(label)?.trim().parse().ok());
        number.with_context(|| format!("{program} prints no {label}"))
    };
    let mut ram = 0;
    for space in ["params", "state", "grads", "moments", "work"] {
        ram += number(space)?;
    }
    let code = flash(|section| [".text", ".rodata"].contains(&section.name.as_str()));
    Ok((program, [instructions, code, flash(|_| true), ram, number("stack")?]))
}

fn sections(image: &Image) -> String {
    let sections = image.sections.iter().filter(|section| section.size > 0);
    let sections: Vec<_> = sections.map(|s| format!("{} {}/{}", s.name, s.flash(), s.ram())).collect();
    sections.join(", ")
}

fn write(rows: &[Row]) -> String {
    let line = |name: &str, cells: [String; COLUMNS.len()]| {
        let [a, b, c, d, e] = cells;
        format!("{name:<8}{a:>14}{b:>14}{c:>14}{d:>14}{e:>14}\n")
    };
    let head = line("", COLUMNS.map(str::to_owned));
    let lines = rows.iter().map(|(program, numbers)| line(program, numbers.map(|number| number.to_string())));
    head + &lines.collect::<String>()
}

/// One line for every number that is not near the table's.
fn differences(rows: &[Row], table: &str) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (program, numbers) in rows {
        let mut cells = table
            .lines()
            .map(str::split_whitespace)
            .find_map(|mut cells| (cells.next() == Some(*program)).then_some(cells));
        for (column, &found) in COLUMNS.iter().zip(numbers) {
            let expected = cells.as_mut().and_then(|cells| cells.next()?.parse().ok());
            let expected = expected.with_context(|| format!("no {column} of {program} in {TABLE}"))?;
            if !instructions::is_near(found, expected, PERCENT) {
                wrong.push(format!("{program}: {column} is {found}, the table says {expected}"));
            }
        }
    }
    Ok(wrong)
}

/// One line for every number that is above what is aimed at.
fn above_targets(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for (program, numbers) in rows {
        let targets = TARGETS.iter().filter(|(name, _)| name == program).flat_map(|(_, targets)| targets);
        for ((column, found), target) in COLUMNS.iter().zip(numbers).zip(targets) {
            if let Some(target) = target.filter(|target| found > target) {
                lines.push(format!("{program}: {column} is {found}, aimed at {target}"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] =
        &[("w1", [225_000, 11_000, 12_000, 43_000, 1_000]), ("xor", [18_000, 9_000, 10_000, 500, 900])];

    #[test]
    fn the_table_is_read_as_it_is_written() {
        assert!(differences(ROWS, &write(ROWS)).unwrap().is_empty());
    }

    #[test]
    fn a_program_that_grows_by_more_than_two_percent_is_named() {
        let mut table = ROWS.to_vec();
        table[0].1[1] = 10_700;
        assert_eq!(differences(ROWS, &write(&table)).unwrap(), ["w1: code+rodata is 11000, the table says 10700"]);
        table[0].1[1] = 10_900;
        assert!(differences(ROWS, &write(&table)).unwrap().is_empty());
    }

    #[test]
    fn a_program_that_the_table_lacks_is_an_error() {
        let error = differences(ROWS, &write(&ROWS[..1])).unwrap_err().to_string();
        assert_eq!(error, "no instructions of xor in firmware-example/size.txt");
    }

    #[test]
    fn what_is_above_its_target_is_named() {
        let lines = above_targets(ROWS);
        assert_eq!(lines[0], "w1: code+rodata is 11000, aimed at 8000");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}
