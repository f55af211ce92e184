//! The matrix: what has to hold before a change lands.

use std::{
    env,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    api, bench, bits, demo, dependencies, fine_tuning, firmware, fuzz, guide, instructions, links, memory,
    process::{self, Captured},
    python,
    qemu::{RISCV32IMC, THUMBV6M, THUMBV7EM, THUMBV7M, THUMBV8M},
    setup, size, web,
    workspace::Workspace,
};

struct Check {
    name: &'static str,
    action: Action,
    lane: Lane,
}

/// Most checks end with one core at work, so two run at once.
#[derive(Clone, Copy, PartialEq)]
enum Lane {
    /// Those that build in the root in the debug profile, or measure time, which have to wait for one another.
    Main,
    /// Those that have a folder or a profile of their own to build in.
    Beside,
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
    Check { name, action: Action::Root(arguments), lane: Lane::Main }
}

const fn firmware(name: &'static str, arguments: &'static str) -> Check {
    Check { name, action: Action::Firmware(arguments), lane: Lane::Main }
}

const fn call(name: &'static str, function: fn(&Workspace) -> Result<String>) -> Check {
    Check { name, action: Action::Call(function), lane: Lane::Main }
}

const fn beside(check: Check) -> Check {
    Check { lane: Lane::Beside, ..check }
}

/// The packages and features of the workspace's tests: one set, so that nothing is compiled for another one.
macro_rules! every_feature {
    () => {
        "--workspace --features slabgrad/progress,slabgrad/rayon,slabgrad/flash-async,slabgrad/safetensors,slabgrad/cbor"
    };
}
pub(crate) use every_feature;

#[rustfmt::skip]
const CHECKS: &[Check] = &[
    root("format: workspace", "fmt --all --check"),
    firmware("format: firmware", "fmt --check"),
    root("format: boards", "fmt --manifest-path firmware-example/boards/Cargo.toml --check"),
    root("format: bits", "fmt --manifest-path bits/Cargo.toml --check"),
    root("format: links", "fmt --manifest-path links/Cargo.toml --check"),

    root("clippy: workspace", "clippy --workspace --all-targets -- -D warnings"),
    root("clippy: all features", "clippy -p slabgrad --all-features --all-targets -- -D warnings"),
    root("clippy: core", "clippy -p slabgrad --no-default-features -- -D warnings"),
    root("clippy: alloc", "clippy -p slabgrad --no-default-features --features alloc -- -D warnings"),
    // In the release profile, which shares its procedural macros and build scripts with the builds below.
    firmware("clippy: firmware", "clippy --release --features steps --target thumbv7em-none-eabihf -- -D warnings"),

    root("test: workspace and checkpoints", concat!("test ", every_feature!())),
    root("test: core", "test -p slabgrad --no-default-features"),
    root("test: alloc", "test -p slabgrad --no-default-features --features alloc"),
    root("check: defmt", "check -p slabgrad --features defmt"),
    root("check: core with defmt", "check -p slabgrad --no-default-features --features defmt --target thumbv7em-none-eabihf"),
    root("check: core with flash", "check -p slabgrad --no-default-features --features flash-async,defmt --target thumbv6m-none-eabi"),
    beside(call("pack", firmware::packed)),
    call("python reads what is written", python::check),
    call("valgrind", memory::valgrind),
    call("docs", docs),

    beside(call("deny: licences, sources, duplicates, advisories", dependencies::deny)),
    beside(call("public API", api::check)),
    beside(call("minimal versions", dependencies::minimal)),
    beside(call("fuzz", fuzz::run)),
    beside(call("miri", memory::miri_in_short)),
    beside(call("bits: every target", bits::check)),
    beside(call("instructions of the workloads", instructions::check)),
    beside(call("long runs", memory::long_runs)),
    beside(call("example: digits", digits)),

    beside(call("benches beside the workspace", bench::check)),

    beside(call("link: targets and features", links::check)),

    call("wasm: package", web::check_package),
    call("wasm: package in Chromium", web::test),
    call("wasm: page in Chromium", demo::test),

    beside(call("no panic: thumbv7em", firmware::no_panic)),
    beside(call("no panic: a provoked one is found", firmware::provoked_panic)),

    beside(call("qemu: thumbv7em", |workspace| firmware::same_bits(workspace, &THUMBV7EM))),
    beside(call("qemu: thumbv8m.main", |workspace| firmware::same_bits(workspace, &THUMBV8M))),
    beside(call("qemu: thumbv7m", |workspace| firmware::same_bits(workspace, &THUMBV7M))),
    beside(call("qemu: thumbv6m", |workspace| firmware::same_bits(workspace, &THUMBV6M))),
    beside(call("qemu: riscv32imc", |workspace| firmware::same_bits(workspace, &RISCV32IMC))),

    beside(call("device: size", size::check)),
    beside(call("device: plan", firmware::plan_in_guide)),
    beside(call("device: weights", fine_tuning::pretrained)),
    beside(call("device: digits are learned", |workspace| fine_tuning::learns(workspace, "digits", &THUMBV7EM))),
    beside(call("device: motions are learned", |workspace| fine_tuning::learns(workspace, "motions", &THUMBV7EM))),
    beside(call("device: every choice learns", |workspace| fine_tuning::learns(workspace, "choices", &THUMBV7EM))),
    beside(call("device: digits are learned on riscv32imc", |workspace| fine_tuning::learns(workspace, "digits", &RISCV32IMC))),
    beside(call("device: power cuts", |workspace| fine_tuning::survives(workspace, "digits", &THUMBV7EM))),
    // Last, since it has other weights built in meanwhile.
    beside(call("guide", guide::check)),
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

    let report = Report::new(chosen.len() + 1);
    report.check("tools", || if options.setup { setup::install(workspace) } else { setup::check(workspace) });
    let (main, beside): (Vec<&Check>, Vec<&Check>) = chosen.iter().partition(|check| check.lane == Lane::Main);
    thread::scope(|scope| {
        scope.spawn(|| beside.iter().for_each(|check| report.check_beside(check.name, || check.run_apart())));
        main.iter().for_each(|check| report.check(check.name, || check.action.run(workspace)));
    });
    Ok(report.finish())
}

