//! What the planner promises: a work space near its lower bound, buffers that never overlap while both are needed, and the
//! same bits as the tapes, on which every value has memory of its own.

#![cfg(feature = "alloc")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use slabgrad::error::ShapeError;
use slabgrad::graph::{Graph, Id, Name};
use slabgrad::ops::{
    Op, Reduction, Spec, add, concat, conv2d, gelu, layer_norm, linear, log_softmax, matmul, max_pool2d, maximum, mean,
    mse, mul, permute, relu, reshape, sigmoid, sin, slice, softmax, sub, sum, tanh,
};
use slabgrad::plan::{Buffer, Plan};
use slabgrad::prelude::*;
use slabgrad::tape::{self, FixedTape, GrowingTape, Storage, Tape};
use slabgrad::testing::weighted_sum;

/// Room for the nodes of a random graph.
const NODES: usize = 96;
/// No value of a random graph has more elements: concatenations and products of columns and rows would grow without end.
const MOST: usize = 128;

/// A node of a random graph, as a tape records it.
enum Recorded<E: Real> {
    Leaf { data: Vec<E>, trained: Option<&'static str> },
    Op { op: &'static Op<Strict<E>>, inputs: Vec<usize>, spec: Spec },
}

/// A graph and the same once more for tapes.
struct Both<E: Real> {
    graph: Graph<Strict<E>, NODES>,
    ids: Vec<Id>,
    nodes: Vec<Recorded<E>>,
}

const NAMES: [&str; 4] = ["w0", "w1", "w2", "w3"];

/// What a random graph is made of: numbers that choose shapes, operations and operands.
#[derive(Clone, Debug)]
struct Recipe {
    /// Of the input and of the parameters.
    shapes: [[usize; 2]; 5],
    steps: Vec<(u8, usize, usize)>,
    frozen: u8,
    seed: u64,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    // Often equal, so that products and sums have operands that fit.
    let axis = || prop_oneof![Just(3_usize), 1..5_usize];
    let shapes = prop::array::uniform5([axis(), axis()]);
    let step = (0..OPERATIONS + 1, any::<usize>(), any::<usize>());
    (shapes, prop::collection::vec(step, 1..14), 0_u8..8, any::<u64>())
        .prop_map(|(shapes, steps, frozen, seed)| Recipe { shapes, steps, frozen, seed })
}

/// An operation on one matrix, or on two.
type Choice<E> = (&'static Op<Strict<E>>, usize, Spec);

/// How many `choose` knows. The first three have kinks, where central differences say nothing.
const OPERATIONS: u8 = 23;
const KINKED: u8 = 3;

/// The operation of this number on matrices of these shapes.
fn choose<E: Real>(number: u8, a: Shape, b: Shape) -> Result<Choice<E>, ShapeError> {
    let [one, two] = [1, 2];
    let (rows, columns) = (a.axis(0), a.axis(1));
    let image = |shape: Shape| Shape::new([1, 1, shape.axis(0), shape.axis(1)]);
    Ok(match number {
        0 => (relu::op(), one, relu::spec(a)),
        1 => (maximum::op(a, b), two, maximum::spec(a, b)?),
        2 => (max_pool2d::op(), one, max_pool2d::spec(image(a), Window2d::size(2).stride(1))?),
        3 => (add::op(a, b), two, add::spec(a, b)?),
        4 => (add::op_any(), two, add::spec(a, b)?),
        5 => (sub::op(a, b), two, sub::spec(a, b)?),
        6 => (mul::op(a, b), two, mul::spec(a, b)?),
        7 => (matmul::op(), two, matmul::spec(a, b)?),
        8 => (matmul::op_nt(), two, matmul::spec_nt(a, b)?),
        9 | 10 => (linear::op(), two, linear::spec(a, b, None)?),
        11 => (tanh::op(), one, tanh::spec(a)),
        12 => (sigmoid::op(), one, sigmoid::spec(a)),
        13 => (gelu::op_erf(), one, gelu::spec(a)),
        14 => (sin::op(), one, sin::spec(a)),
        15 => (softmax::op(), one, softmax::spec(a, 1)?),
        16 => (log_softmax::op(), one, log_softmax::spec(a, 0)?),
        17 => (mse::op(), two, mse::spec(a, b, Reduction::None)?),
        18 => (permute::op(), one, permute::spec(a, &[1, 0])?),
        19 => (slice::op(), one, slice::spec(a, &[rows / 2, 0], &[rows, columns.div_ceil(2)], &[])?),
        20 => (concat::op(), two, concat::spec(&[a, b], 0)?),
        21 => (mean::op(), one, mean::spec(a, &[1], true)?),
        22 => (layer_norm::op(), one, layer_norm::spec(a, None, None, 1, 1e-2)?),
        _ => (
            conv2d::op(),
            two,
            conv2d::spec(image(a), image(b), None, Window2d::rect([b.axis(0), b.axis(1)]).stride(1), 1)?,
        ),
    })
}

impl<E: Real> Both<E> {
    fn leaf(&mut self, id: Id, data: Vec<E>, trained: Option<&'static str>) {
        self.ids.push(id);
        self.nodes.push(Recorded::Leaf { data, trained });
    }

    fn op(&mut self, op: &'static Op<Strict<E>>, inputs: &[usize], spec: Spec) -> usize {
        let ids: Vec<Id> = inputs.iter().map(|&i| self.ids[i]).collect();
        self.ids.push(self.graph.apply_dyn(op, &ids, spec));
        self.nodes.push(Recorded::Op { op, inputs: inputs.to_vec(), spec });
        self.nodes.len() - 1
    }

    fn shape(&self, i: usize) -> Shape {
        self.graph.shape(self.ids[i])
    }

    /// The same value by another shape.
    fn view(&mut self, i: usize, shape: Shape) -> usize {
        let spec = reshape::spec(self.shape(i), shape).unwrap();
        if self.shape(i) == shape { i } else { self.op(reshape::op(), &[i], spec) }
    }

    /// Records a step on operands which are mostly recent, so that graphs are deep; where they do not fit, on the most recent
    /// second operand that does, or else a smooth operation.
    fn step(&mut self, (number, a, b): (u8, usize, usize)) {
        let matrices: Vec<usize> = (0..self.ids.len()).rev().filter(|&i| self.shape(i).rank() == 2).collect();
        let pick = |n: usize| matrices[n % matrices.len().min(6)];
        let a = pick(a);
        let seconds = core::iter::once(pick(b)).chain(matrices.iter().copied());
        let mut fitting = seconds.filter_map(|b| Some((b, choose::<E>(number, self.shape(a), self.shape(b)).ok()?)));
        let small = fitting.find(|(_, (.., spec))| (1..=MOST).contains(&spec.shape.len()));
        let (b, (op, operands, spec)) = small.unwrap_or_else(|| (a, (tanh::op(), 1, tanh::spec(self.shape(a)))));
        let mut inputs = vec![a, b];
        inputs.truncate(operands);
        // Images are views of matrices, and so are matrices of images.
        if spec.shape.rank() == 4 {
            for i in &mut inputs {
                let shape = self.shape(*i);
                *i = self.view(*i, Shape::new([1, 1, shape.axis(0), shape.axis(1)]));
            }
        }
        let y = self.op(op, &inputs, spec);
        if spec.shape.rank() == 4 {
            self.view(y, Shape::new([spec.shape.axis(2), spec.shape.axis(3)]));
        }
    }

    /// The graph of `recipe`. Its loss depends on every parameter, since a parameter that it does not reach is refused.
    fn new(recipe: &Recipe) -> Self {
        let [shape, parameters @ ..] = recipe.shapes.map(Shape::new);
        let mut both = Self { graph: Graph::new(), ids: Vec::new(), nodes: Vec::new() };
        let draw = |leaf: &'static str, shape: Shape| {
            let mut data = vec![E::ZERO; shape.len()];
            Init::XavierUniform.fill(&mut data, shape, Name::new("", leaf), recipe.seed);
            data
        };
        let id = both.graph.input_dyn("x", shape);
        both.leaf(id, draw("x", shape), None);
        for (i, (name, shape)) in NAMES.into_iter().zip(parameters).enumerate() {
            let id = both.graph.parameter_dyn(Name::new("", name), shape, Init::XavierUniform);
            // The last is always trained.
            let frozen = recipe.frozen >> i & 1 == 1;
            if frozen {
                both.graph.freeze(name);
            }
            both.leaf(id, draw(name, shape), (!frozen).then_some(name));
        }
        recipe.steps.iter().for_each(|&step| both.step(step));
        let last = both.nodes.len() - 1;
        let id = both.graph.input_dyn("weights", both.shape(last));
        both.leaf(id, draw("weights", both.shape(last)), None);
        let mut loss = both.op(weighted_sum(), &[last, last + 1], Spec::new(Shape::SCALAR));
        for i in 1..=NAMES.len() {
            let y = both.op(sin::op(), &[i], sin::spec(both.shape(i)));
            let y = both.op(sum::op(), &[y], sum::spec(both.shape(i), &[], false).unwrap());
            loss = both.op(add::op_any(), &[loss, y], add::spec(Shape::SCALAR, Shape::SCALAR).unwrap());
        }
        both.graph.loss_dyn(both.ids[loss]);
        both
    }

    /// The loss and the gradients of the trained parameters on a tape, where every value has memory of its own.
    fn on_tape<S: Storage<Backend = Strict<E>>>(&self, mut tape: Tape<S>) -> (E, Vec<Vec<E>>) {
        let mut vars: Vec<tape::Handle> = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let matrix = [self.shape(i).axis(0), self.shape(i).axis(1)];
            vars.push(match node {
                Recorded::Leaf { data, trained: Some(_) } => tape.parameter(matrix, data),
                Recorded::Leaf { data, trained: None } => tape.constant(matrix, data),
                Recorded::Op { op, inputs, spec } => {
                    let inputs: Vec<tape::Handle> = inputs.iter().map(|&i| vars[i]).collect();
                    tape.apply(op, &inputs, Ok(*spec))
                }
            });
        }
        let loss = *vars.last().unwrap();
        // Whatever the loss is.
        tape.backward_from(loss, &[E::ONE]).unwrap();
        let trained =
            self.nodes.iter().zip(&vars).filter(|(node, _)| matches!(node, Recorded::Leaf { trained: Some(_), .. }));
        (tape.item(loss), trained.map(|(_, &var)| tape.gradient(var).unwrap().to_vec()).collect())
    }

    /// Fills the memory of a planned program and hands it to `run`.
    fn with_program<T>(
        &self,
        plan: &Plan<Strict<E>, NODES>,
        run: impl FnOnce(&Program<'_, Strict<E>>, &mut Memory<'_, E>, &[&[E]]) -> T,
    ) -> T {
        let tables = plan.tables();
        let program = tables.program();
        // Garbage, so that a value which is read before it is written shows.
        let mut slab = vec![E::from_usize(777); program.slab_len()];
        let mut frozen = vec![E::ZERO; program.frozen_len()];
        let mut fed: Vec<&[E]> = Vec::new();
        for tensor in program.tensors().iter().filter(|tensor| tensor.space == slabgrad::program::Space::Frozen) {
            let i = NAMES.iter().position(|name| *name == tensor.name.leaf).unwrap();
            let Recorded::Leaf { data, .. } = &self.nodes[1 + i] else { unreachable!("parameters come first") };
            frozen[tensor.range()].copy_from_slice(data);
        }
        let mut memory = program.memory_with(&mut slab, &frozen).unwrap();
        for node in &self.nodes {
            if let Recorded::Leaf { data, trained: Some(name) } = node {
                program.tensor_mut(&mut memory, name).unwrap().copy_from_slice(data);
            }
        }
        for input in program.inputs() {
            let mut leaves = self.nodes.iter().filter_map(|node| match node {
                Recorded::Leaf { data, .. } => Some(data),
                Recorded::Op { .. } => None,
            });
            // The input comes first, the weights last.
            fed.push(if input.name == "x" { leaves.next().unwrap() } else { leaves.next_back().unwrap() });
        }
        run(&program, &mut memory, &fed)
    }
}

/// No two buffers that some tick needs share an element, and the space is as large as the lower bound says, or nearly.
fn check_layout(buffers: &[Buffer], work_len: usize) {
    for (i, a) in buffers.iter().enumerate() {
        assert!(a.offset + a.len <= work_len, "{a:?} ends beyond the work space of {work_len}");
        for b in &buffers[..i] {
            let (together, shared) =
                (a.start <= b.end && b.start <= a.end, a.offset < b.offset + b.len && b.offset < a.offset + a.len);
            assert!(!(together && shared), "{a:?} and {b:?} overlap");
        }
    }
}

/// The largest total of buffers that one tick needs.
fn lower_bound(buffers: &[Buffer]) -> usize {
    let last = buffers.iter().map(|buffer| buffer.end).max().unwrap_or(0);
    let alive = |tick: usize| buffers.iter().filter(move |b| (b.start..=b.end).contains(&tick));
    (0..=last).map(|tick| alive(tick).map(|buffer| buffer.len).sum()).max().unwrap_or(0)
}

fn bits<E: Real>(data: &[E]) -> Vec<u64> {
    // Canonical for NaNs: their bits are not specified.
    data.iter().map(|x| if x.is_nan() { u64::MAX } else { f64::from(x.to_f32()).to_bits() }).collect()
}

proptest! {
    // The same graphs in every run: a failure is a change's, not chance's.
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 400 },
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_planned_graph_gives_the_bits_of_the_tapes(recipe in recipe()) {
        let both = Both::<f32>::new(&recipe);
        let (loss, gradients) = both.on_tape(GrowingTape::default());
        // Garbage here too.
        let params = NAMES.len() * MOST;
        let mut slab = vec![777.0; 2 * params + 4 * NODES * MOST];
        let (same_loss, same_gradients) = both.on_tape(FixedTape::<NODES>::in_slab(&mut slab, params).unwrap());
        prop_assert_eq!(bits(&[loss]), bits(&[same_loss]));
        for (a, b) in gradients.iter().zip(&same_gradients) {
            prop_assert_eq!(bits(a), bits(b), "a growing and a fixed tape differ");
        }
        let plan = both.graph.train(Training::with::<Adam>());
        check_layout(plan.buffers(), plan.work_len());
        prop_assert_eq!(plan.work_lower_bound(), lower_bound(plan.buffers()));

        let kept = both.with_program(&plan, |program, memory, fed| {
            let found = program.gradients(memory, fed).unwrap();
            assert_eq!(bits(&[found]), bits(&[loss]), "the loss is {found}, a tape gives {loss}");
            let trained = program.tensors().iter().filter(|t| t.space == slabgrad::program::Space::Params);
            for (tensor, want) in trained.zip(&gradients) {
                let found = &memory.grads[tensor.range()];
                assert_eq!(bits(found), bits(want), "gradient of {}: {found:?}, a tape gives {want:?}", tensor.name);
            }
            let mut adam = Adam::new(0.1);
            (0..3).for_each(|_| _ = program.step(memory, fed, &mut adam));
            bits(memory.params)
        });
        let fused = both.graph.train(Training::with::<Adam>().fused());
        check_layout(fused.buffers(), fused.work_len());
        let fused = both.with_program(&fused, |program, memory, fed| {
            assert_eq!(program.grads_len(), 0);
            let mut adam = Adam::new(0.1);
            (0..3).for_each(|_| _ = program.step(memory, fed, &mut adam));
            bits(memory.params)
        });
        prop_assert_eq!(kept, fused, "a fused program gives other parameters than one that keeps gradients");
    }

