//! Tapes: what they keep and what they forget, faults, functions of the user's own, and the identities and the oracle graph of
//! `seed_vectors.json`. That every operation gives the bits of the static engine is in `tests/golden.rs`, that random
//! graphs do in `tests/planner.rs`.

#![cfg(feature = "alloc")]
// References are operands too; values are exact.
#![allow(clippy::op_ref, clippy::float_cmp)]

mod common;

use common::{lengths, numbers, relative_difference};
use slabgrad::optim::{ParamGroup, steps_done};
use slabgrad::prelude::*;
use slabgrad::tape::{self, Cause, FixedTape, GrowingTape, Mark, Storage, Tape, gradcheck};

type Double = GrowingTape<Strict<f64>>;

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// The identities of `nurl_identities`, in its order.
mod identities {
    use super::*;

    const X: [f64; 4] = [0.1, -0.7, 1.3, 2.9];

    #[test]
    fn these_are_all() {
        let file = common::load("seed_vectors");
        assert_eq!(file["nurl_identities"]["list"].as_array().map(Vec::len), Some(8));
    }

    #[test]
    fn the_gradient_of_a_sum_of_squares_is_twice_the_value() {
        let mut tape = Double::default();
        let x = tape.parameter([4], &X);
        let y = tape.mul(x, x);
        let loss = tape.sum(y, &[], false);
        tape.backward(loss).unwrap();
        assert_eq!(bits(tape.gradient(x).unwrap()), bits(&X.map(|x| x + x)));
    }

    #[test]
    fn fan_out_adds_up() {
        let mut tape = Double::default();
        let x = tape.parameter([4], &X);
        let scope = tape.scope();
        let (y, x_) = (scope.of(x) * scope.of(x), scope.of(x));
        let loss = (y + y * x_).sum(&[], false).handle();
        tape.backward(loss).unwrap();
        let want = X.map(|x| 2.0 * x + 3.0 * x * x);
        assert!(relative_difference(tape.gradient(x).unwrap(), &want) < 1e-15);
    }

    #[test]
    fn constants_get_no_gradient() {
        let mut tape = Double::default();
        let (p, c) = (tape.parameter([4], &X), tape.constant([4], &[2.0, 3.0, 5.0, 7.0]));
        let y = tape.mul(p, c);
        let loss = tape.sum(y, &[], false);
        tape.backward(loss).unwrap();
        assert_eq!(tape.gradient(c), None);
        assert_eq!(bits(tape.gradient(p).unwrap()), bits(&[2.0, 3.0, 5.0, 7.0]));
        assert!(tape.requires_grad(y) && !tape.requires_grad(c));
    }

