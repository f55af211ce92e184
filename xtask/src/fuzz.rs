//! The fuzzer, on the stable compiler: what cargo-fuzz asks of it is unstable, but comes with it.

use std::{fs, process::Command};

use anyhow::{Result, ensure};

use crate::{process, workspace::Workspace};

const TARGETS: [&str; 5] = ["image", "slots", "state_dict", "model", "nanograd"];
const SECONDS: &str = "10";

/// Runs every target for a few seconds.
pub(crate) fn run(workspace: &Workspace) -> Result<String> {
    run_for(workspace, SECONDS)
}

/// Runs every target for so long, from the seeds in the repository and what earlier runs found.
pub(crate) fn run_for(workspace: &Workspace, seconds: &str) -> Result<String> {
    let root = workspace.root.join("fuzz");
    // All at once: one at a time would leave cores idle.
    process::run(&mut fuzz(workspace, "build"), &workspace.root)?;
    for target in TARGETS {
        let seeds = root.join("seeds").join(target);
        ensure!(seeds.is_dir(), "{} is missing", seeds.display());
        let corpus = root.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let mut command = fuzz(workspace, "run");
        command.arg(target).arg(corpus).arg(seeds).args([
            "--",
            &format!("-max_total_time={seconds}"),
            "-print_final_stats=1",
        ]);
        process::run(&mut command, &workspace.root)?;
    }
    Ok(format!("{} for {seconds} s each", TARGETS.join(", ")))
}

/// cargo-fuzz, which instruments for the address sanitizer, without a nightly compiler.
fn fuzz(workspace: &Workspace, what: &str) -> Command {
    let mut command = workspace.cargo(&format!("fuzz {what}"));
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}
