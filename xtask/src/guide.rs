//! The commands of `docs/FIRMWARE.md`, each run as it is written.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{process, workspace::Workspace};

/// Runs the commands in order. They end by making the weights that the repository has; when one of them fails, these are put back.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let guide = workspace.root.join("docs/FIRMWARE.md");
    let text = fs::read_to_string(&guide).with_context(|| format!("cannot read {}", guide.display()))?;
    let weights = workspace.root.join("firmware-example/weights/digits.slab");
    let before = fs::read(&weights).with_context(|| format!("cannot read {}", weights.display()))?;
    let commands = commands(&text);
    ensure!(commands.len() >= 6, "only {} commands in docs/FIRMWARE.md", commands.len());
    for command in &commands {
        let result =
            process::run(Command::new("sh").args(["-c", command]).current_dir(&workspace.root), &workspace.root);
        if result.is_err() {
            fs::write(&weights, &before)?;
        }
        result.with_context(|| command.clone())?;
    }
    ensure!(fs::read(&weights)? == before, "the guide's last command does not make the repository's weights");
    Ok(format!("{} commands", commands.len()))
}

/// What is in blocks of `sh`, lines that end in a backslash joined.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.map(|block| block.replace("\\\n", " "));
    lines.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lines_of_blocks_of_sh() {
        let text = "```sh\na\nb \\\n    c\n```\n```text\nd\n```\n```sh\ne\n```\n";
        assert_eq!(commands(text), ["a", "b      c", "e"]);
    }
}
