//! Hands the linker the memory layout of the board that stands for the target.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory");
    println!("cargo:rustc-check-cfg=cfg(mps2_an386)");

    if env::var("CARGO_CFG_TARGET_OS")? != "none" {
        return Ok(());
    }
    let target = env::var("TARGET")?;
    if target == "thumbv7em-none-eabihf" {
        // For what measures, with this board's timer.
        println!("cargo:rustc-cfg=mps2_an386");
    }
    let layout = PathBuf::from("memory").join(format!("{target}.x"));
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    fs::copy(&layout, out_dir.join("memory.x"))
        .map_err(|error| format!("no memory layout for {target}: {}: {error}", layout.display()))?;

    if env::var_os("CARGO_FEATURE_STEPS").is_some() {
        // Names of interrupt handlers, which these programs do not have.
        fs::write(out_dir.join("device.x"), "")?;
    }

    println!("cargo:rustc-link-search={}", out_dir.display());
    if env::var("CARGO_CFG_TARGET_ARCH")? == "riscv32" {
        // cortex-m-rt's link.x includes memory.x by itself, riscv-rt's expects it beforehand.
        println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    // The programs whose messages go out through defmt.
    for program in ["choices", "digits", "motions"] {
        println!("cargo:rustc-link-arg-bin={program}=-Tdefmt.x");
    }
    Ok(())
}
