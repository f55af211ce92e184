//! What can be wrong with a graph as a whole.

use crate::error::Message;
use crate::graph::Name;

/// Why a graph cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError<'n> {
    /// Training without a loss.
    NoLoss,
    /// The loss depends on no trained parameter.
    NothingToTrain,
    /// The loss is an input or a parameter as it stands.
    LossNotComputed,
    /// The loss does not depend on a trained parameter.
    Unreached {
        /// The parameter.
        name: Name<'n>,
    },
    /// Inference without an output.
    NoOutput,
    /// An output is an input as it stands.
    OutputIsInput {
        /// The output.
        output: &'n str,
        /// The input.
        input: Name<'n>,
    },
    /// Clipping by the global norm in a fused program.
    ClipFused,
    /// The norm to clip at is not a positive number.
    ClipNorm,
    /// A rule for a group names no trained parameter.
    UnknownGroup {
        /// The name that it gives.
        name: &'n str,
    },
    /// A group's learning-rate factor or weight decay is negative or not finite.
    GroupSetting,
    /// A space has 2^29 elements or more.
    TooLarge,
    /// There are more than 65535 nodes.
    TooManyNodes,
}

impl PlanError<'_> {
    /// The error as text.
    #[must_use]
    pub const fn message(&self) -> Message {
        let text = Message::new();
        match self {
            Self::NoLoss => text.text("train: the graph has no loss; call g.loss(...)"),
            Self::NothingToTrain => text.text("train: the loss does not depend on any trained parameter"),
            Self::LossNotComputed => text.text("train: the loss is an input or a parameter as it stands"),
            Self::Unreached { name } => name
                .write(text.text("train: the loss does not depend on parameter `"))
                .text("`; use it, freeze it, or remove it"),
            Self::NoOutput => text.text("infer: the graph names no output; call g.output(name, value)"),
            Self::OutputIsInput { output, input } => input
                .write(text.text("output `").text(output).text("` is input `"))
                .text("` as it stands; nothing computes it"),
            Self::ClipFused => text
                .text("train: clipping by the global norm needs all gradients before the first update, ")
                .text("and a fused program does not keep them; drop fused() or clip_norm()"),
            Self::ClipNorm => text.text("train: the norm to clip at must be a positive number"),
            Self::UnknownGroup { name } => text.text("train: no trained parameter is named `").text(name).text("`"),
            Self::GroupSetting => text.text("train: learning-rate factors and weight decays are finite numbers from 0"),
            Self::TooLarge => text.text("a space of this program has 2^29 elements or more"),
            Self::TooManyNodes => text.text("the graph has more than 65535 nodes"),
        }
    }
}

impl core::fmt::Display for PlanError<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl core::error::Error for PlanError<'_> {}
