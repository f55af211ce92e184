//! Inference without an output.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let _: Var<R2<8, 2>> = g.linear("fc", x);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
