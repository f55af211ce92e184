//! Where things are, and cargo in the two places where it runs.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use crate::process;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Build results.
    pub(crate) target: PathBuf,
    /// Build results of the firmware, beside those of the workspace, so that one `cargo clean` removes both.
    pub(crate) firmware_target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Self {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = xtask.parent().unwrap_or(xtask).to_path_buf();
        let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        let target = root.join(target);
        let firmware_target = target.join("firmware");
        Self { root, target, firmware_target }
    }

    /// `cargo` in the root; the arguments are separated by white space.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new("cargo");
        command.args(arguments.split_whitespace()).current_dir(&self.root);
        command
    }

    /// Builds a benchmark, and returns the program.
    pub(crate) fn bench(&self, name: &str) -> Result<PathBuf> {
        const LIMIT: Duration = Duration::from_mins(30);
        let mut command = self.cargo(&format!("bench -p slabgrad --bench {name} --no-run --message-format=json"));
        let output = process::capture(&mut command, &self.root, LIMIT)?.expect_success()?;
        let name = format!("\"name\":\"{name}\"");
        let line = output.stdout.lines().find(|line| line.contains(&name) && line.contains("\"executable\":\""));
        let path = line.and_then(|line| line.split("\"executable\":\"").nth(1)?.split('"').next());
        Ok(path.context("cargo does not say where the benchmark is")?.into())
    }

    /// `cargo` in `firmware-example`, where a developer of firmware would run it.
    pub(crate) fn firmware_cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(arguments.split_whitespace())
            .env("CARGO_TARGET_DIR", &self.firmware_target)
            .current_dir(self.root.join("firmware-example"));
        command
    }

    /// `cargo` in a crate of its own beside the workspace, with a folder of that name for what it builds.
    pub(crate) fn cargo_in(&self, folder: &str, arguments: &str) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(arguments.split_whitespace())
            .env("CARGO_TARGET_DIR", self.target_of(folder))
            .current_dir(self.root.join(folder));
        command
    }

    pub(crate) fn target_of(&self, folder: &str) -> PathBuf {
        self.firmware_target.with_file_name(folder)
    }

    /// What cargo built for `target` in the release profile.
    pub(crate) fn firmware_file(&self, target: &str, name: &str) -> PathBuf {
        let mut path = self.firmware_target.clone();
        path.extend([target, "release", name]);
        path
    }
}
