//! slabgrad's matrix products of the shapes that occur in W1 to W3 beside those of the crates `gemm` and `matrixmultiply`, and its
//! convolutions beside columns with a product of theirs: `cargo xtask bench --products`. All run in turns, on one thread.

mod columns;
#[path = "../../kernels/shapes.rs"]
mod shapes;
mod theirs;
#[path = "../../steps/turns.rs"]
mod turns;

use std::hint::black_box;

use cpu_time::ProcessTime;
use shapes::{CONVOLUTIONS, Operands, Pass, products};
use slabgrad::backend::{Fast, Strict};
use theirs::{THEIRS, Their};
use turns::{Run, medians};

fn main() {
    println!("GFLOP/s, and the ratio to the better of the two crates\n");
    println!("{:<16} {:>16} {:>16} {:>10} {:>16}", "", "Strict", "Fast", "gemm", "matrixmultiply");
    let mut ratios = Ratios::default();
    for product in products() {
        let theirs = |run: Their| {
            let product = &product;
            move |[a, b, c]: &mut [Vec<f32>; 3]| run(product.sizes, a, product.a, b, product.b, 0.0, c)
        };
        let [gemm, matrixmultiply] = THEIRS.map(theirs);
        let kernels: Kernels<'_, [Vec<f32>; 3]> = [
            &|[a, b, c]| product.run::<Strict<f32>>(a, b, c),
            &|[a, b, c]| product.run::<Fast<f32>>(a, b, c),
            &gemm,
            &matrixmultiply,
        ];
        let times = compare(&product.name, || product.operands(), |[_, _, c]| c, kernels);
        ratios.row(&product.name, 2.0 * product.sizes.iter().product::<usize>() as f64, times);
    }
    ratios.print("products", [0.7, 0.9]);

    println!("\nconvolutions of a batch; the crates multiply columns that plain loops gather and scatter\n");
    let mut ratios = Ratios::default();
    for (convolution, pass) in CONVOLUTIONS.iter().flat_map(|convolution| Pass::ALL.map(|pass| (convolution, pass))) {
        // Nobody needs the gradient for the network's input.
        if convolution.channels == 1 && pass == Pass::InputGradient {
            continue;
        }
        let theirs = |product: Their| move |operands: &mut Operands| columns::run(convolution, pass, product, operands);
        let [gemm, matrixmultiply] = THEIRS.map(theirs);
        let kernels: Kernels<'_, Operands> = [
            &|operands| convolution.run::<Strict<f32>>(pass, operands),
            &|operands| convolution.run::<Fast<f32>>(pass, operands),
            &gemm,
            &matrixmultiply,
        ];
        let name = format!("{} {}", convolution.name, pass.name());
        let times = compare(&name, || convolution.operands(pass), |operands| &operands.result, kernels);
        ratios.row(&name, 2.0 * convolution.multiplications() as f64, times);
    }
    ratios.print("passes of convolutions", [1.0, 1.0]);
}

/// The same work in `Strict`, in `Fast`, and by the two crates.
type Kernels<'k, T> = [&'k dyn Fn(&mut T); 4];

/// The median times of a run of each, which have to come to the same result.
fn compare<T>(name: &str, operands: impl Fn() -> T, result: fn(&T) -> &[f32], kernels: Kernels<'_, T>) -> Vec<f64> {
    let mut expected = operands();
    kernels[0](&mut expected);
    let run = |kernel| -> Run<'_> {
        let mut operands = operands();
        let kernel: &dyn Fn(&mut T) = kernel;
        kernel(&mut operands);
        check(name, result(&operands), result(&expected));
        Box::new(move |runs| {
            let start = ProcessTime::now();
            (0..runs).for_each(|_| kernel(black_box(&mut operands)));
            start.elapsed().as_secs_f64()
        })
    };
    medians(&mut kernels.map(run))
}

/// All compute the same, but for rounding.
fn check(name: &str, found: &[f32], expected: &[f32]) {
    let scale = expected.iter().fold(0.0_f32, |scale, x| scale.max(x.abs()));
    let worst = found.iter().zip(expected).fold(0.0_f32, |worst, (f, e)| worst.max((f - e).abs()));
    assert!(worst <= 1e-4 * scale, "{name}: off by {worst}, of numbers up to {scale}");
}

/// The speed of `Strict` and of `Fast` in shares of the better crate's.
#[derive(Default)]
struct Ratios(Vec<[f64; 2]>);

impl Ratios {
    /// Prints a row of rates.
    fn row(&mut self, name: &str, flops: f64, times: Vec<f64>) {
        let [strict, fast, gemm, matrixmultiply] = times[..] else { panic!("one time for each kernel") };
        let [of_strict, of_fast] = [strict, fast].map(|time| gemm.min(matrixmultiply) / time);
        let [strict, fast, gemm, matrixmultiply] = [strict, fast, gemm, matrixmultiply].map(|time| flops / time / 1e9);
        println!(
            "{name:<16} {strict:>9.1} {of_strict:>6.2} {fast:>9.1} {of_fast:>6.2} {gemm:>10.1} {matrixmultiply:>16.1}"
        );
        self.0.push([of_strict, of_fast]);
    }

    /// How many reach what was aimed at.
    fn print(&self, what: &str, goals: [f64; 2]) {
        for (i, (name, goal)) in ["Strict", "Fast"].into_iter().zip(goals).enumerate() {
            let count = self.0.iter().filter(|ratios| ratios[i] >= goal).count();
            println!("{name} reaches {goal:.1} in {count} of {} {what}", self.0.len());
        }
    }
}
