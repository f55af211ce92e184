//! The workloads (`nets.rs`) as programs, and data for them.

use slabgrad::backend::Fast;
use slabgrad::prelude::*;

use crate::nets::{w1, w2, w3};

/// A workload with its programs for one backend.
pub(crate) struct Workload<B: Backend + 'static> {
    pub(crate) name: &'static str,
    /// What the C program is compiled with.
    pub(crate) c: [&'static str; 2],
    pub(crate) features: usize,
    pub(crate) classes: usize,
    pub(crate) batch: usize,
    /// Multiplications in the matrix products of an inference, and of a training step.
    pub(crate) products: [usize; 2],
    pub(crate) train: &'static Program<'static, B>,
    pub(crate) infer: &'static Program<'static, B>,
}

/// Multiplications of the layers, for one sample: the first layer has no gradient for its input.
const fn products(batch: usize, layers: &[usize]) -> [usize; 2] {
    let (mut all, mut i) = (0, 0);
    while i < layers.len() {
        all += layers[i];
        i += 1;
    }
    [batch * all, batch * (3 * all - layers[0])]
}

const LAYERS: [&[usize]; 3] =
    [&[64 * 32, 32 * 10], &[784 * 256, 256 * 128, 128 * 10], &[784 * 9 * 16, 196 * 144 * 32, 6272 * 64, 64 * 4]];

macro_rules! workloads {
    ($name:ident, $backend:ty) => {
        pub(crate) fn $name() -> [Workload<$backend>; 5] {
            macro_rules! workload {
                ($title:literal, $net:ident, $batch:literal, $c:expr, $features:expr, $classes:expr, $layers:expr) => {{
                    program!(static TRAIN: Program<$backend> = $net::<$backend, $batch>().train(Training::with::<Adam>()));
                    program!(static INFER: Program<$backend> = $net::<$backend, $batch>().infer());
                    Workload {
                        name: $title,
                        c: $c,
                        features: $features,
                        classes: $classes,
                        batch: $batch,
                        products: products($batch, LAYERS[$layers]),
                        train: &TRAIN,
                        infer: &INFER,
                    }
                }};
            }
            [
                workload!("W1", w1, 16, ["-DW=1", "-DBATCH=16"], 64, 10, 0),
                workload!("W2", w2, 32, ["-DW=2", "-DBATCH=32"], 784, 10, 1),
                workload!("W3", w3, 32, ["-DW=3", "-DBATCH=32"], 784, 4, 2),
                workload!("W4-mlp", w1, 1, ["-DW=1", "-DBATCH=1"], 64, 10, 0),
                workload!("W4-cnn", w3, 1, ["-DW=3", "-DBATCH=1"], 784, 4, 2),
            ]
        }
    };
}

workloads!(strict, Strict<f32>);
workloads!(fast, Fast<f32>);

/// Samples of classes: a prototype for each, and noise, as `baseline/data.h` makes them.
pub(crate) struct Data {
    pub(crate) x: Vec<f32>,
    pub(crate) labels: Vec<f32>,
}

impl Data {
    pub(crate) fn new(samples: usize, features: usize, classes: usize) -> Self {
        let mut state = 12345_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut data = Self { x: Vec::new(), labels: Vec::new() };
        for _ in 0..samples {
            let class = random() as usize % classes;
            data.labels.push(class as f32);
            for i in 0..features {
                data.x.push(0.7 * prototype(class, i) + 0.3 * (random() as f32 / 16_777_216.0));
            }
        }
        data
    }
}

fn prototype(class: usize, i: usize) -> f32 {
    let mut h = ((class * 7919 + i * 104_729 + 17) as u32).wrapping_mul(2_654_435_761);
    h ^= h >> 15;
    h = h.wrapping_mul(2_246_822_519);
    h ^= h >> 13;
    if h & 0xffff < 0x5000 { (h >> 16 & 0xff) as f32 / 255.0 } else { 0.0 }
}
