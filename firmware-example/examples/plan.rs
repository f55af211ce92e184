//! What training takes, before anything is flashed: RAM and work of each choice of what a device trains, and the widest networks
//! that fit some sizes of RAM. `cargo xtask plan` runs it. All figures are the planner's.

use firmware_example::choice::{self, Choice, Layers};
use firmware_example::{digits, motions};
use slabgrad::graph::{Id, Name};
use slabgrad::ops::{conv2d, cross_entropy, linear, max_pool2d, relu, reshape};
use slabgrad::plan::MultiplyAdds;
use slabgrad::prelude::*;

/// Sizes of RAM in KB, and the bytes of them that are left for the stack and all else.
const RAM: [usize; 4] = [32, 64, 128, 256];
const RESERVE: usize = 4 * 1024;

const ADAM: Training = Training::with::<Adam>();

fn main() {
    print_choices("digits", digits::tuned_net);
    print_choices("motions", motions::tuned_net);
    println!("{:<35}{}", "The largest N for a RAM of", RAM.map(|kb| format!("{kb:>6} KB")).concat());
    print_widest("64 inputs, linear N, relu, linear 10", mlp, 2);
    print_widest("1x8x8, conv N, conv 2N, pool, linear 10", |n| cnn(8, false, n), 3);
    print_widest("1x28x28, conv N, pool, conv 2N, pool, linear 10", |n| cnn(28, true, n), 3);
}

/// What a network takes that trains on one sample, and infers from one in between.
struct Cost {
    /// Bytes: the sample, parameters, state, gradients, moments, activations.
    ram: [usize; 6],
    /// Bytes of frozen parameters.
    flash: usize,
    multiply_adds: MultiplyAdds,
}

impl Cost {
    fn of(net: &Graph, training: &Training) -> Option<Self> {
        let (train, infer) = (net.try_train(*training).ok()?, net.try_infer().ok()?);
        let (tables, multiply_adds) = (train.tables(), train.multiply_adds());
        let program = tables.program();
        let sample = program.inputs()[0].shape.len();
        let activations = program.work_len().max(infer.work_len());
        let spaces = [program.params_len(), program.state_len(), program.grads_len(), program.moments_len()];
        let [params, state, grads, moments] = spaces;
        let ram = [sample, params, state, grads, moments, activations].map(|elements| elements * size_of::<f32>());
        Some(Self { ram, flash: program.frozen_len() * size_of::<f32>(), multiply_adds })
    }

    fn ram_bytes(&self) -> usize {
        self.ram.iter().sum()
    }
}

fn print_choices(name: &str, net: fn(Choice) -> Graph) {
    println!("{:<22}{:>7} = {:<50}{:>7}   {:>16}", "", "RAM", "its parts, in bytes", "flash", "multiply-adds");
    println!(
        "{name:<22}{:>7}{:>9}{:>8}{:>7}{:>8}{:>9}{:>13}{:>7}{:>10}{:>9}",
        "", "sample", "params", "state", "grads", "moments", "activations", "", "forward", "backward"
    );
    for (choice, trained) in choice::ALL {
        let Some(cost) = Cost::of(&net(trained), &ADAM) else { continue };
        let [sample, params, state, grads, moments, activations] = cost.ram;
        let parts = format!("{sample:>9}{params:>8}{state:>7}{grads:>8}{moments:>9}{activations:>13}");
        let MultiplyAdds { forward, backward } = cost.multiply_adds;
        println!("{choice:<22}{:>7}{parts}{:>7}{forward:>10}{backward:>9}", cost.ram_bytes(), cost.flash);
    }
    println!();
}

