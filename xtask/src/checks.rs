//! The matrix: what has to hold before a change lands.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    bench, bits, demo, fine_tuning, firmware, fuzz, guide, instructions, process, python,
    qemu::{RISCV32IMC, THUMBV6M, THUMBV7EM, THUMBV7M, THUMBV8M},
    setup, size, web,
    workspace::Workspace,
};

struct Check {
    name: &'static str,
    action: Action,
}

enum Action {
    /// Passes when cargo does, called with these arguments in the root.
    Root(&'static str),
    /// The same in `firmware-example`.
    Firmware(&'static str),
    /// Returns what is worth knowing about a success.
    Call(fn(&Workspace) -> Result<String>),
}

const fn root(name: &'static str, arguments: &'static str) -> Check {
    Check { name, action: Action::Root(arguments) }
}

const fn firmware(name: &'static str, arguments: &'static str) -> Check {
    Check { name, action: Action::Firmware(arguments) }
}

const fn call(name: &'static str, function: fn(&Workspace) -> Result<String>) -> Check {
    Check { name, action: Action::Call(function) }
}

#[rustfmt::skip]
const CHECKS: &[Check] = &[
    root("format: workspace", "fmt --all --check"),
    firmware("format: firmware", "fmt --check"),
    root("format: boards", "fmt --manifest-path firmware-example/boards/Cargo.toml --check"),

    root("clippy: workspace", "clippy --workspace --all-targets -- -D warnings"),
    root("clippy: all features", "clippy -p slabgrad --all-features --all-targets -- -D warnings"),
    root("clippy: core", "clippy -p slabgrad --no-default-features -- -D warnings"),
    root("clippy: alloc", "clippy -p slabgrad --no-default-features --features alloc -- -D warnings"),
    // In the release profile, which shares its procedural macros and build scripts with the builds below.
    firmware("clippy: firmware", "clippy --release --features steps --target thumbv7em-none-eabihf -- -D warnings"),

    root("test: workspace", "test --workspace --features slabgrad/progress"),
    root("test: core", "test -p slabgrad --no-default-features"),
    root("test: alloc", "test -p slabgrad --no-default-features --features alloc"),
    root("check: defmt", "check -p slabgrad --features defmt"),
    root("check: core with defmt", "check -p slabgrad --no-default-features --features defmt --target thumbv7em-none-eabihf"),
    root("test: checkpoints", "test -p slabgrad --features flash-async,safetensors,cbor --test checkpoint --test flash --test flash_async --test safetensors --test mutations --test cbor --test nanograd --test seed_vectors --test bounded --test python"),
    root("check: core with flash", "check -p slabgrad --no-default-features --features flash-async,defmt --target thumbv6m-none-eabi"),
    call("pack", firmware::packed),
    call("python reads what is written", python::check),
    call("fuzz", fuzz::run),
    call("docs", docs),

    call("example: digits", digits),

    call("bits: every target", bits::check),
    call("benches beside the workspace", bench::check),
    call("instructions of the workloads", instructions::check),

    call("link: thumbv7em", |workspace| firmware::link(workspace, &THUMBV7EM)),
    call("link: thumbv8m.main", |workspace| firmware::link(workspace, &THUMBV8M)),
    call("link: thumbv7m", |workspace| firmware::link(workspace, &THUMBV7M)),
    call("link: thumbv6m", |workspace| firmware::link(workspace, &THUMBV6M)),
    call("link: riscv32imc", |workspace| firmware::link(workspace, &RISCV32IMC)),
    call("link: wasm32", firmware::link_wasm),

    call("wasm: package", web::check_package),
    call("wasm: package in Chromium", web::test),
    call("wasm: page in Chromium", demo::test),

    call("no panic: thumbv7em", firmware::no_panic),
    call("no panic: a provoked one is found", firmware::provoked_panic),

    call("qemu: thumbv7em", |workspace| firmware::same_bits(workspace, &THUMBV7EM)),
    call("qemu: thumbv8m.main", |workspace| firmware::same_bits(workspace, &THUMBV8M)),
    call("qemu: thumbv7m", |workspace| firmware::same_bits(workspace, &THUMBV7M)),
    call("qemu: thumbv6m", |workspace| firmware::same_bits(workspace, &THUMBV6M)),
    call("qemu: riscv32imc", |workspace| firmware::same_bits(workspace, &RISCV32IMC)),

    call("device: size", size::check),
    call("device: plan", firmware::plan_in_guide),
    call("device: weights", fine_tuning::pretrained),
    call("device: digits are learned", |workspace| fine_tuning::learns(workspace, "digits", &THUMBV7EM)),
    call("device: motions are learned", |workspace| fine_tuning::learns(workspace, "motions", &THUMBV7EM)),
    call("device: every choice learns", |workspace| fine_tuning::learns(workspace, "choices", &THUMBV7EM)),
    call("device: digits are learned on riscv32imc", |workspace| fine_tuning::learns(workspace, "digits", &RISCV32IMC)),
    call("device: power cuts", |workspace| fine_tuning::survives(workspace, "digits", &THUMBV7EM)),
    // Last, since it has other weights built in meanwhile.
    call("guide", guide::check),
];

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options<'a> {
    setup: bool,
    filter: Option<&'a str>,
}

impl<'a> Options<'a> {
    pub(crate) fn parse(arguments: &[&'a str]) -> Result<Self> {
        let mut options = Self::default();
        for &argument in arguments {
            match argument {
                "--setup" => options.setup = true,
                _ if argument.starts_with('-') => bail!("unknown option: {argument}"),
                _ if options.filter.is_some() => bail!("more than one filter: {argument}"),
                _ => options.filter = Some(argument),
            }
        }
        Ok(options)
    }
}

/// Runs the checks, all of them also after a failure. True if all passed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let filter = options.filter.unwrap_or_default();
    let chosen: Vec<&Check> = CHECKS.iter().filter(|check| check.name.contains(filter)).collect();
    ensure!(!chosen.is_empty(), "no check has \"{filter}\" in its name");

