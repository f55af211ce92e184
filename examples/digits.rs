//! Trains a small convolutional net on 1797 handwritten digits, in static memory.
//!
//! `cargo run --release --example digits`
//!
//! The digits are 8 x 8 pixels of 0 to 16 (see `data/README.md`). A seeded shuffle splits them into 1437 to train with and
//! 360 to test with, which are looked at once, at the end. Every epoch shuffles the training digits anew and cuts them into
//! batches of 16; the 13 that are left over sit that epoch out, because a program's batch size is fixed.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;
use slabgrad::prelude::*;

/// The network for batches of `B` images. The compiler checks every shape in it.
pub(crate) const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 16, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<B, 16, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 32, 4, 4>> = g.conv2d("conv2", h, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R2<B, 512>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("logits", logits);
    // Smoothed labels were worth 0.7 points over twelve splits. The loss stays above 0.5, the entropy of such a label.
    let loss = g.cross_entropy_with(logits, label, CrossEntropy::new().label_smoothing(0.1));
    g.loss(loss);
    g
}

const BATCH: usize = 16;
const EPOCHS: usize = 20;
const LEARNING_RATE: f32 = 2e-3;
/// Decides the split, the initial parameters and the order of the digits: everything that is random.
const SEED: u64 = 1;

// Two programs of one network. They share the parameters, and here all of the memory.
program!(static TRAIN = net::<BATCH>().train(Training::with::<Adam>().fused().keep_outputs()));
program!(static INFER = net::<1>().infer());

/// All the memory that training takes: its size is known when the compiler is done.
static SLAB: Mutex<[f32; TRAIN.slab_len()]> = Mutex::new(TRAIN.slab());

/// 64 pixels and the label.
type Digit = [u8; 65];
static DIGITS: &[Digit] = include_bytes!("../data/digits.bin").as_chunks().0;
const DIGITS_LEN: usize = 1797;
const TRAIN_LEN: usize = 1437;

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Xoshiro256StarStar::seed_from_u64(SEED);
    let mut digits: [&Digit; DIGITS_LEN] = std::array::from_fn(|i| &DIGITS[i]);
    shuffle(&mut digits, &mut random);
    let (train, test) = digits.split_at_mut(TRAIN_LEN);
    println!("{} digits to train with, {} to test with, seed {SEED}", train.len(), test.len());

    let mut slab = SLAB.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = TRAIN.memory(slab.as_mut_slice())?;
    print_memory(&memory);

    TRAIN.init(&mut memory, SEED)?;
    let mut adam = Adam::new(LEARNING_RATE);
    for epoch in 1..=EPOCHS {
        shuffle(train, &mut random);
        train_epoch(epoch, train, &mut memory, &mut adam)?;
    }

    let accuracy = evaluate(test, &mut memory)?;
    println!("test accuracy {accuracy:.2} %");
    Ok(())
}

/// Trains with every full batch of `digits` and shows the mean loss and the accuracy so far.
fn train_epoch(
    epoch: usize,
    digits: &[&Digit],
    memory: &mut Memory<f32>,
    optimizer: &mut Adam,
) -> Result<(), Box<dyn Error>> {
    let (batches, _left_over) = digits.as_chunks::<BATCH>();
    let style = ProgressStyle::with_template("{prefix} {bar:24} {msg}")?;
    let bar = ProgressBar::new(batches.len() as u64).with_style(style);
    bar.set_prefix(format!("epoch {epoch:2}/{EPOCHS}"));

    let (mut loss, mut correct, mut seen) = (0.0, 0, 0);
    for batch in batches {
        let images = batch.map(image);
        let labels = batch.map(|digit| f32::from(label(digit)));
        loss += f64::from(TRAIN.step(memory, &[images.as_flattened(), &labels], optimizer)?);

        let logits = TRAIN.output(memory, "logits").unwrap_or_default();
        correct += logits.chunks(10).zip(batch).filter(|(logits, digit)| largest(logits) == label(digit)).count();
        seen += BATCH;
        bar.inc(1);
        let mean = loss / bar.position() as f64;
        bar.set_message(format!("loss {mean:.4}  accuracy {:6.2} %", percent(correct, seen)));
    }
    bar.finish();
    // Without a terminal there is no bar; a line for each epoch then.
    if bar.is_hidden() {
        println!("{}  {}", bar.prefix(), bar.message());
    }
    Ok(())
}

/// Prints the confusion matrix and returns the accuracy in percent.
fn evaluate(digits: &[&Digit], memory: &mut Memory<f32>) -> Result<f64, RunError> {
    let mut confusion = [[0_usize; 10]; 10];
    for digit in digits {
        INFER.run(memory, &[&image(digit)])?;
        let predicted = largest(INFER.output(memory, "logits").unwrap_or_default());
        confusion[usize::from(label(digit))][usize::from(predicted)] += 1;
    }

    println!("\nconfusion matrix: a row for each digit, a column for each prediction");
    println!("       0   1   2   3   4   5   6   7   8   9");
    for (digit, row) in confusion.iter().enumerate() {
        println!("  {digit} {}", row.map(|count| format!("{count:4}")).concat());
    }
    println!();
    Ok(percent((0..10).map(|digit| confusion[digit][digit]).sum(), digits.len()))
}

fn print_memory(memory: &Memory<f32>) {
    let inputs: usize = TRAIN.inputs().iter().map(|input| input.shape.len() * size_of::<f32>()).sum();
    let slab = [
        ("params", size_of_val(memory.params)),
        ("state", size_of_val(memory.state)),
        ("grads", size_of_val(memory.grads)),
        ("moments", size_of_val(memory.moments)),
        ("work", size_of_val(memory.work)),
    ];
    assert_eq!(slab.iter().map(|(_, bytes)| bytes).sum::<usize>(), TRAIN.ram_bytes());

    println!("\nmemory in bytes");
    for (space, bytes) in [("inputs", inputs), ("frozen", size_of_val(memory.frozen))].iter().chain(&slab) {
        println!("  {space:8}{bytes:8}");
    }
    println!("  slab    {:8}  from params to work; to infer alone takes {}\n", TRAIN.ram_bytes(), INFER.ram_bytes());
}

fn image(digit: &Digit) -> [f32; 64] {
    std::array::from_fn(|pixel| f32::from(digit[pixel]) / 16.0)
}

fn label(digit: &Digit) -> u8 {
    digit[64]
}

/// The class with the largest logit.
fn largest(logits: &[f32]) -> u8 {
    (0..).zip(logits).max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(class, _)| class)
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Fisher and Yates' shuffle.
fn shuffle<T>(items: &mut [T], random: &mut impl RngCore) {
    for i in (1..items.len()).rev() {
        items.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}
