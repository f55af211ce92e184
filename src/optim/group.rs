//! Parameter groups: what a learning rate is multiplied by, and the weight decay, by name or by rule.

use crate::backend::Real;

/// What holds for one run of parameters, in an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group<E> {
    /// The learning rate is multiplied by this.
    pub learning_rate_factor: E,
    /// The weight decay λ.
    pub weight_decay: E,
}

impl<E: Real> Default for Group<E> {
    fn default() -> Self {
        Self { learning_rate_factor: E::ONE, weight_decay: E::ZERO }
    }
}

/// What a training program sets for some of its parameters; see
/// [`Training::group`](crate::plan::Training::group).
///
/// ```
/// use slabgrad::optim::ParamGroup;
///
/// const SLOW: ParamGroup = ParamGroup::new().learning_rate_factor(0.1).weight_decay(0.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ParamGroup {
    pub(crate) learning_rate_factor: Option<f64>,
    pub(crate) weight_decay: Option<f64>,
}

impl ParamGroup {
    /// Sets nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { learning_rate_factor: None, weight_decay: None }
    }

    /// Multiplies the learning rate.
    #[must_use]
    pub const fn learning_rate_factor(self, factor: f64) -> Self {
        Self { learning_rate_factor: Some(factor), ..self }
    }

    /// Sets the weight decay.
    #[must_use]
    pub const fn weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay: Some(weight_decay), ..self }
    }
}

impl Default for ParamGroup {
    fn default() -> Self {
        Self::new()
    }
}

/// Which parameters a rule is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Those with one axis or none: biases, and the weights of norms.
    Vectors,
    /// Those whose name is this, or starts with it and a dot.
    Named(&'static str),
}

/// What is set for some parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) scope: Scope,
    pub(crate) group: ParamGroup,
}

/// Rules in the order in which they were given: later ones win.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    rules: [Rule; Self::CAPACITY],
    len: usize,
}

impl Rules {
    const CAPACITY: usize = 8;

    pub(crate) const NONE: Self =
        Self { rules: [Rule { scope: Scope::All, group: ParamGroup::new() }; Self::CAPACITY], len: 0 };

    pub(crate) const fn push(mut self, rule: Rule) -> Self {
        assert!(self.len < Self::CAPACITY, "a training program has at most 8 rules for its parameters");
        self.rules[self.len] = rule;
        self.len += 1;
        self
    }

    pub(crate) const fn as_slice(&self) -> &[Rule] {
        self.rules.split_at(self.len).0
    }
}
