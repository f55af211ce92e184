//! PyTorch, in a virtual environment of its own: far too large for every run of the matrix, so only where asked.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{process, python, workspace::Workspace};

/// `cargo xtask pytorch`
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let root = &workspace.root;
    let made = root.join("target/pytorch");
    println!("  PyTorch takes some gigabytes");
    let python = python::environment(workspace, "pytorch-venv", "tests/pytorch/requirements.txt")?;
    for script in ["tests/pytorch/cnn.py", "firmware-example/pytorch/digits.py"] {
        process::run(Command::new(&python).arg(root.join(script)).arg(&made), root)?;
    }
    ensure_files(&made)?;
    let mut test = workspace.cargo("test -p slabgrad --features safetensors --test safetensors");
    process::run(test.env("SLABGRAD_PYTORCH", &made), root)?;
    python::read_back(workspace, &python)?;
    println!(
        "{} holds what PyTorch made; copy it to tests/pytorch and firmware-example/pytorch to keep it",
        made.display()
    );
    Ok(())
}

fn ensure_files(folder: &Path) -> Result<()> {
    for name in ["cnn.safetensors", "cnn_expected.safetensors", "digits.safetensors"] {
        ensure!(folder.join(name).is_file(), "{name} was not made");
    }
    Ok(())
}
