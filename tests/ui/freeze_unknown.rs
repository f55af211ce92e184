//! No layer has this name.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let h: Var<R2<8, 8>> = g.linear("fc1", x);
    let y: Var<R2<8, 2>> = g.linear("fc2", h);
    g.output("y", y);
    g.freeze("conv1");
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
