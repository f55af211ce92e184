//! Steps on one, two and three threads: the same bits.

use slabgrad::prelude::*;

const BATCH: usize = 16;

/// Every kernel that threads share, with work enough for each: convolutions with groups and transposed, a large linear layer
/// and its update.
const fn net() -> Graph<Strict<f32>> {
    let mut g = Graph::new();
    let x = g.input::<R4<BATCH, 1, 28, 28>>("x");
    let label = g.class_indices::<BATCH>("label");
    let h: Var<R4<BATCH, 16, 28, 28>> = g.conv2d("conv0", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<BATCH, 24, 14, 14>> = g.conv2d("conv1", h, Conv2d::kernel(3).stride(2).padding(1).groups(2));
    let h = g.relu(h);
    let h: Var<R4<BATCH, 16, 28, 28>> = g.conv_transpose2d("up", h, ConvTranspose2d::kernel(2).stride(2));
    let h: Var<R2<BATCH, 12544>> = g.flatten(h);
    let logits: Var<R2<BATCH, 32>> = g.linear("fc", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static TRAIN: Program<Strict<f32>> = net().train(Training::with::<Adam>()));

#[test]
fn threads_change_no_bit() {
    let x: Vec<f32> = (0..BATCH * 784).map(|i| (i * 7919 % 1009) as f32 / 504.0 - 1.0).collect();
    let label: Vec<f32> = (0..BATCH).map(|i| (i * 5 % 32) as f32).collect();
    let train = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut slab = vec![0.0; TRAIN.slab_len()];
            let mut memory = TRAIN.memory(&mut slab).expect("a slab for training");
            TRAIN.init(&mut memory, 1).expect("parameters");
            let mut adam = Adam::new(1e-3);
            let losses: Vec<u32> =
                (0..3).map(|_| TRAIN.step(&mut memory, &[&x, &label], &mut adam).expect("a step").to_bits()).collect();
            let bits: Vec<u32> = slab[..TRAIN.params_len()].iter().map(|p| p.to_bits()).collect();
            (losses, bits)
        })
    };
    let one = train(1);
    assert!(one == train(2), "two threads have the bits of one");
    assert!(one == train(3), "three threads have the bits of one");
}
