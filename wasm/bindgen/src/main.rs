//! wasm-bindgen's own tools in the version of the lock file, which the modules have to be made for.
//!
//! ```text
//! wasm-bindgen-tools bindgen ARGUMENTS   wasm-bindgen: makes JavaScript and types for a module
//! wasm-bindgen-tools test ARGUMENTS      wasm-bindgen-test-runner: runs a module's tests
//! ```

use std::env;

use anyhow::{Result, bail};
use wasm_bindgen_cli::{wasm_bindgen, wasm_bindgen_test_runner};

fn main() -> Result<()> {
    // The first argument is the tool, and takes the place of its program's name.
    let mut arguments = env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|tool| tool.to_str()) {
        Some("bindgen") => wasm_bindgen::run_cli_with_args(arguments),
        Some("test") => {
            env_logger::init();
            wasm_bindgen_test_runner::run_cli_with_args(arguments)
        }
        _ => bail!("the first argument is `bindgen` or `test`"),
    }
}
