//! Trains a convolutional net that is put together from layers on 8,000 handwritten digits, and tests it on 2,000 others.
//!
//! `cargo run --release --features progress --example mnist_cnn [CURVE.svg]`
//!
//! The digits are a part of MNIST (see `data/README.md`). A tenth of the training digits is held out to choose the best epoch;
//! the test digits are looked at once, at the end. The losses are drawn to `target/mnist_cnn.svg`, or where the argument says.

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::read::GzDecoder;
use plotters::prelude::{
    BLACK, BLUE, ChartBuilder, Color, IntoDrawingArea, LineSeries, PathElement, RED, RGBColor, SVGBackend, WHITE,
};
use slabgrad::layer::{Model, Sequential};
use slabgrad::optim::OneCycle;
use slabgrad::prelude::*;
use slabgrad::tape::{GrowingTape, Handle};
use slabgrad::train::{Dataset, History, ProgressBar, Trainer, evaluate};

const BATCH: usize = 32;
const EPOCHS: usize = 8;
const LEARNING_RATE: f32 = 3e-3;
/// Decides the split, the initial parameters and the order of the digits: everything that is random.
const SEED: u64 = 1;

fn net() -> Sequential {
    Sequential::new()
        .conv2d("conv1", 1, 16, Conv2d::kernel(3).padding(1))
        .relu()
        .max_pool2d(Window2d::size(2))
        .conv2d("conv2", 16, 32, Conv2d::kernel(3).padding(1))
        .relu()
        .max_pool2d(Window2d::size(2))
        .flatten()
        .dropout(0.25)
        .linear("fc1", 32 * 7 * 7, 64)
        .relu()
        .linear("fc2", 64, 10)
}

fn loss(tape: &mut GrowingTape, logits: Handle, label: Handle) -> Handle {
    tape.cross_entropy(logits, label, CrossEntropy::new().label_smoothing(0.05))
}

fn main() -> Result<(), Box<dyn Error>> {
    let curve = std::env::args_os().nth(1).map_or_else(|| "target/mnist_cnn.svg".into(), PathBuf::from);
    let start = Instant::now();
    let (training, validation) = digits("train")?.split(0.1, SEED)?;
    let test = digits("test")?;
    let mut model: Model = Model::new(net(), [1, 28, 28], SEED)?;
    println!("{model}\n{} parameters", model.parameter_count());
    println!("{} digits to train with, {} to validate, {} to test", training.len(), validation.len(), test.len());

    let schedule = OneCycle::new(LEARNING_RATE, EPOCHS * training.len().div_ceil(BATCH));
    let history = Trainer::new(EPOCHS, BATCH)
        .seed(SEED)
        .validation(&validation)
        .schedule(&schedule)
        .keep_best()
        .callback(&mut ProgressBar::new())
        .fit(&mut model, &training, &mut Adam::new(LEARNING_RATE), loss)?;

    let evaluation = evaluate(&mut model, &test, BATCH, loss)?;
    draw(&history, &curve)?;
    println!(
        "test accuracy {:.2} %, loss {:.4}, after {:.1} s; losses in {}",
        100.0 * evaluation.accuracy.unwrap_or_default(),
        evaluation.loss,
        start.elapsed().as_secs_f64(),
        curve.display()
    );
    Ok(())
}

/// The digits of one part, as 28 x 28 pixels from 0 (paper) to 1 (ink).
fn digits(part: &str) -> Result<Dataset, Box<dyn Error>> {
    let images = idx(&format!("mnist-{part}-images.idx3-ubyte.gz"), 16)?;
    let labels = idx(&format!("mnist-{part}-labels.idx1-ubyte.gz"), 8)?;
    let pixels = images.into_iter().map(|pixel| f32::from(pixel) / 255.0).collect();
    Ok(Dataset::with_labels([1, 28, 28], pixels, 10, labels.into_iter().map(usize::from))?)
}

/// The bytes of an IDX file behind its header.
fn idx(name: &str, header: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    let file = std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes)?;
    bytes.drain(..header.min(bytes.len()));
    Ok(bytes)
}

/// Draws the losses over the epochs.
fn draw(history: &History<f32>, path: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let area = SVGBackend::new(path, (720, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let losses = history.epochs.iter().flat_map(|report| [Some(report.loss), report.validation_loss]).flatten();
    let (epochs, highest) = (history.epochs.len().max(2) as f32, losses.fold(0.0, f32::max));
    let mut chart = ChartBuilder::on(&area)
        .caption("Handwritten digits: cross-entropy after each epoch", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(1.0..epochs, 0.0..highest)?;
    chart.configure_mesh().x_desc("epoch").y_desc("loss").x_labels(history.epochs.len()).draw()?;

    let mut line = |name: &str, color: RGBColor, loss: &dyn Fn(usize) -> Option<f32>| {
        let points = (0..history.epochs.len()).filter_map(|i| Some((i as f32 + 1.0, loss(i)?)));
        let series = chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        series.label(name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], color));
        Ok::<(), Box<dyn Error>>(())
    };
    line("training", BLUE, &|i| Some(history.epochs[i].loss))?;
    line("validation", RED, &|i| history.epochs[i].validation_loss)?;
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    area.present()?;
    Ok(())
}
