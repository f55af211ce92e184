//! Fits sin(x) over -π to π with a small perceptron on a tape, written as expressions.
//!
//! `cargo run --release --example regression`

use slabgrad::graph::Name;
use slabgrad::optim::Cosine;
use slabgrad::prelude::*;
use slabgrad::tape::{Handle, Scope, Storage, Tape, TapeError};

const SAMPLES: usize = 64;
const HIDDEN: usize = 32;
const STEPS: usize = 2000;

/// `x` `[n, 1]` through two hidden layers.
fn perceptron<'t, S: Storage>(
    scope: &'t Scope<'t, S>,
    x: slabgrad::tape::Expr<'t, S>,
    parameters: &[Handle; 6],
) -> slabgrad::tape::Expr<'t, S> {
    let [w0, b0, w1, b1, w2, b2] = parameters.map(|var| scope.of(var));
    let h = x.linear(w0, Some(b0)).tanh();
    let h = h.linear(w1, Some(b1)).tanh();
    h.linear(w2, Some(b2))
}

fn main() -> Result<(), TapeError> {
    let mut tape = Tape::new();
    let mut layer = |name, inputs, outputs| {
        let weight = tape.init_parameter(Name::new(name, "weight"), [outputs, inputs], Init::XavierUniform, 1);
        [weight, tape.parameter([outputs], &vec![0.0; outputs])]
    };
    let layers = [layer("fc0", 1, HIDDEN), layer("fc1", HIDDEN, HIDDEN), layer("fc2", HIDDEN, 1)];
    let parameters = [layers[0][0], layers[0][1], layers[1][0], layers[1][1], layers[2][0], layers[2][1]];
    let mark = tape.mark();
    let mut moments = tape.moments::<Adam>();

    let x: [f32; SAMPLES] =
        std::array::from_fn(|i| (i as f32 / (SAMPLES - 1) as f32 * 2.0 - 1.0) * std::f32::consts::PI);
    let y = x.map(libm::sinf);
    let rate = Cosine::new(1e-2, 1e-5, STEPS);
    for step in 0..STEPS {
        let scope = tape.scope();
        let prediction = perceptron(&scope, scope.constant([SAMPLES, 1], &x), &parameters);
        let loss = (prediction - scope.constant([SAMPLES, 1], &y)).square().mean(&[], false);
        if step % 500 == 0 || step == STEPS - 1 {
            println!("step {step:4}: mean squared error {:.2e}", loss.item());
        }
        let loss = loss.handle();
        tape.backward(loss)?;
        tape.update(&Adam::new(rate.lr(step)), &mut moments)?;
        tape.reset_to(mark);
    }

    // Between the samples.
    let test: [f32; 63] = std::array::from_fn(|i| x[i].midpoint(x[i + 1]));
    let scope = tape.scope();
    let found = perceptron(&scope, scope.constant([63, 1], &test), &parameters).to_vec();
    tape.check()?;
    let worst = test.iter().zip(found).map(|(x, y)| (libm::sinf(*x) - y).abs()).fold(0.0, f32::max);
    println!("largest error between the samples: {worst:.4}");
    Ok(())
}
