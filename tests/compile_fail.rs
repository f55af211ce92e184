//! What the compiler says about wrong networks.
//!
//! Every `tests/ui/*.rs` is a program that a newcomer could have written. With a `.stderr` file beside it, it must not
//! compile, and the lines of that file must occur in the compiler's output, in their order: the text that says what is
//! wrong, and the user's line. All else is the compiler's and may change with its version, so that this is not `trybuild`,
//! which compares everything. A program without a `.stderr` file is the control: it must compile and run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// What came of one program.
#[derive(Default)]
struct Outcome {
    errors: String,
    executable: Option<PathBuf>,
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let programs = programs();
    let mut outcomes = build(&programs);
    let mut failures = Vec::new();
    for path in &programs {
        let outcome = outcomes.remove(&name(path)).unwrap_or_default();
        let checked = match fs::read_to_string(path.with_extension("stderr")) {
            Ok(expected) => check_errors(&expected, &outcome),
            Err(_) => check_control(&outcome),
        };
        if let Err(why) = checked {
            failures.push(format!("{}: {why}\n\n{}", path.display(), outcome.errors));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Each of the `expected` lines has to be part of a line of the output, one after the other.
fn check_errors(expected: &str, outcome: &Outcome) -> Result<(), String> {
    if outcome.executable.is_some() {
        return Err("it compiles".into());
    }
    let mut lines = outcome.errors.lines();
    match expected.lines().find(|wanted| !lines.any(|line| line.contains(wanted.trim()))) {
        Some(missing) => Err(format!("the compiler does not say, or not in this order: {missing}")),
        None => Ok(()),
    }
}

fn check_control(outcome: &Outcome) -> Result<(), String> {
    let executable = outcome.executable.as_ref().ok_or("it does not compile")?;
    let status = Command::new(executable).status().map_err(|error| format!("it does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("it fails: {status}")) }
}

/// The programs in `tests/ui`.
fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds all programs, as binaries of one package. That is a real build: under `cargo check` the panic of a constant that
/// depends on a generic parameter does not show.
fn build(programs: &[PathBuf]) -> BTreeMap<String, Outcome> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("Cargo.toml"), manifest(root, programs)).unwrap();
    // The same versions, which are downloaded already.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();

    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--bins", "--keep-going", "--message-format=json", "--target-dir"])
        .arg(package.join("target"))
        .current_dir(&package)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut outcomes = BTreeMap::<String, Outcome>::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let outcome = outcomes.entry(name.to_owned()).or_default();
        outcome.errors += message["message"]["rendered"].as_str().unwrap_or_default();
        outcome.executable = outcome.executable.take().or(message["executable"].as_str().map(PathBuf::from));
    }
    let built = programs.iter().any(|path| outcomes.contains_key(&name(path)));
    assert!(built, "nothing was built:\n{}", String::from_utf8_lossy(&output.stderr));
    outcomes
}

/// A package with a binary for each program, apart from the workspace that may be around it.
fn manifest(root: &Path, programs: &[PathBuf]) -> String {
    let bins = programs.iter().map(|path| format!("[[bin]]\nname = '{}'\npath = '{}'\n", name(path), path.display()));
    format!(
        "[package]\nname = 'compile-fail'\nedition = '2024'\n\n[workspace]\n\n\
         [dependencies]\nslabgrad = {{ path = '{}', default-features = false }}\n\n{}",
        root.display(),
        bins.collect::<Vec<_>>().join("\n")
    )
}
