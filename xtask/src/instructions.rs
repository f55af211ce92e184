//! The instructions that a step of each standard workload takes, counted by callgrind: a measure that does not depend on the
//! machine's mood. Valgrind knows AVX2 and no wider vectors, so the count is that of a machine with AVX2.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{process, workspace::Workspace};

const TABLE: &str = "benches/steps/instructions.txt";

/// By how much a count may exceed the table's, or fall below it unnoticed.
const PERCENT: u64 = 3;

const LIMIT: Duration = Duration::from_mins(3);

const COUNTED: &[(&str, &str)] = &[
    ("W1", "train"),
    ("W1", "infer"),
    ("W1-fast", "train"),
    ("W2", "train"),
    ("W2", "infer"),
    ("W2-fast", "train"),
    ("W3", "train"),
    ("W3", "infer"),
    ("W3-fast", "train"),
    ("W4-mlp", "train"),
    ("W4-mlp", "infer"),
    ("W4-cnn", "train"),
    ("W4-cnn", "infer"),
];

/// Counts, and compares with the table.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let path = workspace.root.join(TABLE);
    let table = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = count(workspace)?;
    let mut wrong = Vec::new();
    for (name, count) in &found {
        let line = table.lines().find_map(|line| line.strip_prefix(name.as_str()));
        let expected: u64 =
            line.and_then(|rest| rest.trim().parse().ok()).with_context(|| format!("no {name}in {TABLE}"))?;
        if !is_near(*count, expected, PERCENT) {
            wrong.push(format!("{name}takes {count} instructions, the table says {expected}"));
        }
    }
    ensure!(wrong.is_empty(), "{}; `cargo xtask instructions` writes the table", wrong.join("; "));
    Ok(format!("{} counts within {PERCENT} % of the table", found.len()))
}

/// `cargo xtask instructions`
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let lines: Vec<String> = count(workspace)?.iter().map(|(name, count)| format!("{name}{count:>12}")).collect();
    let table = lines.join("\n") + "\n";
    print!("{table}");
    fs::write(workspace.root.join(TABLE), table).with_context(|| format!("cannot write {TABLE}"))
}

/// Whether two numbers differ by at most so many hundredths of the second.
pub(crate) fn is_near(found: u64, expected: u64, percent: u64) -> bool {
    found.abs_diff(expected) * 100 <= expected * percent
}

/// The name of each workload, padded, and the instructions of one step.
fn count(workspace: &Workspace) -> Result<Vec<(String, u64)>> {
    let program = workspace.bench("steps")?;
    let counts = COUNTED.iter().map(|(name, what)| {
        // The difference leaves out all that happens once.
        let [few, more] = [2, 4].map(|steps| collected(&program, name, what, steps));
        Ok((format!("{name:<8} {what} "), (more? - few?) / 2))
    });
    counts.collect()
}

/// Instructions of a run of so many steps.
fn collected(program: &PathBuf, name: &str, what: &str, steps: u32) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args(["run", name, what, &steps.to_string()]);
    let output = process::capture_quietly(&mut command, LIMIT)?.expect_success()?;
    collected_in(&output.stderr)
}

/// The number in callgrind's last words.
fn collected_in(output: &str) -> Result<u64> {
    let count = output.lines().rev().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    count.context("callgrind does not say what it counted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let output =
            "==7== \n==7== Events    : Ir\n==7== Collected : 1041420\n==7== \n==7== I   refs:      1,041,420\n";
        assert_eq!(collected_in(output).unwrap(), 1_041_420);
        assert!(collected_in("==7== Events").is_err());
    }

    #[test]
    fn three_percent_are_near() {
        assert!(is_near(103, 100, 3) && is_near(97, 100, 3));
        assert!(!is_near(104, 100, 3) && !is_near(96, 100, 3));
    }
}
