//! What is trained: a small convolutional network and a multi-layer perceptron, each on a few handwritten digits.

use slabgrad::prelude::*;

pub(crate) const BATCH: usize = 16;
pub(crate) const PIXELS: usize = 64;
pub(crate) const STEPS: usize = 20;

/// Records of 64 pixels (0 to 16) and a label.
static DIGITS: &[u8] = include_bytes!("../../../data/digits.bin");

pub(crate) const fn cnn<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R4<B, 1, 8, 8>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 4, 8, 8>> = g.conv2d("conv1", image, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<B, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 8, 2, 2>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.tanh(h);
    let h: Var<R2<B, 32>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

pub(crate) const fn mlp<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let image = g.input::<R2<B, PIXELS>>("image");
    let label = g.class_indices::<B>("label");
    let h: Var<R2<B, 32>> = g.linear("fc1", image);
    let h = g.relu(h);
    let logits: Var<R2<B, 10>> = g.linear("fc2", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static CNN = cnn::<BATCH>().train(Training::with::<Adam>()));
program!(static CNN_INFER = cnn::<1>().infer());
program!(static MLP = mlp::<BATCH>().train(Training::with::<Adam>()));
program!(static MLP_FUSED = mlp::<BATCH>().train(Training::with::<Adam>().fused()));

pub(crate) const BATCH_LEN: usize = BATCH * (PIXELS + 1);
/// How many `f32` the run needs: one batch, and the largest of the programs, which run one after the other.
pub const SLAB_LEN: usize = BATCH_LEN + if CNN.slab_len() > MLP.slab_len() { CNN.slab_len() } else { MLP.slab_len() };

/// Emits the loss of every step, then the sum of every parameter tensor and the logits of one digit.
///
/// # Errors
///
/// When a step is refused.
pub fn train(slab: &mut [f32; SLAB_LEN], emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    let (batch, slab) = slab.split_at_mut_checked(BATCH_LEN).ok_or("the slab is too short")?;
    steps(&CNN, slab, batch, "cnn", emit)?;
    infer(slab, batch, emit)?;
    steps(&MLP, slab, batch, "mlp", emit)?;
    steps(&MLP_FUSED, slab, batch, "mlp fused", emit)
}

fn steps(
    program: &Program<'static>,
    slab: &mut [f32],
    batch: &mut [f32],
    name: &'static str,
    emit: &mut dyn FnMut(&'static str, u32),
) -> Result<(), &'static str> {
    let refused = |_: RunError| "a step was refused";
    let mut memory = program.memory(slab).map_err(refused)?;
    program.init(&mut memory, 42).map_err(refused)?;
    let mut adam = Adam::new(0.01);
    for step in 0..STEPS {
        let (images, labels) = load(batch, step * BATCH);
        let loss = program.step(&mut memory, &[images, labels], &mut adam).map_err(refused)?;
        emit(name, loss.to_bits());
    }
    for tensor in program.tensors() {
        let data = memory.params.get(tensor.range()).unwrap_or_default();
        emit(tensor.name.leaf, <Strict<f32> as Backend>::sum(data).to_bits());
    }
    Ok(())
}

/// Runs the network that `steps` has just trained on one digit: the parameters lie at the start of the slab, where both
/// programs look for them.
fn infer(slab: &mut [f32], batch: &mut [f32], emit: &mut dyn FnMut(&'static str, u32)) -> Result<(), &'static str> {
    let refused = |_: RunError| "the inference was refused";
    let (images, _) = load(batch, STEPS * BATCH);
    let mut memory = CNN_INFER.memory(slab).map_err(refused)?;
    CNN_INFER.run(&mut memory, &[images.get(..PIXELS).unwrap_or_default()]).map_err(refused)?;
    for logit in CNN_INFER.output(&memory, "logits").unwrap_or_default() {
        emit("logit", logit.to_bits());
    }
    Ok(())
}

/// The digits from `first` on, in the range 0 to 1, and their labels.
pub(crate) fn load(batch: &mut [f32], first: usize) -> (&[f32], &[f32]) {
    let (images, labels) = batch.split_at_mut_checked(BATCH * PIXELS).unwrap_or_default();
    let records = DIGITS.as_chunks::<{ PIXELS + 1 }>().0.iter().skip(first);
    for ((record, image), label) in records.zip(images.as_chunks_mut::<PIXELS>().0).zip(labels.iter_mut()) {
        let [pixels @ .., digit] = record;
        image.iter_mut().zip(pixels).for_each(|(x, &pixel)| *x = f32::from(pixel) / 16.0);
        *label = f32::from(*digit);
    }
    (images, labels)
}
