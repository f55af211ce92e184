//! Hostile values for everything that is made from a caller's numbers: NaN, infinities, 0, negative ones, `usize::MAX`, nothing at
//! all, and lengths that do not fit. What comes is an error with the number in it, or a value that behaves; never a panic but
//! where the documentation says so, and nothing has changed afterwards.
//!
//! `docs/public-api.txt` lists the public functions, so that none that makes a value is left out.

#![allow(clippy::float_cmp, clippy::reversed_empty_ranges, reason = "hostile values are kept as they are")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use slabgrad::backend::Start;
use slabgrad::checkpoint::{Contents, Header, Image, Slots, StateDict};
use slabgrad::compiled::Context;
use slabgrad::diagnostics::{self, GradientStats, Monitor};
use slabgrad::graph::Name;
use slabgrad::layer::{self, Activation, Convolution, Model, Residual, Sequential};
use slabgrad::metrics::{ConfusionMatrix, EarlyStopping, RunningMean};
use slabgrad::ops::{self, Args, Reads, conv_transpose2d, conv2d, max_pool1d, max_pool2d};
use slabgrad::optim::{
    Constant, Cosine, Exponential, Linear, MultiStep, OneCycle, Optimizer, Polynomial, SettingError, StepDecay, Warmup,
};
use slabgrad::prelude::*;
use slabgrad::tape::{Fixed, FixedTape, GrowingTape, Handle, Tape};
use slabgrad::train::{Dataset, Trainer};

#[path = "common/flash.rs"]
#[allow(dead_code, reason = "its power cuts are for other tests")]
mod flash;

const NUMBERS: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1.0, f64::MAX, f64::MIN_POSITIVE];
const SIZES: [usize; 6] = [0, 1, 0x1_0000, u32::MAX as usize, u32::MAX as usize + 1, usize::MAX];

/// What makes a value, and the test below that hands it hostile ones.
const TESTED: &[(&str, &[&str])] = &[
    ("optimizers", &["Adagrad::new", "Adam::new", "RmsProp::new", "Sgd::new", "ParamGroup::new"]),
    (
        "schedules",
        &[
            "Cosine::new",
            "Exponential::new",
            "Linear::new",
            "MultiStep::new",
            "OneCycle::new",
            "Polynomial::new",
            "StepDecay::new",
            "Warmup::new",
        ],
    ),
    (
        "shapes",
        &[
            "Shape::from_slice",
            "Shape::new",
            "Args::new",
            "Reads::input",
            "Spec::new",
            "Start::adding",
            "Message::new",
            "Name::new",
        ],
    ),
    (
        "windows",
        &[
            "AvgPool2d::new",
            "Conv1d::kernel",
            "Conv2d::kernel",
            "Conv2d::kernel_hw",
            "ConvTranspose2d::kernel",
            "ConvTranspose2d::kernel_hw",
            "Convolution::new",
            "MaxPool2d::new",
            "Window1d::size",
            "Window2d::rect",
            "Window2d::size",
        ],
    ),
    (
        "layers",
        &[
            "Activation::from_name",
            "BatchNorm::new",
            "Dropout::new",
            "Embedding::new",
            "GroupNorm::groups",
            "GroupNorm::new",
            "Init::constant",
            "LayerNorm::last_axes",
            "LayerNorm::new",
            "Model::new",
            "Residual::new",
            "RmsNorm::last_axes",
            "RmsNorm::new",
            "Sequential::new",
            "CrossEntropy::new",
            "Attention::new",
        ],
    ),
    ("tapes", &["Fixed::new", "Growing::new", "Tape::in_slab", "Tape::new", "Tape::with_storage"]),
    (
        "data",
        &["Context::new", "Context::with", "Dataset::new", "Dataset::with_labels", "ProgressBar::new", "Trainer::new"],
    ),
    (
        "plans",
        &["Graph::new", "Training::with", "Training::with_slots", "Op::new", "Gradient::kernel", "Gradient::over_dy"],
    ),
    (
        "watching",
        &["ConfusionMatrix::new", "EarlyStopping::new", "GradientStats::of", "Monitor::new", "RunningMean::new"],
    ),
    ("flash_slots", &["AsyncSlots::new", "Slots::new"]),
    (
        "bytes",
        &[
            "Contents::training",
            "Contents::weights",
            "Element::of",
            "Header::parse",
            "Image::parse",
            "Model::from_cbor",
            "Model::from_nanograd",
            "Model::load_model",
            "StateDict::parse",
            "UserBytes::new",
        ],
    ),
];

