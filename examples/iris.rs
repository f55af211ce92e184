//! Three species of iris from four lengths, on a tape: a third of the 150 flowers is held out, the others are learned from.
//!
//! `cargo run --release --example iris`
//!
//! A seeded shuffle cuts the flowers into thirds, and each is held out once: of one third alone, every flower is 2 %. The
//! lengths are brought to mean 0 and deviation 1 by the flowers that are learned from.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;
use slabgrad::graph::Name;
use slabgrad::metrics;
use slabgrad::prelude::*;
use slabgrad::tape::{GrowingTape, Handle, Tape, TapeError};

/// Four lengths in cm, and the species.
type Flower = ([f32; 4], f32);

const SEED: u64 = 1;
const TRAIN: usize = 100;
const HIDDEN: usize = 16;
const EPOCHS: usize = 120;
const BATCH: usize = 10;

fn flowers() -> Vec<Flower> {
    let rows = include_str!("../data/iris.csv").lines().skip(1);
    rows.map(|row| {
        let mut fields = row.split(',').map(|field| field.parse().expect("iris.csv holds numbers"));
        let mut next = || fields.next().expect("a row has five fields");
        ([next(), next(), next(), next()], next())
    })
    .collect()
}

fn shuffle<T>(items: &mut [T], random: &mut impl RngCore) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.next_u64() as usize % (i + 1));
    }
}

/// Brings all lengths to mean 0 and deviation 1 over the first `count` flowers.
fn standardise(flowers: &mut [Flower], count: usize) {
    for feature in 0..4 {
        let column = flowers[..count].iter().map(|(x, _)| x[feature]);
        let mean = column.clone().sum::<f32>() / count as f32;
        let variance = column.map(|x| (x - mean) * (x - mean)).sum::<f32>() / count as f32;
        flowers.iter_mut().for_each(|(x, _)| x[feature] = (x[feature] - mean) / variance.sqrt());
    }
}

fn logits(tape: &mut GrowingTape, [w0, b0, w1, b1]: [Handle; 4], flowers: &[Flower]) -> Handle {
    let x: Vec<f32> = flowers.iter().flat_map(|(x, _)| *x).collect();
    let x = tape.constant([flowers.len(), 4], &x);
    let h = tape.linear(x, w0, Some(b0));
    let h = tape.relu(h);
    tape.linear(h, w1, Some(b1))
}

/// Learns from the first flowers. Returns how many of the others it tells right.
fn learn(flowers: &mut [Flower], random: &mut impl RngCore) -> Result<usize, TapeError> {
    standardise(flowers, TRAIN);
    let (train, test) = flowers.split_at_mut(TRAIN);
    let mut tape = Tape::new();
    let parameters = [
        tape.init_parameter(Name::new("fc0", "weight"), [HIDDEN, 4], Init::HeUniform, SEED),
        tape.parameter([HIDDEN], &[0.0; HIDDEN]),
        tape.init_parameter(Name::new("fc1", "weight"), [3, HIDDEN], Init::HeUniform, SEED),
        tape.parameter([3], &[0.0; 3]),
    ];
    for parameter in parameters {
        tape.set_group(parameter, ParamGroup::new().weight_decay(0.01));
    }
    let (mark, mut moments) = (tape.mark(), tape.moments::<Adam>());
    for _ in 0..EPOCHS {
        shuffle(train, random);
        for batch in train.chunks(BATCH) {
            let logits = logits(&mut tape, parameters, batch);
            let species: Vec<f32> = batch.iter().map(|&(_, species)| species).collect();
            let species = tape.constant([batch.len()], &species);
            let loss = tape.cross_entropy(logits, species, CrossEntropy::new());
            tape.backward(loss)?;
            tape.update(&Adam::new(0.01), &mut moments)?;
            tape.reset_to(mark);
        }
    }
    let logits = logits(&mut tape, parameters, test);
    tape.check()?;
    let predicted = tape.value(logits).chunks(3).map(metrics::argmax);
    Ok(predicted.zip(&*test).filter(|(class, (_, species))| class.map(|class| class as f32) == Some(*species)).count())
}

fn main() -> Result<(), TapeError> {
    let mut random = Xoshiro256StarStar::seed_from_u64(SEED);
    let mut all = flowers();
    shuffle(&mut all, &mut random);
    let held_out = all.len() - TRAIN;
    let mut right = 0;
    for third in 1..=3 {
        all.rotate_left(held_out);
        let found = learn(&mut all.clone(), &mut random)?;
        println!("third {third}: {found} of {held_out} flowers that were held out are told right");
        right += found;
    }
    println!("accuracy on flowers that were held out: {:.1} %", 100.0 * right as f32 / all.len() as f32);
    Ok(())
}
