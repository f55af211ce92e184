//! Models of layers: eager, lazy and compiled, with the same bits as a static graph; what they are asked and what they refuse.

#![cfg(feature = "alloc")]
// Values are exact.
#![allow(clippy::float_cmp)]

use slabgrad::checkpoint::{Block, Contents, Image, ImageError};
use slabgrad::compiled::{CompileError, Context, Use, layer_contexts};
use slabgrad::layer::{
    self, Activation, AvgPool2d, Dropout, Embedding, GroupNorm, Layer, LayerNorm, Linear, Model, ModelError, Residual,
    RmsNorm, Sequential,
};
use slabgrad::optim::{HEADER_LEN, Optimizer, ParamGroup};
use slabgrad::prelude::{self, Conv1d, Conv2d, *};
use slabgrad::tape::{GrowingTape, Handle};

const BATCH: usize = 6;

/// A static network with batch normalisation, dropout, a residual block and pooling.
const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 8, 8>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 4, 8, 8>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d("bn1", h);
    let h = g.relu(h);
    let y: Var<R4<B, 4, 8, 8>> = g.conv2d("res.block.conv", h, Conv2d::kernel(3).padding(1).without_bias());
    let y = g.tanh(y);
    let h = g.add(y, h);
    let h: Var<R4<B, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R2<B, 64>> = g.flatten(h);
    let h = g.dropout_with(h, prelude::Dropout::new(0.3).seed(9));
    let h: Var<R2<B, 12>> = g.linear("fc1", h);
    let h = g.gelu_tanh(h);
    let h = g.dropout_with(h, prelude::Dropout::new(0.1).seed(9));
    let logits: Var<R2<B, 3>> = g.linear("fc2", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

program!(static TRAIN = net::<BATCH>().train(Training::with::<Adam>()));
program!(static INFER = net::<BATCH>().infer());

const fn frozen() -> Graph {
    let mut g = net::<BATCH>();
    g.freeze("conv1");
    g.freeze("bn1");
    g
}
program!(static TRAIN_FROZEN = frozen().train(Training::with::<Adam>()));

/// The same of layers.
fn layers() -> Sequential {
    let block = Sequential::new()
        .conv2d("conv", 4, 4, Conv2d::kernel(3).padding(1).without_bias())
        .activation(Activation::Tanh);
    Sequential::new()
        .conv2d("conv1", 1, 4, Conv2d::kernel(3).padding(1))
        .batch_norm2d("bn1", 4)
        .relu()
        .named("res", Residual::new(block))
        .max_pool2d(Window2d::size(2))
        .flatten()
        .push(Dropout::new(prelude::Dropout::new(0.3).seed(9)))
        .named("fc1", Linear::new(64, 12).activation(Activation::GeluTanh))
        .push(Dropout::new(prelude::Dropout::new(0.1).seed(9)))
        .linear("fc2", 12, 3)
}

fn model() -> Model {
    Model::new(layers(), [1, 8, 8], 7).unwrap()
}

fn images(step: usize) -> Vec<f32> {
    (0..BATCH * 64).map(|i| ((i * 31 + step * 17) % 97) as f32 / 48.0 - 1.0).collect()
}

fn labels(step: usize) -> Vec<f32> {
    (0..BATCH).map(|i| ((i + step) % 3) as f32).collect()
}

fn cross_entropy(tape: &mut GrowingTape, logits: Handle, extra: &[Handle]) -> Handle {
    tape.cross_entropy(logits, extra[0], CrossEntropy::new())
}

fn batch(data: &[f32]) -> (Shape, &[f32]) {
    (Shape::new([BATCH, 1, 8, 8]), data)
}

fn eager_step(model: &mut Model, step: usize, adam: &Adam) -> f32 {
    model.zero_grad();
    let (x, label) = (images(step), labels(step));
    let x = model.tape().constant([BATCH, 1, 8, 8], &x);
    let logits = model.forward(x).unwrap();
    let label = model.tape().constant([BATCH], &label);
    let loss = cross_entropy(model.tape(), logits, &[label]);
    model.backward(loss).unwrap();
    model.update(adam).unwrap();
    model.tape().item(loss)
}

fn compiled_step(context: &mut Context, model: &mut Model, step: usize, adam: &mut Adam) -> Result<f32, CompileError> {
    let (x, label) = (images(step), labels(step));
    context.training_step(model, adam, cross_entropy, batch(&x), &[(Shape::new([BATCH]), &label)])
}

/// All there is to a model after some steps: losses, parameters, state, moments.
type Outcome = (Vec<u32>, Vec<f32>, Vec<f32>, Vec<f32>);

fn outcome(model: &Model, losses: Vec<f32>) -> Outcome {
    let all = |state| model.tensors().filter(|t| t.is_state() == state).flat_map(|t| t.data.to_vec()).collect();
    (losses.into_iter().map(f32::to_bits).collect(), all(false), all(true), model.moments().to_vec())
}

/// Five steps of the static program, from what it draws itself.
fn static_steps(program: &Program<'static>, frozen: &mut Vec<f32>) -> Outcome {
    let mut slab = vec![0.0; program.slab_len()];
    frozen.resize(program.frozen_len(), 0.0);
    program.init_frozen(frozen, 7).unwrap();
    let mut memory = program.memory_with(&mut slab, frozen).unwrap();
    program.init(&mut memory, 7).unwrap();
    let step = |step| program.step(&mut memory, &[&images(step), &labels(step)], &mut Adam::new(0.01)).unwrap();
    let losses: Vec<u32> = (0..5).map(step).map(f32::to_bits).collect();
    (losses, memory.params.to_vec(), memory.state.to_vec(), memory.moments.to_vec())
}

#[test]
fn eager_lazy_and_compiled_steps_have_the_bits_of_the_static_engine() {
    let want = static_steps(&TRAIN, &mut Vec::new());
    let adam = Adam::new(0.01);

    let mut eager = model();
    let losses = (0..5).map(|step| eager_step(&mut eager, step, &adam)).collect();
    assert_eq!(outcome(&eager, losses), want, "eager");

    let mut lazy = model().lazily();
    let losses = (0..5).map(|step| eager_step(&mut lazy, step, &adam)).collect();
    assert_eq!(outcome(&lazy, losses), want, "lazy");

    for training in [Training::with_slots(0), Training::with_slots(0).fused(), Training::with_slots(0).keep_outputs()] {
        let (mut compiled, mut context) = (model(), Context::with(training));
        let step = |step| compiled_step(&mut context, &mut compiled, step, &mut Adam::new(0.01)).unwrap();
        let losses = (0..5).map(step).collect();
        assert_eq!(outcome(&compiled, losses), want, "compiled, {training:?}");
    }

    let mut by_layer = model();
    let (mut forward, mut backward) = layer_contexts();
    let step = |step| {
        let (x, label) = (images(step), labels(step));
        let label = (Shape::new([BATCH]), &label[..]);
        backward.training_step(&mut forward, &mut by_layer, &adam, cross_entropy, batch(&x), &[label]).unwrap()
    };
    let losses = (0..5).map(step).collect();
    assert_eq!(outcome(&by_layer, losses), want, "layer by layer");
    assert!(forward.elements() > 0 && backward.elements() > 0);
}

/// What is trained by the static engine goes on in a model of layers, and the other way round, with the same bits.
#[test]
fn images_are_interchangeable_with_those_of_a_static_graph() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    TRAIN.init(&mut memory, 7).unwrap();
    let (mut adam, mut bytes) = (Adam::new(0.01), Vec::new());
    TRAIN.step(&mut memory, &[&images(0), &labels(0)], &mut adam).unwrap();
    TRAIN.save(&memory, Contents::training().with_user(b"mine"), &mut bytes).unwrap();

    let (mut model, mut context) = (model(), Context::new());
    let image = Image::parse(&bytes).unwrap();
    model.load(&image).unwrap();
    let mut again = Vec::new();
    model.save(Contents::training().with_user(image.block(Block::User)), &mut again).unwrap();
    assert!(again == bytes, "the model's image is the program's");

    TRAIN.step(&mut memory, &[&images(1), &labels(1)], &mut adam).unwrap();
    compiled_step(&mut context, &mut model, 1, &mut adam).unwrap();
    let (mut of_program, mut of_model) = (Vec::new(), Vec::new());
    TRAIN.save(&memory, Contents::training(), &mut of_program).unwrap();
    model.save(Contents::training(), &mut of_model).unwrap();
    assert!(of_program == of_model, "the step after it too");
    TRAIN.load(&mut memory, &Image::parse(&of_model).unwrap()).unwrap();
}