#[test]
fn every_public_constructor_is_tested() {
    let api = include_str!("../docs/public-api.txt");
    let makes =
        |line: &&str| ["-> Self", "<Self", "<(Self"].iter().any(|made| line.contains(made)) && !line.contains("Self::");
    let mut found: Vec<String> = api.lines().filter(makes).filter_map(constructor).collect();
    found.sort_unstable();
    found.dedup();
    let mut tested: Vec<&str> = TESTED.iter().flat_map(|(_, names)| *names).copied().collect();
    tested.sort_unstable();
    assert_eq!(found, tested, "what docs/public-api.txt lists, and what is tested here");
}

/// `Type::function` of a line such as `pub fn slabgrad::optim::Adam<E>::new(E) -> Self`, where it takes no `self`.
fn constructor(line: &str) -> Option<String> {
    let (path, arguments) = line.split_once("fn ")?.1.split_once('(')?;
    if arguments.starts_with("self") || arguments.starts_with("&self") || arguments.starts_with("&mut self") {
        return None;
    }
    // Generics have paths of their own.
    let (mut depth, mut plain) = (0_usize, String::new());
    for c in path.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let mut parts = plain.rsplit("::").filter(|part| !part.is_empty());
    let (function, owner) = (parts.next()?, parts.next()?);
    // Conversions of errors and defaults take nothing that could be hostile; elements are numbers, which may be any; serde
    // takes bytes, as `Header::parse`.
    let harmless = matches!(function, "from" | "default" | "deserialize") || matches!(owner, "Real" | "f32" | "f64");
    (!harmless).then(|| format!("{owner}::{function}"))
}

/// That this panics is promised, with this in its message.
fn panics(text: &str, run: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("it should have panicked");
    let message = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    assert!(message.is_some_and(|message| message.contains(text)), "{message:?} does not say `{text}`");
}

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<2, 3>>("x");
    let y: Var<R2<2, 1>> = g.linear("fc", x);
    g.output("y", y);
    let loss = g.mean(y, &[]);
    g.loss(loss);
    g
}
program!(static TRAIN = net().train(Training::with_slots(3)));

/// A step with this optimizer is refused with the number, and changes nothing.
fn refused<O: Optimizer<Strict<f32>>>(mut optimizer: O, number: f32) {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = TRAIN.memory(&mut slab).unwrap();
    TRAIN.init(&mut memory, 1).unwrap();
    let before = [memory.params.to_vec(), memory.moments.to_vec()];
    let error = TRAIN.step(&mut memory, &[&[1.0; 6]], &mut optimizer).expect_err("the setting cannot be").to_string();
    assert!(error.contains(&format!("found {number}")), "`{error}` does not say {number}");
    assert_eq!(before, [memory.params.to_vec(), memory.moments.to_vec()]);
}

#[test]
fn optimizers() {
    let rate = |rate: f32| rate.is_finite() && rate >= 0.0;
    let decay = |decay: f32| (0.0..1.0).contains(&decay);
    for number in NUMBERS.map(|number| number as f32) {
        if !rate(number) {
            refused(Adam::new(number), number);
            refused(Sgd::new(number), number);
            refused(RmsProp::new(number), number);
            refused(Adagrad::new(number), number);
            refused(Adagrad::new(0.1).learning_rate_decay(number), number);
            refused(Adagrad::new(0.1).epsilon(number), number);
            refused(RmsProp::new(0.1).epsilon(number), number);
            refused(Adam { epsilon: number, ..Adam::new(0.1) }, number);
        }
        if !decay(number) {
            refused(Sgd::new(0.1).momentum(number), number);
            refused(Sgd::new(0.1).momentum(0.5).dampening(number), number);
            refused(RmsProp::new(0.1).alpha(number), number);
            refused(RmsProp::new(0.1).momentum(number), number);
            refused(Adam { betas: [number, 0.9], ..Adam::new(0.1) }, number);
            refused(Adam { betas: [0.9, number], ..Adam::new(0.1) }, number);
        }
        let graph = net();
        let group = Training::with::<Adam>().group("fc", ParamGroup::new().learning_rate_factor(f64::from(number)));
        assert_eq!(graph.try_train(group).is_err(), !rate(number), "a factor of {number}");
        let clipped = Training::with::<Adam>().clip_norm(f64::from(number));
        assert_eq!(graph.try_train(clipped).is_err(), number.is_nan() || number <= 0.0, "clipped at {number}");
    }
    let _: SettingError = Optimizer::<Strict<f32>>::check(&Sgd::new(f32::NAN)).unwrap_err();
}

