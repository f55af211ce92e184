//! The layers that keep state or change in inference, in networks: running statistics and the counter of dropout are taken
//! over with each step, inference uses them and drops nothing.

use slabgrad::prelude::*;

/// One of each layer of convolution, pooling and normalisation.
const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R3<B, 2, 8>>("x");
    let target = g.input::<R2<B, 3>>("target");
    let h: Var<R3<B, 4, 8>> = g.conv1d("conv1", x, Conv1d::kernel(3).padding(1));
    let h = g.batch_norm1d("bn1", h);
    let h: Var<R3<B, 4, 4>> = g.max_pool1d(h, Window1d::size(2));
    let h = g.group_norm("gn", h, 2);
    let h: Var<R4<B, 4, 2, 2>> = g.reshape(h);
    let h: Var<R4<B, 2, 5, 5>> = g.conv_transpose2d("up", h, ConvTranspose2d::kernel(3).stride(2));
    let h: Var<R4<B, 2, 10, 10>> = g.upsample_nearest2d(h, [2, 2]);
    let h = g.batch_norm2d("bn2", h);
    let h = g.relu(h);
    let h: Var<R4<B, 2, 2, 2>> = g.avg_pool2d(h, Window2d::size(5));
    let h = g.dropout(h, 0.5);
    let h: Var<R2<B, 8>> = g.flatten(h);
    let h = g.layer_norm("ln", h);
    let h = g.dropout_with(h, Dropout::new(0.25).seed(9));
    let h: Var<R2<B, 3>> = g.linear("fc", h);
    let h = g.rms_norm("rms", h);
    g.output("y", h);
    let loss = g.mse(h, target);
    g.loss(loss);
    g
}

program!(static TRAIN = net::<4>().train(Training::with::<Adam>()));
program!(static FUSED = net::<4>().train(Training::with::<Adam>().fused()));
program!(static INFER_FOUR = net::<4>().infer());
program!(static INFER_ONE = net::<1>().infer());

const STATES: [&str; 5] =
    ["bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var", "dropout.counter"];

