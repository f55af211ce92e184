//! What the methods of tapes do beyond calling an operation's table: which table they take, what they check, and how they
//! join any number of operands. Their values and gradients are compared in `tests/golden.rs`.

#![cfg(feature = "alloc")]
#![allow(clippy::float_cmp, reason = "the same operations give the same bits")]

use slabgrad::backend::{Backend, Real, Strict};
use slabgrad::graph::Attention;
use slabgrad::ops::Reduction;
use slabgrad::ops::batch_norm::BatchNorm;
use slabgrad::ops::conv_transpose2d::ConvTranspose2d;
use slabgrad::ops::conv1d::Conv1d;
use slabgrad::ops::conv2d::Conv2d;
use slabgrad::ops::cross_entropy::CrossEntropy;
use slabgrad::ops::dropout::Dropout;
use slabgrad::ops::reduce_by::Reducer;
use slabgrad::shape::Shape;
use slabgrad::tape::{FixedTape, GrowingTape, Handle, Tape};

/// What the tape says of the first fault, up to the operands.
fn fault(record: impl FnOnce(&mut GrowingTape) -> Handle) -> String {
    let mut tape = Tape::new();
    record(&mut tape);
    let text = tape.check().expect_err("the operation is refused").to_string();
    text.split(';').next().unwrap_or_default().to_string()
}

fn zeros(tape: &mut GrowingTape, shape: impl Into<Shape>) -> Handle {
    let shape = shape.into();
    tape.constant(shape, &vec![0.0; shape.len()])
}

#[test]
fn any_number_of_tensors_can_be_concatenated() {
    for (count, nodes) in [(1, 1), (2, 1), (3, 1), (4, 3), (9, 4), (10, 8), (40, 31)] {
        let mut tape = Tape::new();
        let xs: Vec<Handle> = (0..count).map(|i| tape.parameter([2, 1], &[i as f32, 100.0 + i as f32])).collect();
        let before = tape.len();
        let y = tape.concat(&xs, -1);
        let want: Vec<f32> = (0..count).map(|i| i as f32).chain((0..count).map(|i| 100.0 + i as f32)).collect();
        assert_eq!((tape.shape(y), tape.value(y)), (Shape::new([2, count]), &want[..]), "{count} tensors");
        assert_eq!(tape.len() - before, nodes, "nodes for {count} tensors");
        tape.backward_from(y, &want).unwrap();
        assert!(xs.iter().all(|&x| tape.gradient(x) == Some(tape.value(x))), "each gets its part, of {count}");

        let scope = tape.scope();
        let others: Vec<_> = xs[1..].iter().map(|&x| scope.of(x)).collect();
        assert_eq!(scope.of(xs[0]).concat(&others, 1).to_vec(), want, "as an expression, of {count}");
    }
}

#[test]
fn any_number_of_tensors_can_be_stacked() {
    for count in [1, 2, 3, 4, 5, 9, 28] {
        let mut tape = Tape::new();
        let xs: Vec<Handle> = (0..count).map(|i| tape.parameter([2], &[i as f32, 100.0 + i as f32])).collect();
        let y = tape.stack(&xs, -1);
        let want: Vec<f32> = (0..count).map(|i| i as f32).chain((0..count).map(|i| 100.0 + i as f32)).collect();
        assert_eq!((tape.shape(y), tape.value(y)), (Shape::new([2, count]), &want[..]), "{count} tensors");
        tape.backward_from(y, &want).unwrap();
        assert!(xs.iter().all(|&x| tape.gradient(x) == Some(tape.value(x))), "each gets its part, of {count}");

        let scope = tape.scope();
        let others: Vec<_> = xs[1..].iter().map(|&x| scope.of(x)).collect();
        assert_eq!(scope.of(xs[0]).stack(&others, 1).to_vec(), want, "as an expression, of {count}");
        let rows = scope.of(xs[0]).stack(&others, 0);
        assert_eq!(rows.shape(), Shape::new([count, 2]));
    }
}

#[test]
fn operands_that_cannot_be_joined_are_faults_with_numbers() {
    assert_eq!(fault(|tape| tape.concat(&[], 0)), "concat: operands are 0, at least one, and at most 3");
    assert_eq!(fault(|tape| tape.stack(&[], 0)), "stack: operands are 0, at least one, and at most 3");
    for count in [2, 5] {
        let shapes = |tape: &mut GrowingTape| {
            let mut xs: Vec<Handle> = (1..count).map(|_| zeros(tape, [2, 3])).collect();
            xs.push(zeros(tape, [2, 4]));
            xs
        };
        let concat = fault(|tape| {
            let xs = shapes(tape);
            tape.concat(&xs, 0)
        });
        assert_eq!(concat, "concat: an operand has shape [2, 4], expected the same as the first but for the axis");
        let stack = fault(|tape| {
            let xs = shapes(tape);
            tape.stack(&xs, 0)
        });
        assert!(stack.contains(if count == 2 { "stack: an operand has shape [2, 4]" } else { "[1, 2, 4]" }), "{stack}");
    }
}

