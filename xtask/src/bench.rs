//! Speed: the standard workloads beside the same ones in C and in other frameworks, products of matrices beside those of other
//! crates, and how a step grows with its network. Everything that is compared runs on one and the same core.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::Result;

use crate::{process, python, workspace::Workspace};

/// Crates of their own, so that the workspace does not depend on what is compared.
const PEERS: &str = "benches/peers";
const PRODUCTS: &str = "benches/products";

const PLOT: &str = "docs/scaling.svg";

/// `cargo xtask bench`
pub(crate) fn steps(workspace: &Workspace) -> Result<()> {
    let program = workspace.bench("steps")?;
    on_one_core(workspace, Command::new(program))
}

/// `cargo xtask bench --peers`
pub(crate) fn peers(workspace: &Workspace) -> Result<()> {
    println!("  PyTorch takes some gigabytes, and burn and candle some minutes to build, the first time");
    let folder = workspace.root.join(PEERS);
    let python = python::environment(workspace, "peers-venv", &format!("{PEERS}/requirements.txt"))?;
    // candle looks for vector instructions when it is compiled.
    let mut build = workspace.cargo_in(PEERS, "build --release --locked");
    process::run(build.env("RUSTFLAGS", "-C target-cpu=native"), &workspace.root)?;
    let rust = workspace.target_of(PEERS).join("release/slabgrad-peers");

    let mut command = Command::new(workspace.bench("steps")?);
    command.arg("peers");
    for script in ["pytorch.py", "jit.py"] {
        command.arg(&python).arg(folder.join(script));
    }
    for framework in ["burn", "candle"] {
        command.arg(&rust).arg(framework);
    }
    on_one_core(workspace, command)
}

/// `cargo xtask bench --products`
pub(crate) fn products(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo_in(PRODUCTS, "build --release --locked"), &workspace.root)?;
    on_one_core(workspace, Command::new(workspace.target_of(PRODUCTS).join("release/slabgrad-products")))
}

/// `cargo xtask bench --scaling`
pub(crate) fn scaling(workspace: &Workspace) -> Result<()> {
    let mut command = Command::new(workspace.bench("scaling")?);
    command.arg(workspace.root.join(PLOT));
    on_one_core(workspace, command)?;
    println!("{PLOT} shows it");
    Ok(())
}

/// Whether what the workspace does not hold is formatted, and the products still compile. burn takes too long to look at.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    for folder in [PEERS, PRODUCTS] {
        process::run(&mut workspace.cargo_in(folder, "fmt --check"), &workspace.root)?;
    }
    process::run(&mut workspace.cargo_in(PRODUCTS, "clippy --locked -- -D warnings"), &workspace.root)?;
    Ok(String::new())
}

/// Says what machine this is, and runs a program, and those that it starts, on one core of it. Thread pools are as large as the
/// number of cores they may use, so nobody has two threads.
fn on_one_core(workspace: &Workspace, command: Command) -> Result<()> {
    println!("\n{}", machine(workspace)?);
    let mut pinned = Command::new("taskset");
    pinned.args(["--cpu-list", "0"]).arg(command.get_program()).args(command.get_args());
    pinned.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut pinned, &workspace.root)
}

/// The processor, what else it does, and the compiler, as far as the system says.
fn machine(workspace: &Workspace) -> Result<String> {
    const LIMIT: Duration = Duration::from_mins(1);
    let read = |path| fs::read_to_string(Path::new("/proc").join(path)).unwrap_or_default();
    let mut rustc = Command::new("rustc");
    let rustc = process::capture_quietly(rustc.arg("--version").current_dir(&workspace.root), LIMIT)?;
    Ok(format!("{}; {}", processor(&read("cpuinfo"), &read("loadavg")), rustc.expect_success()?.stdout.trim()))
}

/// From `/proc/cpuinfo` and `/proc/loadavg`.
fn processor(cpuinfo: &str, loadavg: &str) -> String {
    let values = |name: &str| {
        let of_name = cpuinfo.lines().filter_map(|line| line.split_once(':')).filter(|(key, _)| key.trim() == name);
        of_name.map(|(_, value)| value.trim().to_owned()).collect::<Vec<_>>()
    };
    let model = values("model name").into_iter().next().unwrap_or_else(|| "an unknown processor".to_owned());
    let load = loadavg.split_whitespace().next().unwrap_or("unknown");
    format!("{model}, {} cores, load {load} before the start", values("processor").len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_with_its_cores_and_its_load() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU: fast\n\nprocessor\t: 1\nmodel name\t: Some CPU: fast\n";
        assert_eq!(
            processor(cpuinfo, "0.52 0.60 0.61 1/200 9\n"),
            "Some CPU: fast, 2 cores, load 0.52 before the start"
        );
        assert_eq!(processor("", ""), "an unknown processor, 0 cores, load unknown before the start");
    }

    #[test]
    fn pytorch_and_jax_have_pinned_versions() {
        let requirements = Workspace::find().root.join(PEERS).join("requirements.txt");
        let requirements = fs::read_to_string(requirements).unwrap();
        for name in ["torch", "jax", "numpy"] {
            assert!(requirements.lines().any(|line| line.starts_with(&format!("{name}=="))), "{name} is not pinned");
        }
    }
}