fn data() -> ([f32; 64], [f32; 12]) {
    (
        std::array::from_fn(|i| (i * 37 % 23) as f32 / 11.0 - 1.0),
        std::array::from_fn(|i| (i * 5 % 7) as f32 / 3.0 - 1.0),
    )
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn parameters_and_states_are_named_as_pytorch_names_them() {
    let names: Vec<String> = TRAIN.tensors().iter().map(|tensor| tensor.name.to_string()).collect();
    let layers = ["bn1", "gn", "up", "bn2", "ln", "fc", "conv1"];
    let parameters = layers.iter().flat_map(|layer| ["weight", "bias"].map(|leaf| format!("{layer}.{leaf}")));
    for name in parameters.chain(STATES.map(str::to_string)).chain(["rms.weight".to_string()]) {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert_eq!(names.len(), 14 + 5 + 1, "{names:?}");
}

#[test]
fn fused_and_plain_training_leave_the_same_parameters_and_state() {
    let (x, target) = data();
    let run = |program: &Program<'static>| {
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.init(&mut memory, 1).unwrap();
        let mut adam = Adam::new(0.01);
        let losses: Vec<f32> = (0..60).map(|_| program.step(&mut memory, &[&x, &target], &mut adam).unwrap()).collect();
        assert_eq!(program.tensor(&memory, "dropout.counter"), Some(&[60.0, 0.0][..]));
        (losses, bits(memory.params), bits(memory.state))
    };
    let (losses, params, state) = run(&TRAIN);
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    assert!(mean(&losses[50..]) < 0.8 * mean(&losses[..10]), "{losses:?}");
    assert_eq!(run(&FUSED), (losses, params, state));
}

#[test]
fn inference_uses_the_running_statistics_and_drops_nothing() {
    let (x, target) = data();
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    TRAIN.init(&mut memory, 1).unwrap();
    for _ in 0..10 {
        TRAIN.step(&mut memory, &[&x, &target], &mut Adam::new(0.01)).unwrap();
    }
    let (params, state) = (memory.params.to_vec(), memory.state.to_vec());
    let infer = |program: &Program<'static>, x: &[f32]| {
        let mut slab = vec![0.0; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        memory.params.copy_from_slice(&params);
        memory.state.copy_from_slice(&state);
        program.run(&mut memory, &[x]).unwrap();
        assert_eq!(bits(memory.state), bits(&state), "inference changes no state");
        bits(program.output(&memory, "y").unwrap())
    };
    // What a sample gives does not depend on the others in its batch.
    let one_by_one: Vec<u32> = x.chunks(16).flat_map(|x| infer(&INFER_ONE, x)).collect();
    assert_eq!(infer(&INFER_FOUR, &x), one_by_one);
}

#[test]
fn a_step_that_fails_leaves_the_state() {
    let (x, target) = data();
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    TRAIN.init(&mut memory, 1).unwrap();
    TRAIN.step(&mut memory, &[&x, &target], &mut Adam::new(0.01)).unwrap();
    let before = bits(memory.state);
    TRAIN.tensor_mut(&mut memory, "conv1.weight").unwrap()[0] = f32::INFINITY;
    TRAIN.step(&mut memory, &[&x, &target], &mut Adam::new(0.01)).unwrap_err();
    assert_eq!(bits(memory.state), before);
}

/// A backbone whose normalisation is in evaluation and frozen, and a head that is trained.
const fn fine_tuned() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<4, 6>>("x");
    let target = g.input::<R2<4, 2>>("target");
    let h = g.batch_norm1d_with("backbone.bn", x, BatchNorm::new().eval());
    g.freeze("backbone");
    let h: Var<R2<4, 2>> = g.linear("head", h);
    let h = g.batch_norm1d_with("bn", h, BatchNorm::new().eval().without_affine());
    g.output("y", h);
    let loss = g.mse(h, target);
    g.loss(loss);
    g
}

#[test]
fn normalisation_in_evaluation_trains_what_is_around_it() {
    program!(static TUNE = fine_tuned().train(Training::with::<Sgd>().keep_outputs()));
    program!(static INFER = fine_tuned().infer());
    let frozen: [f32; 12] = std::array::from_fn(|i| i as f32 / 4.0 - 1.0);
    let (x, target) = ([0.5, -1.0, 2.0, 0.25, 1.0, -0.5].repeat(4), [1.0, -1.0].repeat(4));
    let mut slab = vec![0.0; TUNE.slab_len()];
    let mut memory = TUNE.memory_with(&mut slab, &frozen).unwrap();
    TUNE.init(&mut memory, 5).unwrap();
    for name in ["backbone.bn", "bn"] {
        let mean = format!("{name}.running_mean");
        TUNE.tensor_mut(&mut memory, &mean).unwrap().fill(0.25);
    }
    let (params, state) = (memory.params.to_vec(), memory.state.to_vec());
    let first = TUNE.step(&mut memory, &[&x, &target], &mut Sgd::new(0.05)).unwrap();
    let y = bits(TUNE.output(&memory, "y").unwrap());
    let last = (0..50).map(|_| TUNE.step(&mut memory, &[&x, &target], &mut Sgd::new(0.05)).unwrap()).last().unwrap();
    assert!(last < 0.01 * first, "{first} becomes {last}");
    assert_eq!(bits(memory.state), bits(&state), "the running statistics stay");

    let mut slab = vec![0.0; INFER.slab_len()];
    let mut memory = INFER.memory_with(&mut slab, &frozen).unwrap();
    memory.params.copy_from_slice(&params);
    memory.state.copy_from_slice(&state);
    INFER.run(&mut memory, &[&x]).unwrap();
    assert_eq!(bits(INFER.output(&memory, "y").unwrap()), y, "training saw what inference sees");
}
