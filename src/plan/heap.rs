//! Planning nodes that were recorded at run time.

use alloc::vec;
use alloc::vec::Vec;

use super::planner::{Info, Planner};
use super::schedule::PlannedStep;
use super::tables::Source;
use super::{BUFFERS_PER_NODE, Buffer, PlanError, STEPS_PER_NODE, Tables, Training};
use crate::backend::Backend;
use crate::graph::{Id, Node};
use crate::optim::Rules;

/// What the planner makes of nodes on the heap.
pub(crate) struct HeapPlan<'n, B: Backend> {
    pub(crate) tables: Tables<'n, B>,
    pub(crate) buffers: Vec<Buffer>,
    /// Which nodes' kernels the steps run, where they run one.
    pub(crate) nodes_of_steps: Vec<usize>,
    /// Which nodes the inputs in the tables are.
    pub(crate) nodes_of_inputs: Vec<usize>,
    /// Which nodes the program needs.
    pub(crate) needed: Vec<bool>,
}

/// Plans inference, or training towards a loss, for nodes that were recorded at run time.
pub(crate) fn plan_nodes<'n, B: Backend>(
    nodes: &[Node<'n, B>],
    loss: Option<Id>,
    training: Option<Training>,
) -> Result<HeapPlan<'n, B>, PlanError<'n>> {
    let mut info = vec![Info::NEW; nodes.len()];
    let mut steps = vec![PlannedStep::EMPTY; nodes.len() * STEPS_PER_NODE];
    let mut buffers = vec![Buffer::EMPTY; nodes.len() * BUFFERS_PER_NODE];
    let layout = Planner::new(nodes, loss, training, &mut info, &mut steps, &mut buffers).run()?;
    let rules = training.map_or(Rules::NONE, |training| training.rules);
    let source = Source { nodes, info: &info, rules: &rules };
    let nodes_of_inputs = (0..nodes.len()).filter(|&i| source.input(i).is_some()).collect();
    steps.truncate(layout.steps);
    let nodes_of_steps = steps.iter().map(|step| step.node.into()).collect();
    let tables = source.tables(&steps, layout.sizes);
    buffers.truncate(layout.buffers);
    let needed = info.iter().map(|info| info.needed).collect();
    Ok(HeapPlan { tables, buffers, nodes_of_steps, nodes_of_inputs, needed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Strict;
    use crate::plan::planner::MAX_NODES;

    #[test]
    fn more_nodes_than_steps_can_refer_to_are_an_error() {
        let mut nodes = vec![Node::<Strict<f32>>::EMPTY; MAX_NODES];
        assert_ne!(plan_nodes(&nodes, None, None).err(), Some(PlanError::TooManyNodes));
        nodes.push(Node::EMPTY);
        assert_eq!(plan_nodes(&nodes, None, None).err(), Some(PlanError::TooManyNodes));
    }
}
