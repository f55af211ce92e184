//! What surrounds an update: parameter groups, gradients gathered over micro-batches, losses and gradients that are not finite,
//! impossible settings, and a count of steps that lives with the moments.

use slabgrad::optim::{Adagrad, Cosine, HEADER_LEN, SettingError, Warmup};
use slabgrad::prelude::*;

const fn net<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 4, 4>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 2, 4, 4>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R2<B, 32>> = g.flatten(h);
    let h: Var<R2<B, 5>> = g.linear("fc1", h);
    let h = g.tanh(h);
    let logits: Var<R2<B, 3>> = g.linear("fc2", h);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

fn images(count: usize) -> (Vec<f32>, Vec<f32>) {
    let x = (0..count * 16).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect();
    (x, (0..count).map(|i| (i * 2 % 3) as f32).collect())
}

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|x| x.to_bits()).collect()
}

/// Runs `act` on fresh memory with parameters from a seed.
fn with_memory<T>(program: &Program<'_>, act: impl FnOnce(&mut Memory<'_, f32>) -> T) -> T {
    let mut slab = vec![0.0; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    program.init(&mut memory, 5).unwrap();
    act(&mut memory)
}

/// A step of plain descent with a rate of 1 shows what is taken from every parameter.
fn change_of(program: &Program<'_>, name: &str) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (x, label) = images(8);
    with_memory(program, |memory| {
        let before = program.tensor(memory, name).unwrap().to_vec();
        program.gradients(memory, &[&x, &label]).unwrap();
        let gradient = program.gradient(memory, name).unwrap().to_vec();
        program.update(memory, &mut Sgd::new(1.0)).unwrap();
        let after = program.tensor(memory, name).unwrap().to_vec();
        (before, gradient, after)
    })
}

#[test]
fn groups_set_decay_and_rate_by_name_and_by_rule() {
    const SLOW: ParamGroup = ParamGroup::new().learning_rate_factor(0.5).weight_decay(0.25);
    const TRAINING: Training =
        Training::with::<Sgd>().weight_decay(0.125).no_decay_on_vectors().group("fc1.weight", SLOW);
    program!(static GROUPED = net::<8>().train(TRAINING));
    let cases = [
        ("conv1.weight", 1.0, 0.125),
        ("conv1.bias", 1.0, 0.0),
        ("fc1.weight", 0.5, 0.25),
        ("fc1.bias", 1.0, 0.0),
        ("fc2.weight", 1.0, 0.125),
        ("fc2.bias", 1.0, 0.0),
    ];
    for (name, factor, decay) in cases {
        let (before, gradient, after) = change_of(&GROUPED, name);
        for ((p, g), found) in before.iter().zip(gradient).zip(after) {
            let want: f32 = p - factor * (decay * p + g);
            assert_eq!(found.to_bits(), want.to_bits(), "{name}");
        }
    }
    assert_eq!(GROUPED.groups().len(), 6);
    program!(static PLAIN = net::<8>().train(Training::with::<Sgd>()));
    assert_eq!(PLAIN.groups().len(), 1, "without rules all parameters are one run");
}

#[test]
fn groups_are_the_same_in_a_fused_program() {
    const TRAINING: Training = Training::with::<Adam>()
        .weight_decay(0.1)
        .no_decay_on_vectors()
        .group("conv1", ParamGroup::new().learning_rate_factor(3.0));
    program!(static KEPT = net::<8>().train(TRAINING));
    program!(static FUSED = net::<8>().train(TRAINING.fused()));
    let (x, label) = images(8);
    let train = |program: &Program<'_>| {
        with_memory(program, |memory| {
            let mut adam = Adam::new(0.01).decoupled();
            (0..5).for_each(|_| _ = program.step(memory, &[&x, &label], &mut adam).unwrap());
            (bits(memory.params), bits(memory.moments))
        })
    };
    assert_eq!(train(&KEPT), train(&FUSED));
}

#[test]
fn a_rule_for_nothing_is_an_error() {
    let error = net::<8>().try_train(Training::with::<Sgd>().group("fc3", ParamGroup::new())).err().unwrap();
    assert_eq!(error.to_string(), "train: no trained parameter is named `fc3`");
    let error = net::<8>().try_train(Training::with::<Sgd>().weight_decay(-0.1)).err().unwrap();
    let text = "train: learning-rate factors and weight decays are finite numbers from 0";
    assert_eq!(error.to_string(), text);
}

