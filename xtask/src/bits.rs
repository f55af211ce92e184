//! The same bits everywhere: what `bits/` computes on every target, compared with hashes in the repository.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    process,
    qemu::{self, Board, RISCV32IMC, THUMBV6M, THUMBV7EM},
    workspace::Workspace,
};

const FOLDER: &str = "bits";
const WASM: &str = "wasm32-unknown-unknown";
const LIMIT: Duration = Duration::from_mins(3);

/// A way to compute the bits.
struct Machine {
    name: &'static str,
    build: &'static str,
    flags: &'static str,
    run: Run,
}

enum Run {
    /// With so many threads, where it has threads.
    Host(&'static str),
    Node,
    Board(&'static Board),
}

#[rustfmt::skip]
const MACHINES: &[Machine] = &[
    Machine { name: "host, no vectors but the target's", build: "build --release", flags: "", run: Run::Host("1") },
    Machine { name: "host, at most AVX2", build: "build --release --features std", flags: "--cfg slabgrad_without_avx512", run: Run::Host("1") },
    Machine { name: "host, all vectors", build: "build --release --features rayon", flags: "", run: Run::Host("1") },
    Machine { name: "host, two threads", build: "build --release --features rayon", flags: "", run: Run::Host("2") },
    Machine { name: "wasm32", build: "rustc --release --lib --crate-type cdylib --target wasm32-unknown-unknown", flags: "", run: Run::Node },
    Machine { name: "wasm32 with simd128", build: "rustc --release --lib --crate-type cdylib --target wasm32-unknown-unknown", flags: "-C target-feature=+simd128", run: Run::Node },
    Machine { name: "thumbv7em", build: "build --release --target thumbv7em-none-eabihf", flags: "", run: Run::Board(&THUMBV7EM) },
    Machine { name: "thumbv6m", build: "build --release --target thumbv6m-none-eabi", flags: "", run: Run::Board(&THUMBV6M) },
    Machine { name: "riscv32imc", build: "build --release --target riscv32imc-unknown-none-elf", flags: "", run: Run::Board(&RISCV32IMC) },
];

/// Computes the bits on every machine; the first that differ are an error with the network, the step, and the first element of every
/// parameter, moment and output in which they do.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let path = golden(workspace);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let expected: Vec<&str> = text.lines().collect();
    for machine in MACHINES {
        let found = machine.lines(workspace, None)?;
        let Some((i, found)) = first_difference(&expected, &found) else { continue };
        let expected = expected.get(i).copied().unwrap_or("nothing");
        let lines =
            format!("{}: line {} differs\n    expected: {expected}\n    found:    {found}", machine.name, i + 1);
        bail!("{lines}\n    {}", elements(workspace, machine, expected)?);
    }
    let names: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
    Ok(format!("{} steps, the same on {}", expected.len(), names.join("; ")))
}

/// Writes the hashes anew.
pub(crate) fn update(workspace: &Workspace) -> Result<()> {
    let lines = MACHINES[0].lines(workspace, None)?;
    fs::write(golden(workspace), lines.join("\n") + "\n")?;
    Ok(())
}

fn golden(workspace: &Workspace) -> PathBuf {
    workspace.root.join(FOLDER).join("golden.txt")
}

/// The first line of `found` that is not as expected, with its number.
fn first_difference<'f>(expected: &[&str], found: &'f [String]) -> Option<(usize, &'f str)> {
    let line = |i: usize| found.get(i).map_or("nothing", String::as_str);
    let i = (0..expected.len().max(found.len())).find(|&i| expected.get(i) != Some(&line(i)))?;
    Some((i, line(i)))
}

/// In which elements it differs from the first machine, after the step of a line. Hashes do not say.
fn elements(workspace: &Workspace, machine: &Machine, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split(' ').take(2).collect();
    let step = words.join(" ");
    let reference = MACHINES[0].lines(workspace, Some(&step))?;
    let different = different_elements(&reference, &machine.lines(workspace, Some(&step))?);
    if different.is_empty() {
        return Ok(format!(
            "all elements are as on the {}: if this is meant, `cargo xtask bits --update` writes {FOLDER}/golden.txt",
            MACHINES[0].name
        ));
    }
    Ok(format!(
        "the first elements that differ after step {step} from the {}:\n    {}",
        MACHINES[0].name,
        different.join("\n    ")
    ))
}

/// The first line of every tensor in which the two differ. Lines are `fc1.weight[3] 3f800000`.
fn different_elements(reference: &[String], found: &[String]) -> Vec<String> {
    let tensor = |line: &str| line.split('[').next().unwrap_or_default().to_owned();
    let mut last = String::new();
    let mut different = Vec::new();
    for (expected, found) in reference.iter().zip(found).filter(|(expected, found)| expected != found) {
        if last != tensor(expected) {
            last = tensor(expected);
            different.push(format!("{found}, expected {}", expected.rsplit(' ').next().unwrap_or_default()));
        }
    }
    different
}

impl Machine {
    /// What it prints: hashes of all steps, or all elements after the step `shown` (`w1 7`).
    fn lines(&self, workspace: &Workspace, shown: Option<&str>) -> Result<Vec<String>> {
        let root = &workspace.root;
        let mut build = workspace.cargo_in(FOLDER, self.build);
        build.env("RUSTFLAGS", self.flags);
        if let Some(shown) = shown {
            build.env("BITS_SHOW", shown);
        }
        process::run(&mut build, root)?;
        let built = |target: &str, file: &str| workspace.target_of(FOLDER).join(target).join("release").join(file);
        let mut command = match self.run {
            Run::Board(board) => {
                let run = qemu::run(board, &built(board.target, "bits"), root)?;
                ensure!(run.status.success(), "the program ended with {}", run.status);
                return Ok(run.lines);
            }
            Run::Host(threads) => {
                let mut command = Command::new(built("", "bits"));
                command.arg(threads);
                command
            }
            Run::Node => {
                let mut command = Command::new("node");
                command.arg(root.join(FOLDER).join("run.mjs")).arg(built(WASM, "bits.wasm"));
                command
            }
        };
        let captured = process::capture(&mut command, root, LIMIT)?.expect_success()?;
        Ok(captured.stdout.lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_tensor_the_first_element_that_differs_is_named() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let reference = lines("loss[0] 1\nfc.weight[0] 2\nfc.weight[1] 3\nfc.weight[2] 4\nfc.bias[0] 5");
        let found = lines("loss[0] 1\nfc.weight[0] 2\nfc.weight[1] 4\nfc.weight[2] 3\nfc.bias[0] 6");
        let want = ["fc.weight[1] 4, expected 3", "fc.bias[0] 6, expected 5"];
        assert_eq!(different_elements(&reference, &found), want);
        assert!(different_elements(&reference, &reference).is_empty());
    }

    #[test]
    fn the_first_difference_is_found() {
        let found = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let expected = ["w1 1 a", "w1 2 b"];
        assert_eq!(first_difference(&expected, &found("w1 1 a\nw1 2 b")), None);
        assert_eq!(first_difference(&expected, &found("w1 1 a\nw1 2 c")), Some((1, "w1 2 c")));
        assert_eq!(first_difference(&expected, &found("w1 1 a")), Some((1, "nothing")));
        assert_eq!(first_difference(&expected, &found("w1 1 a\nw1 2 b\nmore")), Some((2, "more")));
        assert_eq!(first_difference(&expected, &[]), Some((0, "nothing")), "no output is no success");
    }
}