    #[test]
    fn gradients_of_whole_graphs_agree_with_central_differences(recipe in recipe()) {
        let smooth = recipe.steps.iter().filter(|step| step.0 >= KINKED).copied().collect();
        let both = Both::<f64>::new(&Recipe { steps: smooth, ..recipe });
        let plan = both.graph.train(Training::with_slots(0));
        both.with_program(&plan, |program, memory, fed| {
            program.gradients(memory, fed).unwrap();
            let found = memory.grads.to_vec();
            for (i, &found) in found.iter().enumerate() {
                let x = memory.params[i];
                let mut loss_at = |x: f64| {
                    memory.params[i] = x;
                    program.loss(memory, fed).unwrap()
                };
                let h = 1e-5;
                let want = (loss_at(x + h) - loss_at(x - h)) / (2.0 * h);
                let scale = want.abs().max(1.0);
                // Products of many matrices grow fast, and with them the error of the difference.
                if scale < 1e4 {
                    assert!((found - want).abs() < 1e-6 * scale, "parameter {i}: {found}, central differences give {want}");
                }
                memory.params[i] = x;
            }
        });
    }
}

/// Two layers over two samples; `trained` says what is trained.
const fn two_layers(trained: Option<&'static str>) -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<2, 4>>("x");
    let y = g.input::<R2<2, 3>>("y");
    let h: Var<R2<2, 8>> = g.linear("fc1", x);
    let h = g.relu(h);
    let p: Var<R2<2, 3>> = g.linear("fc2", h);
    let loss = g.mse(p, y);
    g.loss(loss);
    if let Some(leaf) = trained {
        g.freeze("");
        g.unfreeze_leaves(leaf);
    }
    g
}

