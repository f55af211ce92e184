//! The second layer computes what nothing uses.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let y = g.input::<R2<8, 2>>("y");
    let p = g.linear("fc1", x);
    let _: Var<R2<8, 2>> = g.linear("fc2", x);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

fn main() {
    println!("{}", TRAIN.slab_len());
}
