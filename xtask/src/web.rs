//! The npm package: two builds of one module, the JavaScript around it, and its tests in Chromium.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};

use crate::{process, workspace::Workspace};

const TARGET: &str = "wasm32-unknown-unknown";

/// A build of the module: its name, and what the compiler may use.
const BUILDS: [(&str, &str); 2] = [("slabgrad", ""), ("slabgrad_simd", "-C target-feature=+simd128")];

/// Loops become vectors as ever, but none is unrolled whose length is not known, or there once for each of its conditions. Places in
/// memory stay a pointer and a constant, which a load or store can add: as pointers of their own they are more code, and slower.
const SMALLER: &str =
    "-C llvm-args=-unroll-runtime=false -C llvm-args=-enable-nontrivial-unswitch=false -C llvm-args=-disable-lsr";

/// What is inlined beside what is marked as such: in the package little, in a static model what is small. Each is smallest so.
const INLINE: [&str; 2] = ["-C llvm-args=-inline-threshold=0", "-C llvm-args=-inline-threshold=40"];

/// What becomes part of the package as it is.
const FILES: [(&str, &str); 8] = [
    ("wasm/js/index.js", "index.js"),
    ("wasm/js/index.d.ts", "index.d.ts"),
    ("wasm/js/static.js", "static.js"),
    ("wasm/js/static.d.ts", "static.d.ts"),
    ("wasm/js/package.json", "package.json"),
    ("wasm/README.md", "README.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// Compiling and running the package's tests.
const LIMIT: Duration = Duration::from_mins(10);

/// `cargo xtask wasm`
pub(crate) fn show_package(workspace: &Workspace) -> Result<()> {
    let folder = package(workspace)?;
    println!("\n{:<24}{:>10}{:>10}", folder.strip_prefix(&workspace.root)?.display(), "bytes", "gzipped");
    let mut names: Vec<_> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    names.sort();
    for path in names {
        let bytes = read(&path)?;
        println!("{:<24}{:>10}{:>10}", name_of(&path), bytes.len(), gzipped(&bytes)?);
    }
    println!("{:<24}{:>20}", "a page with SIMD loads", page_bytes(&folder)?);
    Ok(())
}

/// Makes the package in `target/npm/slabgrad`.
pub(crate) fn package(workspace: &Workspace) -> Result<PathBuf> {
    let tools = tools(workspace)?;
    let folder = workspace.target.join("npm/slabgrad");
    match fs::remove_dir_all(&folder) {
        Err(error) if folder.exists() => return Err(error).context("cannot remove the old package"),
        _ => fs::create_dir_all(&folder)?,
    }
    let mut glue: Option<String> = None;
    for (name, flags) in BUILDS {
        let flags = format!("{flags} {SMALLER}");
        let [package, digits] = INLINE.map(|inline| format!("{flags} {inline}"));
        let target = workspace.target.join("wasm").join(name);
        let mut build = workspace.cargo(&format!("build --package slabgrad-package --profile wasm --target {TARGET}"));
        process::run(build.env("RUSTFLAGS", package).env("CARGO_TARGET_DIR", &target), &workspace.root)?;
        let made = target.join("bindgen");
        let mut bindgen = Command::new(&tools);
        bindgen
            .args(["bindgen", "--target", "web", "--out-name", "slabgrad", "--omit-default-module-path"])
            .args(["--remove-name-section", "--remove-producers-section", "--out-dir"])
            .args([&made, &target.join(TARGET).join("wasm/slabgrad_package.wasm")])
            .current_dir(&workspace.root);
        process::run(&mut bindgen, &workspace.root)?;
        fs::copy(made.join("slabgrad_bg.wasm"), folder.join(format!("{name}.wasm")))?;
        let js = without_comments(&String::from_utf8(read(&made.join("slabgrad.js"))?)?);
        // The JavaScript is there once.
        ensure!(glue.is_none_or(|glue| glue == js), "the builds with and without SIMD need different JavaScript");
        fs::write(folder.join("slabgrad.js"), &js)?;
        fs::copy(made.join("slabgrad.d.ts"), folder.join("slabgrad.d.ts"))?;
        glue = Some(js);

        let mut build = workspace.cargo(&format!("build --package slabgrad-digits --profile wasm --target {TARGET}"));
        let flags = format!("{digits} -C strip=symbols");
        process::run(build.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &target), &workspace.root)?;
        let module = target.join(TARGET).join("wasm/slabgrad_digits.wasm");
        fs::copy(module, folder.join(name.replace("slabgrad", "digits") + ".wasm"))?;
    }
    for (from, to) in FILES {
        fs::copy(workspace.root.join(from), folder.join(to)).with_context(|| format!("cannot copy {from}"))?;
    }
    Ok(folder)
}

/// JavaScript without the lines of its documentation, which editors show from the types.
fn without_comments(js: &str) -> String {
    let is_code = |line: &&str| !["/**", "*"].iter().any(|start| line.trim_start().starts_with(start));
    js.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

/// The package can be made, has the version of the crates, and says how large it is.
pub(crate) fn check_package(workspace: &Workspace) -> Result<String> {
    let folder = package(workspace)?;
    let manifest = String::from_utf8(read(&folder.join("package.json"))?)?;
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    ensure!(manifest.contains(&version), "wasm/js/package.json does not have {version}");
    for name in ["index.js", "slabgrad.js", "static.js"] {
        let js = String::from_utf8(read(&folder.join(name))?)?;
        // A page may forbid both.
        ensure!(!js.contains("eval(") && !js.contains("Function("), "{name} makes code out of text");
    }
    let bytes = page_bytes(&folder)?;
    ensure!(bytes <= MOST_BYTES, "a page with SIMD loads {bytes} bytes, gzipped; the aim is {MOST_BYTES}");
    let digits = gzipped(&read(&folder.join("digits.wasm"))?)?;
    ensure!(digits <= MOST_DIGITS, "digits.wasm has {digits} bytes, gzipped; it were at most {MOST_DIGITS}");
    Ok(format!("a page with SIMD loads {bytes} bytes, gzipped; the static digits model has {digits}"))
}

/// What a page may load of the package.
const MOST_BYTES: usize = 120_000;

/// The same of the module of the static model, without SIMD.
const MOST_DIGITS: usize = 20 * 1024;

/// The package's tests in headless Chromium.
pub(crate) fn test(workspace: &Workspace) -> Result<String> {
    let tools = tools(workspace)?;
    let runner = format!("{} test", tools.display());
    // In the release profile: V8 does not survive the unoptimized module.
    let mut tests = workspace.cargo(&format!("test --package slabgrad-wasm --release --tests --target {TARGET}"));
    tests
        .env("RUSTFLAGS", BUILDS[1].1)
        .env("CARGO_TARGET_DIR", workspace.target.join("wasm/test"))
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        .env("CHROMEDRIVER", "chromedriver");
    let output = process::capture(&mut tests, &workspace.root, LIMIT)?.expect_success()?;
    let passed: usize =
        output.stdout.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count();
    ensure!(passed > 0, "no test ran:\n{}", output.stdout);
    Ok(format!("{passed} tests"))
}

/// wasm-bindgen's own tools, in the version of the lock file.
fn tools(workspace: &Workspace) -> Result<PathBuf> {
    process::run(&mut workspace.cargo("build --quiet --package wasm-bindgen-tools"), &workspace.root)?;
    Ok(workspace.target.join("debug/wasm-bindgen-tools"))
}

/// Bytes that a page loads from the package, gzipped one by one.
fn page_bytes(folder: &Path) -> Result<usize> {
    ["index.js", "slabgrad.js", "slabgrad_simd.wasm"].iter().map(|name| gzipped(&read(&folder.join(name))?)).sum()
}

fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
