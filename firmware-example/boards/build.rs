//! Hands the linker the memory layout of the board whose feature is on.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory");
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    for board in ["nrf52840", "rp2350", "stm32f411"] {
        if env::var(format!("CARGO_FEATURE_{}", board.to_uppercase())).is_ok() {
            fs::copy(format!("memory/{board}.x"), out_dir.join("memory.x"))?;
        }
    }
    println!("cargo:rustc-link-search={}", out_dir.display());
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
    Ok(())
}
