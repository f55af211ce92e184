//! A matrix product of [16, 64] and [63, 10].

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<16, 64>>("x");
    let weight = g.parameter::<R2<63, 10>>("fc", "weight", Init::HeUniform);
    let y = g.matmul(x, weight);
    g.output("y", y);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