#[test]
fn an_image_of_another_model_or_optimizer_changes_nothing() {
    let (mut model, mut bytes) = (model(), Vec::new());
    let before = model.tensor("conv1.weight").unwrap().data.to_vec();
    let other: Model = Model::new(Sequential::new().linear("fc", 4, 2), [4], 1).unwrap();
    other.save(Contents::training(), &mut bytes).unwrap();
    let error = model.load(&Image::parse(&bytes).unwrap()).unwrap_err();
    assert!(matches!(error, ImageError::Layout { .. }), "{error}");
    assert_eq!(model.tensor("conv1.weight").unwrap().data, before);

    // Without moments those of the model stay.
    let (mut weights, mut context) = (Vec::new(), Context::new());
    model.save(Contents::weights(), &mut weights).unwrap();
    compiled_step(&mut context, &mut model, 0, &mut Adam::new(0.01)).unwrap();
    let moments = model.moments().to_vec();
    model.load(&Image::parse(&weights).unwrap()).unwrap();
    assert_eq!(model.tensor("conv1.weight").unwrap().data, before);
    assert_eq!(model.moments(), moments);
    model.reset_moments();
    assert!(model.moments().is_empty());
}

/// Three steps: static, eager, compiled, each with the same optimizer.
fn check_optimizer<O: Optimizer<Strict<f32>> + Clone>(what: &str, optimizer: O) {
    let mut slab = vec![0.0; TRAIN_ANY.slab_len()];
    let mut memory = TRAIN_ANY.memory(&mut slab).unwrap();
    TRAIN_ANY.init(&mut memory, 7).unwrap();
    let (mut eager, mut compiled, mut context) = (model(), model(), Context::new());
    for step in 0..3 {
        let (x, label) = (images(step), labels(step));
        TRAIN_ANY.step(&mut memory, &[&x, &label], &mut optimizer.clone()).unwrap();
        let label = (Shape::new([BATCH]), &label[..]);
        context.training_step(&mut compiled, &mut optimizer.clone(), cross_entropy, batch(&x), &[label]).unwrap();
        eager.zero_grad();
        let input = eager.tape().constant([BATCH, 1, 8, 8], &x);
        let logits = eager.forward(input).unwrap();
        let label = eager.tape().constant(label.0, label.1);
        let loss = cross_entropy(eager.tape(), logits, &[label]);
        eager.backward(loss).unwrap();
        eager.update(&optimizer).unwrap();
    }
    for (how, model) in [("eager", &mut eager), ("compiled", &mut compiled)] {
        assert_eq!(model.tape().params(), &*memory.params, "{what}, {how}");
        let len = model.moments().len();
        assert_eq!(model.moments(), &memory.moments[..len], "the moments of {what}, {how}");
    }
}