    #[test]
    fn the_same_episode_after_a_reset_has_the_same_bits() {
        let mut tape = Double::default();
        let x = tape.parameter([2, 2], &X);
        let mark = tape.mark();
        let mut run = || {
            let y = tape.matmul(x, x);
            let y = tape.tanh(y);
            let loss = tape.mean(y, &[], false);
            tape.backward(loss).unwrap();
            let outcome = (bits(&[tape.item(loss)]), bits(tape.gradient(x).unwrap()));
            tape.reset_to(mark);
            assert_eq!((tape.len(), tape.gradient(x)), (1, Some(&[0.0; 4][..])));
            outcome
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_shape_mismatch_poisons_until_the_reset() {
        let mut tape = Double::default();
        let x = tape.parameter([4], &X);
        let mark = tape.mark();
        let other = tape.constant([3], &[1.0; 3]);
        let y = tape.add(x, other);
        let line = line!() - 1;
        let before = tape.len();
        let z = tape.neg(x);
        assert_eq!((tape.len(), tape.value(y), tape.value(z)), (before, &[][..], &[][..]));
        let error = tape.backward(z).unwrap_err();
        assert_eq!(tape.check(), Err(error));
        assert_eq!((error.op(), error.shapes()), ("add", &[Shape::new([4]), Shape::new([3])][..]));
        assert!(matches!(error.cause(), Cause::Shape(_)));
        let at = if cfg!(feature = "std") { format!("; at tests/tape.rs:{line}:") } else { String::new() };
        let text = format!("add: shapes [4] and [3] do not broadcast to one another; operands [4], [3]{at}");
        assert!(error.to_string().starts_with(&text), "{error}");
        assert_eq!(tape.update(&Sgd::new(0.1), &mut tape.moments::<Sgd<f64>>()), Err(error));

        tape.reset_to(mark);
        let loss = tape.sum(x, &[], false);
        assert_eq!(tape.backward(loss), Ok(()));
    }

    #[test]
    fn a_parameter_that_no_backward_reached_neither_moves_nor_decays() {
        let mut tape = Double::default();
        let (used, unused) = (tape.parameter([4], &X), tape.parameter([4], &X));
        for x in [used, unused] {
            tape.set_group(x, ParamGroup::new().weight_decay(0.5));
        }
        let loss = tape.sum(used, &[], false);
        tape.backward(loss).unwrap();
        // A look at the gradient changes nothing.
        assert_eq!(tape.gradient(unused), Some(&[0.0; 4][..]));
        let mut moments = tape.moments::<Adam<f64>>();
        tape.update(&Adam::new(0.1), &mut moments).unwrap();
        assert_eq!(tape.value(unused), X);
        assert!(tape.value(used).iter().zip(X).all(|(found, before)| (found - before).abs() > 0.05));
        assert!(moments[slabgrad::optim::HEADER_LEN + 4..][..4].iter().all(|&m| m == 0.0));
    }

    #[test]
    fn gradients_of_parameters_add_up_and_others_start_afresh() {
        let mut tape = Double::default();
        let x = tape.parameter([2], &[1.0, 2.0]);
        let y = tape.square(x);
        let loss = tape.sum(y, &[], false);
        for calls in 1..4 {
            tape.backward(loss).unwrap();
            assert_eq!(tape.gradient(x).unwrap(), [2.0 * f64::from(calls), 4.0 * f64::from(calls)]);
            assert_eq!(tape.gradient(y).unwrap(), [1.0, 1.0]);
        }
    }

    #[test]
    fn steps_are_counted() {
        let mut tape = Double::default();
        let x = tape.parameter([1], &[1.0]);
        let mut moments = tape.moments::<Adam<f64>>();
        let mark = tape.mark();
        for step in 0..3 {
            assert_eq!(steps_done(&moments), step);
            let loss = tape.square(x);
            tape.backward(loss).unwrap();
            tape.update(&Adam::new(0.1), &mut moments).unwrap();
            tape.reset_to(mark);
        }
        // Three steps of about 0.1, since the gradient hardly changes.
        assert!((tape.item(x) - 0.7).abs() < 1e-2, "{}", tape.item(x));
    }
}

/// All of grad's oracle graph, as one expression.
#[test]
fn the_oracle_graph_has_the_gradients_of_the_reference() {
    let file = common::load("seed_vectors");
    let oracle = &file["nurl_oracle_graph"];
    let mut tape = Double::default();
    let mut tensor = |name: &str, trained: bool| {
        let phase = match name {
            "T" => 3.0,
            "W1" | "b1" | "W2" | "b2" => 2.0,
            _ => 1.0,
        };
        let (shape, scale) = (lengths(&oracle["tensors"][name][0]), numbers(&oracle["tensors"][name][1])[0]);
        let shape = Shape::from_slice(&shape);
        let data: Vec<f64> = (0..shape.len()).map(|k| libm::sin(0.7 * f64::from(k as u32) + phase) * scale).collect();
        if trained { tape.parameter(shape, &data) } else { tape.constant(shape, &data) }
    };
    let trained = ["W1", "b1", "W2", "b2", "A", "P"];
    let vars = trained.map(|name| tensor(name, true));
    let constants = ["X", "T", "Q"].map(|name| tensor(name, false));

    let scope = tape.scope();
    let [w1, b1, w2, b2, a, p] = vars.map(|var| scope.of(var));
    let [x, t, q] = constants.map(|var| scope.of(var));
    let h = (x.matmul(w1) + b1).relu();
    let s = (h.matmul(w2) + b2).softmax(1);
    let l1 = (s - t).square().mean(&[], false);
    let b = a.permute(&[1, 0]).tanh().reshape(Shape::new([2, 6]));
    let d = b.slice(&[0, 1], &[2, 5], &[]);
    let e = d.concat(&[0.5 * d], 0);
    let l2 = (e * e).mean(&[], false);
    let l3 = q.matmul(p).sigmoid().sum(&[], false);
    let loss = l1 + 0.3 * l2 + 0.1 * l3;

    let want = |name: &str| numbers(&oracle["values"][name]);
    for (name, found) in [("L1", l1), ("L2", l2), ("L3", l3), ("loss", loss)] {
        assert!(relative_difference(&[found.item()], &want(name)) < 1e-14, "{name} is {}", found.item());
    }
    let loss = loss.handle();
    tape.backward(loss).unwrap();
    for (name, var) in trained.into_iter().zip(vars) {
        let (found, want) = (tape.gradient(var).unwrap(), want(&format!("g{name}")));
        assert_eq!(found.len(), want.len());
        for (found, want) in found.iter().zip(want) {
            assert!(
                (found - want).abs() < 1e-9 * want.abs() || (found - want).abs() < 1e-16,
                "{name}: {found}, {want}"
            );
        }
    }
}

#[test]
fn expressions_take_numbers_on_either_side_and_references() {
    let mut tape = Tape::new();
    let x = tape.parameter([2], &[1.0, 4.0]);
    let scope = tape.scope();
    let x = scope.of(x);
    let cases = [
        (1.0 + x, [2.0, 5.0]),
        (x - 1.0, [0.0, 3.0]),
        (1.0 - &x, [0.0, -3.0]),
        (&x * 2.0, [2.0, 8.0]),
        (2.0 / x, [2.0, 0.5]),
        (x / 2.0, [0.5, 2.0]),
        (-&x, [-1.0, -4.0]),
        (&x * &x + x, [2.0, 20.0]),
        ((x + 1.0).square().sum(&[], true).reshape(Shape::new([1])) / x, [29.0, 7.25]),
    ];
    for (i, (found, want)) in cases.into_iter().enumerate() {
        assert_eq!(found.to_vec(), want, "case {i}");
    }
    let mut double = Double::default();
    let scope = double.scope();
    assert_eq!((3.0_f64 - scope.constant([1], &[1.0])).item(), 2.0);
}

#[test]
fn handles_from_before_a_reset_are_faults() {
    let mut tape = Tape::new();
    let x = tape.parameter([1], &[1.0]);
    let mark = tape.mark();
    let old = tape.neg(x);
    tape.reset_to(mark);
    let new = tape.square(x);
    assert_eq!((old.index(), tape.value(old), tape.gradient(old)), (new.index(), &[][..], None));
    let y = tape.add(new, old);
    let error = tape.check().unwrap_err();
    assert_eq!((error.op(), error.cause()), ("add", Cause::Handle { operand: 1 }));
    assert_eq!(tape.shape(y), Shape::SCALAR);
    tape.reset_to(mark);
    assert_eq!(tape.backward(old).unwrap_err().cause(), Cause::Handle { operand: 0 });
    assert_eq!(tape.check(), Ok(()), "a backward that is refused changes nothing");
}

#[test]
fn what_is_wrong_has_numbers_in_it() {
    fn fault(record: impl FnOnce(&mut Tape<tape::Growing<Strict<f32>>>)) -> String {
        let mut tape = Tape::new();
        record(&mut tape);
        let text = tape.check().unwrap_err().to_string();
        text.split("; at ").next().unwrap().to_string()
    }
    let text = fault(|tape| _ = tape.parameter([2, 3], &[0.0; 5]));
    assert_eq!(text, "parameter: there are 5 elements, the shape has 6");
    let text = fault(|tape| {
        let x = tape.constant([1], &[0.0]);
        tape.set_group(x, ParamGroup::new());
    });
    assert_eq!(text, "set_group: expected a parameter, found a constant; operands [1]");
    let text = fault(|tape| {
        let x = tape.constant([1], &[0.0]);
        _ = tape.apply(slabgrad::ops::add::op_same(), &[x; 4], Ok(slabgrad::ops::relu::spec(Shape::new([1]))));
    });
    assert_eq!(text, "add: there are 4 operands, at most 3 are read; operands [1], [1], [1]");
    let text = fault(|tape| {
        let (w, i) = (tape.parameter([3, 2], &[0.0; 6]), tape.constant([2], &[1.0, 3.0]));
        _ = tape.embedding(w, i);
    });
    assert_eq!(text, "embedding: index 3 at element 1 is no whole number from 0 to below 3; operands [3, 2], [2]");
    let text = fault(|tape| {
        let (x, t) = (tape.parameter([2, 3], &[0.0; 6]), tape.constant([2], &[0.5, 2.0]));
        _ = tape.cross_entropy(x, t, CrossEntropy::new());
    });
    assert_eq!(
        text,
        "cross_entropy: index 0.5 at element 0 is no whole number from 0 to below 3; operands [2, 3], [2]"
    );
    // Far more than there is.
    let text = fault(|tape| {
        let x = tape.constant([1], &[0.0]);
        _ = tape.broadcast_to(x, Shape::new([4_000_000_000, 4_000_000_000]));
    });
    assert!(text.starts_with("broadcast_to: the work space has room for 1 elements"), "{text}");
}

#[test]
fn a_fixed_tape_says_what_it_lacks() {
    assert_eq!(
        FixedTape::<4>::in_slab(&mut [0.0; 9], 5).err(),
        Some(RunError::SlabLength { expected: 10, found: 9 }),
        "the parameters and their gradients do not fit"
    );
    let mut slab = [0.0; 16];
    let mut tape = FixedTape::<4>::in_slab(&mut slab, 3).unwrap();
    let x = tape.parameter([2], &[1.0, 2.0]);
    let mark = tape.mark();
    tape.parameter([2], &[1.0, 2.0]);
    let cause = Cause::Memory { space: slabgrad::program::Space::Params, needed: 4, room: 3 };
    assert_eq!(tape.check().unwrap_err().cause(), cause);
    tape.reset_to(mark);

    let mut y = x;
    for _ in 0..4 {
        y = tape.neg(y);
    }
    assert_eq!(tape.check().unwrap_err().cause(), Cause::Nodes { room: 4 });
    assert_eq!((tape.len(), y.index() as u32), (4, u32::MAX));
    tape.reset_to(mark);

    // Ten elements of work: three values, and no room for three gradients.
    let y = tape.neg(x);
    let y = tape.neg(y);
    let y = tape.neg(y);
    let error = tape.backward_from(y, &[1.0, 1.0]).unwrap_err();
    assert!(matches!(error.cause(), Cause::Memory { needed: 12, room: 10, .. }), "{error}");
    tape.reset_to(mark);
    let loss = tape.sum(x, &[], false);
    tape.backward(loss).unwrap();
    assert_eq!(tape.gradient(x).unwrap(), [1.0, 1.0]);
}

#[test]
fn a_loss_or_a_gradient_that_is_not_finite_changes_nothing() {
    let mut tape = Tape::new();
    let x = tape.parameter([1], &[-1.0]);
    let mark = tape.mark();
    let loss = tape.sqrt(x);
    assert!(matches!(tape.backward(loss).unwrap_err().cause(), Cause::LossNotFinite { loss } if loss.is_nan()));
    assert_eq!(tape.gradient(x), Some(&[0.0][..]));
    let two = tape.constant([2], &[1.0, 2.0]);
    assert_eq!(tape.backward(two).unwrap_err().cause(), Cause::Length { expected: 2, found: 1 });
    assert_eq!(tape.backward_from(two, &[1.0]).unwrap_err().cause(), Cause::Length { expected: 2, found: 1 });

    tape.reset_to(mark);
    tape.value_mut(x)[0] = 0.0;
    let loss = tape.sqrt(x);
    tape.backward(loss).unwrap();
    let mut moments = tape.moments::<Adam>();
    let error = tape.update(&Adam::new(0.1), &mut moments).unwrap_err();
    assert_eq!(error.cause(), Cause::GradientNotFinite { found: f32::INFINITY });
    assert_eq!((tape.item(x), moments), (0.0, tape.moments::<Adam>()));
    let error = tape.update(&Adam::new(-1.0), &mut tape.moments::<Adam>()).unwrap_err();
    assert!(matches!(error.cause(), Cause::Setting(_)), "{error}");
    let error = tape.update(&Adam::new(0.1), &mut [0.0; 9]).unwrap_err();
    assert_eq!(error.cause(), Cause::Moments { expected: 10, found: 9 });
}

#[test]
fn gradients_are_clipped_and_groups_have_their_factors() {
    let mut tape = Tape::new();
    let (a, b) = (tape.parameter([1], &[3.0]), tape.parameter([1], &[4.0]));
    tape.set_group(b, ParamGroup::new().learning_rate_factor(0.5));
    let scope = tape.scope();
    let loss = (scope.of(a) * 3.0 + scope.of(b) * 4.0).sum(&[], false).handle();
    tape.backward(loss).unwrap();
    assert_eq!((tape.clip_norm(1.0), tape.grads()), (5.0, &[0.6, 0.8][..]));
    tape.update(&Sgd::new(1.0), &mut tape.moments::<Sgd>()).unwrap();
    assert_eq!(tape.params(), [3.0 - 0.6, 4.0 - 0.4]);
}

#[test]
fn values_can_be_looked_at() {
    let mut tape = Tape::new();
    let x = tape.parameter([2, 8], &std::array::from_fn::<f32, 16, _>(|i| i as f32));
    let y = tape.square(x);
    assert_eq!((tape.dtype(), tape.name(y), tape.children(y), tape.children(x)), ("f32", "square", &[x][..], &[][..]));
    assert_eq!(
        tape.show(x).to_string(),
        "parameter f32 [2, 8] [[0, 1, 2, ..., 5, 6, 7], [8, 9, 10, ..., 13, 14, 15]] gradient [[0, 0, 0, ..., 0, 0, 0], \
         [0, 0, 0, ..., 0, 0, 0]]"
    );
    let loss = tape.mean(y, &[], false);
    assert_eq!(tape.show(loss).to_string(), "mean f32 [] 77.5");
    let large = tape.constant([1000, 1000], &vec![1.0; 1_000_000]);
    assert!(tape.show(large).to_string().len() < 400, "text does not flood");
    let empty = tape.constant([0, 3], &[]);
    assert_eq!(tape.show(empty).to_string(), "constant f32 [0, 3] []");
}

#[test]
fn functions_of_the_users_own_have_gradients_that_add_up() {
    let mut tape = Double::default();
    let (a, b) = (tape.parameter([2], &[2.0, 3.0]), tape.parameter([2], &[5.0, 7.0]));
    // The product, and the first operand once more, so that contributions meet.
    let y = tape.function(
        "product",
        &[a, b],
        [2],
        |[a, b, _], y| y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = a * b),
        |call| {
            let other = call.x[1 - call.input];
            call.dx.iter_mut().zip(call.dy.iter().zip(other)).for_each(|(dx, (dy, other))| *dx = dy * other);
        },
    );
    let scope = tape.scope();
    let loss = (scope.of(y) + scope.of(a)).sum(&[], false).handle();
    tape.backward(loss).unwrap();
    assert_eq!((tape.gradient(a).unwrap(), tape.gradient(b).unwrap()), (&[6.0, 8.0][..], &[2.0, 3.0][..]));
    assert_eq!((tape.name(y), tape.children(y)), ("product", &[a, b][..]));
}

#[test]
fn gradcheck_names_the_worst_element() {
    let x = [0.5, -0.3, 0.8, 1.1];
    let inputs = [(Shape::new([2, 2]), &x[..])];
    assert!(gradcheck(|x| x[0].matmul(x[0]).tanh(), &inputs, 1e-8).is_ok());
    // A derivative that is wrong in one place.
    let error = gradcheck(
        |x| {
            x[0].function(
                "wrong",
                &[],
                [2, 2],
                |[x, ..], y| y.copy_from_slice(x),
                |call| {
                    call.dx.copy_from_slice(call.dy);
                    call.dx[2] *= 1.5;
                },
            )
        },
        &inputs,
        1e-6,
    );
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("the gradient for input 0, element 2 (at 0.8) is 1.909"), "{text}");
    let error = gradcheck(|x| x[0] + x[0].reshape(Shape::new([4])), &inputs, 1e-6).unwrap_err();
    assert!(error.to_string().starts_with("add: shapes [2, 2] and [4] do not broadcast"), "{error}");
}

