//! 8 channels of 4 x 4 are 128 features.

use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 8, 4, 4>>("image");
    let h: Var<R2<B, 64>> = g.flatten(x);
    let y: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("y", y);
    g
}

program!(static INFER = net::<1>().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
