//! The tables of a program, taken from the nodes and what the planner found out about them.

use super::planner::Info;
use super::schedule::PlannedStep;
use crate::backend::{Backend, Real};
use crate::graph::{Kind, Node};
use crate::init::{self, Normal};
use crate::ops::Args;
use crate::optim::{Rules, Scope};
use crate::program::{Draw, GroupRun, Input, Output, Place, Step, Tensor};

/// What the entries of the tables are made from, by node; the same for a constant and for a graph on the heap.
pub(super) struct Source<'a, 'n, B: Backend> {
    pub(super) nodes: &'a [Node<'n, B>],
    pub(super) info: &'a [Info],
    pub(super) rules: &'a Rules,
}

/// How many nodes have such an entry. A constant function can be handed no other one.
macro_rules! count {
    ($self:ident.$entry:ident) => {{
        let (mut count, mut i) = (0, 0);
        while i < $self.nodes.len() {
            count += $self.$entry(i).is_some() as usize;
            i += 1;
        }
        count
    }};
}

impl<'n, B: Backend> Source<'_, 'n, B> {
    /// Writes the arguments where steps find them, among zeros.
    pub(super) const fn fill_args(&self, all: &mut [u32]) {
        let mut i = 0;
        while i < self.nodes.len() {
            if let (true, Some(args)) = (self.info[i].needed, self.nodes[i].args()) {
                let (_, at) = all.split_at_mut(self.info[i].args as usize);
                at.split_at_mut(args.len()).0.copy_from_slice(args);
            }
            i += 1;
        }
    }

    pub(super) const fn tensor(&self, i: usize) -> Option<Tensor<'n>> {
        let node = &self.nodes[i];
        let (Kind::Parameter { init, .. } | Kind::State { init }) = node.kind else {
            return None;
        };
        let place = self.info[i].leaf;
        let (space, offset) = (place.space(), place.offset());
        Some(Tensor { name: node.name, shape: node.spec.shape, space, offset, init })
    }

    pub(super) const fn draw(&self, i: usize) -> Option<Draw> {
        let node = &self.nodes[i];
        let (Kind::Parameter { init, .. } | Kind::State { init }) = node.kind else {
            return None;
        };
        let distribution = init.distribution(node.spec.shape);
        if distribution.is_zeros() {
            return None;
        }
        Some(Draw { hash: node.name.hash(), distribution, place: self.info[i].leaf })
    }

    pub(super) const fn input(&self, i: usize) -> Option<Input<'n>> {
        let node = &self.nodes[i];
        match node.kind {
            Kind::Input { classes } if self.info[i].needed => {
                Some(Input { name: node.name.leaf, shape: node.spec.shape, classes: classes as usize })
            }
            _ => None,
        }
    }

    pub(super) const fn output(&self, i: usize) -> Option<Output<'n>> {
        let node = &self.nodes[i];
        match node.output {
            Some(name) if self.info[i].kept => Some(Output { name, shape: node.spec.shape, place: self.info[i].place }),
            _ => None,
        }
    }

    /// What the rules make of the trained parameter `i`, as a run of its own.
    const fn group(&self, i: usize) -> Option<GroupRun> {
        let node = &self.nodes[i];
        if !node.is_trained() {
            return None;
        }
        let (mut factor, mut decay) = (1.0, 0.0);
        let rules = self.rules.as_slice();
        let mut rule = 0;
        while rule < rules.len() {
            let applies = match rules[rule].scope {
                Scope::All => true,
                Scope::Vectors => node.spec.shape.rank() <= 1,
                Scope::Named(name) => node.name.is_within(name),
            };
            if applies && let Some(value) = rules[rule].group.learning_rate_factor {
                factor = value;
            }
            if applies && let Some(value) = rules[rule].group.weight_decay {
                decay = value;
            }
            rule += 1;
        }
        Some(GroupRun::new(self.info[i].leaf.offset(), node.len(), factor, decay))
    }

    /// The group that starts with parameter `i`: it and those that follow it with the same settings.
    pub(super) const fn group_from(&self, i: usize) -> Option<GroupRun> {
        let Some(mut run) = self.group(i) else { return None };
        let mut before = i;
        while before > 0 {
            before -= 1;
            if let Some(other) = self.group(before) {
                if other.has_settings_of(&run) {
                    return None;
                }
                break;
            }
        }
        let mut after = i + 1;
        while after < self.nodes.len() {
            if let Some(other) = self.group(after) {
                if !other.has_settings_of(&run) {
                    break;
                }
                run = run.longer_by(other.len());
            }
            after += 1;
        }
        Some(run)
    }

    pub(super) const fn groups_len(&self) -> usize {
        count!(self.group_from)
    }

    pub(super) const fn tensors_len(&self) -> usize {
        count!(self.tensor)
    }

    pub(super) const fn draws_len(&self) -> usize {
        count!(self.draw)
    }

    pub(super) const fn inputs_len(&self) -> usize {
        count!(self.input)
    }

    pub(super) const fn outputs_len(&self) -> usize {
        count!(self.output)
    }
}