/// Values, gradients and faults of a lazy tape are those of an eager one, and nothing is computed twice or for nothing.
#[test]
fn a_lazy_tape_computes_what_is_read_once() {
    use std::cell::Cell;
    use std::rc::Rc;

    let mut eager = Tape::new();
    let mut lazy = Tape::new().lazily();
    let record = |tape: &mut Tape<tape::Growing<Strict<f32>>>| {
        let x = tape.parameter([2, 2], &[0.1, -0.7, 1.3, 2.9]);
        let y = tape.matmul(x, x);
        let flat = tape.reshape(y, Shape::new([4]));
        let y = tape.tanh(flat);
        let loss = tape.mean(y, &[], false);
        (x, flat, loss)
    };
    let (x, flat, loss) = record(&mut eager);
    assert_eq!(record(&mut lazy), (x, flat, loss));
    assert_eq!((lazy.value(flat), lazy.work_len()), (&[][..], 0));
    assert!(lazy.show(flat).to_string().ends_with("(still to be computed)"));
    assert_eq!(lazy.force(flat), eager.value(flat));
    assert!(lazy.is_pending(loss) && !lazy.is_pending(flat));
    let used = lazy.work_len();
    assert_eq!((lazy.force(flat).len(), lazy.work_len()), (4, used), "it is computed once");
    lazy.backward(loss).unwrap();
    eager.backward(loss).unwrap();
    assert_eq!((lazy.item(loss), lazy.grads()), (eager.item(loss), eager.grads()));

    // What was computed behind a mark is computed again.
    let mut tape = Tape::new().lazily();
    let x = tape.parameter([1], &[3.0]);
    let y = tape.square(x);
    let mark = tape.mark();
    let other = tape.square(y);
    assert_eq!(tape.force(other), [81.0]);
    tape.reset_to(mark);
    assert!(tape.is_pending(y));
    assert_eq!(tape.force(y), [9.0]);

    // Reading an expression computes it.
    let calls = Rc::new(Cell::new(0));
    let counter = Rc::clone(&calls);
    let scope = tape.scope();
    let z = scope.of(y) + 1.0;
    let z = z.function(
        "count",
        &[],
        [1],
        move |[x, ..], y| {
            counter.set(counter.get() + 1);
            y.copy_from_slice(x);
        },
        |_| (),
    );
    assert_eq!((z.item(), z.to_vec(), calls.get()), (10.0, vec![10.0], 1));
}

