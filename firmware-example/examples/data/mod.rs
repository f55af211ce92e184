//! The data sets as the examples use them: a sample is its values and its class.

use std::{error::Error, fs, io::Read, path::Path};

use flate2::read::GzDecoder;

pub type Sample = (Vec<f32>, f32);

/// What a network is trained with, what the device learns from, and what it is tested with.
pub struct Parts {
    pub pretraining: Vec<Sample>,
    pub device: Vec<Sample>,
    pub test: Vec<Sample>,
}

fn data(name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data").join(name);
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The digits, of every nine one for the device and two for the test. Those two parts are mirrored.
pub fn digits() -> Result<Parts, Box<dyn Error>> {
    let mut parts = Parts { pretraining: Vec::new(), device: Vec::new(), test: Vec::new() };
    for (i, record) in data("digits.bin")?.chunks_exact(65).enumerate() {
        let pixel = |at: usize| f32::from(record[at]) / 16.0;
        let image: Vec<f32> = (0..64).map(pixel).collect();
        let mirrored: Vec<f32> = (0..64).map(|at| pixel(at / 8 * 8 + 7 - at % 8)).collect();
        let class = f32::from(record[64]);
        match i % 9 {
            4 => parts.device.push((mirrored, class)),
            1 | 7 => parts.test.push((mirrored, class)),
            _ => parts.pretraining.push((image, class)),
        }
    }
    Ok(parts)
}

/// Windows of 32 samples of six channels. The archive's training part trains the network; of the test part's recordings, every
/// other one is for the device. There the watch is turned by a quarter around its first axis.
pub fn motions() -> Result<Parts, Box<dyn Error>> {
    const CLASSES: [&str; 4] = ["Standing", "Running", "Walking", "Badminton"];
    const WINDOW: usize = 32;
    let mut text = String::new();
    GzDecoder::new(&data("basic_motions.csv.gz")?[..]).read_to_string(&mut text)?;
    let mut parts = Parts { pretraining: Vec::new(), device: Vec::new(), test: Vec::new() };
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    for recording in lines.chunks_exact(100) {
        let (part, number) = (recording[0][0], recording[0][2].parse::<usize>()?);
        let class = CLASSES.iter().position(|&class| class == recording[0][1]).ok_or("an unknown class")? as f32;
        for start in (0..=100 - WINDOW).step_by(8) {
            let channel = |channel: usize, sign: f32| {
                let rows = recording[start..start + WINDOW].iter();
                rows.map(move |row| Ok(sign * row[4 + channel].parse::<f32>()? / 4.0))
            };
            let worn = [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 1.0)];
            let turned = [(0, 1.0), (2, 1.0), (1, -1.0), (3, 1.0), (5, 1.0), (4, -1.0)];
            let axes = if part == "train" { worn } else { turned };
            let window = axes.into_iter().flat_map(|(axis, sign)| channel(axis, sign));
            let sample = (window.collect::<Result<_, Box<dyn Error>>>()?, class);
            match (part, number % 2) {
                ("train", _) => parts.pretraining.push(sample),
                (_, 0) => parts.device.push(sample),
                _ => parts.test.push(sample),
            }
        }
    }
    // Recordings come class by class; the device meets the classes in turns.
    let of_a_class = parts.device.len() / CLASSES.len();
    let order = (0..parts.device.len()).map(|i| i % CLASSES.len() * of_a_class + i / CLASSES.len());
    parts.device = order.map(|i| parts.device[i].clone()).collect();
    Ok(parts)
}