/// Runs the check of this name alone, and prints what is worth knowing about a success.
pub(crate) fn run_one(workspace: &Workspace, name: &str) -> Result<()> {
    let check = CHECKS.iter().find(|check| check.name == name).with_context(|| format!("no check is called {name}"))?;
    println!("{}", check.action.run(workspace)?);
    Ok(())
}

impl Check {
    /// As a process of its own, whose output does not mix with that of the other lane: its standard output and the result.
    fn run_apart(&self) -> Result<(String, String)> {
        /// Against a check that hangs.
        const LIMIT: Duration = Duration::from_mins(30);
        let this = env::current_exe().context("cannot tell where this program is")?;
        let captured = process::capture_quietly(Command::new(this).args(["check", self.name]), LIMIT)?;
        let Captured { stdout, .. } = captured.expect_success()?;
        let stdout = stdout.strip_suffix('\n').unwrap_or(&stdout);
        let (output, detail) = stdout.rsplit_once('\n').unwrap_or(("", stdout));
        Ok((output.to_owned(), detail.to_owned()))
    }
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
    progress: Mutex<Progress>,
    start: Instant,
}

#[derive(Default)]
struct Progress {
    begun: usize,
    failed: Vec<&'static str>,
}

impl Report {
    fn new(total: usize) -> Self {
        Self { total, progress: Mutex::default(), start: Instant::now() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A check whose output is seen as it comes.
    fn check(&self, name: &'static str, run: impl FnOnce() -> Result<String>) {
        self.begin(&mut self.progress(), name);
        let start = Instant::now();
        let result = run();
        Self::end(&mut self.progress(), name, start, result);
    }

    /// A check of the other lane: its output is shown when it has ended.
    fn check_beside(&self, name: &'static str, run: impl FnOnce() -> Result<(String, String)>) {
        let start = Instant::now();
        let result = run();
        let mut progress = self.progress();
        self.begin(&mut progress, name);
        let result = result.map(|(output, detail)| {
            println!("{output}");
            detail
        });
        Self::end(&mut progress, name, start, result);
    }

    fn begin(&self, progress: &mut Progress, name: &str) {
        progress.begun += 1;
        println!("[{}/{}] {name}", progress.begun, self.total);
    }

    fn end(progress: &mut Progress, name: &'static str, start: Instant, result: Result<String>) {
        let seconds = start.elapsed().as_secs_f64();
        // Two lanes: what ends may not be what began last.
        match result {
            Ok(detail) if detail.is_empty() => println!("  ok ({seconds:.1} s): {name}"),
            Ok(detail) => println!("  ok ({seconds:.1} s): {name}: {detail}"),
            Err(error) => {
                println!("  FAILED ({seconds:.1} s): {name}: {error:#}");
                progress.failed.push(name);
            }
        }
    }

    /// The last line of the output is for whoever counts: it has to stay as it is.
    fn finish(self) -> bool {
        println!("\n{:.0} s in all", self.start.elapsed().as_secs_f64());
        let Progress { begun, failed } = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        for name in &failed {
            println!("FAILED {name}");
        }
        println!("{} passed, {} failed", begun - failed.len(), failed.len());
        failed.is_empty()
    }
}

fn docs(workspace: &Workspace) -> Result<String> {
    let mut command = workspace.cargo("doc --no-deps -p slabgrad --all-features");
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
        let report = Report::new(4);
        report.check("a", || Ok(String::new()));
        report.check("b", || bail!("broken"));
        report.check_beside("c", || Ok(("output".to_owned(), "fine".to_owned())));
        report.check_beside("d", || bail!("broken too"));
        let Progress { begun, failed } = &*report.progress();
        assert_eq!((*begun, &failed[..]), (4, &["b", "d"][..]));
    }

    #[test]
    fn a_check_can_be_run_by_its_name_alone() {
        assert!(run_one(&Workspace::find(), "nothing of this name").is_err());
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