/// Room for the moments of every optimizer.
const ANY: Training = Training::with_slots(3);
program!(static TRAIN_ANY = net::<BATCH>().train(ANY));

#[test]
fn every_optimizer_gives_the_same_bits_everywhere() {
    check_optimizer("gradient descent", Sgd::new(0.05));
    check_optimizer("momentum", Sgd::new(0.05).momentum(0.9).dampening(0.1));
    check_optimizer("Nesterov's momentum", Sgd::new(0.05).momentum(0.9).nesterov());
    check_optimizer("Adam", Adam::new(0.01));
    check_optimizer("AdamW", Adam::new(0.01).decoupled());
    check_optimizer("AMSGrad", Adam::new(0.01).amsgrad());
    check_optimizer("RMSprop", RmsProp::new(0.01));
    check_optimizer("Adagrad", Adagrad::new(0.05));
}

#[test]
fn the_two_halves_of_a_compiled_step_are_the_whole() {
    let (mut whole, mut halves) = (model(), model());
    let (mut context, mut other) = (Context::new(), Context::new());
    for step in 0..3 {
        let want = compiled_step(&mut context, &mut whole, step, &mut Adam::new(0.01)).unwrap();
        let (x, label) = (images(step), labels(step));
        let label = (Shape::new([BATCH]), &label[..]);
        let loss = other.gradients::<Adam>(&mut halves, cross_entropy, batch(&x), &[label]).unwrap();
        other.update(&mut halves, &mut Adam::new(0.01)).unwrap();
        assert_eq!(loss.to_bits(), want.to_bits());
    }
    assert_eq!(outcome(&halves, vec![]), outcome(&whole, vec![]));
}

#[test]
fn tensors_are_laid_out_and_named_as_in_a_static_graph() {
    let model = model();
    let found: Vec<(String, Shape)> = model.tensors().map(|tensor| (tensor.name().into(), tensor.shape())).collect();
    let want: Vec<(String, Shape)> = TRAIN.tensors().iter().map(|t| (t.name.to_string(), t.shape)).collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found.len(), want.len(), "{names:?}");
    assert!(want.iter().all(|tensor| found.contains(tensor)), "{found:?}, expected {want:?}");
    assert_eq!((model.input_shape(), model.output_shape()), (Shape::new([1, 8, 8]), Shape::new([3])));
    let layer = model.layer();
    assert_eq!((layer.kind(), layer.input_size(), layer.output_size()), ("Sequential", Some(1), Some(3)));
    assert_eq!(model.seed(), 7);
}

