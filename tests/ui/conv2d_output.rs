//! The stride halves height and width; the annotation says otherwise.

use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 28, 28>>("image");
    let h: Var<R4<B, 8, 28, 28>> = g.conv2d("conv1", x, Conv2d::kernel(3).stride(2).padding(1));
    g.output("h", h);
    g
}

program!(static INFER = net::<1>().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
