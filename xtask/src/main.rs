//! The project's chores, as `cargo xtask COMMAND`. `help` lists them.

mod api;
mod bench;
mod bits;
mod checks;
mod demo;
mod dependencies;
mod elf;
mod fine_tuning;
mod firmware;
mod fuzz;
mod guide;
mod instructions;
mod links;
mod memory;
mod process;
mod python;
mod pytorch;
mod qemu;
mod setup;
mod size;
mod web;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use workspace::Workspace;

const HELP: &str = "\
cargo xtask test [--setup] [FILTER]   run the whole matrix, or the checks whose name contains FILTER;
                                      --setup first installs what is missing
cargo xtask check NAME                run the check of this name, and nothing else
cargo xtask firmware [PROGRAM] [BOARD]
                                      build the firmware's programs digits and motions, or another one (choices),
                                      run them under QEMU, and show what they say; on thumbv7em unless BOARD is
                                      thumbv8m.main, thumbv7m, thumbv6m or riscv32imc
cargo xtask pretrain                  train the firmware's networks on the host, and make the images of
                                      their weights in firmware-example/weights
cargo xtask bits [--update]           train networks on every target and compare all bits with bits/golden.txt;
                                      --update writes that file anew, from the host
cargo xtask api                       list the public API in docs/public-api.txt
cargo xtask miri                      run all of the core's tests under Miri, of which `test` runs a part
cargo xtask fuzz SECONDS              run every fuzz target for so long
cargo xtask instructions              count the instructions of the standard workloads' steps, and write the table
cargo xtask size [--update]           flash, RAM, stack and instructions of a training step of the standard workloads
                                      on a Cortex-M4F, compared with firmware-example/size.txt; --update writes
                                      that file anew
cargo xtask plan                      RAM and work of each choice of what the firmware's networks train, and the
                                      largest networks that fit some sizes of RAM
cargo xtask pack FILE --model NAME --out FILE [--rename FROM=TO]...
                                      make the slab image of a PyTorch state_dict (safetensors) that a
                                      firmware has built in; the models are firmware_example::MODELS
cargo xtask pytorch                   make the files of tests/pytorch and firmware-example/pytorch anew with PyTorch,
                                      which is installed into target/pytorch-venv, and check what slabgrad
                                      computes from them
cargo xtask demo [PORT]               build the page that trains in the browser, and serve it on localhost
cargo xtask bench                     time training steps and inferences of W1 to W4 beside hand-tiled C
cargo xtask bench --peers             the same, and steps of PyTorch, JAX, burn and candle, which are installed first
cargo xtask bench --products          time matrix products and convolutions beside the crates gemm and matrixmultiply
cargo xtask bench --scaling           time steps against width, batch and depth, and plot them in docs/scaling.svg
cargo xtask bench --browser           time training steps of W1 to W3 in Chromium, and ONNX Runtime Web's; compare the bits with the host's
cargo xtask wasm                      make the npm package in target/npm/slabgrad, and say how large it is
cargo xtask help                      this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<ExitCode> {
    let workspace = Workspace::find();
    match arguments {
        ["test", rest @ ..] => {
            let options = checks::Options::parse(rest)?;
            return Ok(if checks::run(&workspace, &options)? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["check", name] => checks::run_one(&workspace, name)?,
        ["firmware"] => fine_tuning::show(&workspace, &fine_tuning::PROGRAMS, &qemu::THUMBV7EM)?,
        ["firmware", program] => fine_tuning::show(&workspace, &[program], &qemu::THUMBV7EM)?,
        ["firmware", program, board] => fine_tuning::show(&workspace, &[program], qemu::board(board)?)?,
        ["pretrain"] => fine_tuning::pretrain(&workspace)?,
        ["api"] => api::write(&workspace)?,
        ["miri"] => memory::miri(&workspace)?,
        ["fuzz", seconds] => println!("{}", fuzz::run_for(&workspace, seconds)?),
        ["bits"] => println!("{}", bits::check(&workspace)?),
        ["bits", "--update"] => bits::update(&workspace)?,
        ["instructions"] => instructions::write(&workspace)?,
        ["size"] => println!("{}", size::check(&workspace)?),
        ["size", "--update"] => size::update(&workspace)?,
        ["plan"] => firmware::show_plan(&workspace)?,
        ["pack", rest @ ..] => firmware::pack(&workspace, rest)?,
        ["bench"] => bench::steps(&workspace)?,
        ["bench", "--peers"] => bench::peers(&workspace)?,
        ["bench", "--products"] => bench::products(&workspace)?,
        ["bench", "--scaling"] => bench::scaling(&workspace)?,
        ["bench", "--browser"] => demo::bench(&workspace)?,
        ["demo"] => demo::show(&workspace, None)?,
        ["demo", port] => demo::show(&workspace, Some(port))?,
        ["wasm"] => web::show_package(&workspace)?,
        ["pytorch"] => pytorch::run(&workspace)?,
        ["help" | "--help" | "-h"] => println!("{HELP}"),
        [] => bail!("a command is missing\n\n{HELP}"),
        _ => bail!("unknown command: {}\n\n{HELP}", arguments.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}
