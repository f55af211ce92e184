//! Trains the networks of the firmware on the host, and makes the images of their weights in `weights/`.
//! `cargo xtask pretrain` runs it. The images come out the same, to the last bit, on every machine.

mod data;

use std::{env, error::Error, fs, path::Path};

use data::Sample;
use firmware_example::{digits, motions};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;
use slabgrad::checkpoint::StateDict;
use slabgrad::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("the folder for the images is missing")?;
    let folder = Path::new(&folder);
    let write = |name: &str, image: Vec<u8>| {
        fs::create_dir_all(folder)?;
        println!("{name}: {} bytes", image.len());
        fs::write(folder.join(name), image)
    };
    let digits = pretrain(&digits::PRETRAIN, data::digits()?.pretraining, 15, 2e-3)?;
    write("digits.slab", digits::TRAIN.pack(&StateDict::parse(&digits)?)?)?;
    let motions = pretrain(&motions::PRETRAIN, data::motions()?.pretraining, 30, 3e-3)?;
    let motions = StateDict::parse(&motions)?;
    write("motions.slab", motions::TRAIN.pack(&motions)?)?;
    for (name, choice) in motions::CHOICES {
        write(&format!("motions-{name}.slab"), choice.train.pack(&motions)?)?;
    }
    Ok(())
}

/// Trains, and returns the weights as a `state_dict`.
fn pretrain(
    program: &Program<'static>,
    mut samples: Vec<Sample>,
    epochs: usize,
    learning_rate: f32,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut slab = vec![0.0; program.slab_len()];
    let mut memory = program.memory(&mut slab)?;
    program.init(&mut memory, 1)?;
    let (mut random, mut adam) = (Xoshiro256StarStar::seed_from_u64(1), Adam::new(learning_rate));
    let batch = program.inputs()[1].shape.len();
    for epoch in 0..epochs {
        for last in (1..samples.len()).rev() {
            samples.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        let (mut sum, mut steps) = (0.0, 0.0);
        for batch in samples.chunks_exact(batch) {
            let values: Vec<f32> = batch.iter().flat_map(|(values, _)| values).copied().collect();
            let classes: Vec<f32> = batch.iter().map(|&(_, class)| class).collect();
            sum += program.step(&mut memory, &[&values, &classes], &mut adam)?;
            steps += 1.0;
        }
        println!("epoch {epoch:2}: loss {:.4}", sum / steps);
    }
    Ok(program.save_state_dict(&memory)?)
}
