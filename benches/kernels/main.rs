//! Kernels and steps by criterion, which keeps what it measured and says what changed: `cargo bench --bench kernels`, with a name
//! behind `--` for some of them. `cargo xtask bench` and `cargo xtask bench --products` compare with others.

#[path = "../steps/nets.rs"]
mod nets;
mod shapes;
#[allow(dead_code)]
#[path = "../steps/workloads.rs"]
mod workloads;

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shapes::{CONVOLUTIONS, Convolution, Pass, Product, products};
use slabgrad::backend::Fast;
use slabgrad::optim::{Group, Optimizer};
use slabgrad::prelude::*;
use workloads::{Data, Workload};

const BACKENDS: [&str; 2] = ["strict", "fast"];

/// Elements, or multiplications, a second are what criterion calls a throughput.
fn elements(count: usize) -> Throughput {
    Throughput::Elements(count as u64)
}

fn matmul(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("matmul");
    for product in products() {
        let [a, b, mut c] = product.operands();
        group.throughput(elements(product.sizes.iter().product()));
        let kernels = [Product::run::<Strict<f32>>, Product::run::<Fast<f32>>];
        for (name, run) in BACKENDS.iter().zip(kernels) {
            let id = BenchmarkId::new(*name, &product.name);
            group.bench_function(id, |bencher| {
                bencher.iter(|| run(&product, black_box(&a), black_box(&b), black_box(&mut c)));
            });
        }
    }
}

fn conv2d(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("conv2d");
    for (convolution, pass) in CONVOLUTIONS.iter().flat_map(|convolution| Pass::ALL.map(|pass| (convolution, pass))) {
        let mut operands = convolution.operands(pass);
        group.throughput(elements(convolution.multiplications()));
        let kernels = [Convolution::run::<Strict<f32>>, Convolution::run::<Fast<f32>>];
        for (name, run) in BACKENDS.iter().zip(kernels) {
            let id = BenchmarkId::new(*name, format!("{} {}", convolution.name, pass.name()));
            group.bench_function(id, |bencher| bencher.iter(|| run(convolution, pass, black_box(&mut operands))));
        }
    }
}

fn adam(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("adam");
    for count in [1 << 12, 1 << 20_usize] {
        let [mut p, g, mut m, mut v] = [0.5, 1e-3, 0.0, 0.0].map(|x: f32| vec![x; count]);
        let coefficients = Optimizer::<Strict<f32>>::begin(&Adam::<f32>::new(1e-3), &mut [0.0; 4]);
        group.throughput(elements(count));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let moments = [&mut m[..], &mut v, &mut []];
                let update = <Adam as Optimizer<Strict<f32>>>::update;
                update(&coefficients, &Group::default(), black_box(&mut p), black_box(&g), moments);
            });
        });
    }
}

fn step(criterion: &mut Criterion) {
    steps(criterion, "strict", &workloads::strict());
    steps(criterion, "fast", &workloads::fast());
}

fn steps<B: Backend<Elem = f32>>(criterion: &mut Criterion, backend: &str, workloads: &[Workload<B>]) {
    let mut group = criterion.benchmark_group("step");
    for Workload { name, features, classes, batch, products: [_, multiplications], train, .. } in workloads {
        let data = Data::new(*batch, *features, *classes);
        let mut slab = vec![0.0; train.slab_len()];
        let mut memory = train.memory(&mut slab).expect("a slab for training");
        train.init(&mut memory, 1).expect("parameters");
        // So slow that the loss stays away from zero, whose arithmetic may be slower.
        let mut adam = Adam::new(1e-9);
        group.throughput(elements(*multiplications));
        group.bench_function(BenchmarkId::new(backend, name), |bencher| {
            bencher.iter(|| train.step(&mut memory, &[black_box(&data.x), &data.labels], &mut adam).expect("a step"));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(2));
    targets = matmul, conv2d, adam, step
}
criterion_main!(benches);
