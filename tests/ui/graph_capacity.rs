//! Two linear layers are seven nodes: an input, two weights, two biases, two operations.

use slabgrad::prelude::*;

const fn net() -> Graph<Strict<f32>, 4> {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 4>>("x");
    let h: Var<R2<1, 8>> = g.linear("fc1", x);
    let y: Var<R2<1, 2>> = g.linear("fc2", h);
    g.output("y", y);
    g
}

program!(static INFER = net().infer(), nodes = 4);

fn main() {
    println!("{}", INFER.slab_len());
}
