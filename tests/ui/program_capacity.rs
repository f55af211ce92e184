//! A graph of another capacity than 64, which `program!` has to be told.

use slabgrad::prelude::*;

const fn net() -> Graph<Strict<f32>, 128> {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 4>>("x");
    let y: Var<R2<1, 2>> = g.linear("fc", x);
    g.output("y", y);
    g
}

program!(static INFER = net().infer());

fn main() {
    println!("{}", INFER.slab_len());
}
