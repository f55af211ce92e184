//! The public API as text, beside the one in the repository: what changes for those who use slabgrad is seen in a diff.

use std::{collections::HashSet, fs};

use anyhow::{Context, Result, bail};
use public_api::Builder;

use crate::{process, workspace::Workspace};

const FILE: &str = "docs/public-api.txt";

/// How many lines of a difference are shown.
const SHOWN: usize = 20;

/// The API is the one that the file lists.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let path = workspace.root.join(FILE);
    let expected = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = list(workspace)?;
    let difference = difference(&expected, &found);
    if difference.is_empty() {
        return Ok(format!("{} items", found.lines().count()));
    }
    let shown = &difference[..difference.len().min(SHOWN)];
    bail!(
        "{} items of {FILE} are gone or new; `cargo xtask api` writes the file anew\n    {}",
        difference.len(),
        shown.join("\n    ")
    )
}

/// `cargo xtask api`
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    fs::write(workspace.root.join(FILE), list(workspace)?).with_context(|| format!("cannot write {FILE}"))
}

/// All public items with all features, one a line, from what rustdoc knows.
fn list(workspace: &Workspace) -> Result<String> {
    let mut rustdoc =
        workspace.cargo("rustdoc --quiet -p slabgrad --lib --all-features -- -Z unstable-options --output-format json");
    // The stable compiler's own description of the crate, whose format is not stable. In a folder of its own, since some
    // dependencies are built again for the variable.
    let target = workspace.target_of("api");
    rustdoc.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target);
    process::run(&mut rustdoc, &workspace.root)?;
    let json = target.join("doc/slabgrad.json");
    let api = Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true).build()?;
    Ok(items(&api.to_string()))
}

/// Without the heads of blocks of methods, which have their types in their own lines, and each line once.
fn items(api: &str) -> String {
    let mut seen = HashSet::new();
    let is_item = |line: &&str| !line.starts_with("impl") || line.contains(" for ");
    api.lines().filter(is_item).filter(|line| seen.insert(*line)).flat_map(|line| [line, "\n"]).collect()
}

/// Lines that only one of them has, with `-` or `+`.
fn difference(expected: &str, found: &str) -> Vec<String> {
    let [before, after]: [HashSet<&str>; 2] = [expected, found].map(|text| text.lines().collect());
    let gone = expected.lines().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = found.lines().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_new_is_told() {
        assert_eq!(items("impl A\nfn a\nimpl B for A\nfn a\n"), "fn a\nimpl B for A\n");
        assert!(difference("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(difference("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
        assert_eq!(difference("", "a\n"), ["+ a"]);
    }
}