#[test]
fn schedules() {
    for steps in SIZES {
        for number in NUMBERS.map(|number| number as f32) {
            let milestones = [steps, 0, usize::MAX];
            let schedules: [&dyn Schedule<f32>; 9] = [
                &Constant(number),
                &Linear::new(number, 0.1, steps),
                &Cosine::new(0.1, number, steps),
                &Polynomial::new(number, 0.1, steps, steps),
                &StepDecay::new(0.1, number, steps),
                &MultiStep::new(0.1, number, &milestones),
                &Exponential::new(0.1, number),
                &OneCycle::new(number, steps),
                &Warmup::new(steps, Linear::new(0.1, number, steps)),
            ];
            for schedule in schedules {
                SIZES.iter().for_each(|&step| _ = schedule.lr(step));
            }
        }
        // With good rates, the rate is one between them, whatever the steps are.
        let schedules: [&dyn Schedule<f64>; 4] = [
            &Linear::new(1.0, 2.0, steps),
            &Cosine::new(1.0, 2.0, steps),
            &Polynomial::new(1.0, 2.0, steps, 2),
            &OneCycle::new(2.0, steps),
        ];
        for (i, schedule) in schedules.into_iter().enumerate() {
            for step in SIZES.into_iter().chain([steps / 2, steps / 3, steps.saturating_sub(1)]) {
                let rate = schedule.lr(step);
                assert!((0.0..=2.000_001).contains(&rate), "schedule {i} of {steps} steps is {rate} at {step}");
            }
        }
    }
    // Longer than 32 bits count.
    let long = Linear::new(0.0, 1.0, 1 << 40);
    let half: f64 = long.lr(1 << 39);
    assert!((half - 0.5).abs() < 1e-6, "{half}");
}

#[test]
fn shapes() {
    for size in SIZES {
        // As a value of run time, a shape that no memory holds is one of its length.
        let shape = Shape::from([size, size, size]);
        assert_eq!(shape.axis(1), size.min(u32::MAX as usize));
        assert_eq!(shape.is_empty(), size == 0);
        if size > u32::MAX as usize {
            panics("at most 2^32 - 1", || _ = Shape::new([size]));
            panics("at most 2^32 - 1", || _ = Shape::from_slice(&[1, size]));
            panics("at most 2^32 - 1", || _ = Shape::SCALAR.push(size));
        } else {
            assert_eq!(Shape::new([size]), Shape::SCALAR.push(size));
        }
        assert_eq!(ops::Spec::new(shape).shape, shape);
        assert!(matches!(Start::adding(size > 1), Start::Output | Start::Zero));
    }
    panics("at most 5 axes", || _ = Shape::from_slice(&[1; 6]));
    panics("at most 5 axes", || _ = Shape::new([1; 5]).push(1));
    panics("index out of bounds", || _ = Args::new(&[0; Args::WORDS + 1]));
    assert_eq!(Args::new(&[]), Args::NONE);
    assert!(!Reads::input(0).has(Reads::input(1)));
    // Names and messages are cut, not overrun.
    let long = "x".repeat(10_000);
    let leaked: &'static str = long.leak();
    assert!((1..10_000).contains(&Name::new(leaked, leaked).to_string().len()));
    assert!((1..10_000).contains(&slabgrad::error::Message::new().text(leaked).as_str().len()));
}

