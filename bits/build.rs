//! Hands the linker the memory layout of the board that stands for the target: the firmware's. `links/` is built by it, too.

use std::{env, error::Error, fs, path::PathBuf};

const MEMORY: &str = "../firmware-example/memory";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={MEMORY}");
    if env::var("CARGO_CFG_TARGET_OS")? != "none" {
        return Ok(());
    }
    let layout = PathBuf::from(MEMORY).join(format!("{}.x", env::var("TARGET")?));
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    fs::copy(layout, out_dir.join("memory.x"))?;
    println!("cargo:rustc-link-search={}", out_dir.display());
    if env::var("CARGO_CFG_TARGET_ARCH")? == "riscv32" {
        // cortex-m-rt's link.x includes memory.x by itself, riscv-rt's expects it beforehand.
        println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    if env::var_os("CARGO_FEATURE_DEFMT").is_some() {
        println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
    }
    Ok(())
}
