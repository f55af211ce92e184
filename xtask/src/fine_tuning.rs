//! The programs of the firmware that learn on the device: running them under QEMU, reading what they say, and cutting their power.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use defmt_decoder::{DecodeError, Table};

use crate::{
    firmware, process,
    qemu::{self, Board},
    workspace::Workspace,
};

pub(crate) const PROGRAMS: [&str; 2] = ["digits", "motions"];

/// What a device has to achieve: an accuracy below, then above this, in percent, by at most so many samples.
const BEFORE: f64 = 60.0;
const AFTER: f64 = 90.0;
const SAMPLES: f64 = 200.0;

/// After how many bytes, written or erased since the last reset, the power fails: while the first checkpoint's slot is erased, while
/// it is written, and twice in later ones.
const POWER_CUTS: &[u32] = &[3_000, 40_000, 100_000, 150_000];

/// Far more than the training on the host takes.
const LIMIT: Duration = Duration::from_mins(5);

/// What a program said, line by line.
struct Run {
    lines: Vec<String>,
}

impl Run {
    /// The numbers in the lines that start with `text`.
    fn numbers<'l>(&'l self, text: &'l str) -> impl Iterator<Item = Vec<f64>> + 'l {
        let rest = self.lines.iter().filter_map(move |line| line.strip_prefix(text));
        rest.map(|rest| rest.split(' ').filter_map(|word| word.trim_end_matches(',').parse().ok()).collect())
    }

    /// The last line that starts with `text`.
    fn last(&self, text: &str) -> Result<&str> {
        let line = self.lines.iter().rfind(|line| line.starts_with(text));
        line.map(String::as_str).with_context(|| format!("no line starts with \"{text}\":\n{}", self.lines.join("\n")))
    }
}

/// The network is bad at what the device sees, and good at it after the device has learned from a few samples, whichever way of
/// the program's.
pub(crate) fn learns(workspace: &Workspace, program: &str, board: &Board) -> Result<String> {
    let run = run(workspace, program, board, &[])?;
    let (befores, afters) = (run.numbers("INFO  accuracy before "), run.numbers("INFO  accuracy after "));
    let mut learned = Vec::new();
    for (before, after) in befores.zip(afters) {
        let ([before, ..], [after, _, samples]) = (&before[..], &after[..]) else { bail!("{before:?}, {after:?}") };
        ensure!(*before < BEFORE, "{before} % before: not less than {BEFORE} %");
        ensure!(*after > AFTER, "{after} % after: not more than {AFTER} %");
        ensure!(*samples <= SAMPLES, "{samples} samples: more than {SAMPLES}");
        learned.push(format!("{before:.1} %, then {after:.1} % by {samples} samples"));
    }
    let setups = run.numbers("INFO  learns: ").count();
    ensure!(setups > 0 && learned.len() == setups, "{setups} setups, but: {learned:?}");
    Ok(learned.join("; "))
}

/// A device whose power fails while it saves goes on from the last checkpoint that it has acknowledged, and ends with the bits of
/// one whose power never fails.
pub(crate) fn survives(workspace: &Workspace, program: &str, board: &Board) -> Result<String> {
    let whole = run(workspace, program, board, &[])?;
    let cut = run(workspace, program, board, POWER_CUTS)?;
    let resumed = resumed_where_saved(&cut.lines)?;
    ensure!(resumed == POWER_CUTS.len(), "{resumed} starts after {} cuts:\n{}", POWER_CUTS.len(), cut.lines.join("\n"));
    for text in ["INFO  checksum ", "INFO  accuracy after "] {
        let (expected, found) = (whole.last(text)?, cut.last(text)?);
        ensure!(found == expected, "without cuts: {expected}, with cuts: {found}");
    }
    Ok(format!("{resumed} resets in the middle of a checkpoint, and the same bits: {}", whole.last("INFO  checksum ")?))
}

/// How often the program started again, each time where the last acknowledged checkpoint was.
fn resumed_where_saved(lines: &[String]) -> Result<usize> {
    let (mut saved, mut starts) = (None, 0_usize);
    for line in lines {
        if let Some(rest) = line.strip_prefix("INFO  saved after ") {
            saved = Some(rest);
        } else if let Some(rest) = line.strip_prefix("INFO  resumed after ") {
            ensure!(saved == Some(rest), "{line}, but the last acknowledged checkpoint is {saved:?}");
            starts += 1;
        } else if line.starts_with("INFO  accuracy before ") {
            ensure!(saved.is_none(), "starts from nothing, but there is a checkpoint after {saved:?}");
            starts += 1;
        }
    }
    starts.checked_sub(1).context("the program never started")
}

