//! The matrix of targets and features: `links/`, which uses what each feature adds, linked for every target with each of them.

use std::{fmt::Write, fs};

use anyhow::{Context, Result, ensure};

use crate::{
    firmware, process,
    qemu::{RISCV32IMC, THUMBV6M, THUMBV7EM, THUMBV7M, THUMBV8M},
    workspace::Workspace,
};

const FOLDER: &str = "links";
const README: &str = "README.md";
const WASM: &str = "wasm32-unknown-unknown";
/// The target of the compiler itself.
const HOST: &str = "the host";

const TARGETS: [&str; 7] =
    [THUMBV6M.target, THUMBV7M.target, THUMBV7EM.target, THUMBV8M.target, RISCV32IMC.target, WASM, HOST];

/// Each by itself, and where it can be had. `flash` is linked with `flash-async`.
const FEATURES: [(&str, fn(&str) -> bool); 9] = [
    ("no feature", |_| true),
    ("defmt", is_bare),
    ("flash-async", |_| true),
    ("alloc", |_| true),
    ("safetensors", |_| true),
    ("cbor", |_| true),
    ("std", |target| !is_bare(target)),
    ("progress", |target| target == HOST),
    ("rayon", |target| target == HOST),
];

/// So many features come first that need no allocator.
const WITHOUT_ALLOCATOR: usize = 3;

fn is_bare(target: &str) -> bool {
    target.contains("-none-")
}

/// Links all there is; in what needs no allocator there is none. The README has the table.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    for target in TARGETS {
        for (i, (feature, _)) in FEATURES.iter().enumerate().filter(|(_, (_, has))| has(target)) {
            link(workspace, target, feature, i < WITHOUT_ALLOCATOR).with_context(|| format!("{target}, {feature}"))?;
        }
    }
    let table = table();
    println!("{table}");
    let path = workspace.root.join(README);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains(&table), "{README} has not this table");
    Ok(format!("{} links, as {README} says", table.matches("links").count()))
}

fn link(workspace: &Workspace, target: &str, feature: &str, without_allocator: bool) -> Result<()> {
    let mut arguments = "build --release --locked".to_owned();
    let mut program = workspace.target_of(FOLDER);
    if target != HOST {
        write!(arguments, " --target {target}")?;
        program.push(target);
    }
    if feature != FEATURES[0].0 {
        write!(arguments, " --features {feature}")?;
    }
    process::run(&mut workspace.cargo_in(FOLDER, &arguments), &workspace.root)?;
    if without_allocator && target != HOST {
        let (file, entry) = if target == WASM { ("links.wasm", "run") } else { ("links", "main") };
        firmware::without_allocator(&firmware::read(&program.join("release").join(file))?, entry)?;
    }
    Ok(())
}

/// In Markdown, as the README has it.
fn table() -> String {
    let names: Vec<String> = FEATURES[1..].iter().map(|(feature, _)| format!(" | `{feature}`")).collect();
    let mut table =
        format!("| target | {}{} |\n|---|{}\n", FEATURES[0].0, names.concat(), "---|".repeat(FEATURES.len()));
    for target in TARGETS {
        let cells = FEATURES.iter().map(|(_, has)| if has(target) { " links |" } else { " - |" });
        table += &format!("| {target} |{}\n", cells.collect::<String>());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_target_and_a_column_for_each_feature() {
        let table = table();
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows.len(), 2 + TARGETS.len());
        assert!(rows.iter().all(|row| row.matches('|').count() == 2 + FEATURES.len()), "{table}");
        assert_eq!(rows[2], "| thumbv6m-none-eabi | links | links | links | links | links | links | - | - | - |");
    }
}
