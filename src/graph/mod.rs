//! The typed graph builder: `const fn`s that record nodes, so that a network is a constant.
//!
//! A [`Var`] carries its shape in its type, and the builder's methods take and return such types: operands that do not
//! fit are type errors where they are written. What types cannot say on stable Rust, such as the height after a
//! convolution, is annotated and checked while the constant is computed: a compile error too, with the numbers in it.
//!
//! ```
//! use slabgrad::prelude::*;
//!
//! const fn net<const B: usize>() -> Graph {
//!     let mut g = Graph::new();
//!     let image = g.input::<R4<B, 1, 8, 8>>("image");
//!     let label = g.class_indices::<B>("label");
//!     let h: Var<R4<B, 8, 4, 4>> = g.conv2d("conv1", image, Conv2d::kernel(3).stride(2).padding(1));
//!     let h = g.relu(h);
//!     let h: Var<R2<B, 128>> = g.flatten(h);
//!     let logits: Var<R2<B, 10>> = g.linear("fc", h);
//!     g.output("logits", logits);
//!     let loss = g.cross_entropy(logits, label);
//!     g.loss(loss);
//!     g
//! }
//!
//! program!(static TRAIN = net::<16>().train(Training::with::<Adam>()));
//! program!(static INFER = net::<1>().infer());
//! assert_eq!(TRAIN.params_len(), 8 * 9 + 8 + 10 * 128 + 10);
//! assert_eq!(INFER.params_len(), TRAIN.params_len());
//! ```

mod attention;
mod node;
mod recurrent;

pub use attention::Attention;
pub use node::{Id, IndexDims, IndexTensor, Indices, Name, Var};
pub(crate) use node::{Kind, Node};
pub use recurrent::{GruCell, LstmCell, LstmState};

use crate::backend::{Backend, Strict};
use crate::error::{self, Message, ShapeError};
use crate::init::Init;
use crate::ops::{MAX_INPUTS, Op, Spec};
use crate::plan::{Plan, PlanError, Training};
use crate::shape::{Dims, R0, Shape};

/// A graph of at most `N` nodes: inputs, parameters and operations, in the order in which they were recorded.
#[derive(Clone, Copy)]
pub struct Graph<B: Backend = Strict<f32>, const N: usize = 64> {
    nodes: [Node<'static, B>; N],
    len: usize,
    loss: Option<Id>,
}

impl<B: Backend, const N: usize> Default for Graph<B, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend, const N: usize> Graph<B, N> {
    /// The empty graph.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: [Node::EMPTY; N], len: 0, loss: None }
    }

    /// An input: a tensor that is handed over with every run. Its elements must be finite.
    #[track_caller]
    pub const fn input<S: Dims>(&mut self, name: &'static str) -> Var<S> {
        Var::new(self.input_dyn(name, S::SHAPE))
    }

    /// An input of class indices, one for each of `A` samples: whole numbers from 0, stored as elements. What reads them
    /// sets the number of classes, and a run checks it.
    #[track_caller]
    pub const fn class_indices<const A: usize>(&mut self, name: &'static str) -> Var<Indices<A>> {
        Var::new(self.input_dyn(name, Shape::new([A])))
    }

    /// An input of indices of any shape: whole numbers from 0, stored as elements. What reads them sets how many things they
    /// tell apart, and a run checks it.
    #[track_caller]
    pub const fn indices<S: Dims>(&mut self, name: &'static str) -> Var<IndexTensor<S>> {
        Var::new(self.input_dyn(name, S::SHAPE))
    }

    /// A parameter named `scope.leaf` (or `leaf` alone where `scope` is empty), as PyTorch names them.
    #[track_caller]
    pub const fn parameter<S: Dims>(&mut self, scope: &'static str, leaf: &'static str, init: Init) -> Var<S> {
        Var::new(self.parameter_dyn(Name::new(scope, leaf), S::SHAPE, init))
    }

    /// State named `scope.leaf`: kept from run to run, changed by an operation's forward kernel, not trained.
    #[track_caller]
    pub const fn state(&mut self, scope: &'static str, leaf: &'static str, shape: Shape, init: Init) -> Id {
        self.push_leaf(Node { kind: Kind::State { init }, name: Name::new(scope, leaf), ..Node::of(shape) })
    }

