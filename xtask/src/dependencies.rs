//! What slabgrad is made of besides itself: under which licences, in which versions, and whether the oldest that it says it takes
//! are enough.

use std::fs;

use anyhow::{Context, Result};

use crate::{process, workspace::Workspace};

/// Folders with a lock file of their own.
const LOCKED: [&str; 5] = [".", "bits", "firmware-example", "fuzz", "links"];

/// Licences and sources of all there is, duplicates in what comes with slabgrad, and advisories where their database can be had.
pub(crate) fn deny(workspace: &Workspace) -> Result<String> {
    let root = &workspace.root;
    let deny = |arguments: &str| process::run(&mut workspace.cargo(&format!("deny {arguments}")), root);
    for folder in LOCKED {
        deny(&format!(
            "--workspace --manifest-path {folder}/Cargo.toml --config deny.toml check --hide-inclusion-graph \
             --allow license-exception-not-encountered licenses sources"
        ))?;
    }
    deny("check bans")?;
    if deny("fetch db").is_err() {
        return Ok("advisories were left out: their database cannot be fetched".to_owned());
    }
    for folder in LOCKED {
        deny(&format!("--workspace --manifest-path {folder}/Cargo.toml --config deny.toml check advisories"))?;
    }
    Ok("advisories too".to_owned())
}

/// The library with all features compiles with the oldest versions of its dependencies that its manifest takes.
pub(crate) fn minimal(workspace: &Workspace) -> Result<String> {
    let path = workspace.root.join("Cargo.toml");
    let manifest = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = workspace.target_of("minimal");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("Cargo.toml"), alone(&manifest, &workspace.root.join("src/lib.rs").display().to_string()))?;
    // Versions are chosen anew, in a package of its own: the others of the workspace have dependencies with other bounds.
    let lock = folder.join("Cargo.lock");
    if lock.exists() {
        fs::remove_file(lock)?;
    }
    let mut check = workspace.cargo("check --all-features -Z direct-minimal-versions");
    check.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &folder).current_dir(&folder);
    process::run(&mut check, &workspace.root)?;
    Ok(String::new())
}

/// The manifest of the library without the workspace, the tests, and all that only they need.
fn alone(manifest: &str, lib: &str) -> String {
    const LEFT_OUT: [&str; 5] = ["[dev-dependencies]", "[[test]]", "[[example]]", "[[bench]]", "[profile."];
    let mut kept = true;
    let mut lines = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            kept = !LEFT_OUT.iter().any(|section| line.starts_with(section));
        }
        if kept && !line.starts_with("members =") && !line.starts_with("exclude =") {
            lines.push(line);
        }
    }
    format!("{}\n[lib]\npath = '{lib}'\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_stands_alone() {
        let manifest = "[workspace]\nmembers = [\"a\"]\n\n[package]\nname = \"b\"\n\n[dev-dependencies]\nc = \"1\"\n\n\
                        [[test]]\nname = \"d\"\n\n[dependencies]\ne = \"1\"\n";
        let found = alone(manifest, "/src/lib.rs");
        assert_eq!(
            found,
            "[workspace]\n\n[package]\nname = \"b\"\n\n[dependencies]\ne = \"1\"\n[lib]\npath = '/src/lib.rs'\n"
        );
    }
}
