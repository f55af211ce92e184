//! Building `firmware-example`, and the commands and checks around it.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    elf::Image,
    process,
    qemu::{self, Board, THUMBV7EM},
    workspace::Workspace,
};

/// What the panic handler of `firmware-example` prints.
const PANIC_MESSAGE: &[u8] = b"PANIC\n";

/// The host needs a small part of the time that the boards need.
const HOST_LIMIT: Duration = Duration::from_mins(5);

/// The program that is the same on every target.
const BITS: &str = "bits";

/// Builds one of the firmware's programs, and returns where it is.
pub(crate) fn build(workspace: &Workspace, board: &Board, program: &str) -> Result<PathBuf> {
    build_with(workspace, board, program, "")
}

fn build_with(workspace: &Workspace, board: &Board, program: &str, options: &str) -> Result<PathBuf> {
    let arguments = format!("build --release --target {} --bin {program} {options}", board.target);
    process::run(&mut workspace.firmware_cargo(&arguments), &workspace.root)?;
    Ok(workspace.firmware_file(board.target, program))
}

/// Reads a linked program.
pub(crate) fn read(path: &PathBuf) -> Result<Image> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Image::parse(&bytes).with_context(|| format!("cannot parse {}", path.display()))
}

/// That the program links at all says that nothing in it wants Rust's global allocator, for it declares none. This
/// finds what gets in without it: an allocator of C, or of a dependency.
pub(crate) fn without_allocator(image: &Image, entry: &str) -> Result<String> {
    ensure_symbol(image, entry)?;
    let found = image.allocators();
    ensure!(found.is_empty(), "an allocator is linked:\n{}", image.list(&found));
    Ok(format!("no allocator among {} symbols", image.symbols.len()))
}

/// In a file without symbols no search finds anything.
fn ensure_symbol(image: &Image, name: &str) -> Result<()> {
    ensure!(
        image.symbols.iter().any(|symbol| symbol.name == name),
        "the file has no symbol `{name}`: its symbols cannot be trusted"
    );
    Ok(())
}

/// Nothing in the training binary can panic, format or compute in double precision in software.
pub(crate) fn no_panic(workspace: &Workspace) -> Result<String> {
    let image = read(&build(workspace, &THUMBV7EM, BITS)?)?;
    ensure_symbol(&image, "main")?;
    let found = image.unwanted();
    ensure!(found.is_empty(), "these are linked, so something can reach them:\n{}", image.list(&found));
    // The handler's symbol would be missing if it had been inlined; what it prints would not.
    ensure!(!image.contains(PANIC_MESSAGE), "the message of the panic handler is linked, so something can reach it");
    Ok(format!("none among {} symbols", image.symbols.len()))
}

/// The check above finds a panic where there is one.
pub(crate) fn provoked_panic(workspace: &Workspace) -> Result<String> {
    let image = read(&build_with(workspace, &THUMBV7EM, BITS, "--features provoke-panic")?)?;
    let found = image.unwanted();
    let listing = image.list(&found);
    for expected in ["core::panicking::panic_bounds_check", "rust_begin_unwind"] {
        ensure!(
            found.iter().any(|symbol| symbol.name.contains(expected)),
            "{expected} was not found, only:\n{listing}"
        );
    }
    ensure!(image.contains(PANIC_MESSAGE), "the message of the panic handler was not found");
    Ok(format!("found, as it should be:\n{listing}"))
}

/// The program, which has no allocator, prints the same bits on a board as on the host.
pub(crate) fn same_bits(workspace: &Workspace, board: &Board) -> Result<String> {
    let mut host = workspace.firmware_cargo("run --quiet --release --bin bits");
    let host = process::capture(&mut host, &workspace.root, HOST_LIMIT)?.expect_success()?;
    let host: Vec<String> = host.stdout.lines().map(str::to_owned).collect();

    let program = build(workspace, board, BITS)?;
    without_allocator(&read(&program)?, "main")?;
    let run = qemu::run(board, &program, &workspace.root)?;
    qemu::compare(&host, &run.lines)?;
    // The lines are compared first, because they say more about a program that gave up.
    ensure!(run.status.success(), "the program ended with {}", run.status);
    let instructions = match run.instructions {
        Some(count) => format!(", {count} instructions"),
        None => String::new(),
    };
    let adam = match run.adam_instructions {
        Some(count) => format!(", {count} of them for an update of one parameter by Adam"),
        None => String::new(),
    };
    Ok(format!("{} lines as on the host{instructions}{adam}", host.len()))
}

/// `cargo xtask plan`: an example of the firmware's crate, too.
fn plan(workspace: &Workspace) -> Command {
    workspace.firmware_cargo("run --quiet --release --example plan")
}

pub(crate) fn show_plan(workspace: &Workspace) -> Result<()> {
    process::run(&mut plan(workspace), &workspace.root)
}

/// The guide's tables are those that the plan prints.
pub(crate) fn plan_in_guide(workspace: &Workspace) -> Result<String> {
    let guide = workspace.root.join("docs/FIRMWARE.md");
    let text = fs::read_to_string(&guide).with_context(|| format!("cannot read {}", guide.display()))?;
    let output = process::capture(&mut plan(workspace), &workspace.root, HOST_LIMIT)?.expect_success()?;
    let tables: Vec<&str> = output.stdout.trim_end().split("\n\n").collect();
    for table in &tables {
        ensure!(text.contains(table), "docs/FIRMWARE.md has not this table of `cargo xtask plan`:\n{table}");
    }
    Ok(format!("{} tables as in docs/FIRMWARE.md", tables.len()))
}

/// `cargo xtask pack`: an example of the firmware's crate, which knows its networks.
pub(crate) fn pack(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    let mut command = workspace.firmware_cargo("run --quiet --release --example pack --");
    for (i, argument) in arguments.iter().enumerate() {
        // Files are named as seen from where the user is; the example runs in the crate's folder.
        let is_file = i == 0 || arguments[i - 1] == "--out";
        let here = std::env::current_dir().context("there is no current folder")?;
        command.arg(if is_file { here.join(argument).into_os_string() } else { argument.into() });
    }
    process::run(&mut command, &workspace.root)
}

/// The image that is built into the firmware is the one that its file of weights makes.
pub(crate) fn packed(workspace: &Workspace) -> Result<String> {
    let (built_in, file) = ("firmware-example/weights/pretrained.slab", "tests/pytorch/cnn.safetensors");
    let path = |path: &str| workspace.root.join(path).display().to_string();
    let packed = workspace.firmware_target.join("pretrained.slab");
    let mut arguments =
        vec![path(file), "--model".into(), "pretrained".into(), "--out".into(), packed.display().to_string()];
    for rename in ["features.0=conv1", "features.1=bn1", "features.4=conv2", "features.5=bn2", "classifier=fc"] {
        arguments.extend(["--rename".into(), rename.into()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    pack(workspace, &arguments)?;
    let read = |path: &PathBuf| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let (found, expected) = (read(&packed)?, read(&workspace.root.join(built_in))?);
    ensure!(found == expected, "{built_in} is not what {file} is packed to");
    Ok(format!("{} bytes", found.len()))
}
