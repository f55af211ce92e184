//! The programs and targets that the matrix needs: finding out what is missing, and installing it.

use std::{env, fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{memory, process, workspace::Workspace};

/// Programs that are not part of the Rust tool chain, and the Debian package of each.
const TOOLS: &[(&str, &str)] = &[
    ("qemu-system-arm", "qemu-system-arm"),
    ("qemu-system-riscv32", "qemu-system-misc"),
    ("valgrind", "valgrind"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// Programs that cargo installs, and their versions.
const CARGO_TOOLS: &[(&str, &str)] = &[("cargo-deny", "0.20.2"), ("cargo-fuzz", "0.13.2")];

/// Asking rustup or rustc a question.
const LIMIT: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Missing {
    programs: Vec<&'static str>,
    packages: Vec<&'static str>,
    cargo_tools: Vec<(&'static str, &'static str)>,
    components: Vec<String>,
    targets: Vec<String>,
}

/// An error that names everything that is missing, and how to get it.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let missing = Missing::find(workspace)?;
    ensure!(missing.is_empty(), "{}", missing.describe());
    Ok("everything is there".to_owned())
}

/// Installs what is missing, and says so before.
pub(crate) fn install(workspace: &Workspace) -> Result<String> {
    install_miri(workspace);
    let missing = Missing::find(workspace)?;
    if missing.is_empty() {
        return Ok("nothing to install".to_owned());
    }
    let commands = missing.commands();
    println!("  going to install what is missing:");
    for command in &commands {
        println!("    {}", command.join(" "));
    }
    ensure!(
        missing.packages.is_empty() || is_installed("apt-get"),
        "this system has no apt-get\n{}",
        missing.describe()
    );
    for command in &commands {
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).current_dir(&workspace.root);
        process::run(&mut child, &workspace.root)?;
    }
    check(workspace)
}

/// Miri comes with nightly tool chains, and not with all of them. Without it, its check is left out.
fn install_miri(workspace: &Workspace) {
    if memory::has_miri() {
        return;
    }
    let mut command = Command::new("rustup");
    command.args("toolchain install nightly --profile minimal --component miri --component rust-src".split(' '));
    if let Err(error) = process::run(&mut command, &workspace.root) {
        println!("  Miri is not to be had, and its check will be left out: {error:#}");
    }
}

/// What to tell someone whose system lacks `program`.
pub(crate) fn how_to_get(program: &str) -> String {
    match TOOLS.iter().find(|(name, _)| *name == program) {
        Some((_, package)) => format!(
            "{program} is missing: it is in the package {package}; install it with \
             `cargo xtask test --setup` or `apt-get install {package}`"
        ),
        None => format!("{program} is missing"),
    }
}

impl Missing {
    fn find(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root.join("rust-toolchain.toml");
        let toolchain = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut missing = Self::default();
        for &(program, package) in TOOLS {
            if !is_installed(program) {
                missing.programs.push(program);
                missing.packages.push(package);
            }
        }
        missing.packages.dedup();
        missing.cargo_tools = CARGO_TOOLS.iter().copied().filter(|(program, _)| !is_installed(program)).collect();
        for target in toml_list(&toolchain, "targets") {
            if !has_target(workspace, &target)? {
                missing.targets.push(target);
            }
        }
        // Without rustup the components came with the tool chain, or the checks that use them will say so.
        if is_installed("rustup") {
            let installed = ask(workspace, "rustup", &["component", "list", "--installed"])?;
            for component in toml_list(&toolchain, "components") {
                if !has_component(&installed, &component) {
                    missing.components.push(component);
                }
            }
        }
        Ok(missing)
    }

    fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.cargo_tools.is_empty() && self.components.is_empty() && self.targets.is_empty()
    }

    fn describe(&self) -> String {
        let mut lines: Vec<String> = self.programs.iter().map(|name| how_to_get(name)).collect();
        lines.extend(self.cargo_tools.iter().map(|(name, version)| {
            format!("{name} is missing; install it with `cargo xtask test --setup` or `cargo install {name} --version {version}`")
        }));
        for (kind, names) in [("component", &self.components), ("target", &self.targets)] {
            lines.extend(names.iter().map(|name| {
                format!(
                    "the Rust {kind} {name} is missing; install it with \
                     `cargo xtask test --setup` or `rustup {kind} add {name}`"
                )
            }));
        }
        lines.join("\n")
    }

    fn commands(&self) -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let mut commands: Vec<Vec<String>> = Vec::new();
        for (kind, names) in [("component", &self.components), ("target", &self.targets)] {
            if !names.is_empty() {
                commands.push(words(&format!("rustup {kind} add {}", names.join(" "))));
            }
        }
        for (name, version) in &self.cargo_tools {
            commands.push(words(&format!("cargo install --locked {name} --version {version}")));
        }
        if !self.packages.is_empty() {
            let sudo = if is_root() { "" } else { "sudo" };
            commands.push(words(&format!("{sudo} apt-get update")));
            // No questions, and none of the recommended packages: they are for running QEMU in a window.
            commands.push(words(&format!(
                "{sudo} env DEBIAN_FRONTEND=noninteractive \
                 apt-get install --yes --no-install-recommends {}",
                self.packages.join(" ")
            )));
        }
        commands
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn is_root() -> bool {
    let mut command = Command::new("id");
    let answer = process::capture_quietly(command.arg("-u"), LIMIT);
    answer.is_ok_and(|answer| answer.stdout.trim() == "0")
}

fn has_target(workspace: &Workspace, target: &str) -> Result<bool> {
    let question = ["--print", "target-libdir", "--target", target];
    let directory = ask(workspace, "rustc", &question)?;
    Ok(Path::new(directory.trim()).is_dir())
}

/// `installed` lists components with the host's name appended (`clippy-x86_64-unknown-linux-gnu`).
fn has_component(installed: &str, component: &str) -> bool {
    installed.lines().any(|line| {
        let rest = line.strip_prefix(component);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

fn ask(workspace: &Workspace, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&workspace.root);
    let answer = process::capture_quietly(&mut command, LIMIT)?.expect_success();
    Ok(answer.with_context(|| format!("{program} {}", arguments.join(" ")))?.stdout)
}

/// The strings of a list such as `targets = ["a", "b"]`, on one line or several: all of TOML that is needed here.
fn toml_list(text: &str, key: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut in_list = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or(line);
        in_list |= line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
        if in_list {
            // Between two quotes is every second piece.
            strings.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
            in_list = !line.contains(']');
        }
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_toml() {
        let text = r#"
            [toolchain]
            channel = "stable"
            components = ["clippy", "rustfmt"]
            targets = [
                "wasm32-unknown-unknown", # "commented out"
                "thumbv6m-none-eabi",
            ]
            profile = "minimal"
        "#;
        assert_eq!(toml_list(text, "components"), ["clippy", "rustfmt"]);
        assert_eq!(toml_list(text, "targets"), ["wasm32-unknown-unknown", "thumbv6m-none-eabi"]);
        assert!(toml_list(text, "target").is_empty());
    }

    #[test]
    fn components_are_listed_with_the_host() {
        let installed = "cargo-x86_64-unknown-linux-gnu\nclippy-x86_64-unknown-linux-gnu\nrust-src\n";
        assert!(has_component(installed, "clippy"));
        assert!(has_component(installed, "rust-src"));
        assert!(!has_component(installed, "rustfmt"));
        assert!(!has_component(installed, "clip"));
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_installs_it() {
        let missing = Missing {
            programs: vec!["qemu-system-riscv32"],
            packages: vec!["qemu-system-misc"],
            cargo_tools: vec![("cargo-fuzz", "0.13.2")],
            components: vec!["clippy".to_owned()],
            targets: vec!["thumbv6m-none-eabi".to_owned()],
        };
        let text = missing.describe();
        for expected in [
            "qemu-system-riscv32 is missing",
            "apt-get install qemu-system-misc",
            "cargo install cargo-fuzz --version 0.13.2",
            "rustup component add clippy",
            "rustup target add thumbv6m-none-eabi",
        ] {
            assert!(text.contains(expected), "{text}");
        }

        let commands: Vec<String> = missing.commands().iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands[0], "rustup component add clippy");
        assert_eq!(commands[1], "rustup target add thumbv6m-none-eabi");
        assert_eq!(commands[2], "cargo install --locked cargo-fuzz --version 0.13.2");
        assert!(commands[3].ends_with("apt-get update"), "{}", commands[3]);
        assert!(commands[4].ends_with("--no-install-recommends qemu-system-misc"), "{}", commands[4]);
    }

    #[test]
    fn nothing_missing_needs_no_command() {
        assert!(Missing::default().is_empty());
        assert!(Missing::default().commands().is_empty());
    }
}