#[test]
fn windows() {
    let (x, weight) = (Shape::new([1, 1, 4, 4]), Shape::new([1, 1, 3, 3]));
    for size in SIZES {
        for window in [Window2d::size(size), Window2d::rect([size, 3])] {
            if size != 1 {
                let error =
                    max_pool2d::spec(x, window).expect_err("the window does not fit").message("").as_str().to_owned();
                assert!(error.contains("max_pool2d"), "{error}");
            }
            assert_eq!(window.output(0, usize::MAX).is_err(), size == 0 || size > 0xffff, "{size}");
        }
        for window in [
            Window2d::size(3).stride(size),
            Window2d::size(3).padding(size),
            Window2d::size(3).dilation(size),
            Window2d::rect([3, 3]).stride_hw([1, size]),
        ] {
            let fits = conv2d::spec(x, weight, None, window, 1).is_ok();
            assert!(!fits || (1..=0xffff).contains(&size) || size == 0, "{window:?} fits");
            _ = max_pool2d::spec(x, window);
            SIZES.iter().for_each(|&input| _ = window.output(0, input));
        }
        let grouped = conv2d::spec(x, weight, None, Window2d::size(3), size);
        assert_eq!(grouped.is_ok(), size == 1, "{size} groups");
        let transposed = conv_transpose2d::spec(x, weight, None, Window2d::size(size), [size, 0], size);
        assert!(transposed.is_err() || size == 1, "a kernel of {size} that moves by as much");
        // Its settings are read where a graph is written, which is a constant: what is wrong there does not compile.
        _ = (ConvTranspose2d::kernel(size), ConvTranspose2d::kernel_hw([size, 1]));
        let flat = max_pool1d::spec(Shape::new([1, 1, 4]), Window1d::size(size));
        assert_eq!(flat.is_ok(), size == 1, "a window of {size}");
    }
    // As layers: a size of 1 is the good one among the bad ones.
    for size in [0, 1, 300, 1 << 32] {
        let (image, line) = ([1, 4, 4], [1, 4]);
        let window = Window2d::size(size);
        let models: [(&str, Result<Model, _>); 7] = [
            ("conv2d kernel", Model::new(Convolution::new(1, 1, Conv2d::kernel(size)), image, 1)),
            ("conv2d kernel", Model::new(Convolution::new(1, 1, Conv2d::kernel_hw([size, 1])), image, 1)),
            ("conv2d inputs", Model::new(Convolution::new(size, 1, Conv2d::kernel(1)), image, 1)),
            ("conv1d kernel", Model::new(Convolution::new(1, 1, Conv1d::kernel(size)), line, 1)),
            ("conv1d inputs", Model::new(Convolution::new(size, 1, Conv1d::kernel(1)), line, 1)),
            ("max pool", Model::new(layer::MaxPool2d::new(window), image, 1)),
            ("average pool", Model::new(layer::AvgPool2d::new(window), image, 1)),
        ];
        fits_only_one(size, models);
    }
}

/// The same, or what no memory holds, not even twice as an axis.
fn huge(size: usize) -> usize {
    if size > 1 { usize::MAX } else { size }
}

/// Models with a setting of this size: the size 1 is fine, all others are errors with text.
fn fits_only_one<const N: usize>(size: usize, models: [(&str, Result<Model, layer::ModelError>); N]) {
    for (what, model) in models {
        match model {
            Ok(_) => assert_eq!(size, 1, "{what} of {size} is taken"),
            Err(error) => {
                assert_ne!(size, 1, "{what} of 1: {error}");
                assert!(
                    error.to_string().contains(|c: char| c.is_ascii_digit()),
                    "{what} of {size}: `{error}` has no number"
                );
            }
        }
    }
}

