//! Two layers with one name.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<8, 4>>("x");
    let h: Var<R2<8, 8>> = g.linear("fc", x);
    let y: Var<R2<8, 2>> = g.linear("fc", h);
    g.output("y", y);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
