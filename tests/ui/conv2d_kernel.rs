//! A kernel of 5 on an image of 4.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<1, 1, 4, 4>>("image");
    let h: Var<R4<1, 8, 4, 4>> = g.conv2d("conv1", x, Conv2d::kernel(5));
    g.output("h", h);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