/// Eight samples one by one, two by two, and at once give the same bits.
#[test]
fn gradients_of_micro_batches_are_those_of_the_whole_batch() {
    program!(static EIGHT = net::<8>().train(Training::with::<Adam>()));
    program!(static TWO = net::<2>().train(Training::with::<Adam>()));
    program!(static ONE = net::<1>().train(Training::with::<Adam>()));
    let (x, label) = images(8);
    let whole = with_memory(&EIGHT, |memory| {
        EIGHT.gradients(memory, &[&x, &label]).unwrap();
        bits(memory.grads)
    });
    for (program, size) in [(&ONE, 1), (&TWO, 2)] {
        let weight = size as f32 / 8.0;
        let gathered = with_memory(program, |memory| {
            let mut adam = Adam::new(0.01);
            let gather = |memory: &mut Memory<'_, f32>| {
                for (x, label) in x.chunks(16 * size).zip(label.chunks(size)) {
                    program.accumulate(memory, &[x, label], weight).unwrap();
                }
                bits(memory.grads)
            };
            let first = gather(memory);
            // After an update gathering begins anew: the gradients are those of the new parameters.
            program.update(memory, &mut adam).unwrap();
            program.init(memory, 5).unwrap();
            assert_eq!(gather(memory), first);
            first
        });
        assert_eq!(gathered, whole, "micro-batches of {size}");
    }
}

#[test]
fn what_is_not_finite_is_an_error_is_skipped_or_passes() {
    program!(static ERROR = net::<8>().train(Training::with::<Adam>()));
    program!(static SKIP = net::<8>().train(Training::with::<Adam>().not_finite(NotFinite::Skip)));
    program!(static SKIP_FUSED = net::<8>().train(Training::with::<Adam>().not_finite(NotFinite::Skip).fused()));
    program!(static PASS = net::<8>().train(Training::with::<Adam>().not_finite(NotFinite::Pass)));
    let (x, label) = images(8);
    // An overflowing loss, and a finite loss with an infinite gradient.
    let overflow = |program: &Program<'_>, memory: &mut Memory<'_, f32>| {
        program.tensor_mut(memory, "fc2.weight").unwrap().fill(f32::MAX);
    };
    with_memory(&ERROR, |memory| {
        ERROR.gradients(memory, &[&x, &label]).unwrap();
        let before = (bits(memory.params), bits(&memory.moments[HEADER_LEN..]));
        memory.grads[3] = f32::INFINITY;
        let error = ERROR.update(memory, &mut Adam::new(0.1)).unwrap_err();
        assert_eq!(error, RunError::GradientNotFinite { found: f32::INFINITY });
        assert_eq!((bits(memory.params), bits(&memory.moments[HEADER_LEN..])), before);
        assert_eq!(ERROR.steps_done(memory), 0);
    });
    for program in [&SKIP, &SKIP_FUSED] {
        with_memory(program, |memory| {
            overflow(program, memory);
            let before = bits(memory.params);
            let loss = program.step(memory, &[&x, &label], &mut Adam::new(0.1)).unwrap();
            assert!(!loss.is_finite());
            assert_eq!(bits(memory.params), before);
            assert_eq!((program.steps_done(memory), program.steps_skipped(memory)), (0, 1));
            program.init(memory, 5).unwrap();
            program.step(memory, &[&x, &label], &mut Adam::new(0.1)).unwrap();
            assert_eq!((program.steps_done(memory), program.steps_skipped(memory)), (1, 0));
        });
    }
    with_memory(&PASS, |memory| {
        overflow(&PASS, memory);
        PASS.step(memory, &[&x, &label], &mut Adam::new(0.1)).unwrap();
        assert_eq!(PASS.steps_done(memory), 1);
        assert!(memory.params.iter().any(|p| p.is_nan()), "what is not finite went through");
    });
}

program!(static ANY = net::<8>().train(Training::with_slots(3)));

/// The error of a step.
fn refused<O: slabgrad::optim::Optimizer<Strict<f32>>>(x: &[f32], label: &[f32], mut optimizer: O) -> String {
    with_memory(&ANY, |memory| {
        let before = bits(memory.params);
        let error = ANY.step(memory, &[x, label], &mut optimizer).unwrap_err();
        assert!(matches!(error, RunError::Setting(SettingError { .. })));
        assert_eq!(bits(memory.params), before);
        error.to_string()
    })
}