#[test]
fn layers() {
    for size in SIZES {
        let models: [(&str, Result<Model, _>); 8] = [
            ("linear inputs", Model::new(layer::Linear::new(size, 2), [1], 1)),
            ("linear in a sequence", Model::new(Sequential::new().linear("fc", size, 2), [1], 1)),
            ("linear in a residual", Model::new(Residual::new(layer::Linear::new(size, 1)), [1], 1)),
            ("batch norm", Model::new(layer::BatchNorm::<1>::new(size), [1], 1)),
            ("layer norm", Model::new(layer::LayerNorm::new([size]), [1], 1)),
            ("rms norm", Model::new(layer::RmsNorm::new([size]), [1], 1)),
            ("group norm channels", Model::new(layer::GroupNorm::new(1, size), [1], 1)),
            ("group norm groups", Model::new(layer::GroupNorm::new(size, 1), [1], 1)),
        ];
        fits_only_one(size, models);
        // More than any memory holds.
        let models: [(&str, Result<Model, _>); 2] = [
            ("embedding", Model::new(layer::Embedding::new(huge(size), huge(size)), [1], 1)),
            ("sample", Model::new(layer::Dropout::new(Dropout::new(0.1)), [huge(size); 3], 1)),
        ];
        for (what, model) in models {
            assert!(size == 0 || model.is_ok() == (size == 1), "{what} of {size}");
        }
        let x = Shape::new([2, 4]);
        assert_eq!(ops::layer_norm::spec(x, None, None, size, 1e-5).is_ok(), size == 1, "layer norm over {size} axes");
        assert_eq!(ops::rms_norm::spec(x, None, size, 1e-5).is_ok(), size == 1, "rms norm over {size} axes");
        assert_eq!(ops::group_norm::spec(x, None, None, size, 1e-5).is_ok(), size == 1, "{size} groups");
    }
    for number in NUMBERS {
        let dropout = Model::<Strict<f32>>::new(layer::Dropout::new(Dropout::new(number)), [1], 1);
        assert_eq!(dropout.is_ok(), (0.0..=1.0).contains(&number), "dropout {number}");
        let settings = BatchNorm::new().epsilon(number);
        let normed = ops::batch_norm::spec(Shape::new([2, 1]), None, None, settings);
        assert_eq!(normed.is_ok(), number.is_finite() && number >= 0.0, "an epsilon of {number}");
        let smoothed =
            ops::cross_entropy::spec(Shape::new([1, 2]), Shape::new([1]), CrossEntropy::new().label_smoothing(number));
        assert_eq!(smoothed.is_ok(), (0.0..=1.0).contains(&number), "a smoothing of {number}");
        assert!(Activation::from_name("no such thing", Some(number)).is_none());
        assert!(Activation::from_name(Activation::Relu.name(), Some(number)).is_some());
        // A constant is what it is; nothing that is not finite gets through a step.
        let mut data = [0.0_f64; 2];
        Init::constant(number).fill(&mut data, Shape::new([2]), Name::new("", "w"), 1);
        assert!(data[0] == number || number.is_nan());
    }
    // Shapes are compared, and elements counted, before there is memory for any.
    let large: [(Result<Model, _>, &str); 4] = [
        (Model::new(layer::Linear::new(1 << 31, 1), [1], 1), "linear: input features are 1, weight expects 2147483648"),
        (
            Model::new(layer::Linear::new(1 << 32, 2), [1], 1),
            "parameter: the params space has room for 4294967294 elements, 8589934590 are needed",
        ),
        (
            Model::new(Sequential::new().linear("fc1", 1, 1 << 31).linear("fc2", 1 << 31, 1), [1], 1),
            "parameters and states: the params space has room for 0 elements, 6442450945 are needed",
        ),
        (
            Model::new(layer::Dropout::new(Dropout::new(0.1)), [1 << 32], 1),
            "constant: the work space has room for 4294967294 elements, 4294967295 are needed",
        ),
    ];
    for (model, text) in large {
        let error = model.err().expect("nothing holds it").to_string();
        assert!(error.starts_with(text), "{error}");
    }
    _ = (
        LayerNorm::new(),
        RmsNorm::new(),
        Attention::new(),
        LayerNorm::last_axes(0),
        RmsNorm::last_axes(usize::MAX),
        GroupNorm::groups(0),
    );
}