#[test]
fn work_is_known_at_compile_time_and_depends_on_what_is_trained() {
    const SGD: Training = Training::with::<Sgd>();
    const ALL: Plan = two_layers(None).train(SGD);
    const BIASES: Plan = two_layers(Some("bias")).train(SGD);
    const LAST: Plan = {
        let mut g = two_layers(None);
        g.freeze("");
        g.unfreeze("fc2");
        g.train(SGD)
    };
    const { assert!(ALL.multiply_adds().forward == 2 * 4 * 8 + 2 * 8 * 3) };
    // The second layer's operands, and the first one's weight.
    assert_eq!(ALL.multiply_adds().backward, 2 * (2 * 8 * 3) + 2 * 4 * 8);
    // The second layer's input, on the way to the first one's bias.
    assert_eq!(BIASES.multiply_adds().backward, 2 * 8 * 3);
    // The second layer's weight.
    assert_eq!(LAST.multiply_adds().backward, 2 * 8 * 3);
    let lengths = [&ALL, &BIASES, &LAST].map(|plan| {
        let tables = plan.tables();
        [tables.program().params_len(), tables.program().frozen_len()]
    });
    assert_eq!(lengths, [[67, 0], [11, 56], [27, 40]]);
}

#[test]
fn work_of_other_products() {
    const fn net() -> Graph {
        let mut g = Graph::new();
        let x = g.input::<R4<1, 2, 4, 4>>("x");
        let h: Var<R4<1, 3, 4, 4>> = g.conv2d("conv", x, Conv2d::kernel(3).padding(1));
        let h: Var<R4<1, 2, 8, 8>> = g.conv_transpose2d("up", h, ConvTranspose2d::kernel(2).stride(2));
        let h: Var<R2<8, 16>> = g.reshape(h);
        let y = g.matmul_nt(h, h);
        g.output("y", y);
        g
    }
    const FORWARD: usize = net().infer().multiply_adds().forward;
    assert_eq!(FORWARD, 3 * 16 * (2 * 9) + 3 * 16 * (2 * 4) + 8 * 8 * 16);
}