/// A finite loss whose gradient overflows on its way back: the parameters behind the overflow are updated, none takes it in.
#[test]
fn a_fused_program_never_takes_in_what_is_not_finite() {
    const fn steep() -> Graph {
        let mut g = Graph::new();
        let x = g.input::<R2<1, 1>>("x");
        let target = g.input::<R2<1, 1>>("target");
        let h: Var<R2<1, 1>> = g.linear_with("first", x, Linear::new().without_bias().init(Init::constant(1e-30)));
        let h: Var<R2<1, 1>> = g.linear_with("second", h, Linear::new().without_bias().init(Init::constant(1e30)));
        let y: Var<R2<1, 1>> = g.linear_with("third", h, Linear::new().without_bias().init(Init::constant(1e30)));
        let y = g.mul_scalar(y, 1e-15);
        let loss = g.mse(y, target);
        g.loss(loss);
        g
    }
    program!(static ERROR = steep().train(Training::with::<Sgd>().fused()));
    program!(static SKIP = steep().train(Training::with::<Sgd>().fused().not_finite(NotFinite::Skip)));
    for program in [&ERROR, &SKIP] {
        with_memory(program, |memory| {
            let result = program.step(memory, &[&[1.0], &[0.0]], &mut Sgd::new(1e-38));
            match result {
                Ok(loss) => assert!(loss.is_finite() && program.steps_skipped(memory) == 1),
                Err(error) => assert!(matches!(error, RunError::GradientNotFinite { .. }), "{error}"),
            }
            assert!(memory.params.iter().all(|p| p.is_finite()), "{:?}", memory.params);
        });
    }
}

#[test]
fn impossible_settings_are_errors_with_their_value() {
    let (x, label) = images(8);
    let cases = [
        (refused(&x, &label, Sgd::new(-0.1)), "the learning rate is a finite number from 0, found -0.1"),
        (refused(&x, &label, Adam::new(f32::NAN)), "the learning rate is a finite number from 0, found NaN"),
        (refused(&x, &label, Adam::new(0.1).betas(0.9, 1.0)), "beta 2 is from 0 and below 1, found 1"),
        (refused(&x, &label, Sgd::new(0.1).momentum(1.5)), "the momentum is from 0 and below 1, found 1.5"),
        (refused(&x, &label, RmsProp::new(0.1).alpha(-1.0)), "alpha is from 0 and below 1, found -1"),
        (refused(&x, &label, Adagrad::new(f32::INFINITY)), "the learning rate is a finite number from 0, found inf"),
    ];
    for (found, want) in cases {
        assert_eq!(found, want);
    }
}

/// Trains with one optimizer and with one that is made anew for every step.
fn check_state<O: slabgrad::optim::Optimizer<Strict<f32>>>(make: impl Fn() -> O) {
    let (x, label) = images(8);
    let train = |anew: bool| {
        with_memory(&ANY, |memory| {
            let mut optimizer = make();
            for step in 0..6 {
                assert_eq!(ANY.steps_done(memory), step);
                if anew {
                    optimizer = make();
                }
                ANY.step(memory, &[&x, &label], &mut optimizer).unwrap();
            }
            (bits(memory.params), bits(memory.moments))
        })
    };
    assert_eq!(train(true), train(false));
}

/// All that training needs to go on lies in the slab: an optimizer made anew continues with the same bits.
#[test]
fn the_step_count_lives_with_the_moments() {
    check_state(|| Adam::new(0.01));
    check_state(|| Adam::new(0.01).amsgrad());
    check_state(|| Sgd::new(0.01).momentum(0.9).dampening(0.5));
    check_state(|| RmsProp::new(0.01).momentum(0.9).centered());
    check_state(|| Adagrad::new(0.01).learning_rate_decay(0.1));
}

#[test]
fn a_schedule_sets_the_rate_of_every_step() {
    const SCHEDULE: Warmup<Cosine<f32>> = Warmup::new(2, Cosine::new(0.1, 0.0, 4));
    program!(static TRAIN = net::<8>().train(Training::with::<Sgd>()));
    let (x, label) = images(8);
    with_memory(&TRAIN, |memory| {
        let mut sgd = Sgd::new(0.0);
        let mut rates = Vec::new();
        for _ in 0..7 {
            sgd.set_learning_rate(SCHEDULE.lr(TRAIN.steps_done(memory)));
            rates.push(sgd.learning_rate());
            TRAIN.step(memory, &[&x, &label], &mut sgd).unwrap();
        }
        assert_eq!((rates[0], rates[1], rates[2], rates[6]), (0.0, 0.05, 0.1, 0.0));
    });
}
