//! What was compiled, as text, as a drawing, and in numbers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Write};

use crate::backend::Backend;
use crate::graph::{Kind, Node};
use crate::layer::Model;
use crate::plan::HeapPlan;
use crate::program::{Action, Place, Space, Step};
use crate::shape::Shape;

/// A compiled program: it can be printed as text and as Graphviz, and counted.
#[derive(Clone, Debug)]
pub struct Report {
    nodes: Vec<NodeLine>,
    steps: Vec<StepLine>,
    stats: Stats,
}

#[derive(Clone, Debug)]
struct NodeLine {
    label: String,
    shape: Shape,
    inputs: Vec<usize>,
    is_used: bool,
}

#[derive(Clone, Debug)]
struct StepLine {
    phase: &'static str,
    tag: &'static str,
    of: String,
    reads: Vec<Place>,
    writes: Place,
}

/// A program in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many instructions there are of each kind: the phase (`forward`, `backward`, `update`), the operation, the count.
    pub instructions: Vec<(&'static str, &'static str, usize)>,
    /// Bytes of the trained parameters.
    pub params_bytes: usize,
    /// Bytes of the frozen parameters.
    pub frozen_bytes: usize,
    /// Bytes of the state.
    pub state_bytes: usize,
    /// Bytes of the gradients; none where updates are fused.
    pub grads_bytes: usize,
    /// Bytes of the moments.
    pub moments_bytes: usize,
    /// Bytes of the work space: of all buffers, which share memory.
    pub work_bytes: usize,
    /// How many buffers lie in the work space.
    pub buffers: usize,
    /// Bytes that they would take without sharing.
    pub unshared_bytes: usize,
}

impl Stats {
    /// How many instructions there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.instructions.iter().map(|(_, _, count)| count).sum()
    }

    /// Bytes of RAM: all but the frozen parameters.
    #[must_use]
    pub const fn ram_bytes(&self) -> usize {
        self.params_bytes + self.state_bytes + self.grads_bytes + self.moments_bytes + self.work_bytes
    }
}

impl Report {
    pub(super) fn new<B: Backend>(nodes: &[Node<'_, B>], plan: &HeapPlan<'_, B>, model: &Model<B>) -> Self {
        let program = plan.tables.program();
        let size = size_of::<B::Elem>();
        let steps: Vec<StepLine> = plan
            .tables
            .steps()
            .iter()
            .zip(&plan.nodes_of_steps)
            .map(|(step, &node)| line(step, nodes.get(node), plan, model))
            .collect();
        let mut stats = Stats {
            instructions: Vec::new(),
            params_bytes: program.params_len() * size,
            frozen_bytes: program.frozen_len() * size,
            state_bytes: program.state_len() * size,
            grads_bytes: program.grads_len() * size,
            moments_bytes: program.moments_len() * size,
            work_bytes: program.work_len() * size,
            buffers: plan.buffers.len(),
            unshared_bytes: plan.buffers.iter().map(|buffer| buffer.len).sum::<usize>() * size,
        };
        for step in &steps {
            let found = stats.instructions.iter_mut().find(|(phase, tag, _)| (*phase, *tag) == (step.phase, step.tag));
            match found {
                Some((_, _, count)) => *count += 1,
                None => stats.instructions.push((step.phase, step.tag, 1)),
            }
        }
        let node = |(i, node): (usize, &Node<'_, B>)| NodeLine {
            label: match node.kind {
                Kind::Op(op) => op.name.into(),
                Kind::Input { .. } => "input".into(),
                Kind::Parameter { .. } | Kind::State { .. } => node.name.leaf.into(),
            },
            shape: node.spec.shape,
            inputs: node.inputs.iter().take(usize::from(node.input_count)).map(|input| input.index()).collect(),
            is_used: plan.needed.get(i).copied().unwrap_or(false),
        };
        Self { nodes: nodes.iter().enumerate().map(node).collect(), steps, stats }
    }

    /// The numbers.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The graph in Graphviz' language: `dot -Tsvg` draws it.
    #[must_use]
    pub fn graphviz(&self) -> String {
        let mut text = String::from("digraph program {\n  rankdir = BT;\n  node [shape = box];\n");
        for (i, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_used) {
            let style = if node.inputs.is_empty() { ", style = rounded" } else { "" };
            let _ = writeln!(text, "  n{i} [label = \"{}\\n{}\"{style}];", node.label, node.shape);
            for input in &node.inputs {
                let _ = writeln!(text, "  n{input} -> n{i};");
            }
        }
        text.push_str("}\n");
        text
    }
}

/// The sizes, and a line for each instruction with what it reads and writes.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        let Stats { params_bytes, frozen_bytes, state_bytes, grads_bytes, moments_bytes, work_bytes, .. } = self.stats;
        writeln!(
            f,
            "{} instructions; bytes: params {params_bytes}, frozen {frozen_bytes}, state {state_bytes}, grads {grads_bytes}, \
             moments {moments_bytes}, work {work_bytes} ({} buffers, {} bytes without sharing)",
            self.steps.len(),
            self.stats.buffers,
            self.stats.unshared_bytes
        )?;
        for (i, step) in self.steps.iter().enumerate() {
            let reads: Vec<String> = step.reads.iter().copied().map(place).collect();
            let writes = place(step.writes);
            writeln!(
                f,
                "{i:4} {:<8} {:<20} {writes:<22} <- {:<44} {}",
                step.phase,
                step.tag,
                reads.join(", "),
                step.of
            )?;
        }
        Ok(())
    }
}

