//! PyTorch, in a virtual environment of its own: far too large for every run of the matrix, so only where asked.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{process, workspace::Workspace};

/// `cargo xtask pytorch`
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let root = &workspace.root;
    let (venv, made) = (root.join("target/pytorch-venv"), root.join("target/pytorch"));
    let python = venv.join("bin/python");
    let ready = venv.join("ready");
    if !ready.is_file() {
        println!("  going to install PyTorch into {}: some gigabytes", venv.display());
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&venv), root)?;
        let requirements = root.join("tests/pytorch/requirements.txt");
        let mut pip = Command::new(&python);
        process::run(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements), root)?;
        fs::write(&ready, "")?;
    }
    process::run(Command::new(&python).arg(root.join("tests/pytorch/cnn.py")).arg(&made), root)?;
    ensure_files(&made)?;
    let mut test = workspace.cargo("test -p slabgrad --features safetensors --test safetensors");
    process::run(test.env("SLABGRAD_PYTORCH", &made), root)?;
    println!("{} holds what PyTorch made; copy it to tests/pytorch to keep it", made.display());
    Ok(())
}

fn ensure_files(folder: &Path) -> Result<()> {
    for name in ["cnn.safetensors", "cnn_expected.safetensors"] {
        ensure!(folder.join(name).is_file(), "{name} was not made");
    }
    Ok(())
}