    /// Gives the operation that was recorded last the states from `first` on: as many elements as its [`Spec::state`] says.
    /// They have been recorded one right after the other.
    ///
    /// # Panics
    /// When there are fewer.
    #[track_caller]
    pub const fn with_state(&mut self, first: Id) {
        let (mut found, mut i) = (0, first.index());
        while i < self.len && matches!(self.nodes[i].kind, Kind::State { .. }) {
            found += self.nodes[i].len();
            i += 1;
        }
        let node = &mut self.nodes[self.len - 1];
        if found < node.spec.state || node.spec.state == 0 {
            let text = Message::new().text("with_state: the operation keeps ").number(node.spec.state);
            panic!("{}", text.text(" elements of state, there are ").number(found).as_str());
        }
        node.state = Some(first);
    }

    /// Records an operation: what the methods named after operations do, and how an operation from another crate enters
    /// the graph.
    ///
    /// ```
    /// use slabgrad::ops::{BackwardCall, ForwardCall, Gradient, Op, Over, Reads, Spec};
    /// use slabgrad::prelude::*;
    ///
    /// // y = 2 x, in place; dx = 2 dy, in place.
    /// fn forward<B: Backend>(call: ForwardCall<'_, B::Elem>) {
    ///     call.y.iter_mut().for_each(|y| *y = *y + *y);
    /// }
    /// fn backward<B: Backend>(call: BackwardCall<'_, B::Elem>) {
    ///     call.dx.iter_mut().for_each(|dx| *dx = *dx + *dx);
    /// }
    /// const DOUBLE: Op<Strict<f32>> = Op::new(
    ///     "double",
    ///     forward::<Strict<f32>>,
    ///     [Gradient::over_dy(backward::<Strict<f32>>, Reads::NONE), Gradient::None, Gradient::None],
    /// )
    /// .over(Over::Output);
    ///
    /// const fn net() -> Graph {
    ///     let mut g = Graph::new();
    ///     let x = g.input::<R1<3>>("x");
    ///     let y: Var<R1<3>> = g.apply(&DOUBLE, &[x.id()], Spec::new(R1::<3>::SHAPE));
    ///     g.output("y", y);
    ///     g
    /// }
    /// program!(static DOUBLE_IT = net().infer());
    ///
    /// let mut slab = [0.0; DOUBLE_IT.slab_len()];
    /// let mut memory = DOUBLE_IT.memory(&mut slab)?;
    /// DOUBLE_IT.run(&mut memory, &[&[1.0, 2.0, 3.0]])?;
    /// assert_eq!(DOUBLE_IT.output(&memory, "y"), Some(&[2.0, 4.0, 6.0][..]));
    /// # Ok::<(), slabgrad::program::RunError>(())
    /// ```
    ///
    /// # Panics
    /// When the shape in `spec` is not `S`, an operand is of another graph, or the graph is full.
    #[track_caller]
    pub const fn apply<S: Dims>(&mut self, op: &'static Op<B>, inputs: &[Id], spec: Spec) -> Var<S> {
        self.record("", op, inputs, Ok(spec))
    }

