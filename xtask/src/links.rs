//! The matrix of targets and features: `links/`, which uses what each feature adds, linked for every target with all that it has.

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

/// Features that are linked together, by what they ask of the target.
const COLUMNS: [&str; 4] = ["no feature", "no allocator", "an allocator", "std"];
/// In so many columns, there is no allocator.
const WITHOUT_ALLOCATOR: usize = 2;

/// `flash-async` has `flash` in it.
const BARE: [&str; COLUMNS.len()] = ["", "defmt,flash-async", "alloc,safetensors,cbor", NOTHING];
const NOTHING: &str = "-";

const TARGETS: [(&str, [&str; COLUMNS.len()]); 7] = [
    (THUMBV6M.target, BARE),
    (THUMBV7M.target, BARE),
    (THUMBV7EM.target, BARE),
    (THUMBV8M.target, BARE),
    (RISCV32IMC.target, BARE),
    (WASM, ["", "flash-async", BARE[2], "std"]),
    (HOST, ["", "flash-async", BARE[2], "std,progress,rayon"]),
];

/// Links all there is; in what needs no allocator there is none. The README has the table.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let mut links = 0;
    for (target, columns) in TARGETS {
        for (i, features) in columns.into_iter().enumerate().filter(|(_, features)| *features != NOTHING) {
            link(workspace, target, features, i < WITHOUT_ALLOCATOR)
                .with_context(|| format!("{target}, {}: {features}", COLUMNS[i]))?;
            links += 1;
        }
    }
    let table = table();
    println!("{table}");
    let path = workspace.root.join(README);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains(&table), "{README} has not this table");
    Ok(format!("{links} programs, as {README} says"))
}

fn link(workspace: &Workspace, target: &str, features: &str, without_allocator: bool) -> Result<()> {
    let mut arguments = "build --release --locked".to_owned();
    let mut program = workspace.target_of(FOLDER);
    if target != HOST {
        write!(arguments, " --target {target}")?;
        program.push(target);
    }
    if !features.is_empty() {
        write!(arguments, " --features {features}")?;
    }
    process::run(&mut workspace.cargo_in(FOLDER, &arguments), &workspace.root)?;
    // The host's own startup code allocates.
    if without_allocator && target != HOST {
        let (file, entry) = if target == WASM { ("links.wasm", "run") } else { ("links", "main") };
        firmware::without_allocator(&firmware::read(&program.join("release").join(file))?, entry)?;
    }
    Ok(())
}

/// In Markdown, as the README has it.
fn table() -> String {
    let head = format!("| target | {} |\n|---{}|\n", COLUMNS.join(" | "), "|---".repeat(COLUMNS.len()));
    let rows = TARGETS.map(|(target, columns)| {
        let cells = columns.map(|features| match features {
            "" => "links".to_owned(),
            NOTHING => NOTHING.to_owned(),
            features => format!("`{}`", features.replace(',', "`, `")),
        });
        format!("| {target} | {} |\n", cells.join(" | "))
    });
    head + &rows.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_target() {
        let table = table();
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows.len(), 2 + TARGETS.len());
        assert!(rows.iter().all(|row| row.matches('|').count() == 2 + COLUMNS.len()), "{table}");
        let row = "| thumbv6m-none-eabi | links | `defmt`, `flash-async` | `alloc`, `safetensors`, `cbor` | - |";
        assert_eq!(rows[2], row);
    }
}