fn place(place: Place) -> String {
    match place.space() {
        Space::Input => format!("input {}", place.offset()),
        space => format!("{} {}..{}", space.name(), place.offset(), place.offset() + place.len()),
    }
}

fn line<B: Backend>(step: &Step<B>, node: Option<&Node<'_, B>>, plan: &HeapPlan<'_, B>, model: &Model<B>) -> StepLine {
    let [x0, x1, x2, out, saved, _, y, dy, param] = step.places(plan.tables.places());
    let op = node.and_then(Node::op).map_or("", |op| op.name);
    let shape = node.map_or_else(String::new, |node| format!("{}", node.spec.shape));
    let parameter = || {
        let mut start = 0;
        let trained = model.entries.iter().filter(|entry| entry.role == crate::layer::Role::Trained);
        let mut found = String::new();
        for entry in trained {
            if start == param.offset() {
                found.clone_from(&entry.name);
            }
            start += entry.shape.len();
        }
        found
    };
    let (phase, tag, of) = match step.action {
        Action::Forward { run, .. } => {
            let with_relu = node.and_then(Node::op).and_then(|op| op.with_relu);
            let is_rectified = with_relu.is_some_and(|with_relu| core::ptr::fn_addr_eq(run, with_relu));
            ("forward", op, if is_rectified { format!("{shape}, then relu") } else { shape })
        }
        Action::Backward { run, .. } => {
            let behind_relu = node.and_then(Node::op).and_then(|op| op.behind_relu);
            let is_behind = x0.len() > 0 && behind_relu.is_some_and(|behind| core::ptr::fn_addr_eq(run, behind));
            ("backward", op, if is_behind { format!("{shape}, then relu's") } else { shape })
        }
        Action::Move { add: false } => ("backward", "copy", String::new()),
        Action::Move { add: true } => ("backward", "add up", String::new()),
        Action::Seed => ("backward", "seed", String::new()),
        Action::Update => ("update", "update", parameter()),
        Action::UpdateRows { .. } => ("update", "update by rows", parameter()),
    };
    // Of a forward step, `y` is the state that it reads; of an update, `param` is what it changes.
    let reads = [x0, x1, x2, y, dy, saved, param].into_iter().filter(|place| place.len() > 0).collect();
    StepLine { phase, tag, of, reads, writes: out }
}