#[test]
fn tapes() {
    for size in SIZES {
        let mut slab = [0.0_f32; 4];
        let (fits, found) = (size <= 2, Fixed::<Strict<f32>, 4>::new(&mut slab, size));
        assert_eq!(found.is_ok(), fits, "{size} parameters in a slab of 4");
        match FixedTape::<4>::in_slab(&mut slab, size) {
            Ok(tape) => assert!(fits && tape.is_empty()),
            Err(error) => assert!(!fits && error.to_string().contains('4'), "{error}"),
        }
        // Data of another length than the shape says is a fault, and so is more than there is memory for.
        for shape in [Shape::from([size]), Shape::from([size, size])] {
            let mut tape = Tape::new();
            let mark = tape.mark();
            for x in [tape.parameter(shape, &[]), tape.constant(shape, &[])] {
                assert!(tape.value(x).is_empty());
            }
            assert!(tape.check().is_err() || size == 0, "{shape} without data");
            tape.reset_to(mark);
            assert!(tape.check().is_ok() && tape.is_empty());
        }
        let mut tape = Tape::with_storage(slabgrad::tape::Growing::<Strict<f32>>::new());
        let x = tape.constant([1], &[1.0]);
        tape.broadcast_to(x, Shape::from([huge(size)]));
        assert_eq!(tape.check().is_ok(), size <= 1, "an axis of {size}");
    }
    let mut tape = Tape::new();
    for x in [f32::NAN, f32::INFINITY] {
        let mark = tape.mark();
        let w = tape.parameter([1], &[x]);
        let loss = tape.square(w);
        assert!(tape.backward(loss).is_err(), "a loss of {x}");
        assert_eq!(tape.gradient(w).unwrap_or_default().iter().sum::<f32>(), 0.0);
        tape.reset_to(mark);
    }
}

/// The table's specs compute with lengths that no memory holds.
#[test]
fn operations() {
    type Operation = fn(&mut GrowingTape, Handle, usize) -> Handle;
    let operations: [(&str, Operation); 28] = [
        ("concat", |tape, x, _| tape.concat(&[x, x, x], 0)),
        ("stack", |tape, x, _| tape.stack(&[x, x, x], 0)),
        ("pad", |tape, x, size| tape.pad(x, &[size, 1], &[1, size], 0.0)),
        ("slice", |tape, x, size| tape.slice(x, &[0, 1], &[size, size], &[size, size])),
        ("upsample", |tape, x, size| tape.upsample_nearest2d(x, [size, 2])),
        ("flatten", |tape, x, _| tape.flatten(x)),
        ("reshape", |tape, x, size| tape.reshape(x, [size, size])),
        ("broadcast_to", |tape, x, size| tape.broadcast_to(x, [size, size, size, size])),
        ("zeros", |tape, _, size| tape.zeros([size, size])),
        ("unsqueeze", |tape, x, size| tape.unsqueeze(x, size.cast_signed())),
        ("squeeze", |tape, x, size| tape.squeeze(x, &[size.cast_signed()])),
        ("permute", |tape, x, size| tape.permute(x, &[0, size.cast_signed()])),
        ("transpose", |tape, x, size| tape.transpose(x, 0, size.cast_signed())),
        ("gather", |tape, x, size| tape.gather(x, x, size.cast_signed())),
        ("embedding", |tape, x, _| tape.embedding(x, x)),
        ("matmul", |tape, x, _| tape.matmul_nt(x, x)),
        ("linear", |tape, x, _| tape.linear(x, x, None)),
        ("conv2d", |tape, x, size| tape.conv2d(x, x, None, Conv2d::kernel(1).padding(size))),
        ("average pool", |tape, x, size| tape.avg_pool2d(x, Window2d::size(size), ops::avg_pool2d::CountPadding::Yes)),
        ("gru_cell", |tape, x, _| tape.gru_cell(x, x, x)),
        ("lstm_cell", |tape, x, _| tape.lstm_cell(x, x)),
        ("lstm_gates", |tape, x, _| tape.lstm_gates(x)),
        ("layer_norm", |tape, x, size| tape.layer_norm(x, None, None, size, 1e-5)),
        ("group_norm", |tape, x, size| tape.group_norm(x, None, None, size, 1e-5)),
        ("var", |tape, x, size| tape.var(x, &[], size, false)),
        ("l2_normalize", |tape, x, size| tape.l2_normalize(x, Some(size.cast_signed()), 1e-5)),
        ("cross_entropy", |tape, x, _| tape.cross_entropy(x, x, CrossEntropy::new())),
        ("attention", |tape, x, _| tape.scaled_dot_product_attention(x, x, x, Attention::new())),
    ];
    for (name, operation) in operations {
        for size in SIZES {
            for rank in 0..=5 {
                let mut tape = Tape::new().lazily();
                let one = tape.constant([1], &[1.0]);
                let shape = Shape::from([size; 5]).prefix(rank);
                let x = tape.broadcast_to(one, if rank == 0 { Shape::new([1]) } else { shape });
                let y = operation(&mut tape, x, size);
                // Small ones are computed; for large ones there is no memory.
                let (elements, found) = (tape.shape(y).len(), tape.force(y).len());
                assert!(found == elements || tape.check().is_err(), "{name} of {shape} with {size}: {found} elements");
            }
        }
    }
    let mut tape = Tape::new();
    tape.batch_norm_statistics(usize::MAX);
    assert!(tape.check().is_err());
}

