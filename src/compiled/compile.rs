//! From a model and a loss to a program.

use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{CompileError, Compiled, Input, MAX_STEP_INPUTS, Report, Source, Stats, Use};
use crate::backend::{Backend, Real};
use crate::graph::Id;
use crate::layer::{Model, ModelError, Role};
use crate::plan::{HeapPlan, Training, plan_nodes};
use crate::program::GroupRun;
use crate::tape::{GrowingTape, Handle};

/// A loss: of the tape, the model's output and the extra inputs.
pub(super) trait Loss<B: Backend>: FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle {}
impl<B: Backend, L: FnOnce(&mut GrowingTape<B>, Handle, &[Handle]) -> Handle> Loss<B> for L {}

/// What is recorded beside the model.
pub(super) struct Purpose<L> {
    pub(super) use_: Use,
    training: Option<Training>,
    loss: Option<L>,
}

impl<L> Purpose<L> {
    pub(super) const fn training(training: Training, loss: L) -> Self {
        Self { use_: Use::Training, training: Some(training), loss: Some(loss) }
    }

    pub(super) const fn evaluation(loss: L) -> Self {
        Self { use_: Use::Evaluation, training: None, loss: Some(loss) }
    }

    pub(super) const INFERENCE: Self = Self { use_: Use::Inference, training: None, loss: None };
}

/// What a program of a model takes, for summaries: of training with an optimizer of two slots, or of inference.
pub(crate) fn stats<B: Backend>(
    model: &mut Model<B>,
    trains: bool,
    x: Input<'_, B::Elem>,
) -> Result<Stats, CompileError> {
    let training = Training::with_slots(0).for_slots(2);
    let sum = |tape: &mut GrowingTape<B>, y: Handle, _: &[Handle]| tape.sum(y, &[], false);
    let purpose = if trains { Purpose::training(training, sum) } else { Purpose::INFERENCE };
    Ok(compile(model, purpose, x, &[])?.report.stats().clone())
}

#[track_caller]
pub(super) fn compile<B: Backend>(
    model: &mut Model<B>,
    purpose: Purpose<impl Loss<B>>,
    x: Input<'_, B::Elem>,
    extra: &[Input<'_, B::Elem>],
) -> Result<Compiled<B>, CompileError> {
    model.tape.check().map_err(ModelError::from)?;
    let before = model.tape.lengths();
    let was_lazy = model.tape.set_lazy(true);
    let outcome = record(model, purpose, x, extra);
    model.tape.set_lazy(was_lazy);
    model.tape.forget_since(before);
    outcome
}

#[track_caller]
fn record<B: Backend>(
    model: &mut Model<B>,
    purpose: Purpose<impl Loss<B>>,
    x: Input<'_, B::Elem>,
    extra: &[Input<'_, B::Elem>],
) -> Result<Compiled<B>, CompileError> {
    let input = model.tape.constant(x.0, x.1);
    let extras: Vec<Handle> = extra.iter().map(|(shape, data)| model.tape.constant(*shape, data)).collect();
    let Purpose { use_, training, loss } = purpose;
    let output = model.forward_in(input, use_ == Use::Training)?;
    let loss = loss.map(|loss| loss(&mut model.tape, output, &extras));
    model.tape.check().map_err(ModelError::from)?;
    if let Some(loss) = loss
        && model.tape.shape(loss).len() != 1
    {
        let shape = crate::error::Message::new().shape(model.tape.shape(loss));
        return Err(CompileError::Plan(alloc::format!("the loss must be a scalar, its shape is {}", shape.as_str())));
    }

    let name = |i: usize| {
        let entry = model.entries.iter().find(|entry| entry.handle.index() == i);
        entry.map_or("", |entry| entry.name.as_str())
    };
    // Without training the loss is one more output.
    let kept = [Some(output), loss.filter(|_| training.is_none())];
    let nodes = model.tape.graph(model.mark, kept, name).map_err(ModelError::from)?;
    let towards = loss.filter(|_| training.is_some()).map(|loss| Id::new(loss.index()));
    let plan = plan_nodes(&nodes, towards, training);
    let plan = plan.map_err(|error| CompileError::Plan(error.to_string()))?;
    let report = Report::new(&nodes, &plan, model);
    let HeapPlan { tables, nodes_of_inputs, .. } = plan;
    let given = |i: usize| core::iter::once(&input).chain(&extras).position(|handle| handle.index() == i);
    let source = |i| given(i).map_or_else(|| Source::Number(model.tape.constant_at(i).to_vec()), Source::Given);
    let sources: Vec<Source<B::Elem>> = nodes_of_inputs.into_iter().map(source).collect();
    if sources.len() > MAX_STEP_INPUTS {
        let text =
            alloc::format!("a step takes at most {MAX_STEP_INPUTS} inputs and numbers, there are {}", sources.len());
        return Err(CompileError::Plan(text));
    }
    let tables = tables.without_names(groups(model));
    let work = alloc::vec![B::Elem::ZERO; tables.program().work_len()];
    let shapes = core::iter::once(x.0).chain(extra.iter().map(|(shape, _)| *shape)).collect();
    Ok(Compiled { tables, work, sources, use_, shapes, model: Rc::clone(&model.identity), report })
}

/// The model's settings of its trained parameters, as runs.
fn groups<B: Backend>(model: &Model<B>) -> Vec<GroupRun> {
    let mut groups: Vec<GroupRun> = Vec::new();
    let mut start = 0;
    for entry in model.entries.iter().filter(|entry| entry.role == Role::Trained) {
        let len = entry.shape.len();
        let (factor, decay) = (entry.group.learning_rate_factor, entry.group.weight_decay);
        let run = GroupRun::new(start, len, factor.unwrap_or(1.0), decay.unwrap_or(0.0));
        match groups.last_mut() {
            Some(last) if last.has_settings_of(&run) => *last = last.longer_by(len),
            _ => groups.push(run),
        }
        start += len;
    }
    groups
}