    let mut report = Report::new(chosen.len() + 1);
    report.check("tools", || if options.setup { setup::install(workspace) } else { setup::check(workspace) });
    for check in chosen {
        report.check(check.name, || check.action.run(workspace));
    }
    Ok(report.finish())
}

impl Action {
    fn run(&self, workspace: &Workspace) -> Result<String> {
        let mut command = match self {
            Self::Root(arguments) => workspace.cargo(arguments),
            Self::Firmware(arguments) => workspace.firmware_cargo(arguments),
            Self::Call(function) => return function(workspace),
        };
        process::run(&mut command, &workspace.root)?;
        Ok(String::new())
    }
}

/// Prints what happens and counts.
struct Report {
    total: usize,
    done: usize,
    failed: Vec<&'static str>,
    start: Instant,
}

impl Report {
    fn new(total: usize) -> Self {
        Self { total, done: 0, failed: Vec::new(), start: Instant::now() }
    }

    fn check(&mut self, name: &'static str, run: impl FnOnce() -> Result<String>) {
        self.done += 1;
        println!("[{}/{}] {name}", self.done, self.total);
        let start = Instant::now();
        let result = run();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(detail) if detail.is_empty() => println!("  ok ({seconds:.1} s)"),
            Ok(detail) => println!("  ok ({seconds:.1} s): {detail}"),
            Err(error) => {
                println!("  FAILED ({seconds:.1} s): {error:#}");
                self.failed.push(name);
            }
        }
    }

    /// The last line of the output is for whoever counts: it has to stay as it is.
    fn finish(self) -> bool {
        println!("\n{:.0} s in all", self.start.elapsed().as_secs_f64());
        for name in &self.failed {
            println!("FAILED {name}");
        }
        let failed = self.failed.len();
        println!("{} passed, {failed} failed", self.done - failed);
        failed == 0
    }
}

fn docs(workspace: &Workspace) -> Result<String> {
    let mut command = workspace.cargo("doc --no-deps -p slabgrad");
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command, &workspace.root)?;
    Ok(String::new())
}

/// The README promises an accuracy and a time.
fn digits(workspace: &Workspace) -> Result<String> {
    const ACCURACY: f64 = 97.5;
    const SECONDS: f64 = 30.0;
    // Longer than promised, so that a slow run is reported with its time.
    const LIMIT: Duration = Duration::from_mins(5);

    let mut build = workspace.cargo("build --release --example digits");
    process::run(&mut build, &workspace.root)?;
    let mut run = workspace.cargo("run --quiet --release --example digits");
    let output = process::capture(&mut run, &workspace.root, LIMIT)?.expect_success()?;

    let last = output.stdout.lines().next_back().unwrap_or_default();
    let accuracy = test_accuracy(last)?;
    let seconds = output.time.as_secs_f64();
    ensure!(accuracy >= ACCURACY, "{last}: less than {ACCURACY} %");
    ensure!(seconds < SECONDS, "took {seconds:.1} s: more than {SECONDS} s");
    Ok(format!("{last} after {seconds:.1} s"))
}

/// The number in `test accuracy NN.NN %`.
fn test_accuracy(line: &str) -> Result<f64> {
    let number = line.strip_prefix("test accuracy ").and_then(|rest| rest.strip_suffix(" %"));
    let decimals = number.and_then(|number| number.split_once('.')).map(|(_, decimals)| decimals);
    let accuracy = number.and_then(|number| number.parse().ok());
    accuracy
        .filter(|_| decimals.is_some_and(|decimals| decimals.len() == 2))
        .with_context(|| format!("the last line is not `test accuracy NN.NN %` but `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_flag_and_a_filter() {
        let expected = Options { setup: true, filter: Some("qemu") };
        assert_eq!(Options::parse(&["--setup", "qemu"]).unwrap(), expected);
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        for wrong in [&["--quick"][..], &["qemu", "link"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_unknown_filter_is_an_error_and_no_success() {
        let options = Options { setup: false, filter: Some("nothing of this name") };
        assert!(run(&Workspace::find(), &options).is_err());
    }

    #[test]
    fn names_of_checks_are_unique() {
        for (index, check) in CHECKS.iter().enumerate() {
            let same = CHECKS[..index].iter().find(|other| other.name == check.name);
            assert!(same.is_none(), "{}", check.name);
        }
    }

    #[test]
    fn failures_are_counted_and_do_not_stop_the_rest() {
        let mut report = Report::new(3);
        report.check("a", || Ok(String::new()));
        report.check("b", || bail!("broken"));
        report.check("c", || Ok("fine".to_owned()));
        assert_eq!((report.done, &report.failed[..]), (3, &["b"][..]));
        assert!(!report.finish());
    }

    #[test]
    fn the_accuracy_is_read_from_the_last_line() {
        let accuracy = test_accuracy("test accuracy 98.06 %").unwrap();
        assert!((accuracy - 98.06).abs() < 1e-9);
        for wrong in ["", "test accuracy 98 %", "test accuracy 98.061 %", "accuracy 98.06 %", "test accuracy ab.cd %"] {
            assert!(test_accuracy(wrong).is_err(), "{wrong}");
        }
    }
}