#[test]
fn data() {
    for size in SIZES {
        let data = |sample: Shape, target: Shape| Dataset::new(sample, vec![0.0_f32; 2], target, vec![0.0; 2]);
        assert_eq!(data(Shape::from([size]), Shape::from([1])).is_ok(), size == 1, "a sample of {size}");
        assert_eq!(data(Shape::from([1]), Shape::from([size])).is_ok(), size == 1, "a target of {size}");
        assert!(data(Shape::from([size; 4]), Shape::from([size; 4])).is_ok() == (size == 1));
        assert!(data(Shape::from([1; 5]), Shape::from([size])).is_err(), "no axis is left for the batch");
        let labels = Dataset::with_labels([1], vec![0.0_f32; 2], size, [0, size]);
        assert!(labels.is_err(), "label {size} of {size} classes");

        let good = Dataset::with_labels([2], vec![0.5_f32; 8], 2, [0, 1, 0, 1]).unwrap();
        let mut model = Model::new(layer::Linear::new(2, 2), [2], 1).unwrap();
        let loss = |tape: &mut GrowingTape, logits: Handle, label: Handle| {
            tape.cross_entropy(logits, label, CrossEntropy::new())
        };
        let fit = Trainer::new(1, size).fit(&mut model, &good, &mut Adam::new(0.1), loss);
        assert_eq!(fit.is_ok(), size > 0, "batches of {size}");
        let none = Trainer::new(0, size.max(1)).fit(&mut model, &good, &mut Adam::new(0.1), loss).unwrap();
        assert!(none.epochs.is_empty());
        let weights = |model: &Model| model.tensor("weight").unwrap().data.to_vec();
        let before = weights(&model);
        let refused = Trainer::new(size.max(1), 2).fit(&mut model, &good, &mut Adam::new(f32::NAN), loss);
        assert!(refused.is_err() && before == weights(&model), "a learning rate of NaN");

        let mut context = Context::with(Training::with_slots(size));
        let x = (Shape::new([1, 2]), &[0.5, f32::NAN][..]);
        assert!(context.forward(&mut model, x).is_err(), "an input of NaN");
        assert!(Context::new().forward(&mut model, (Shape::from([size, 3]), &[])).is_err(), "the input has 3 features");
        for share in NUMBERS {
            let split = Dataset::with_labels([2], vec![0.5_f32; 8], 2, [0, 1, 0, 1]).unwrap().split(share, 1);
            assert!(split.is_err(), "a share of {share}");
        }
    }
    #[cfg(feature = "progress")]
    drop(slabgrad::train::ProgressBar::new());
}

#[test]
fn plans() {
    assert!(
        Graph::<Strict<f32>, 4>::new().try_infer().is_err()
            && Graph::<Strict<f32>, 4>::new().try_train(Training::with::<Sgd>()).is_err()
    );
    for slots in SIZES {
        let plan = net().try_train(Training::with_slots(slots));
        assert_eq!(plan.is_ok(), slots <= 0x1_0000, "{slots} slots of moments");
    }
    for decay in NUMBERS {
        let plan = net().try_train(Training::with::<Adam>().weight_decay(decay));
        assert_eq!(plan.is_ok(), decay.is_finite() && decay >= 0.0, "a weight decay of {decay}");
    }
    // Without elements it is no input, which panics as it says.
    for size in SIZES.into_iter().filter(|&size| size > 0) {
        let mut g = Graph::<Strict<f32>, 8>::new();
        let (x, weight) = (Shape::from([1, size]), Shape::from([size, size]));
        let (input, w) = (g.input_dyn("x", x), g.parameter_dyn(Name::new("", "w"), weight, Init::Zeros));
        let y = g.apply_dyn(ops::linear::op(), &[input, w], ops::linear::spec(x, weight, None).unwrap());
        let loss = g.apply_dyn(ops::sum::op(), &[y], ops::sum::spec(x, &[], false).unwrap());
        g.loss_dyn(loss);
        let error = g.try_train(Training::with::<Adam>()).err().map(|error| error.to_string());
        assert_eq!(error.is_none(), size <= 1, "{error:?} of {weight}");
        assert!(error.is_none_or(|error| error.contains(|c: char| c.is_ascii_digit())), "no number in it");
    }
    // Operations of one's own are functions and flags: there is no number in them.
    let op = ops::Op::<Strict<f32>>::new("nothing", |_| {}, [ops::Gradient::None; 3]);
    assert!(matches!(ops::Gradient::<Strict<f32>>::kernel(|_| {}, Reads::NONE), ops::Gradient::Kernel { .. }));
    assert!(!matches!(ops::Gradient::<Strict<f32>>::over_dy(|_| {}, Reads::NONE), ops::Gradient::None));
    assert_eq!(op.name, "nothing");
}