/// `cargo xtask firmware`
pub(crate) fn show(workspace: &Workspace, programs: &[&str], board: &Board) -> Result<()> {
    for program in programs {
        let run = run(workspace, program, board, &[])?;
        run.lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// `cargo xtask pretrain`
pub(crate) fn pretrain(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.firmware_cargo("run --quiet --release --example pretrain weights");
    process::run(&mut command, &workspace.root)
}

/// The images that are built in are what the host's training gives.
pub(crate) fn pretrained(workspace: &Workspace) -> Result<String> {
    let folder = workspace.firmware_target.join("weights");
    let mut command = workspace.firmware_cargo("run --quiet --release --example pretrain");
    process::capture(command.arg(&folder), &workspace.root, LIMIT)?.expect_success()?;
    let read = |path: PathBuf| fs::read(&path).with_context(|| format!("cannot read {}", path.display()));
    let mut count = 0;
    for image in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let name = image?.file_name();
        let built_in = workspace.root.join("firmware-example/weights").join(&name);
        ensure!(
            read(folder.join(&name))? == read(built_in)?,
            "{} is another one: `cargo xtask pretrain` makes it anew",
            name.display()
        );
        count += 1;
    }
    ensure!(count >= PROGRAMS.len(), "only {count} images were made");
    Ok(format!("{count} images, to the last bit"))
}

/// Builds a program, lays out the files that it reads, runs it, and decodes what it says.
fn run(workspace: &Workspace, program: &str, board: &Board, power_cuts: &[u32]) -> Result<Run> {
    let kernel = firmware::build(workspace, board, program)?;
    let folder = workspace.firmware_target.join("run").join(format!("{program}-{}", board.name));
    let mut samples = workspace.firmware_cargo(&format!("run --quiet --release --example samples {program}"));
    process::run(samples.arg(&folder), &workspace.root)?;
    let cuts: Vec<u8> = power_cuts.iter().flat_map(|cut| cut.to_le_bytes()).collect();
    fs::write(folder.join("power-cuts"), cuts)?;

    let (succeeded, output) = qemu::run_in(&folder, board, &kernel, &workspace.root)?;
    let lines = decode(&kernel, &output)?;
    ensure!(succeeded, "{program} failed:\n{}", lines.join("\n"));
    Ok(Run { lines })
}

/// The messages in a stream of defmt's frames; the program's file knows their texts.
fn decode(kernel: &PathBuf, output: &[u8]) -> Result<Vec<String>> {
    let elf = fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let table = Table::parse(&elf)?.context("the program has no messages of defmt")?;
    let mut decoder = table.new_stream_decoder();
    decoder.received(output);
    let mut lines = Vec::new();
    loop {
        match decoder.decode() {
            Ok(frame) => {
                let level =
                    frame.level().map_or(String::new(), |level| format!("{:5} ", level.as_str().to_uppercase()));
                lines.push(format!("{level}{}", frame.display_message()));
            }
            Err(DecodeError::UnexpectedEof) => return Ok(lines),
            // Only a reset while a message goes out leaves such a thing.
            Err(DecodeError::Malformed) => lines.push("(a damaged message)".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_resumes_where_it_saved_last() {
        let lines = |text: &str| text.lines().map(|line| format!("INFO  {line}")).collect::<Vec<_>>();
        let good = "accuracy before 1 %\naccuracy before 1 %\nsaved after 40 samples\nresumed after 40 samples";
        assert_eq!(resumed_where_saved(&lines(good)).unwrap(), 2);
        for bad in [
            "accuracy before 1 %\nsaved after 40 samples\nresumed after 20 samples",
            "accuracy before 1 %\nsaved after 40 samples\naccuracy before 1 %",
            "accuracy before 1 %\nresumed after 20 samples",
            "",
        ] {
            assert!(resumed_where_saved(&lines(bad)).is_err(), "{bad}");
        }
    }
}
