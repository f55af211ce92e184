//! Pooling by 2 of 8 x 8 gives 4 x 4.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<1, 3, 8, 8>>("image");
    let h: Var<R4<1, 3, 2, 2>> = g.max_pool2d(x, Window2d::size(2));
    g.output("h", h);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