/// How many operands these steps have: places that are somewhere.
pub(super) const fn places_len<B: Backend>(planned: &[PlannedStep<B>]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < planned.len() {
        count += planned[i].places_len();
        i += 1;
    }
    count
}

/// How many words hold the arguments of these steps: all of [`Args`] can be read wherever they begin.
pub(super) const fn args_len<B: Backend>(planned: &[PlannedStep<B>]) -> usize {
    let (mut last, mut i) = (0, 0);
    while i < planned.len() {
        if planned[i].args > last {
            last = planned[i].args;
        }
        i += 1;
    }
    last as usize + Args::WORDS
}

/// The steps of a program, which refer to the places of [`fill_places`].
pub(super) const fn fill_steps<B: Backend>(planned: &[PlannedStep<B>], steps: &mut [Step<B>]) {
    let (mut first, mut i) = (0, 0);
    while i < planned.len() {
        steps[i] = Step::new(planned[i].action, planned[i].args, &planned[i].places(), first);
        first += planned[i].places_len();
        i += 1;
    }
}

/// The operands' places, step by step.
pub(super) const fn fill_places<B: Backend>(planned: &[PlannedStep<B>], all: &mut [Place]) {
    let (mut count, mut i) = (0, 0);
    while i < planned.len() {
        let places = planned[i].places();
        let mut operand = 0;
        while operand < places.len() {
            if !places[operand].equals(Place::NOWHERE) {
                all[count] = places[operand];
                count += 1;
            }
            operand += 1;
        }
        i += 1;
    }
}

/// Draws from a normal distribution, where a tensor starts so.
pub(super) const fn normal_of<E: Real>(draws: &[Draw]) -> Option<Normal<E>> {
    let mut i = 0;
    while i < draws.len() {
        if draws[i].distribution.is_normal() {
            return Some(init::normal);
        }
        i += 1;
    }
    None
}

#[cfg(any(feature = "alloc", test))]
mod on_the_heap {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{Backend, Draw, GroupRun, Input, Output, Place, PlannedStep, Source, Step, Tensor};
    use crate::program::{Expected, Program, Sizes, check};

    /// The tables of a program that was planned at run time.
    // They have passed `check`.
    pub struct Tables<'n, B: Backend> {
        steps: Vec<Step<B>>,
        places: Vec<Place>,
        pub(super) args: Vec<u32>,
        tensors: Vec<Tensor<'n>>,
        draws: Vec<Draw>,
        inputs: Vec<Input<'n>>,
        expected: Vec<Expected>,
        outputs: Vec<Output<'n>>,
        groups: Vec<GroupRun>,
        sizes: Sizes,
    }

    impl<B: Backend> Tables<'_, B> {
        /// The program over these tables.
        #[must_use]
        pub fn program(&self) -> Program<'_, B> {
            let Self { steps, places, args, tensors, draws, inputs, expected, outputs, groups, .. } = self;
            let (sizes, normal) = (self.sizes, super::normal_of(draws));
            Program { steps, places, args, tensors, draws, inputs, expected, outputs, groups, sizes, normal }
        }
    }

    #[cfg(feature = "alloc")]
    impl<B: Backend> Tables<'_, B> {
        /// The same without names, which may be of another's, and with these groups of parameters.
        pub(crate) fn without_names(self, groups: Vec<GroupRun>) -> Tables<'static, B> {
            let Self { steps, places, args, draws, inputs, expected, outputs, sizes, .. } = self;
            let inputs = inputs.into_iter().map(|input| Input { name: "", ..input }).collect();
            let outputs = outputs.into_iter().map(|output| Output { name: "", ..output }).collect();
            Tables { steps, places, args, tensors: Vec::new(), draws, inputs, expected, outputs, groups, sizes }
        }

        pub(crate) fn steps(&self) -> &[Step<B>] {
            &self.steps
        }

        pub(crate) fn places(&self) -> &[Place] {
            &self.places
        }

        pub(crate) fn inputs(&self) -> &[Input<'_>] {
            &self.inputs
        }

        pub(crate) fn outputs(&self) -> &[Output<'_>] {
            &self.outputs
        }
    }

    impl<'n, B: Backend> Source<'_, 'n, B> {
        /// The tables, with tensors and how they start.
        pub(in super::super) fn tables_with_tensors(&self, planned: &[PlannedStep<B>], sizes: Sizes) -> Tables<'n, B> {
            let nodes = 0..self.nodes.len();
            let tensors = nodes.clone().filter_map(|i| self.tensor(i)).collect();
            let draws = nodes.filter_map(|i| self.draw(i)).collect();
            Tables { tensors, draws, ..self.tables(planned, sizes) }
        }

        /// The tables without these, for a model that has its own.
        pub(in super::super) fn tables(&self, planned: &[PlannedStep<B>], sizes: Sizes) -> Tables<'n, B> {
            let nodes = 0..self.nodes.len();
            let mut steps = vec![Step::EMPTY; planned.len()];
            super::fill_steps(planned, &mut steps);
            let mut places = vec![Place::NOWHERE; super::places_len(planned)];
            super::fill_places(planned, &mut places);
            let mut args = vec![0; super::args_len(planned)];
            self.fill_args(&mut args);
            check(&steps, &places, &args);
            Tables {
                steps,
                places,
                args,
                tensors: Vec::new(),
                draws: Vec::new(),
                inputs: nodes.clone().filter_map(|i| self.input(i)).collect(),
                expected: nodes.clone().filter_map(|i| self.input(i)).map(|input| input.expected()).collect(),
                outputs: nodes.clone().filter_map(|i| self.output(i)).collect(),
                groups: nodes.filter_map(|i| self.group_from(i)).collect(),
                sizes,
            }
        }
    }
}

