//! Writes what a device under QEMU gets to see into a folder: `samples PROGRAM FOLDER`. The files are those of `device/samples.rs`.

mod data;

use std::{env, error::Error, fs, path::Path};

use data::Sample;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [program, folder] = &arguments[..] else { Err("samples PROGRAM FOLDER")? };
    let parts = match program.as_str() {
        "digits" => data::digits()?,
        "motions" | "choices" => data::motions()?,
        _ => Err(format!("no program is named {program}"))?,
    };
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("training.samples"), bytes(&parts.device))?;
    fs::write(folder.join("test.samples"), bytes(&parts.test))?;
    Ok(())
}

fn bytes(samples: &[Sample]) -> Vec<u8> {
    let numbers = samples.iter().flat_map(|(values, class)| values.iter().chain([class]));
    numbers.flat_map(|number| number.to_le_bytes()).collect()
}
