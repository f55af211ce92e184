//! The norm of all gradients, in a program that never has all of them.

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

program!(static TRAIN = net().train(Training::with::<Adam>().fused().clip_norm(1.0)));

fn main() {
    println!("{}", TRAIN.slab_len());
}
