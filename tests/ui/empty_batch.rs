//! A batch of nothing.

use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<B, 4>>("x");
    let y: Var<R2<B, 2>> = g.linear("fc", x);
    g.output("y", y);
    g
}

program!(static INFER = net::<0>().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
