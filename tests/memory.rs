//! The work space of every model of the repository against its lower bound: the largest total of values that one tick needs.
//! `cargo test --test memory -- --nocapture` prints the table.

// The programs of the example and of the firmware, whose models are planned here.
#[allow(dead_code, unused_imports)]
#[path = "../examples/digits.rs"]
mod digits;
#[allow(dead_code, unreachable_pub)]
#[path = "../firmware-example/src/bits/workload.rs"]
mod firmware;

use slabgrad::plan::Plan;
use slabgrad::prelude::*;

const fn mlp2<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<B, 784>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R2<B, 256>> = g.linear("fc1", x);
    let h = g.relu(h);
    let h: Var<R2<B, 128>> = g.linear("fc2", h);
    let h = g.relu(h);
    let logits: Var<R2<B, 10>> = g.linear("fc3", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

const fn cnn<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 28, 28>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R4<B, 16, 28, 28>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.relu(h);
    let h: Var<R4<B, 32, 14, 14>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.relu(h);
    let h: Var<R2<B, 6272>> = g.flatten(h);
    let h: Var<R2<B, 64>> = g.linear("fc1", h);
    let h = g.relu(h);
    let logits: Var<R2<B, 4>> = g.linear("fc2", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    g
}

/// Residual blocks, whose sums keep values alive over others.
const fn residual<const B: usize>() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 8, 8>>("x");
    let target = g.input::<R4<B, 8, 1, 1>>("target");
    let h: Var<R4<B, 8, 8, 8>> = g.conv2d("stem", x, Conv2d::kernel(3).padding(1));
    let mut h = g.relu(h);
    let names = ["block1", "block2", "block3"];
    let mut i = 0;
    while i < names.len() {
        let branch = g.conv2d(names[i], h, Conv2d::kernel(3).padding(1));
        let branch = g.tanh(branch);
        h = g.add(h, branch);
        i += 1;
    }
    let h = g.global_avg_pool2d(h);
    let h = g.sigmoid(h);
    g.output("y", h);
    let loss = g.mse(h, target);
    g.loss(loss);
    g
}

/// The same with everything before the last layer frozen.
const fn head_only(mut g: Graph) -> Graph {
    g.freeze("conv1");
    g
}

struct Row {
    name: &'static str,
    work: usize,
    bound: usize,
}

fn row(name: &'static str, plan: &Plan) -> Row {
    Row { name, work: plan.work_len(), bound: plan.work_lower_bound() }
}

#[test]
fn work_spaces_are_within_five_percent_of_the_lower_bound() {
    let train = Training::with::<Adam>();
    let graphs: Vec<(&str, &str, &str, Graph, Graph)> = vec![
        ("digits train", "digits train fused", "digits infer", digits::net::<16>(), digits::net::<1>()),
        (
            "firmware cnn train",
            "firmware cnn train fused",
            "firmware cnn infer",
            firmware::cnn::<16>(),
            firmware::cnn::<1>(),
        ),
        ("W1 train", "W1 train fused", "W1 infer", firmware::mlp::<16>(), firmware::mlp::<1>()),
        ("W2 train", "W2 train fused", "W2 infer", mlp2::<32>(), mlp2::<1>()),
        ("W3 train", "W3 train fused", "W3 infer", cnn::<32>(), cnn::<1>()),
        ("residual train", "residual train fused", "residual infer", residual::<8>(), residual::<1>()),
    ];
    let mut rows = Vec::new();
    for (kept, fused, infer, many, one) in &graphs {
        rows.push(row(kept, &many.train(train)));
        rows.push(row(fused, &many.train(train.fused())));
        rows.push(row(infer, &one.infer()));
    }
    rows.push(row("digits train, conv1 frozen", &head_only(digits::net::<16>()).train(train)));
    rows.push(row("W3 train, conv1 frozen", &head_only(cnn::<32>()).train(train)));
    println!("{:<28} {:>12} {:>12} {:>8}", "elements of the work space", "planned", "lower bound", "above");
    for Row { name, work, bound } in &rows {
        let above = (*work as f64 / *bound as f64 - 1.0) * 100.0;
        println!("{name:<28} {work:>12} {bound:>12} {above:>7.2}%");
        assert!(above <= 5.0, "{name}: {work} elements, the lower bound is {bound}");
    }
}

/// The perceptron 64-32-10 with a batch of 16 needs no more than a hand-written step: the hidden layer, the logits, and the
/// hidden layer's gradient, besides the loss and its gradient.
#[test]
fn a_perceptron_needs_what_a_hand_written_step_needs() {
    let plan = firmware::mlp::<16>().train(Training::with::<Adam>());
    let by_hand = 16 * 32 + 16 * 10 + 16 * 32;
    assert!(plan.work_len() <= by_hand + 2, "{} elements, by hand {by_hand}", plan.work_len());
}

/// Whatever lies before the first trained parameter is neither kept nor differentiated.
#[test]
fn frozen_layers_cost_no_memory_of_training() {
    let mut frozen = cnn::<32>();
    frozen.freeze("conv1");
    frozen.freeze("conv2");
    frozen.freeze("fc1");
    let head = frozen.train(Training::with::<Adam>());
    let infer = cnn::<32>().infer();
    // The loss, the start of backward, the loss's gradient, and those of the last weight and bias.
    assert!(
        head.steps_len() <= infer.steps_len() + 5,
        "{} steps, inference has {}",
        head.steps_len(),
        infer.steps_len()
    );
    assert!(head.work_len() <= infer.work_len(), "{} elements, inference {}", head.work_len(), infer.work_len());
}
