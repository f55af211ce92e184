//! What a training program does beside forward and backward.

use crate::backend::Strict;
use crate::optim::{Optimizer, ParamGroup, Rule, Rules, Scope};

/// What a training program does beside forward and backward.
///
/// ```
/// use slabgrad::prelude::*;
///
/// const FUSED: Training = Training::with::<Adam>().fused();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Training {
    pub(super) slots: usize,
    pub(super) fused: bool,
    pub(super) clip_norm: Option<f64>,
    pub(super) keep_outputs: bool,
    pub(super) not_finite: NotFinite,
    pub(super) rules: Rules,
}

/// What a training step does when the loss or a gradient is not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotFinite {
    /// It is an error, and nothing is updated. In a fused program, whose first updates precede the last gradients, the layers
    /// before which a gradient overflows have been updated then, with finite gradients; no other is.
    #[default]
    Error,
    /// The update is left out and counted, and training goes on.
    Skip,
    /// It updates all the same, and saves a look at every gradient.
    Pass,
}

impl Training {
    /// Trains with moments for the optimizer `O`, and keeps the gradients of all parameters until the update.
    #[must_use]
    pub const fn with<O: Optimizer<Strict<f32>>>() -> Self {
        Self::with_slots(O::SLOTS)
    }

    /// As [`Training::with`], by the number of slots of moments that the optimizer keeps.
    #[must_use]
    pub const fn with_slots(slots: usize) -> Self {
        Self {
            slots,
            fused: false,
            clip_norm: None,
            keep_outputs: false,
            not_finite: NotFinite::Error,
            rules: Rules::NONE,
        }
    }

    /// The same for an optimizer with so many slots, and without rules for parameters.
    #[cfg(feature = "alloc")]
    pub(crate) const fn for_slots(self, slots: usize) -> Self {
        Self { slots, rules: Rules::NONE, ..self }
    }

    /// Applies the update as soon as a parameter's gradient is complete, and gives that memory back. The weights of a
    /// linear layer are even updated a few rows at a time. The result is the same, to the last bit.
    #[must_use]
    pub const fn fused(self) -> Self {
        Self { fused: true, ..self }
    }

    /// Scales all gradients together, before the update, so that their L2 norm is at most `max`.
    #[must_use]
    pub const fn clip_norm(self, max: f64) -> Self {
        Self { clip_norm: Some(max), ..self }
    }

    /// What to do when the loss or a gradient is not finite.
    #[must_use]
    pub const fn not_finite(self, not_finite: NotFinite) -> Self {
        Self { not_finite, ..self }
    }

    /// The weight decay λ of all parameters.
    #[must_use]
    pub const fn weight_decay(self, weight_decay: f64) -> Self {
        self.rule(Scope::All, ParamGroup::new().weight_decay(weight_decay))
    }

    /// No weight decay for parameters with one axis or none: biases and the weights of norms.
    #[must_use]
    pub const fn no_decay_on_vectors(self) -> Self {
        self.rule(Scope::Vectors, ParamGroup::new().weight_decay(0.0))
    }

    /// Settings of their own for the parameters whose name is `name`, or starts with `name` and a dot. Of rules that meet, the
    /// one given last wins.
    #[must_use]
    pub const fn group(self, name: &'static str, group: ParamGroup) -> Self {
        self.rule(Scope::Named(name), group)
    }

    const fn rule(self, scope: Scope, group: ParamGroup) -> Self {
        Self { rules: self.rules.push(Rule { scope, group }), ..self }
    }

    /// Computes and keeps the graph's outputs too, so that they can be read after a step.
    #[must_use]
    pub const fn keep_outputs(self) -> Self {
        Self { keep_outputs: true, ..self }
    }
}
