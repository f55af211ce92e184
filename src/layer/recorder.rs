//! What a layer records with.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::model::batched;
use super::{Activation, Layer};
use crate::backend::Backend;
use crate::graph::Name;
use crate::init::Init;
use crate::optim::{Group, ParamGroup};
use crate::shape::Shape;
use crate::tape::{GrowingTape, Handle, Kind};

/// What a named tensor of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Trained,
    Frozen,
    State,
}

impl Role {
    /// What it is on a tape.
    pub(super) fn kind<B: Backend>(self) -> Kind<B> {
        match self {
            Self::Trained => Kind::Parameter(Group::default()),
            Self::Frozen => Kind::Constant,
            Self::State => Kind::State,
        }
    }
}

/// A parameter or a state that a layer has asked for.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) init: Init,
    pub(crate) role: Role,
    pub(crate) group: ParamGroup,
    /// Where it is on the model's tape. States that an operation uses together are one value there.
    pub(crate) handle: Handle,
    /// The shape of that value.
    pub(crate) value_shape: Shape,
    /// Where it starts in that value, in elements.
    pub(crate) offset: usize,
}

impl Entry {
    /// Where it lies in its value.
    pub(crate) fn range(&self) -> core::ops::Range<usize> {
        self.offset..self.offset + self.shape.len()
    }

    /// Whether the name is `prefix`, or starts with it and a dot, or `prefix` is empty.
    pub(crate) fn is_within(&self, prefix: &str) -> bool {
        Name::new("", &self.name).is_within(prefix)
    }
}

/// A layer that has been recorded, for summaries.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) path: String,
    pub(crate) kind: &'static str,
    pub(crate) depth: usize,
    pub(crate) output: Shape,
    /// The entries that it asked for.
    pub(crate) entries: core::ops::Range<usize>,
    pub(crate) is_leaf: bool,
}

/// What a layer records with: the tape, its parameters by name, and whether it trains. The first time it is asked for a
/// parameter, that is noted down; later the model's own is handed out.
pub struct Recorder<'a, B: Backend> {
    pub(super) tape: &'a mut GrowingTape<B>,
    pub(super) entries: &'a mut Vec<Entry>,
    pub(super) next: usize,
    /// Whether entries are noted down instead of handed out.
    pub(super) declares: bool,
    pub(super) trains: bool,
    pub(super) path: String,
    pub(super) depth: usize,
    pub(super) dropouts: u32,
    pub(super) rows: Vec<Row>,
    /// The layer that was being recorded when the tape had its fault.
    pub(super) fault_at: Option<String>,
    /// What sees every layer's output as soon as it is there.
    pub(super) watch: Option<Watch<'a, B>>,
}

/// Gets a layer's name and its output.
pub(super) type Watch<'a, B> = &'a mut dyn FnMut(&str, &[<B as Backend>::Elem]);

impl<'a, B: Backend> Recorder<'a, B> {
    pub(super) fn new(tape: &'a mut GrowingTape<B>, entries: &'a mut Vec<Entry>, declares: bool, trains: bool) -> Self {
        let (path, rows) = (String::new(), Vec::new());
        Self {
            tape,
            entries,
            next: 0,
            declares,
            trains,
            path,
            depth: 0,
            dropouts: 0,
            rows,
            fault_at: None,
            watch: None,
        }
    }

    /// The tape, for the operations.
    pub const fn tape(&mut self) -> &mut GrowingTape<B> {
        self.tape
    }

    /// Whether the model trains, as opposed to being evaluated.
    #[must_use]
    pub const fn is_training(&self) -> bool {
        self.trains
    }

    /// The parameter `leaf` of the layer that is being recorded. While the model is made it is known by its shape alone.
    pub fn parameter(&mut self, leaf: &str, shape: impl Into<Shape>, init: Init) -> Handle {
        let shape = shape.into();
        self.entry(leaf, shape, init, Role::Trained, |tape| tape.declare(Role::Trained.kind(), shape))
    }

    /// States of the layer that an operation uses together, all of one shape: one value `[count, ...shape]`.
    pub fn states<const N: usize>(&mut self, leaves: [(&str, Init); N], shape: impl Into<Shape>) -> Handle {
        let shape = shape.into();
        let all = batched(shape, N);
        let mut value = Handle::NONE;
        for (i, (leaf, init)) in leaves.into_iter().enumerate() {
            let declare = |tape: &mut GrowingTape<B>| if i > 0 { value } else { tape.declare(Role::State.kind(), all) };
            let handle = self.entry(leaf, shape, init, Role::State, declare);
            if self.declares
                && let Some(entry) = self.entries.last_mut()
            {
                (entry.offset, entry.value_shape) = (i * shape.len(), all);
            }
            value = handle;
        }
        value
    }

    /// The counter that all dropouts of the model share, and the stream of this one.
    pub fn dropout_counter(&mut self) -> (Handle, u32) {
        let stream = self.dropouts;
        self.dropouts += 1;
        let known = self.entries.iter().find(|entry| entry.name == DROPOUT_COUNTER && entry.role == Role::State);
        if let Some(entry) = known
            && stream > 0
        {
            return (entry.handle, stream);
        }
        let path = core::mem::take(&mut self.path);
        let shape = Shape::new([2]);
        let counter = self
            .entry(DROPOUT_COUNTER, shape, Init::Zeros, Role::State, |tape| tape.declare(Role::State.kind(), shape));
        self.path = path;
        (counter, stream)
    }

    /// Records another layer under a name.
    pub fn layer(&mut self, name: &str, layer: &(impl Layer<B> + ?Sized), x: Handle) -> Handle {
        let len = self.path.len();
        let _ = write!(self.path, "{}{name}", if len == 0 || name.is_empty() { "" } else { "." });
        let (first, row) = (self.next, self.rows.len());
        self.depth += 1;
        let y = layer.forward(self, x);
        self.depth -= 1;
        if self.declares {
            let (path, kind, output) = (self.path.clone(), layer.kind(), self.tape.shape(y));
            let is_leaf = row == self.rows.len();
            let entries = first..self.next;
            self.rows.insert(row, Row { path, kind, depth: self.depth, output, entries, is_leaf });
        }
        if let Some(watch) = &mut self.watch {
            watch(&self.path, self.tape.force(y));
        }
        if self.fault_at.is_none() && self.tape.check().is_err() {
            self.fault_at = Some(self.path.clone());
        }
        self.path.truncate(len);
        y
    }

    /// An activation, without a name.
    pub(super) fn activate(&mut self, activation: Activation, x: Handle) -> Handle {
        activation.apply(self.tape, x)
    }

    fn entry(
        &mut self,
        leaf: &str,
        shape: Shape,
        init: Init,
        role: Role,
        declare: impl FnOnce(&mut GrowingTape<B>) -> Handle,
    ) -> Handle {
        self.next += 1;
        if self.declares {
            let mut name = self.path.clone();
            let _ = write!(name, "{}{leaf}", if name.is_empty() { "" } else { "." });
            let (handle, group) = (declare(self.tape), ParamGroup::new());
            self.entries.push(Entry { name, shape, init, role, group, handle, value_shape: shape, offset: 0 });
            return handle;
        }
        match self.entries.get(self.next - 1) {
            Some(entry) if entry.shape == shape => entry.handle,
            // A layer that asks for something else than the first time: a handle that is a fault where it is used.
            _ => Handle::NONE,
        }
    }
}

/// As the static engine names it.
const DROPOUT_COUNTER: &str = "dropout.counter";