#[test]
fn watching() {
    let mut matrix = ConfusionMatrix::<3>::new();
    for label in SIZES {
        for predicted in SIZES {
            assert_eq!(matrix.record(label, predicted), label < 3 && predicted < 3);
            assert!(matrix.count(label, predicted) <= 1);
        }
        let mut stopping = EarlyStopping::new(label, f32::NAN);
        NUMBERS.iter().for_each(|&loss| _ = stopping.should_stop(loss as f32));
        let mut mean = RunningMean::<f64>::new();
        mean.add_mean(1.0, label);
        mean.add_mean(1.0, label);
        assert!(label == 0 || (mean.mean() - 1.0).abs() < 1e-6, "the mean of ones, {label} times, is {}", mean.mean());
    }
    assert_eq!(matrix.total(), 4);
    let empty = GradientStats::<f32>::of::<Strict<f32>>(&[]);
    assert!(empty.l2 == 0.0 && empty.mean_abs == 0.0, "{empty:?}");
    let bad = GradientStats::<f32>::of::<Strict<f32>>(&NUMBERS.map(|number| number as f32));
    assert!(!bad.l2.is_finite(), "{bad:?}");
    let monitor = Monitor::<f32, 4>::new();
    assert!(monitor.is_empty() && !monitor.diagnose().stability().is_nan());
    for number in NUMBERS {
        _ = diagnostics::suggest_learning_rate(number, number);
    }
}

#[test]
fn flash_slots() {
    for slots in SIZES {
        for range in [0..0, 64..0, 0..u32::MAX, 1..640, u32::MAX..u32::MAX] {
            let mut flash = flash::Mock::<4, 64>::new(640, 1);
            let error = Slots::<_, 128>::new(&mut flash, range.clone(), slots).err();
            let error = error.unwrap_or_else(|| panic!("{range:?} holds {slots} slots")).to_string();
            assert!(error.contains(&slots.to_string()), "{error}");
        }
        let mut flash = flash::Mock::<4, 64>::new(640, 1);
        assert!(Slots::<_, 128>::new(&mut flash, 0..640, slots).is_err(), "{slots} slots");
    }
}

/// `tests/mutations.rs` and `fuzz/` look for worse bytes than these.
#[test]
fn bytes() {
    for bytes in [&[][..], &[0], &[0xff; 64], &[0; 4096]] {
        assert!(Header::parse(bytes).is_err() && Image::parse(bytes).is_err() && StateDict::parse(bytes).is_err());
        assert!(Model::<Strict<f32>>::from_cbor(bytes).is_err());
        assert!(Model::<Strict<f32>>::from_nanograd(bytes, Some(Shape::from([usize::MAX]))).is_err());
    }
    assert!(Model::<Strict<f32>>::load_model("no such file").is_err());
    assert!(slabgrad::checkpoint::UserBytes::new(&mut []).get().is_empty());
    let (training, weights): (Contents, Contents) = (Contents::training(), Contents::weights());
    assert!(TRAIN.image_len(&weights) < TRAIN.image_len(&training));
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = TRAIN.memory(&mut slab).unwrap();
    let mut short = vec![7; TRAIN.image_len(&training) - 1];
    assert!(TRAIN.save(&memory, training, &mut short[..]).is_err(), "a byte is missing");
    assert_eq!(slabgrad::checkpoint::Element::of::<f64>().size(), 8);
}