    /// As [`Graph::apply`], for an operation or a layer `name` whose shapes may be wrong.
    #[track_caller]
    pub(crate) const fn record<S: Dims>(
        &mut self,
        name: &str,
        op: &'static Op<B>,
        inputs: &[Id],
        spec: Result<Spec, ShapeError>,
    ) -> Var<S> {
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => panic!("{}", error.message(name).as_str()),
        };
        if !spec.shape.equals(&S::SHAPE) {
            let text = error::subject(op.name, name).text("the output is annotated as ").shape(S::SHAPE);
            panic!("{}", text.text(", but its shape is ").shape(spec.shape).as_str());
        }
        Var::new(self.apply_dyn(op, inputs, spec))
    }

    /// Names a value that a run leaves to be read.
    #[track_caller]
    pub const fn output<S: Dims>(&mut self, name: &'static str, x: Var<S>) {
        self.output_dyn(name, x.id());
    }

    /// Sets what training makes smaller.
    #[track_caller]
    pub const fn loss(&mut self, loss: Var<R0>) {
        self.loss_dyn(loss.id());
    }

    /// Excludes parameters from training: all whose name is `prefix` or starts with `prefix` and a dot; all there are
    /// with an empty prefix. They move to the frozen space, which may lie in flash.
    ///
    /// # Panics
    /// When no parameter has such a name.
    #[track_caller]
    pub const fn freeze(&mut self, prefix: &str) {
        self.set_frozen(true, prefix, None);
    }

    /// The opposite of [`Graph::freeze`].
    ///
    /// # Panics
    /// When no parameter has such a name.
    #[track_caller]
    pub const fn unfreeze(&mut self, prefix: &str) {
        self.set_frozen(false, prefix, None);
    }

    /// As [`Graph::unfreeze`], of all parameters with this last part of the name: after `freeze("")`,
    /// `unfreeze_leaves("bias")` trains the biases alone.
    ///
    /// # Panics
    /// When no parameter has such a name.
    #[track_caller]
    pub const fn unfreeze_leaves(&mut self, leaf: &str) {
        self.set_frozen(false, "", Some(leaf));
    }

    #[track_caller]
    const fn set_frozen(&mut self, frozen: bool, prefix: &str, leaf: Option<&str>) {
        let mut found = false;
        let mut i = 0;
        while i < self.len {
            let name = self.nodes[i].name;
            let has_leaf = match leaf {
                Some(leaf) => Name::new("", name.leaf).equals(&Name::new("", leaf)),
                None => true,
            };
            if let Kind::Parameter { init, .. } = self.nodes[i].kind
                && name.is_within(prefix)
                && has_leaf
            {
                self.nodes[i].kind = Kind::Parameter { init, frozen };
                found = true;
            }
            i += 1;
        }
        if !found {
            let text =
                Message::new().text(if frozen { "freeze" } else { "unfreeze" }).text(": no parameter is named `");
            let text = match leaf {
                Some(leaf) => text.text("*.").text(leaf),
                None => text.text(prefix),
            };
            panic!("{}", text.text("`").as_str());
        }
    }

    /// The plan of a training step: forward, backward, and the update by an optimizer.
    ///
    /// # Panics
    /// Without a loss, when the loss depends on no trained parameter or a trained parameter does not reach it, or when
    /// `training` asks for what cannot be done together.
    #[must_use]
    #[track_caller]
    pub const fn train(&self, training: Training) -> Plan<B, N> {
        match Plan::new(self, Some(training)) {
            Ok(plan) => plan,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }

    /// The plan of an inference: what the outputs need, and nothing else.
    ///
    /// # Panics
    /// When the graph names no output.
    #[must_use]
    #[track_caller]
    pub const fn infer(&self) -> Plan<B, N> {
        match Plan::new(self, None) {
            Ok(plan) => plan,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }

    /// As [`Graph::train`], for graphs that are made at run time.
    ///
    /// # Errors
    /// Where that panics.
    pub const fn try_train(&self, training: Training) -> Result<Plan<B, N>, PlanError<'static>> {
        Plan::new(self, Some(training))
    }

    /// As [`Graph::infer`], for graphs that are made at run time.
    ///
    /// # Errors
    /// Where that panics.
    pub const fn try_infer(&self) -> Result<Plan<B, N>, PlanError<'static>> {
        Plan::new(self, None)
    }
}

/// The same by shapes as values, for graphs whose shapes are known at run time only.
impl<B: Backend, const N: usize> Graph<B, N> {
    /// As [`Graph::input`].
    ///
    /// # Panics
    /// When an axis is empty or the graph is full.
    #[track_caller]
    pub const fn input_dyn(&mut self, name: &'static str, shape: Shape) -> Id {
        if shape.is_empty() {
            let text = Message::new().text("input `").text(name).text("`: shape ").shape(shape);
            panic!("{}", text.text(" has no elements").as_str());
        }
        self.push_leaf(Node { kind: Kind::Input { classes: 0 }, name: Name::new("", name), ..Node::of(shape) })
    }