/// Prints the largest N with which `net`, of so many layers, fits.
fn print_widest(name: &str, net: fn(usize) -> (Graph, &'static [&'static [&'static str]]), layers: usize) {
    println!("{name}");
    for (choice, trained, training) in [
        ("last layer, Adam", Choice::last(1), ADAM),
        ("biases and last layer, Adam", Choice::biases().and_last(), ADAM),
        ("all layers, Adam", Choice::last(layers), ADAM),
        ("all layers, Adam, fused", Choice::last(layers), ADAM.fused()),
        ("all layers, SGD, fused", Choice::last(layers), Training::with::<Sgd>().fused()),
    ] {
        let fits = |n: usize, kb: usize| {
            let (graph, layers) = net(n);
            let cost = Cost::of(&trained.apply_to(graph, &Layers { layers, norms: &[] }), &training);
            cost.is_some_and(|cost| cost.ram_bytes() + RESERVE <= kb * 1024)
        };
        let widest = |kb: usize| (1..10_000).take_while(|&n| fits(n, kb)).last().unwrap_or(0);
        println!("  {choice:<33}{}", RAM.map(|kb| format!("{:>9}", widest(kb))).concat());
    }
}

/// Records a layer with a weight and a bias of so many outputs, and a relu behind it where it is not the last.
fn layer(g: &mut Graph, name: &'static str, x: Id, outputs: usize, is_last: bool) -> Id {
    let shape = g.shape(x);
    let is_linear = shape.rank() == 2;
    let weight =
        if is_linear { Shape::new([outputs, shape.axis(1)]) } else { Shape::new([outputs, shape.axis(1), 3, 3]) };
    let bias = Shape::new([outputs]);
    let (op, spec) = if is_linear {
        (linear::op(), linear::spec(shape, weight, Some(bias)))
    } else {
        (conv2d::op(), conv2d::spec(shape, weight, Some(bias), Window2d::size(3).stride(1).padding(1), 1))
    };
    let weight = g.parameter_dyn(Name::new(name, "weight"), weight, Init::Zeros);
    let bias = g.parameter_dyn(Name::new(name, "bias"), bias, Init::Zeros);
    let y = g.apply_dyn(op, &[x, weight, bias], spec.expect("the shapes fit"));
    if is_last { y } else { g.apply_dyn(relu::op(), &[y], relu::spec(g.shape(y))) }
}

fn pool(g: &mut Graph, x: Id) -> Id {
    let spec = max_pool2d::spec(g.shape(x), Window2d::size(2)).expect("the window fits");
    g.apply_dyn(max_pool2d::op(), &[x], spec)
}

/// The last layer, of ten classes, and the loss.
fn classes(g: &mut Graph, x: Id) {
    let label = g.class_indices::<1>("label").id();
    let flat = Shape::new([1, g.shape(x).len()]);
    let spec = reshape::spec(g.shape(x), flat).expect("the same elements");
    let x = g.apply_dyn(reshape::op(), &[x], spec);
    let logits = layer(g, "last", x, 10, true);
    g.output_dyn("logits", logits);
    let spec = cross_entropy::spec(g.shape(logits), Shape::new([1]), CrossEntropy::new()).expect("classes");
    let loss = g.apply_dyn(cross_entropy::op_indices(), &[logits, label], spec);
    g.loss_dyn(loss);
}

fn mlp(width: usize) -> (Graph, &'static [&'static [&'static str]]) {
    let mut g = Graph::new();
    let x = g.input_dyn("x", Shape::new([1, 64]));
    let h = layer(&mut g, "first", x, width, false);
    classes(&mut g, h);
    (g, &[&["first"], &["last"]])
}

/// Two convolutions over images of this size, with a pool behind the second and, where asked, behind the first.
fn cnn(size: usize, pools_twice: bool, width: usize) -> (Graph, &'static [&'static [&'static str]]) {
    let mut g = Graph::new();
    let x = g.input_dyn("x", Shape::new([1, 1, size, size]));
    let mut h = layer(&mut g, "first", x, width, false);
    if pools_twice {
        h = pool(&mut g, h);
    }
    let h = layer(&mut g, "second", h, 2 * width, false);
    let h = pool(&mut g, h);
    classes(&mut g, h);
    (g, &[&["first"], &["second"], &["last"]])
}
