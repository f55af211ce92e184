//! Python, in virtual environments of the checks' own, and what it reads of what slabgrad writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{checks::every_feature, process, workspace::Workspace};

/// The Python of the environment `target/NAME`, which is made first if it is not there: with what `requirements` lists.
pub(crate) fn environment(workspace: &Workspace, name: &str, requirements: &str) -> Result<PathBuf> {
    let root = &workspace.root;
    let venv = root.join("target").join(name);
    let (python, ready) = (venv.join("bin/python"), venv.join("ready"));
    if !ready.is_file() {
        println!("  going to install {requirements} into {}", venv.display());
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), root)?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(root.join(requirements));
        process::run(&mut pip, root)?;
        fs::write(&ready, "")?;
    }
    Ok(python)
}

/// Files that slabgrad writes are read with cbor2, safetensors and numpy.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let root = &workspace.root;
    let python = environment(workspace, "python-venv", "tests/python/requirements.txt")?;
    read_back(workspace, &python)?;
    Ok(format!("{} reads what was written", python.strip_prefix(root).unwrap_or(&python).display()))
}

/// Has the files written, and read by this Python.
pub(crate) fn read_back(workspace: &Workspace, python: &Path) -> Result<()> {
    let folder = workspace.root.join("target/python");
    fs::create_dir_all(&folder)?;
    let mut write = workspace.cargo(concat!("test ", every_feature!(), " --test python"));
    process::run(write.env("SLABGRAD_PYTHON", &folder), &workspace.root)?;
    let script = workspace.root.join("tests/python/read.py");
    process::run(Command::new(python).arg(script).arg(folder), &workspace.root)
}
