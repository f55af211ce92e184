//! A training step against width, batch and depth: `cargo bench --bench scaling`, or with a file behind `--` a plot of it there
//! (`cargo xtask bench --scaling`).
//!
//! The networks are MLPs with relu, softmax cross-entropy and Adam, put together from layers and compiled, in `Strict`. In each of
//! three series one number grows, and the work with it, in a straight line:
//!
//! - width: 784-w-10, batch 32;
//! - batch: 784-256-128-10, batch b;
//! - depth: 256-..-10 with d hidden layers of 128, batch 32.
//!
//! All sizes of a series run in turns, in blocks. The line is the one of least squares relative to the times.

#[path = "steps/turns.rs"]
mod turns;

use std::{error::Error, hint::black_box};

use cpu_time::ProcessTime;
use plotters::prelude::{BLACK, BLUE, ChartBuilder, Circle, Color, IntoDrawingArea, LineSeries, SVGBackend, WHITE};
use slabgrad::compiled::Context;
use slabgrad::layer::{Model, Sequential};
use slabgrad::prelude::{Adam, CrossEntropy, Shape};
use slabgrad::tape::{GrowingTape, Handle};
use turns::{Run, medians};

struct Series {
    name: &'static str,
    network: &'static str,
    sizes: &'static [usize],
    /// The layers' sizes, and the batch.
    net: fn(usize) -> (Vec<usize>, usize),
}

const SERIES: [Series; 3] = [
    Series {
        name: "width",
        network: "784-w-10, batch 32",
        sizes: &[64, 128, 192, 256, 384, 512, 768],
        net: |width| (vec![784, width, 10], 32),
    },
    Series {
        name: "batch",
        network: "784-256-128-10",
        sizes: &[1, 16, 32, 64, 96, 128, 192],
        net: |batch| (vec![784, 256, 128, 10], batch),
    },
    Series {
        name: "depth",
        network: "256-128-..-128-10, batch 32",
        sizes: &[1, 2, 4, 8, 12, 16],
        net: |depth| ([vec![256], vec![128; depth], vec![10]].concat(), 32),
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().skip(1).find(|word| word != "--bench");
    let measured = SERIES.map(|series| {
        let mut runs: Vec<Run<'_>> = series.sizes.iter().map(|&size| training((series.net)(size))).collect();
        let points: Points =
            series.sizes.iter().zip(medians(&mut runs)).map(|(&size, time)| (size as f64, time * 1e6)).collect();
        let line = Line::through(&points);
        println!("{} ({})", series.name, series.network);
        for &(size, time) in &points {
            let off = 100.0 * (time / line.at(size) - 1.0);
            println!(
                "{size:>8} {time:>9.1} µs {off:>+6.1} % off {:.1} + {:.2} {}",
                line.start, line.slope, series.name
            );
        }
        (series, points, line)
    });
    if let Some(file) = file {
        draw(&file, &measured)?;
    }
    Ok(())
}

/// Training steps of the network, from first to last on one batch.
fn training((sizes, batch): (Vec<usize>, usize)) -> Run<'static> {
    let mut layers = Sequential::new();
    for (i, size) in sizes.windows(2).enumerate() {
        layers = if i == 0 { layers } else { layers.relu() }.linear(format!("fc{}", i + 1), size[0], size[1]);
    }
    let mut model: Model = Model::new(layers, [sizes[0]], 1).expect("the layers fit");
    let x: Vec<f32> = (0..batch * sizes[0]).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect();
    let label: Vec<f32> = (0..batch).map(|i| (i % 10) as f32).collect();
    let mut context = Context::new();
    Box::new(move |steps| {
        let loss =
            |tape: &mut GrowingTape, y: Handle, extra: &[Handle]| tape.cross_entropy(y, extra[0], CrossEntropy::new());
        let (x, label) = ((Shape::new([batch, sizes[0]]), &x[..]), (Shape::new([batch]), &label[..]));
        let start = ProcessTime::now();
        for _ in 0..steps {
            // So slow that the loss stays away from zero, whose arithmetic may be slower.
            let step = context.training_step(&mut model, &mut Adam::new(1e-9), loss, black_box(x), &[label]);
            black_box(step.expect("a step"));
        }
        start.elapsed().as_secs_f64()
    })
}

/// A straight line.
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    /// The line with the least squares of distances relative to the points' heights.
    fn through(points: &[(f64, f64)]) -> Self {
        let [mut w, mut wx, mut wxx, mut wy, mut wxy] = [0.0; 5];
        for &(x, y) in points {
            let weight = 1.0 / (y * y);
            w += weight;
            wx += weight * x;
            wxx += weight * x * x;
            wy += weight * y;
            wxy += weight * x * y;
        }
        let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
        Self { start: (wy - slope * wx) / w, slope }
    }

    fn at(&self, x: f64) -> f64 {
        self.start + self.slope * x
    }
}

type Points = Vec<(f64, f64)>;

fn draw(file: &str, measured: &[(Series, Points, Line)]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(file, (960, 320)).into_drawing_area();
    area.fill(&WHITE)?;
    for ((series, points, line), area) in measured.iter().zip(area.split_evenly((1, measured.len()))) {
        let [right, top] = points.iter().fold([0.0_f64; 2], |[x, y], point| [x.max(point.0), y.max(point.1)]);
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{}: {}", series.name, series.network), ("sans-serif", 14))
            .margin(12)
            .x_label_area_size(32)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..right * 1.05, 0.0..top * 1.1)?;
        chart
            .configure_mesh()
            .x_desc(series.name)
            .y_desc("µs a step")
            .x_labels(5)
            .y_labels(6)
            .light_line_style(WHITE)
            .draw()?;
        chart.draw_series(LineSeries::new([0.0, right].map(|x| (x, line.at(x))), BLACK.mix(0.5)))?;
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, BLUE.filled())))?;
    }
    area.present()?;
    Ok(())
}