#[cfg(any(feature = "alloc", test))]
pub use on_the_heap::Tables;

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::graph::{Graph, Var};
    use crate::optim::Sgd;
    use crate::plan::Training;
    use crate::program::RunError;
    use crate::shape::{R0, R2};

    fn net(loss: fn(&mut Graph, Var<R2<2, 3>>) -> Var<R0>) -> Graph {
        let mut g = Graph::new();
        let x = g.input::<R2<2, 4>>("x");
        let h = g.linear("fc", x);
        let loss = loss(&mut g, h);
        g.loss(loss);
        g
    }

    #[test]
    fn arguments_are_those_that_kernels_read_and_zeros_for_kernels_without() {
        let g = net(|g, h| {
            let (h, t) = (g.tanh(h), g.input("t"));
            g.huber(h, t, 2.0)
        });
        let tables = g.train(Training::with::<Sgd>()).tables();
        let mut expected = vec![2, 4, 3, 0, 0, 0, 6, 2.0_f32.to_bits(), 0, (2.0_f64.to_bits() >> 32) as u32];
        expected.extend([0; Args::WORDS]);
        assert_eq!(tables.args, expected);
    }

    #[test]
    fn losses_read_no_more_of_their_arguments_than_they_say() -> Result<(), RunError> {
        let losses: [(_, fn(&mut Graph, Var<R2<2, 3>>) -> Var<R0>); 4] = [
            ("class indices", |g, x| {
                let t = g.class_indices::<2>("t");
                g.cross_entropy(x, t)
            }),
            ("probabilities", |g, x| {
                let t = g.input::<R2<2, 3>>("t");
                g.cross_entropy(x, t)
            }),
            ("pairs", |g, x| {
                let t = g.input("t");
                g.huber(x, t, 0.5)
            }),
            ("pairs whose target has a gradient", |g, x| {
                let p = g.input("p");
                g.bce_with_logits(p, x)
            }),
        ];
        for (what, loss) in losses {
            let mut tables = net(loss).train(Training::with::<Sgd>()).tables();
            let (x, t) = ([1.0, -2.0, 3.0, 0.5, 0.25, 1.5, -1.0, 2.0], [1.0, 0.0, 2.0, 1.0, 0.0, 1.0]);
            let step = |tables: &Tables<'_, _>| {
                let program = tables.program();
                let mut slab = vec![0.0_f32; program.slab_len()];
                let mut memory = program.memory(&mut slab)?;
                program.init(&mut memory, 42)?;
                let t = &t[..program.inputs()[1].shape.len()];
                let loss = program.gradients(&mut memory, &[&x, t])?;
                Ok::<_, RunError>((loss, memory.grads.to_vec()))
            };
            let expected = step(&tables)?;
            // Nothing follows the arguments of the loss, which is the last node.
            tables.args[3 + 7..].fill(u32::MAX);
            assert_eq!(step(&tables)?, expected, "{what}");
        }
        Ok(())
    }
}