/// What could not be computed for want of room can be computed after a reset.
#[test]
fn a_lazy_tape_recovers_from_a_lack_of_room() {
    let mut slab = [0.0; 2 * 4 + 10];
    let mut tape = FixedTape::<8>::in_slab(&mut slab, 4).unwrap().lazily();
    let x = tape.parameter([4], &[1.0, 2.0, 3.0, 4.0]);
    let y = tape.square(x);
    let sum = tape.sum(y, &[], false);
    let mark = tape.mark();
    // Four elements are taken, eight more are needed.
    let other = tape.neg(x);
    assert_eq!(tape.force(other).len(), 4);
    let more = tape.neg(other);
    assert_eq!(tape.force(more).len(), 4);
    assert!(tape.force(sum).is_empty());
    assert!(matches!(tape.check().unwrap_err().cause(), Cause::Memory { .. }));
    tape.reset_to(mark);
    assert_eq!(tape.force(sum), [30.0]);
}

#[test]
fn deep_graphs_neither_overflow_nor_go_quadratic() {
    let time = |nodes: usize| {
        let mut tape = Tape::new();
        let x = tape.parameter([1], &[0.25]);
        let start = std::time::Instant::now();
        let mut y = x;
        for _ in 0..nodes {
            y = tape.neg(y);
        }
        tape.backward(y).unwrap();
        assert_eq!(tape.gradient(x), Some(&[if nodes.is_multiple_of(2) { 1.0 } else { -1.0 }][..]));
        assert_eq!(tape.len(), nodes + 1);
        start.elapsed()
    };
    time(1000);
    let (short, long) = (time(10_000), time(100_000));
    // Ten times the nodes: a hundred times the time if it were quadratic.
    assert!(long < 40 * short, "10,000 nodes take {short:?}, 100,000 take {long:?}");
}

