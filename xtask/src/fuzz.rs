//! The fuzzer, where a nightly compiler and cargo-fuzz are installed: neither is needed for anything else.

use std::fs;

use anyhow::{Result, ensure};

use crate::{process, setup, workspace::Workspace};

const TARGETS: [&str; 3] = ["image", "slots", "state_dict"];
const SECONDS: u32 = 10;

/// Runs every target for a few seconds, from the seeds in the repository and what earlier runs found.
pub(crate) fn run(workspace: &Workspace) -> Result<String> {
    if !setup::is_installed("cargo-fuzz") || !setup::has_nightly(workspace) {
        return Ok("SKIPPED, nothing was fuzzed: it takes `rustup toolchain install nightly` and \
                   `cargo install cargo-fuzz`"
            .to_owned());
    }
    let root = workspace.root.join("fuzz");
    for target in TARGETS {
        let seeds = root.join("seeds").join(target);
        ensure!(seeds.is_dir(), "{} is missing", seeds.display());
        let corpus = root.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let mut command = workspace.cargo("+nightly fuzz run");
        command.arg(target).arg(corpus).arg(seeds).args([
            "--",
            &format!("-max_total_time={SECONDS}"),
            "-print_final_stats=0",
        ]);
        process::run(&mut command, &workspace.root)?;
    }
    Ok(format!("{} for {SECONDS} s each", TARGETS.join(", ")))
}
