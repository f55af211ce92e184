//! The page that trains in the browser: building, serving and testing it. It is the only part that needs Node.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{process, python, web, workspace::Workspace};

/// Vite needs this one, at the least.
const NODE: [u32; 2] = [20, 19];

/// Building the page takes seconds, its tests a minute.
const LIMIT: Duration = Duration::from_mins(10);

/// Where the page is served, unless that port is taken.
const PORT: &str = "8421";

/// `cargo xtask demo [PORT]`
pub(crate) fn show(workspace: &Workspace, port: Option<&str>) -> Result<()> {
    let built = build(workspace)?;
    let mut serve = node(workspace);
    serve.arg("serve.mjs").arg(built).arg(port.unwrap_or(PORT));
    process::run(&mut serve, &workspace.root)
}

/// The page in Chromium. Its pictures are left in `target/screenshots`.
pub(crate) fn test(workspace: &Workspace) -> Result<String> {
    build(workspace)?;
    let mut tests = node(workspace);
    tests.args(["--test", "--test-reporter=spec", "--test-concurrency=1", "tests/"]);
    let output = process::capture(&mut tests, &workspace.root, LIMIT)?.expect_success()?;
    let count = |line: &&str| line.starts_with("ℹ pass ") && !line.ends_with(" 0");
    let passed = output.stdout.lines().find(count).context("no test ran")?;
    Ok(passed.trim_start_matches("ℹ ").to_owned())
}

/// Builds the package and the page, in `target/demo`.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    check_node(workspace)?;
    web::package(workspace)?;
    install(workspace)?;
    process::run(npm(workspace).args(["run", "--silent", "build"]), &workspace.root)?;
    Ok(workspace.target.join("demo"))
}

/// The versions of the lock file.
fn install(workspace: &Workspace) -> Result<()> {
    process::run(npm(workspace).args(["ci", "--silent"]), &workspace.root)
}

fn check_node(workspace: &Workspace) -> Result<()> {
    let output = process::capture_quietly(node(workspace).arg("--version"), LIMIT)?.expect_success()?;
    let version = output.stdout.trim();
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|number| number.parse::<u32>().ok());
    let found = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    ensure!(found >= NODE, "the page is built by Node {}.{} or newer; this is {version}", NODE[0], NODE[1]);
    Ok(())
}

fn node(workspace: &Workspace) -> Command {
    let mut command = Command::new("node");
    command.current_dir(workspace.root.join("wasm/demo"));
    command
}

fn npm(workspace: &Workspace) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(workspace.root.join("wasm/demo"));
    command
}

/// Steps after which the parameters have to be those of the host.
const STEPS: &str = "100";

/// What was measured once for issue 10, on another machine: the quicker of two measurements, in milliseconds per step.
const EARLIER: [(&str, [Option<f64>; 3]); 4] = [
    ("ONNX Runtime Web 1.18", [Some(0.055), Some(2.6), Some(21.0)]),
    ("jax-js", [Some(0.40), Some(3.8), Some(2600.0)]),
    ("TensorFlow.js, wasm", [Some(1.1), Some(22.0), None]),
    ("ConvNetJS", [Some(0.29), Some(27.0), Some(541.0)]),
];

/// What `npm ci` installs beside its lock file of ONNX Runtime Web and a page loads.
const PEER_FILES: [&str; 2] = ["ort.training.wasm.min.js", "ort-training-wasm-simd.wasm"];

/// `cargo xtask bench --browser`: training steps of W1, W2 and W3, beside ONNX Runtime's in the same page, in turns; and whether
/// ours have the bits of the host.
pub(crate) fn bench(workspace: &Workspace) -> Result<()> {
    check_node(workspace)?;
    web::show_package(workspace)?;
    install(workspace)?;
    let folder = workspace.target.join("npm");
    for name in ["bench.html", "bench.js"] {
        fs::copy(workspace.root.join("wasm/demo/tests").join(name), folder.join(name))?;
    }
    if let Err(error) = prepare_peer(workspace, &folder.join("peer")) {
        println!("ONNX Runtime Web cannot be measured here: {error:#}");
        fs::remove_dir_all(folder.join("peer")).ok();
    }
    let mut command = node(workspace);
    let output = process::capture(command.arg("tests/bench.mjs").arg(&folder).arg(STEPS), &workspace.root, LIMIT)?;
    let output = output.expect_success()?;
    let lines: Vec<&str> = output.stdout.lines().collect();
    let times = |name| -> Option<Vec<f64>> {
        let times: Vec<_> = lines.iter().map(|line| field(line, name)?.parse().ok()).collect::<Option<_>>()?;
        (times.len() == 3).then_some(times)
    };
    let ours = times("milliseconds").with_context(|| format!("not three times:\n{}", output.stdout))?;

    println!("\n{:<32}{:>10}{:>10}{:>10}", "milliseconds per step", "W1", "W2", "W3");
    let row = |name: &str, times: &[f64]| println!("{name:<32}{:>10.3}{:>10.3}{:>10.3}", times[0], times[1], times[2]);
    row("slabgrad", &ours);
    if let Some(peer) = times("peer") {
        row("ONNX Runtime Web 1.18, in turns", &peer);
        let ratios: Vec<f64> = ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect();
        row("ratio (aim: 0.25, 0.7, 0.6)", &ratios);
    }
    println!("measured earlier, on another machine:");
    for (name, times) in EARLIER {
        let [a, b, c] = times.map(|time| time.map_or_else(|| "fails".to_owned(), |time| time.to_string()));
        println!("{name:<32}{a:>10}{b:>10}{c:>10}");
    }
    for (line, workload) in lines.iter().zip(["W1", "W2", "W3"]) {
        let mut host = workspace.cargo(&format!("bench --quiet --bench steps -- run {workload} train {STEPS}"));
        let host = process::capture(&mut host, &workspace.root, LIMIT)?.expect_success()?;
        let expected = host.stdout.trim().rsplit(' ').next().unwrap_or_default();
        let found = field(line, "hash").unwrap_or_default();
        ensure!(found == expected, "{workload}: the browser's parameters have hash {found}, the host's {expected}");
        println!("{workload}: after {STEPS} steps the bits of the host ({found})");
    }
    Ok(())
}

/// ONNX Runtime Web from npm, and what its Python package makes of the networks, in `folder`.
fn prepare_peer(workspace: &Workspace, folder: &Path) -> Result<()> {
    let peer = workspace.root.join("wasm/demo/tests/peer");
    let python = python::environment(workspace, "onnx-venv", "wasm/demo/tests/peer/requirements.txt")?;
    process::run(Command::new("npm").args(["ci", "--silent"]).current_dir(&peer), &workspace.root)?;
    fs::create_dir_all(folder)?;
    for name in PEER_FILES {
        fs::copy(peer.join("node_modules/onnxruntime-web/dist").join(name), folder.join(name))?;
    }
    // What it logs is a hundred lines.
    process::capture(Command::new(python).arg(peer.join("artifacts.py")).arg(folder), &workspace.root, LIMIT)?
        .expect_success()?;
    Ok(())
}

/// The value of a field of a JSON object that holds numbers and plain strings.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next().map(|value| value.trim_matches('"'))
}