    /// As [`Graph::parameter`].
    ///
    /// # Panics
    /// When another input, parameter or state has the name, or the graph is full.
    #[track_caller]
    pub const fn parameter_dyn(&mut self, name: Name<'static>, shape: Shape, init: Init) -> Id {
        self.push_leaf(Node { kind: Kind::Parameter { init, frozen: false }, name, ..Node::of(shape) })
    }

    /// As [`Graph::apply`].
    ///
    /// # Panics
    /// As [`Graph::apply`].
    #[track_caller]
    pub const fn apply_dyn(&mut self, op: &'static Op<B>, inputs: &[Id], spec: Spec) -> Id {
        assert!(inputs.len() <= MAX_INPUTS, "an operation reads at most three tensors");
        let mut node = Node { kind: Kind::Op(op), spec, input_count: inputs.len() as u8, ..Node::EMPTY };
        let mut i = 0;
        while i < inputs.len() {
            assert!(inputs[i].index() < self.len, "an operand is of another graph");
            assert!(
                !matches!(self.nodes[inputs[i].index()].kind, Kind::State { .. }),
                "state is no operand; an operation gets it by with_state"
            );
            node.inputs[i] = inputs[i];
            i += 1;
        }
        self.push(node)
    }

    /// As [`Graph::output`].
    ///
    /// # Panics
    /// When the value has a name as an output already, another output has this name, or it is state.
    #[track_caller]
    pub const fn output_dyn(&mut self, name: &'static str, x: Id) {
        let mut i = 0;
        while i < self.len {
            if let Some(other) = self.nodes[i].output
                && (i == x.index() || Name::new("", other).equals(&Name::new("", name)))
            {
                let text = Message::new().text("output `").text(name).text("`: the value or the name is output `");
                panic!("{}", text.text(other).text("` already").as_str());
            }
            i += 1;
        }
        assert!(!matches!(self.nodes[x.index()].kind, Kind::State { .. }), "state is no output; read it as a tensor");
        self.nodes[x.index()].output = Some(name);
    }

    /// As [`Graph::loss`].
    ///
    /// # Panics
    /// When the value has more than one element.
    #[track_caller]
    pub const fn loss_dyn(&mut self, loss: Id) {
        let shape = self.shape(loss);
        if shape.len() != 1 {
            panic!("{}", Message::new().text("the loss must be a scalar, its shape is ").shape(shape).as_str());
        }
        self.loss = Some(loss);
    }

    /// The shape of a value.
    #[must_use]
    #[track_caller]
    pub const fn shape(&self, id: Id) -> Shape {
        self.nodes[id.index()].spec.shape
    }

    /// Says that the elements of input `id` index `classes` things. Values that are computed are not checked.
    #[track_caller]
    pub const fn index_below(&mut self, id: Id, classes: usize) {
        if let Kind::Input { classes: before } = &mut self.nodes[id.index()].kind
            && (*before == 0 || classes < *before as usize)
        {
            *before = classes as u32;
        }
    }

    /// Records an input, a parameter or a state, under a name of its own.
    #[track_caller]
    const fn push_leaf(&mut self, node: Node<'static, B>) -> Id {
        let mut i = 0;
        while i < self.len {
            if self.nodes[i].op().is_none() && self.nodes[i].name.equals(&node.name) {
                let text = node.name.write(Message::new().text("two inputs, parameters or states are named `"));
                panic!("{}", text.text("`").as_str());
            }
            i += 1;
        }
        self.push(node)
    }

    #[track_caller]
    const fn push(&mut self, node: Node<'static, B>) -> Id {
        if self.len == N {
            let text = Message::new().text("the graph is full: it has room for ").number(N);
            panic!("{}", text.text(" nodes; write Graph<B, N> with a larger N, and `nodes = N` in program!").as_str());
        }
        self.nodes[self.len] = node;
        self.len += 1;
        Id::new(self.len - 1)
    }

    pub(crate) const fn nodes(&self) -> &[Node<'static, B>] {
        self.nodes.split_at(self.len).0
    }

    pub(crate) const fn loss_id(&self) -> Option<Id> {
        self.loss
    }
}
