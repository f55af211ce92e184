//! What the planner promises: a work space near its lower bound, buffers that never overlap while both are needed, and the
//! same bits as the tapes, on which every value has memory of its own.

#![cfg(feature = "alloc")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use slabgrad::graph::{Graph, Id, Name};
use slabgrad::ops::{Op, Reduction, Spec, add, linear, matmul, mse, relu, reshape, sigmoid, softmax, tanh};
use slabgrad::plan::{Buffer, Plan};
use slabgrad::prelude::*;
use slabgrad::tape::{self, FixedTape, GrowingTape, Storage, Tape};
use slabgrad::testing::weighted_sum;

/// Room for the nodes of a random graph.
const NODES: usize = 64;
/// Values of a random graph are `SIDE x SIDE` matrices.
const SIDE: usize = 3;
const LEN: usize = SIDE * SIDE;

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

/// What a random graph is made of: numbers that choose operations and operands.
#[derive(Clone, Debug)]
struct Recipe {
    steps: Vec<(u8, usize, usize)>,
    frozen: u8,
    seed: u64,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let step = (0_u8..11, any::<usize>(), any::<usize>());
    (prop::collection::vec(step, 1..14), 0_u8..8, any::<u64>()).prop_map(|(steps, frozen, seed)| Recipe {
        steps,
        frozen,
        seed,
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

    /// The graph of `recipe`. Its loss depends on every parameter, since a parameter that it does not reach is refused.
    fn new(recipe: &Recipe) -> Self {
        let square = Shape::new([SIDE, SIDE]);
        let mut both = Self { graph: Graph::new(), ids: Vec::new(), nodes: Vec::new() };
        let draw = |leaf: &'static str, len: usize| {
            let mut data = vec![E::ZERO; len];
            Init::XavierUniform.fill(&mut data, square, Name::new("", leaf), recipe.seed);
            data
        };
        let id = both.graph.input_dyn("x", square);
        both.leaf(id, draw("x", LEN), None);
        for (i, name) in NAMES.into_iter().enumerate() {
            let id = both.graph.parameter_dyn(Name::new("", name), square, Init::XavierUniform);
            // The last is always trained.
            let frozen = recipe.frozen >> i & 1 == 1;
            if frozen {
                both.graph.freeze(name);
            }
            both.leaf(id, draw(name, LEN), (!frozen).then_some(name));
        }
        for &(what, a, b) in &recipe.steps {
            // Operands are mostly recent, so that graphs are deep.
            let pick = |n: usize| both.nodes.len() - 1 - n % both.nodes.len().min(6);
            let (a, b) = (pick(a), pick(b));
            let vector = Shape::new([LEN]);
            match what {
                0 => both.op(add::op(square, square), &[a, b], add::spec(square, square).unwrap()),
                1 => both.op(matmul::op(), &[a, b], matmul::spec(square, square).unwrap()),
                2 => both.op(linear::op(), &[a, b], linear::spec(square, square, None).unwrap()),
                3 => both.op(relu::op(), &[a], relu::spec(square)),
                4 => both.op(tanh::op(), &[a], tanh::spec(square)),
                5 => both.op(sigmoid::op(), &[a], sigmoid::spec(square)),
                6 => both.op(softmax::op(), &[a], softmax::spec(square, 1).unwrap()),
                7 => both.op(mse::op(), &[a, b], mse::spec(square, square, Reduction::None).unwrap()),
                // The same parameter once more.
                8 => both.op(linear::op(), &[a, 1 + b % NAMES.len()], linear::spec(square, square, None).unwrap()),
                9 => both.op(add::op_any(), &[a, b], add::spec(square, square).unwrap()),
                _ => {
                    let flat = both.op(reshape::op(), &[a], reshape::spec(square, vector).unwrap());
                    both.op(reshape::op(), &[flat], reshape::spec(vector, square).unwrap())
                }
            };
        }
        for i in 1..=NAMES.len() {
            let last = both.nodes.len() - 1;
            both.op(add::op(square, square), &[last, i], add::spec(square, square).unwrap());
        }
        let last = both.nodes.len() - 1;
        let id = both.graph.input_dyn("weights", square);
        both.leaf(id, draw("weights", LEN), None);
        let loss = both.op(weighted_sum(), &[last, last + 1], Spec::new(Shape::SCALAR));
        both.graph.loss_dyn(both.ids[loss]);
        both
    }

    /// The loss and the gradients of the trained parameters on a tape, where every value has memory of its own.
    fn on_tape<S: Storage<Backend = Strict<E>>>(&self, mut tape: Tape<S>) -> (E, Vec<Vec<E>>) {
        let mut vars: Vec<tape::Handle> = Vec::new();
        for node in &self.nodes {
            vars.push(match node {
                Recorded::Leaf { data, trained: Some(_) } => tape.parameter([SIDE, SIDE], data),
                Recorded::Leaf { data, trained: None } => tape.constant([SIDE, SIDE], data),
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
            let i = if input.name == "x" { 0 } else { self.nodes.len() - 2 };
            let Recorded::Leaf { data, .. } = &self.nodes[i] else { unreachable!("inputs are leaves") };
            fed.push(data);
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
        let mut slab = vec![777.0; 2 * NAMES.len() * LEN + 4 * NODES * LEN];
        let (same_loss, same_gradients) = both.on_tape(FixedTape::<NODES>::in_slab(&mut slab, NAMES.len() * LEN).unwrap());
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
        // A kink is where central differences say nothing.
        let smooth = recipe.steps.iter().filter(|step| step.0 != 3).copied().collect();
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
    let lengths = [ALL, BIASES, LAST].map(|plan| {
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
