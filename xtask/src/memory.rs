//! Memory: tests under Miri, which knows the rules of unsafe code, and under Valgrind, which sees what the vectors' instructions
//! read; and a training of a million steps, which must take no more at its end than at its beginning.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{checks::every_feature, process, workspace::Workspace};

/// The tool chain that has Miri.
const NIGHTLY: &str = "nightly";

/// Asking whether Miri is there.
const LIMIT: Duration = Duration::from_mins(1);

/// Without std the kernels are those of every machine; with AVX2, those of `panel.rs`. Miri knows no assembly, which libm has.
const PORTABLE: (&str, &str) = ("", "libm/force-soft-floats");
const AVX2: (&str, &str) = ("-C target-feature=+avx2,+fma", "libm/force-soft-floats,std");

/// `cargo xtask miri`: all of the core's tests.
pub(crate) fn miri(workspace: &Workspace) -> Result<()> {
    interpret(workspace, PORTABLE, "--lib --test builder --test program --test no_alloc")?;
    interpret(workspace, AVX2, "--lib -- backend")
}

/// A part of them that takes a few minutes: unsafe code, every operation, plans and programs. The slowest are tiles.
pub(crate) fn miri_in_short(workspace: &Workspace) -> Result<String> {
    const TESTS: &str = "backend::columns backend::panel backend::transpose ops:: optim plan program tape";
    if !has_miri() {
        return Ok(format!("left out: the {NIGHTLY} tool chain has no Miri"));
    }
    interpret(workspace, PORTABLE, &format!("--lib -- {TESTS}"))?;
    Ok(format!("{TESTS}; `cargo xtask miri` has the others, on vectors too"))
}

pub(crate) fn has_miri() -> bool {
    let mut command = Command::new("cargo");
    command.args([&format!("+{NIGHTLY}"), "miri", "--version"]);
    process::capture_quietly(&mut command, LIMIT).is_ok_and(|answer| answer.status.success())
}

fn interpret(workspace: &Workspace, (flags, features): (&str, &str), tests: &str) -> Result<()> {
    let mut command = workspace
        .cargo(&format!("+{NIGHTLY} miri test -p slabgrad --no-default-features --features {features} {tests}"));
    // Files of values are read, and a fixed seed needs no clock.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("RUSTFLAGS", flags);
    command.env("CARGO_TARGET_DIR", workspace.target_of("miri"));
    process::run(&mut command, &workspace.root)
}

/// Tests with std, as they were built for the check of the workspace, under Valgrind's memcheck.
pub(crate) fn valgrind(workspace: &Workspace) -> Result<String> {
    const TESTS: &str = "--test kernels --test tape --test program --test checkpoint";
    let mut command = workspace.cargo(&format!("test {} {TESTS}", every_feature!()));
    command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "valgrind --quiet --error-exitcode=1");
    process::run(&mut command, &workspace.root)?;
    Ok(TESTS.replace("--test ", ""))
}

/// Steps of a long run.
const STEPS: &str = "1000000";

/// Resident memory may differ by so much from its first sample: a page or two that are touched for the first time.
const KILOBYTES: u64 = 128;

/// Two runs of W1 of a million steps each, at once: the same parameters, and no memory besides what the first steps took.
pub(crate) fn long_runs(workspace: &Workspace) -> Result<String> {
    let program = workspace.bench("steps")?;
    let start = || {
        let mut command = Command::new(&program);
        command.args(["run", "W1", "train", STEPS]).stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().context("cannot start the benchmark")
    };
    let (mut first, second) = (start()?, start()?);
    let samples = resident(&mut first)?;
    let outputs = [first, second].map(|child| child.wait_with_output().context("waiting for a long run"));
    let [first, second] = [&outputs[0], &outputs[1]].map(|output| {
        output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    });
    ensure!(!first.is_empty() && first == second, "two runs of {STEPS} steps differ: `{first}`, `{second}`");
    let (least, most) = (samples.iter().min().copied().unwrap_or(0), samples.iter().max().copied().unwrap_or(0));
    ensure!(samples.len() >= 10, "only {} samples of the memory: the run was too short", samples.len());
    ensure!(most - least <= KILOBYTES, "resident memory went from {least} to {most} KB");
    Ok(format!("{STEPS} steps twice: {first}; resident memory {least} to {most} KB in {} samples", samples.len()))
}

/// The resident memory of a process in kilobytes, every 50 ms from the second sample until it ends.
fn resident(child: &mut Child) -> Result<Vec<u64>> {
    let path = format!("/proc/{}/status", child.id());
    let mut samples = Vec::new();
    while child.try_wait().context("waiting for a long run")?.is_none() {
        thread::sleep(Duration::from_millis(50));
        samples.extend(fs::read_to_string(&path).ok().and_then(|status| kilobytes(&status)));
    }
    Ok(samples.split_off(samples.len().min(1)))
}

/// The number in the line `VmRSS:   1234 kB`.
fn kilobytes(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_what_the_kernel_says() {
        assert_eq!(kilobytes("VmHWM:\t    9 kB\nVmRSS:\t    1234 kB\nRssAnon:\t 7 kB\n"), Some(1234));
        assert_eq!(kilobytes("VmHWM:\t    9 kB\n"), None);
    }
}