#[test]
fn ten_thousand_resets_take_no_more_memory() {
    let mut tape = Tape::new();
    let x = tape.parameter([4], &[0.1, 0.2, 0.3, 0.4]);
    let mark = tape.mark();
    let mut first = None;
    for _ in 0..10_000 {
        let y = tape.tanh(x);
        let loss = tape.sum(y, &[], false);
        tape.backward(loss).unwrap();
        let state = (tape.work_len(), tape.item(loss), tape.grads().to_vec());
        assert_eq!(first.get_or_insert(state.clone()), &state);
        tape.reset_to(mark);
    }
}

/// A step of a small net with batch normalisation and dropout, on any tape.
fn noisy_step<S: Storage<Backend = Strict<f32>>>(
    tape: &mut Tape<S>,
    [w, scale, shift, statistics, counter]: [tape::Handle; 5],
    mark: Mark,
    moments: &mut [f32],
    x: &[f32],
) -> f32 {
    tape.reset_to(mark);
    let x = tape.constant([4, 3], x);
    let h = tape.linear(x, w, None);
    let h = tape.batch_norm(h, Some(scale), Some(shift), statistics, BatchNorm::new());
    let h = tape.dropout(h, counter, Dropout::new(0.25).seed(5), 0);
    let h = tape.square(h);
    let loss = tape.mean(h, &[], false);
    tape.backward(loss).unwrap();
    tape.update(&Adam::new(0.01), moments).unwrap();
    tape.item(loss)
}

