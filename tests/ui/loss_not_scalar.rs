//! The output of a layer as the loss.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let p: Var<R2<8, 2>> = g.linear("fc", x);
    g.loss(p);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

fn main() {
    println!("{}", TRAIN.slab_len());
}