#[test]
fn evaluation_reaches_nested_layers_and_a_sample_gives_what_it_gives_in_a_batch() {
    let mut model = model();
    let adam = Adam::new(0.01);
    (0..3).for_each(|step| _ = eager_step(&mut model, step, &adam));
    let before = outcome(&model, vec![]);
    model.eval();
    assert!(!model.is_training());
    let data = images(3);
    model.zero_grad();
    let x = model.tape().constant([BATCH, 1, 8, 8], &data);
    let y = model.forward(x).unwrap();
    let all = model.tape().value(y).to_vec();
    for i in 0..BATCH {
        let x = model.tape().constant([1, 8, 8], &data[i * 64..][..64]);
        let y = model.forward(x).unwrap();
        assert_eq!((model.tape().shape(y), model.tape().value(y)), (Shape::new([3]), &all[i * 3..][..3]), "sample {i}");
    }
    let mut context = Context::new();
    assert_eq!(context.forward(&mut model, batch(&data)).unwrap(), all, "compiled");
    assert_eq!(outcome(&model, vec![]), before, "evaluation changes nothing");

    // The static program of the same parameters and state.
    let mut slab = vec![0.0; TRAIN.slab_len_with(&INFER)];
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    for tensor in model.tensors() {
        TRAIN.tensor_mut(&mut memory, tensor.name()).unwrap().copy_from_slice(tensor.data);
    }
    INFER.run(&mut memory, &[&data]).unwrap();
    assert_eq!(INFER.output(&memory, "logits").unwrap(), all, "static");
}

#[test]
fn what_changes_outside_is_seen_by_the_next_replay() {
    let (mut model, mut context) = (model(), Context::new());
    let data = images(0);
    let before = context.forward(&mut model, batch(&data)).unwrap().to_vec();
    model.set("fc2.weight", &[0.0; 36]).unwrap();
    model.set("fc2.bias", &[1.0, 2.0, 3.0]).unwrap();
    let after = context.forward(&mut model, batch(&data)).unwrap();
    assert_ne!(before, after);
    assert_eq!(after, [1.0, 2.0, 3.0].repeat(BATCH));
}

