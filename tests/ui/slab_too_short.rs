//! A slab of ten elements.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let y = g.input::<R2<8, 2>>("y");
    let p = g.linear("fc", x);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

static SLAB: [f32; 10] = TRAIN.slab();

fn main() {
    println!("{}", SLAB.len());
}
