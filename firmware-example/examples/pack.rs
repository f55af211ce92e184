//! Makes the image of a network's weights that a firmware has built in, from a file of PyTorch's `state_dict`. On the host, as
//! `cargo xtask pack FILE --model NAME --out FILE [--rename FROM=TO]...`; copy it beside your own networks.

use std::{env, error::Error, fs};

use slabgrad::checkpoint::StateDict;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (mut file, mut model, mut out, mut renames) = (None, None, None, Vec::new());
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument {
            "--model" => model = Some(value()?),
            "--out" => out = Some(value()?),
            "--rename" => renames.push(value()?.split_once('=').ok_or("--rename takes FROM=TO")?),
            _ if argument.starts_with('-') || file.is_some() => Err(format!("unexpected: {argument}"))?,
            _ => file = Some(argument),
        }
    }
    let (file, model, out) = (file.ok_or("no file")?, model.ok_or("no --model")?, out.ok_or("no --out")?);

    let models = firmware_example::MODELS;
    let names: Vec<&str> = models.iter().map(|&(name, _)| name).collect();
    let program = models.iter().find(|&&(name, _)| name == model).map(|&(_, program)| program);
    let program = program.ok_or(format!("no model is named {model}; there are: {}", names.join(", ")))?;
    let bytes = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let dict = StateDict::parse(&bytes).map_err(|error| format!("{file}: {error}"))?;
    let dict = renames.into_iter().fold(dict, |dict, (from, to)| dict.rename(from, to));
    let image = program.pack(&dict).map_err(|error| format!("{file}: {error}"))?;
    fs::write(out, &image).map_err(|error| format!("{out}: {error}"))?;
    println!("{out}: {} bytes for {model}", image.len());
    Ok(())
}