/// What has been recorded by then, and its gradients, are not touched by compiling and replaying.
#[test]
fn a_context_leaves_what_lies_on_the_tape_alone() {
    let run = |is_between: bool| {
        let (mut model, data) = (model(), images(0));
        let x = model.tape().constant([BATCH, 1, 8, 8], &data);
        let y = model.forward(x).unwrap();
        let loss = model.tape().mean(y, &[], false);
        model.backward(loss).unwrap();
        if is_between {
            Context::new().forward(&mut model, batch(&data)).unwrap();
        }
        let gradient = model.tape().gradient(y).unwrap().to_vec();
        // More values, and backward through all of them, whose gradients have places already.
        let z = model.tape().tanh(y);
        let z = model.tape().mul(z, z);
        let loss = model.tape().sum(z, &[], false);
        model.backward(loss).unwrap();
        (gradient, model.tape().item(loss), model.tape().grads().to_vec())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn frozen_parameters_stay_and_the_others_train_as_in_a_static_graph() {
    let mut frozen = Vec::new();
    let (losses, params, state, moments) = static_steps(&TRAIN_FROZEN, &mut frozen);
    let mut eager = model();
    eager.freeze("conv1").unwrap();
    eager.freeze("bn1").unwrap();
    let mut compiled = model();
    compiled.freeze("conv1").unwrap();
    compiled.freeze("bn1").unwrap();
    let mut context = Context::new();
    for (step, &want) in losses.iter().enumerate() {
        assert_eq!(eager_step(&mut eager, step, &Adam::new(0.01)).to_bits(), want, "step {step}");
        let loss = compiled_step(&mut context, &mut compiled, step, &mut Adam::new(0.01)).unwrap();
        assert_eq!(loss.to_bits(), want, "step {step}, compiled");
    }
    for model in [&mut eager, &mut compiled] {
        assert_eq!(model.tape().params(), params);
        assert_eq!(model.moments(), moments);
        let all = |choose: &dyn Fn(&layer::TensorView<'_, f32>) -> bool| -> Vec<f32> {
            model.tensors().filter(|tensor| choose(tensor)).flat_map(|tensor| tensor.data.to_vec()).collect()
        };
        assert_eq!(all(&|tensor| tensor.is_frozen()), frozen);
        assert_eq!(all(&|tensor| tensor.is_state()), state);
    }
}

#[test]
fn freezing_keeps_values_and_the_moments_of_the_others() {
    let net = Sequential::new().linear("a", 2, 2).linear("b", 2, 2).linear("c", 2, 1);
    let mut model: Model = Model::new(net, [2], 3).unwrap();
    let step = |model: &mut Model| {
        model.zero_grad();
        let x = model.tape().constant([1, 2], &[1.0, -0.5]);
        let y = model.forward(x).unwrap();
        let loss = model.tape().sum(y, &[], false);
        model.backward(loss).unwrap();
        model.update(&Adam::new(0.1)).unwrap();
    };
    step(&mut model);
    let values: Vec<Vec<f32>> = model.tensors().map(|tensor| tensor.data.to_vec()).collect();
    let moments = model.moments().to_vec();
    model.freeze("b").unwrap();
    assert!(model.tensors().zip(&values).all(|(tensor, value)| tensor.data == value));
    assert_eq!(model.tape().params().len(), 9);
    let (first, second) = (&moments[HEADER_LEN..][..15], &moments[HEADER_LEN + 15..][..15]);
    let without_b = |slot: &[f32]| [&slot[..6], &slot[12..]].concat();
    assert_eq!(model.moments()[..HEADER_LEN], moments[..HEADER_LEN]);
    assert_eq!(model.moments()[HEADER_LEN..], [without_b(first), without_b(second)].concat());
    let b = model.tensor("b.weight").unwrap().data.to_vec();
    step(&mut model);
    assert_eq!(model.tensor("b.weight").unwrap().data, b);
    assert!(model.tensor("b.weight").unwrap().gradient.is_none());
    model.unfreeze("").unwrap();
    step(&mut model);
    assert_ne!(model.tensor("b.weight").unwrap().data, b);
}

#[test]
fn groups_reach_eager_and_compiled_updates() {
    let groups = |model: &mut Model| {
        model.set_group("", ParamGroup::new().weight_decay(0.1)).unwrap();
        model.set_group("fc2", ParamGroup::new().learning_rate_factor(0.5)).unwrap();
        model.set_group("fc2.bias", ParamGroup::new().weight_decay(0.0)).unwrap();
    };
    let (mut eager, mut compiled, mut plain) = (model(), model(), model());
    groups(&mut eager);
    groups(&mut compiled);
    let mut context = Context::new();
    for step in 0..3 {
        eager_step(&mut eager, step, &Adam::new(0.01));
        eager_step(&mut plain, step, &Adam::new(0.01));
        compiled_step(&mut context, &mut compiled, step, &mut Adam::new(0.01)).unwrap();
    }
    assert_eq!(outcome(&eager, vec![]), outcome(&compiled, vec![]));
    assert_ne!(outcome(&eager, vec![]), outcome(&plain, vec![]));
}

#[test]
fn what_does_not_fit_is_refused_with_the_layer_and_the_numbers() {
    let text = |error: ModelError| error.to_string();
    let net = Sequential::new().named("block", Sequential::<Strict<f32>>::new().linear("fc1", 63, 8));
    let error = text(Model::new(net, [64], 1).err().unwrap());
    assert!(error.starts_with("layer `block.fc1`: linear: input features are 64, weight expects 63"), "{error}");

    let error = text(Model::<Strict<f32>>::new(layer::BatchNorm2d::new(3), [3, 4], 1).err().unwrap());
    assert!(error.starts_with("BatchNorm2d: the input has shape [1, 3, 4], expected [n, c, h, w]"), "{error}");

    // It would broadcast.
    let error = text(Model::<Strict<f32>>::new(Residual::new(Linear::new(4, 1)), [4], 1).err().unwrap());
    let expected = "the block's output has shape [1, 1], expected that of the input, or of the shortcut's output";
    assert!(error.contains(expected), "{error}");

    let mut model = model();
    let x = model.tape().constant([BATCH, 1, 7, 8], &[0.0; BATCH * 56]);
    let error = text(model.forward(x).unwrap_err());
    assert_eq!(
        error,
        "the input has shape [6, 1, 7, 8], a sample of the model [1, 8, 8], a batch one axis more in front"
    );
    assert_eq!(text(model.set("fc3.weight", &[]).unwrap_err()), "no parameter or state is named `fc3.weight`");
    assert_eq!(text(model.set("fc2.bias", &[0.0; 4]).unwrap_err()), "`fc2.bias` has 3 elements, there are 4");
    assert_eq!(text(model.freeze("fc").unwrap_err()), "no parameter or state is named `fc`");
}

#[test]
fn contexts_refuse_what_they_were_not_compiled_for() {
    let (mut model, mut other, mut context) = (model(), model(), Context::new());
    let adam = &mut Adam::new(0.01);
    let error = context.update(&mut model, adam).unwrap_err();
    assert_eq!(error, CompileError::OtherModel);
    compiled_step(&mut context, &mut model, 0, adam).unwrap();
    let before = outcome(&model, vec![]);

    let error = compiled_step(&mut context, &mut other, 1, adam).unwrap_err();
    assert_eq!(error, CompileError::OtherModel);
    let error = context.forward(&mut model, batch(&images(0))).unwrap_err();
    assert_eq!(error, CompileError::OtherUse { compiled: Use::Training, found: Use::Inference });
    let (data, label) = (images(1), labels(1));
    let last = (Shape::new([4, 1, 8, 8]), &data[..4 * 64]);
    let error =
        context.training_step(&mut model, adam, cross_entropy, last, &[(Shape::new([4]), &label[..4])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "input 0 has shape [4, 1, 8, 8], the context was compiled for [6, 1, 8, 8]: leave a smaller last batch out, fill it up, \
         or use a context of its own for it"
    );
    let error = context.training_step(&mut model, adam, cross_entropy, batch(&data), &[]).unwrap_err();
    assert_eq!(error, CompileError::InputCount { compiled: 2, found: 1 });
    let error = context
        .training_step(&mut model, adam, cross_entropy, batch(&data), &[(Shape::new([BATCH]), &[3.0; BATCH])])
        .unwrap_err();
    assert_eq!(error.to_string(), "input 1, element 0 is 3, not a class index: there are 3 classes");
    assert_eq!(outcome(&model, vec![]), before, "what is refused changes nothing");

    model.freeze("conv1").unwrap();
    assert_eq!(compiled_step(&mut context, &mut model, 1, adam).unwrap_err(), CompileError::OtherModel);
}

#[test]
fn a_parameter_without_a_gradient_is_named() {
    /// Has a parameter that it does not use.
    struct Idle;
    impl<B: Backend> Layer<B> for Idle {
        fn kind(&self) -> &'static str {
            "Idle"
        }
        fn forward(&self, r: &mut layer::Recorder<'_, B>, x: Handle) -> Handle {
            r.parameter("unused", [2], Init::Zeros);
            x
        }
    }
    let net = || Sequential::new().linear("fc", 2, 2).named("idle", Idle);
    let mut model: Model = Model::new(net(), [2], 1).unwrap();
    let sum = |tape: &mut GrowingTape, y: Handle, _: &[Handle]| tape.sum(y, &[], false);
    let x = (Shape::new([1, 2]), &[1.0, 2.0][..]);
    let error = Context::new().training_step(&mut model, &mut Sgd::new(0.1), sum, x, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "train: the loss does not depend on parameter `idle.unused`; use it, freeze it, or remove it"
    );
    // Eagerly it is left alone, and frozen it is in nobody's way.
    let handle = model.tape().constant([1, 2], x.1);
    let y = model.forward(handle).unwrap();
    let loss = model.tape().sum(y, &[], false);
    model.backward(loss).unwrap();
    model.update(&Sgd::new(0.1)).unwrap();
    model.freeze("idle").unwrap();
    assert!(Context::new().training_step(&mut model, &mut Sgd::new(0.1), sum, x, &[]).is_ok());

    let function = |tape: &mut GrowingTape, y: Handle, _: &[Handle]| {
        tape.function("mine", &[y], [], |[y, ..], sum| sum[0] = y.iter().sum(), |call| call.dx.fill(call.dy[0]))
    };
    let error = Context::new().training_step(&mut model, &mut Sgd::new(0.1), function, x, &[]).unwrap_err();
    assert!(error.to_string().starts_with("mine: expected a operation with a table, found a closure"), "{error}");
}

#[test]
fn numbers_in_a_loss_are_part_of_the_program() {
    let mut model: Model = Model::new(Linear::new(2, 1), [2], 1).unwrap();
    let mut context = Context::new();
    let loss = |tape: &mut GrowingTape, y: Handle, _: &[Handle]| {
        let scope = tape.scope();
        (0.5 * scope.of(y).square() + 2.0).sum(&[], false).handle()
    };
    for x in [[1.0, 2.0], [3.0, -1.0]] {
        let handle = model.tape().constant([1, 2], &x);
        let y = model.forward(handle).unwrap();
        let want = loss(model.tape(), y, &[]);
        let want = model.tape().item(want);
        let found = context.training_step(&mut model, &mut Sgd::new(0.0), loss, (Shape::new([1, 2]), &x), &[]).unwrap();
        assert_eq!(found, want);
    }
}

#[test]
fn every_layer_has_its_shapes_and_gradients() {
    type Case = (Box<dyn Layer<Strict<f64>>>, Shape, Shape);
    let layers: Vec<Case> = vec![
        (Box::new(Linear::new(5, 3)), Shape::new([5]), Shape::new([3])),
        (Box::new(Linear::new(5, 3)), Shape::new([2, 5]), Shape::new([2, 3])),
        (Box::new(layer::Conv1d::new(2, 3, Conv1d::kernel(3).stride(2))), Shape::new([2, 9]), Shape::new([3, 4])),
        (
            Box::new(layer::Conv2d::new(4, 6, Conv2d::kernel_hw([3, 2]).groups(2).padding(1))),
            Shape::new([4, 5, 4]),
            Shape::new([6, 5, 5]),
        ),
        (Box::new(layer::BatchNorm1d::new(3)), Shape::new([3]), Shape::new([3])),
        (Box::new(layer::BatchNorm1d::new(3)), Shape::new([3, 4]), Shape::new([3, 4])),
        (Box::new(layer::BatchNorm2d::new(2)), Shape::new([2, 3, 3]), Shape::new([2, 3, 3])),
        (Box::new(LayerNorm::new([4])), Shape::new([3, 4]), Shape::new([3, 4])),
        (Box::new(RmsNorm::new([4])), Shape::new([3, 4]), Shape::new([3, 4])),
        (Box::new(GroupNorm::new(2, 4)), Shape::new([4, 3]), Shape::new([4, 3])),
        (Box::new(layer::Flatten), Shape::new([2, 3, 2]), Shape::new([12])),
        (Box::new(layer::MaxPool2d::new(Window2d::size(2))), Shape::new([2, 4, 6]), Shape::new([2, 2, 3])),
        (Box::new(AvgPool2d::new(Window2d::size(2))), Shape::new([2, 4, 6]), Shape::new([2, 2, 3])),
        (Box::new(layer::GlobalAvgPool2d), Shape::new([2, 4, 6]), Shape::new([2])),
        (Box::new(Dropout::new(prelude::Dropout::new(0.5))), Shape::new([7]), Shape::new([7])),
        (Box::new(Residual::new(Linear::new(4, 2)).shortcut(Linear::new(4, 2))), Shape::new([4]), Shape::new([2])),
    ];
    let activations = Activation::ALL.map(|activation| {
        let layer: Box<dyn Layer<Strict<f64>>> = Box::new(activation);
        (layer, Shape::new([5]), Shape::new([5]))
    });
    for (layer, input, output) in layers.into_iter().chain(activations) {
        let kind = layer.kind();
        let mut model: Model<Strict<f64>> =
            Model::new(layer, input, 3).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(model.output_shape(), output, "{kind}");
        assert!(model.to_string().starts_with(kind), "{model}");
        let mut shape = vec![3];
        shape.extend((0..input.rank()).map(|axis| input.axis(axis)));
        let shape = Shape::from_slice(&shape);
        let x: Vec<f64> = (0..shape.len()).map(|i| ((i * 37 % 101) as f64 - 50.3) / 40.0).collect();
        let names: Vec<String> = model.parameters().map(|parameter| parameter.name().to_string()).collect();
        // The gradient of each parameter against a central difference at its first element.
        let loss = |model: &mut Model<Strict<f64>>| {
            model.zero_grad();
            let x = model.tape().constant(shape, &x);
            let y = model.forward(x).unwrap();
            let y = model.tape().square(y);
            model.tape().sum(y, &[], false)
        };
        for name in names {
            let handle = loss(&mut model);
            model.backward(handle).unwrap();
            let tensor = model.tensor(&name).unwrap();
            let (gradient, before) = (tensor.gradient.unwrap()[0], tensor.data.to_vec());
            let mut at = |step: f64| {
                let mut moved = before.clone();
                moved[0] += step;
                model.set(&name, &moved).unwrap();
                let handle = loss(&mut model);
                model.tape().item(handle)
            };
            let want = (at(1e-6) - at(-1e-6)) / 2e-6;
            at(0.0);
            assert!((gradient - want).abs() < 1e-6 * want.abs().max(1.0), "{kind}, {name}: {gradient}, {want}");
        }
    }
}

#[test]
fn an_embedding_takes_indices_and_refuses_others() {
    let net = Sequential::new().named("embed", Embedding::new(5, 3)).flatten().linear("fc", 12, 2);
    let mut model: Model = Model::new(net, [4], 1).unwrap();
    let mut context = Context::new();
    let loss = |tape: &mut GrowingTape, y: Handle, _: &[Handle]| tape.mean(y, &[], false);
    let adam = &mut Adam::new(0.1);
    let good = (Shape::new([2, 4]), &[0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 2.0][..]);
    let first = context.training_step(&mut model, adam, loss, good, &[]).unwrap();
    assert!(context.training_step(&mut model, adam, loss, good, &[]).unwrap() < first);
    let bad = (Shape::new([2, 4]), &[0.0, 1.0, 2.0, 5.0, 4.0, 0.0, 1.0, 2.0][..]);
    let error = context.training_step(&mut model, adam, loss, bad, &[]).unwrap_err();
    assert_eq!(error.to_string(), "input 0, element 3 is 5, not a class index: there are 5 classes");
    let x = model.tape().constant(bad.0, bad.1);
    let error = model.forward(x).unwrap_err().to_string();
    assert!(error.starts_with("layer `embed`: embedding: index 5 at element 3"), "{error}");
}

#[test]
fn a_program_can_be_read_and_counted() {
    let (mut model, mut context) = (model(), Context::new());
    assert!(context.program().is_none());
    compiled_step(&mut context, &mut model, 0, &mut Adam::new(0.01)).unwrap();
    let report = context.program().unwrap();
    let stats = report.stats();
    let count = |phase: &str, tag: &str| {
        stats.instructions.iter().find(|(p, t, _)| (*p, *t) == (phase, tag)).map_or(0, |(_, _, count)| *count)
    };
    assert_eq!((count("forward", "conv2d"), count("forward", "linear"), count("forward", "dropout")), (2, 2, 2));
    assert_eq!(count("backward", "seed"), 1);
    assert_eq!(stats.total(), TRAIN.steps());
    assert_eq!(stats.work_bytes, 4 * TRAIN.work_len());
    assert_eq!(stats.ram_bytes(), TRAIN.ram_bytes());
    assert!(stats.unshared_bytes > stats.work_bytes && stats.buffers > 10);
    let text = report.to_string();
    assert!(text.contains("forward  batch_norm") && text.lines().count() == stats.total() + 1, "{text}");
    let drawing = report.graphviz();
    assert!(drawing.starts_with("digraph program {") && drawing.ends_with("}\n"));
    assert!(drawing.contains("label = \"conv1.weight\\n[4, 1, 3, 3]\""), "{drawing}");

    let summary = model.summary(BATCH).unwrap();
    assert_eq!(summary.trained, TRAIN.params_len());
    assert_eq!(summary.inference.work_bytes, 4 * INFER.work_len());
    let text = summary.to_string();
    for line in ["  fc1 (Linear)", "[12]", "Parameters: 1,011, trained 1,011", "training with Adam", "inference"] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

#[test]
fn relus_gradient_is_taken_on_the_way_where_nothing_else_reads_its_output() {
    fn start() -> Sequential {
        Sequential::new().conv2d("conv1", 1, 8, Conv2d::kernel(3).padding(1)).relu()
    }
    let cases: [(_, fn() -> Sequential, _); 4] = [
        (
            "by a convolution, and by linear layers, through flatten",
            || {
                let net = start().conv2d("conv2", 8, 4, Conv2d::kernel(3).stride(2).padding(1)).relu().flatten();
                net.linear("fc1", 64, 12).relu().linear("fc2", 12, 3)
            },
            0,
        ),
        (
            "a second user",
            || {
                let block = Sequential::new().conv2d("conv2", 8, 8, Conv2d::kernel(3).padding(1));
                start().named("res", Residual::new(block)).flatten().linear("fc", 512, 3)
            },
            1,
        ),
        ("another operation", || start().max_pool2d(Window2d::size(2)).flatten().linear("fc", 128, 3), 1),
        ("the loss", || Sequential::new().flatten().linear("fc", 64, 3).relu(), 1),
    ];
    for (what, layers, passes) in cases {
        for training in [Training::with::<Adam>(), Training::with::<Adam>().fused()] {
            let [mut eager, mut compiled]: [Model; 2] = [(); 2].map(|()| Model::new(layers(), [1, 8, 8], 7).unwrap());
            let (mut context, mut adam) = (Context::with(training), Adam::new(0.01));
            let losses = (0..3).map(|step| eager_step(&mut eager, step, &adam)).collect();
            let want = outcome(&eager, losses);
            let steps = (0..3).map(|step| compiled_step(&mut context, &mut compiled, step, &mut adam).unwrap());
            let losses = steps.collect();
            assert_eq!(outcome(&compiled, losses), want, "{what}");
            let report = context.program().unwrap();
            let of_relu =
                report.stats().instructions.iter().find(|(phase, tag, _)| (*phase, *tag) == ("backward", "relu"));
            assert_eq!(of_relu.map_or(0, |(.., count)| *count), passes, "{what}:\n{report}");
            assert_eq!(report.to_string().contains("then relu's"), passes == 0, "{what}:\n{report}");
        }
    }
}
