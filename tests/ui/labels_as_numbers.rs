//! Class indices as an ordinary vector.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let label = g.input::<R1<8>>("label");
    let logits: Var<R2<8, 3>> = g.linear("fc", x);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static TRAIN = net().train(Training::with::<Adam>()));

fn main() {
    println!("{}", TRAIN.slab_len());
}
