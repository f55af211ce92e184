//! A linear layer of 64 features with a weight for 63.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<16, 64>>("x");
    let weight = g.parameter::<R2<10, 63>>("fc", "weight", Init::HeUniform);
    let y = g.linear_from(x, weight, None);
    g.output("y", y);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