/// State moves on tapes as it does in the static engine: with backward, and with the same bits.
#[test]
fn state_moves_with_backward_as_in_the_static_engine() {
    const fn net() -> Graph {
        let mut g = Graph::new();
        let x = g.input::<R2<4, 3>>("x");
        let h: Var<R2<4, 5>> = g.linear_with("fc", x, Linear::new().without_bias());
        let h = g.batch_norm1d("bn", h);
        let h = g.dropout_with(h, Dropout::new(0.25).seed(5));
        let h = g.square(h);
        let loss: Var<R0> = g.mean(h, &[]);
        g.loss(loss);
        g
    }
    program!(static NET = net().train(Training::with::<Adam>()));
    let mut slab = vec![0.0; NET.slab_len()];
    let mut memory = NET.memory(&mut slab).unwrap();
    NET.init(&mut memory, 3).unwrap();

    let mut tape = Tape::new();
    let w = tape.parameter([5, 3], NET.tensor(&memory, "fc.weight").unwrap());
    let (scale, shift) = (tape.parameter([5], &[1.0; 5]), tape.parameter([5], &[0.0; 5]));
    let (statistics, counter) = (tape.batch_norm_statistics(5), tape.dropout_counter());
    let (mark, mut moments) = (tape.mark(), tape.moments::<Adam>());
    let x: [f32; 12] = std::array::from_fn(|i| (i * 7 % 12) as f32 / 6.0 - 1.0);
    for step in 0..5 {
        let want = NET.step(&mut memory, &[&x], &mut Adam::new(0.01)).unwrap();
        let found = noisy_step(&mut tape, [w, scale, shift, statistics, counter], mark, &mut moments, &x);
        assert_eq!(found.to_bits(), want.to_bits(), "the loss of step {step}");
    }
    assert_eq!(tape.params(), memory.params);
    let running = [NET.tensor(&memory, "bn.running_mean"), NET.tensor(&memory, "bn.running_var")];
    assert_eq!(tape.value(statistics), running.map(Option::unwrap).concat());
    assert_eq!(Some(tape.value(counter)), NET.tensor(&memory, "dropout.counter"));
    assert_eq!(moments, memory.moments);
}
