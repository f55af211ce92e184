//! The fuzzer, on the stable compiler: what cargo-fuzz asks of it is unstable, but comes with it.

use std::fs;

use anyhow::{Result, ensure};

use crate::{process, workspace::Workspace};

const TARGETS: [&str; 5] = ["image", "slots", "state_dict", "model", "nanograd"];
const SECONDS: u32 = 10;

/// Runs every target for a few seconds, from the seeds in the repository and what earlier runs found.
pub(crate) fn run(workspace: &Workspace) -> Result<String> {
    let root = workspace.root.join("fuzz");
    for target in TARGETS {
        let seeds = root.join("seeds").join(target);
        ensure!(seeds.is_dir(), "{} is missing", seeds.display());
        let corpus = root.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let mut command = workspace.cargo("fuzz run");
        // Instrumentation and sanitizers, without a nightly compiler.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.arg(target).arg(corpus).arg(seeds).args([
            "--",
            &format!("-max_total_time={SECONDS}"),
            "-print_final_stats=0",
        ]);
        process::run(&mut command, &workspace.root)?;
    }
    Ok(format!("{} for {SECONDS} s each", TARGETS.join(", ")))
}