#[test]
fn the_target_decides_on_the_table_of_a_loss_over_classes() {
    let mut tape = Tape::new();
    let logits = tape.parameter([2, 3], &[1.0, 2.0, 3.0, 3.0, 2.0, 1.0]);
    let indices = tape.constant([2], &[2.0, 0.0]);
    let one_hot = tape.constant([2, 3], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    let by_index = tape.cross_entropy(logits, indices, CrossEntropy::new());
    let by_probability = tape.cross_entropy(logits, one_hot, CrossEntropy::new());
    assert_eq!(tape.item(by_index), tape.item(by_probability));
    let p = tape.softmax(logits, 1);
    let by_index = tape.cross_entropy_of_probabilities(p, indices, Reduction::Sum);
    let by_probability = tape.cross_entropy_of_probabilities(p, one_hot, Reduction::Sum);
    assert_eq!(tape.item(by_index), tape.item(by_probability));
    assert_eq!(tape.check(), Ok(()));
}

#[test]
fn indices_out_of_bounds_are_faults_with_numbers() {
    type Record = fn(&mut GrowingTape, Handle, Handle) -> Handle;
    let calls: [(&str, Record); 5] = [
        ("cross_entropy", |tape, x, target| tape.cross_entropy(x, target, CrossEntropy::new())),
        ("cross_entropy_of_probabilities", |tape, x, target| {
            tape.cross_entropy_of_probabilities(x, target, Reduction::Mean)
        }),
        ("nll", |tape, x, target| tape.nll(x, target, Reduction::Mean)),
        ("embedding", |tape, x, indices| {
            let weight = tape.transpose(x, 0, 1);
            tape.embedding(weight, indices)
        }),
        ("gather", |tape, x, indices| {
            let indices = tape.unsqueeze(indices, 1);
            tape.gather(x, indices, -1)
        }),
    ];
    for (name, call) in calls {
        for bad in [3.0, -1.0, 0.5] {
            let text = fault(|tape| {
                let (x, indices) = (zeros(tape, [2, 3]), tape.constant([2], &[2.0, bad]));
                call(tape, x, indices)
            });
            let op = text.split(':').next().unwrap_or_default().to_string();
            assert_eq!(text, format!("{op}: index {bad} at element 1 is no whole number from 0 to below 3"));
            assert!(name.starts_with(&op), "{name} is called `{op}`");
        }
    }
}

#[test]
fn the_kernel_of_a_convolutions_settings_is_that_of_the_weight() {
    let conv1d = fault(|tape| {
        let (x, weight) = (zeros(tape, [1, 1, 9]), zeros(tape, [1, 1, 3]));
        tape.conv1d(x, weight, None, Conv1d::kernel(5))
    });
    assert_eq!(conv1d, "conv1d: the length of the settings' kernel is 5, that of the weight 3");
    let conv2d = fault(|tape| {
        let (x, weight) = (zeros(tape, [1, 1, 9, 9]), zeros(tape, [1, 1, 2, 3]));
        tape.conv2d(x, weight, None, Conv2d::kernel(3))
    });
    assert_eq!(conv2d, "conv2d: the height of the settings' kernel is 3, that of the weight 2");
    let conv_transpose2d = fault(|tape| {
        let (x, weight) = (zeros(tape, [1, 1, 9, 9]), zeros(tape, [1, 1, 2, 3]));
        tape.conv_transpose2d(x, weight, None, ConvTranspose2d::kernel(2))
    });
    assert_eq!(conv_transpose2d, "conv_transpose2d: the width of the settings' kernel is 2, that of the weight 3");
    let axes = fault(|tape| {
        let (x, weight) = (zeros(tape, [1, 1, 9, 9]), zeros(tape, [1, 1, 2]));
        tape.conv2d(x, weight, None, Conv2d::kernel(3))
    });
    assert_eq!(axes, "conv2d: the weight has shape [1, 1, 2], expected [out, in / groups, kh, kw]");
}

#[test]
fn a_bias_without_a_weight_is_a_fault() {
    let norm = fault(|tape| {
        let (x, bias) = (zeros(tape, [2, 3]), zeros(tape, [3]));
        tape.layer_norm(x, None, Some(bias), 1, 1e-5)
    });
    assert_eq!(norm, "layer_norm: the bias has shape [3], expected none where there is no weight");
}

#[test]
fn running_statistics_need_no_heap_and_move_with_backward() {
    let mut slab = [9.0; 64];
    let mut tape: FixedTape<8> = FixedTape::in_slab(&mut slab, 4).unwrap();
    let x = tape.parameter([2, 2], &[1.0, 2.0, 3.0, 6.0]);
    let statistics = tape.batch_norm_statistics(2);
    assert_eq!(tape.value(statistics), [0.0, 0.0, 1.0, 1.0]);
    let mark = tape.mark();
    let y = tape.batch_norm(x, None, None, statistics, BatchNorm::new().momentum(0.5));
    assert_eq!(tape.value(statistics), [0.0, 0.0, 1.0, 1.0], "forward leaves them");
    tape.backward_from(y, &[1.0; 4]).unwrap();
    assert_eq!(tape.value(statistics), [1.0, 2.0, 1.5, 4.5], "half of the batch's means 2, 4 and variances 2, 8");
    tape.reset_to(mark);
    let y = tape.batch_norm(x, None, None, statistics, BatchNorm::new().eval().epsilon(0.0));
    assert_eq!(tape.value(y)[0], 0.0, "the running mean is 1");
    tape.backward_from(y, &[1.0; 4]).unwrap();
    assert_eq!(tape.value(statistics), [1.0, 2.0, 1.5, 4.5], "in evaluation they stay");
}

#[test]
fn statistics_of_another_length_are_a_fault() {
    let text = fault(|tape| {
        let (x, statistics) = (zeros(tape, [2, 3]), tape.batch_norm_statistics(2));
        tape.batch_norm(x, None, None, statistics, BatchNorm::new())
    });
    assert_eq!(text, "batch_norm: there are 4 elements, the shape has 6");
    let text = fault(|tape| {
        let x = zeros(tape, [4]);
        tape.dropout(x, x, Dropout::new(0.5), 0)
    });
    assert_eq!(text, "dropout: expected a state, found a constant");
}

#[test]
fn dropouts_that_share_a_counter_have_masks_of_their_own_and_new_ones_in_each_step() {
    let mut tape = Tape::new();
    let x = tape.parameter([64], &[1.0; 64]);
    let counter = tape.dropout_counter();
    let mark = tape.mark();
    let mut masks = Vec::new();
    for step in 0..2 {
        assert_eq!(tape.value(counter), [step as f32, 0.0]);
        let settings = Dropout::new(0.5).seed(7);
        let (a, b) = (tape.dropout(x, counter, settings, 0), tape.dropout(x, counter, settings, 1));
        masks.extend([tape.value(a).to_vec(), tape.value(b).to_vec()]);
        let y = tape.mul(a, b);
        tape.backward_from(y, &[1.0; 64]).unwrap();
        tape.reset_to(mark);
    }
    for (i, mask) in masks.iter().enumerate() {
        assert!(mask.iter().all(|&y| y == 0.0 || y == 2.0), "mask {i}");
        assert!(!masks[..i].contains(mask), "mask {i} is another's");
    }
}

#[test]
fn views_and_zeros_take_shapes_of_any_kind() {
    let mut tape = Tape::new();
    let scope = tape.scope();
    let x = scope.constant([2, 3, 2], &[1.0; 12]);
    assert_eq!(x.flatten().shape(), Shape::new([2, 6]));
    assert_eq!(x.reshape([4, 3]).flatten().shape(), Shape::new([4, 3]));
    assert_eq!(x.sum(&[], false).flatten().shape(), Shape::new([1, 1]));
    assert_eq!(x.transpose(-2, -1).shape(), Shape::new([2, 2, 3]));
    assert_eq!((x.reshape([12]) + scope.zeros([12])).to_vec(), [1.0; 12]);
    assert_eq!(x.var(&[], 1, false).item(), 0.0);
}

#[test]
fn attention_is_three_nodes() {
    let mut tape = Tape::new();
    let x = tape.parameter([2, 4], &[0.5; 8]);
    let before = tape.len();
    let y = tape.scaled_dot_product_attention(x, x, x, Attention::new().causal());
    assert_eq!((tape.len() - before, tape.value(y)), (3, &[0.5; 8][..]));
    let scope = tape.scope();
    let x = scope.of(x);
    assert_eq!(x.scaled_dot_product_attention(x, x, Attention::new()).to_vec(), [0.5; 8]);
}

#[test]
fn a_reducer_of_the_users_own_runs_on_a_tape() {
    struct Product;
    impl<B: Backend> Reducer<B> for Product {
        const NAME: &'static str = "product";
        fn start() -> B::Elem {
            B::Elem::ONE
        }
        fn fold(x: B::Elem, result: B::Elem) -> B::Elem {
            result * x
        }
        fn gradient(dy: B::Elem, index: usize, all: &[B::Elem]) -> B::Elem {
            let others = all.iter().enumerate().filter(|(i, _)| *i != index);
            others.fold(dy, |product, (_, &x)| product * x)
        }
    }
    let mut tape = GrowingTape::<Strict<f64>>::default();
    let x = tape.parameter([3], &[2.0, 3.0, 4.0]);
    let y = tape.reduce_by::<Product>(x);
    assert_eq!((tape.name(y), tape.item(y)), ("product", 24.0));
    tape.backward(y).unwrap();
    assert_eq!(tape.gradient(x), Some(&[12.0, 8.0, 6.0][..]));
    let scope = tape.scope();
    assert_eq!(scope.of(x).reduce_by::<Product>().item(), 24.0);
}
