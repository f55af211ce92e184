//! Types cannot compute the output of a convolution, so it has to be annotated.

use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<1, 1, 28, 28>>("image");
    let h = g.conv2d("conv1", x, Conv2d::kernel(3));
    g.output("h", h);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
