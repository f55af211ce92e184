//! Exclusive or on a tape in a slab of 2 KB, as a microcontroller would run it: no allocator is used.
//!
//! `cargo run --release --example xor`

use slabgrad::graph::Name;
use slabgrad::prelude::*;
use slabgrad::tape::{FixedTape, TapeError};

const HIDDEN: usize = 8;
/// Weights and biases of two layers.
const PARAMETERS: usize = 2 * HIDDEN + HIDDEN + HIDDEN + 1;
const X: [f32; 8] = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
const Y: [f32; 4] = [0.0, 1.0, 1.0, 0.0];

fn main() -> Result<(), TapeError> {
    let mut slab = [0.0; 512];
    let mut moments = [0.0; slabgrad::optim::HEADER_LEN + 2 * PARAMETERS];
    let mut tape: FixedTape<16> = FixedTape::in_slab(&mut slab, PARAMETERS).expect("the slab holds the parameters");
    let w1 = tape.init_parameter(Name::new("hidden", "weight"), [HIDDEN, 2], Init::XavierUniform, 1);
    let b1 = tape.parameter([HIDDEN], &[0.0; HIDDEN]);
    let w2 = tape.init_parameter(Name::new("out", "weight"), [1, HIDDEN], Init::XavierUniform, 1);
    let b2 = tape.parameter([1], &[0.0]);
    let mark = tape.mark();

    let adam = Adam::new(0.05);
    for step in 0..=300 {
        tape.reset_to(mark);
        let (x, y) = (tape.constant([4, 2], &X), tape.constant([4, 1], &Y));
        let h = tape.linear(x, w1, Some(b1));
        let h = tape.tanh(h);
        let logits = tape.linear(h, w2, Some(b2));
        let loss = tape.bce_with_logits(logits, y, Reduction::Mean);
        tape.backward(loss)?;
        if step % 100 == 0 {
            println!("step {step:3}: loss {:.4}", tape.item(loss));
        }
        if step == 300 {
            let p = tape.sigmoid(logits);
            for (x, p) in X.chunks(2).zip(tape.value(p)) {
                println!("{} xor {} = {p:.3}", x[0], x[1]);
            }
            println!("{} nodes, {} elements of the slab beside the parameters", tape.len(), tape.work_len());
        }
        tape.update(&adam, &mut moments)?;
    }
    Ok(())
}
