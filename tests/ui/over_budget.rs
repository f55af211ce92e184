//! Training takes more RAM than the budget says.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 64>>("x");
    let y = g.input::<R2<1, 10>>("y");
    let h: Var<R2<1, 128>> = g.linear("fc1", x);
    let p: Var<R2<1, 10>> = g.linear("fc2", h);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

fn main() {
    const { assert!(TRAIN.ram_bytes() <= 64 * 1024) };
}
