//! The control: this one compiles and runs.

use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<B, 4>>("x");
    let y = g.input::<R2<B, 2>>("y");
    let p = g.linear("fc", x);
    g.output("p", p);
    let loss = g.mse(p, y);
    g.loss(loss);
    g
}

program!(static TRAIN = net::<8>().train(Training::with::<Sgd>().fused()));
program!(static INFER = net::<1>().infer());

static SLAB: [f32; TRAIN.slab_len()] = TRAIN.slab();

fn main() {
    let mut slab = SLAB;
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    TRAIN.init(&mut memory, 1).unwrap();
    INFER.run(&mut memory, &[&[1.0, 2.0, 3.0, 4.0]]).unwrap();
}
