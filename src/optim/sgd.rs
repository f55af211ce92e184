//! Stochastic gradient descent, plain and with momentum.

use super::{Group, LEARNING_RATE, Optimizer, SettingError, decayed};
use crate::backend::{Backend, Real};

/// Stochastic gradient descent as PyTorch's: `g += λ p`; plain, `p -= lr g`, and it keeps nothing; with momentum μ (the type
/// `Sgd<E, true>`, or [`Momentum`]), `b = μ b + (1 - dampening) g`, where the first `b` is `g`, and `p -= lr b`, or with
/// Nesterov's form `p -= lr (g + μ b)`. Defaults: no momentum, no dampening, not Nesterov's.
///
/// ```
/// use slabgrad::optim::{Momentum, Sgd};
///
/// const PLAIN: Sgd = Sgd::new(0.1);
/// const WITH_MOMENTUM: Momentum = Sgd::new(0.1).momentum(0.9).nesterov();
/// assert_eq!(WITH_MOMENTUM.learning_rate(), 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd<E = f32, const MOMENTUM: bool = false> {
    /// The learning rate of the next steps.
    pub learning_rate: E,
    /// The momentum; without it, the type has none.
    pub momentum: E,
    /// How much less than the gradient goes into the momentum.
    pub dampening: E,
    /// Whether the form is Nesterov's.
    pub nesterov: bool,
}

/// [`Sgd`] with momentum.
pub type Momentum<E = f32> = Sgd<E, true>;

/// The coefficients of a step of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdCoefficients<E> {
    learning_rate: E,
    momentum: E,
    /// What the gradient is multiplied by: 1 in the first step.
    share: E,
    nesterov: bool,
}

impl<E: Real> Sgd<E> {
    /// Plain, with this learning rate.
    #[must_use]
    pub const fn new(learning_rate: E) -> Self {
        Self { learning_rate, momentum: E::ZERO, dampening: E::ZERO, nesterov: false }
    }

    /// With this momentum, from 0 and below 1.
    #[must_use]
    pub const fn momentum(self, momentum: E) -> Sgd<E, true> {
        Sgd { learning_rate: self.learning_rate, momentum, dampening: self.dampening, nesterov: false }
    }
}

impl<E: Real> Sgd<E, true> {
    /// With this dampening of the gradient in the momentum.
    #[must_use]
    pub const fn dampening(self, dampening: E) -> Self {
        Self { dampening, ..self }
    }

    /// In Nesterov's form, which has no dampening.
    #[must_use]
    pub const fn nesterov(self) -> Self {
        Self { nesterov: true, dampening: E::ZERO, ..self }
    }
}

impl<E: Real, const MOMENTUM: bool> Sgd<E, MOMENTUM> {
    /// The learning rate.
    #[must_use]
    pub const fn learning_rate(&self) -> E {
        self.learning_rate
    }

    /// Sets the learning rate of the next steps.
    pub const fn set_learning_rate(&mut self, learning_rate: E) {
        self.learning_rate = learning_rate;
    }
}

impl<B: Backend, const MOMENTUM: bool> Optimizer<B> for Sgd<B::Elem, MOMENTUM> {
    const SLOTS: usize = MOMENTUM as usize;
    type Coefficients = SgdCoefficients<B::Elem>;

    fn check(&self) -> Result<(), SettingError> {
        SettingError::unless_not_negative(LEARNING_RATE, self.learning_rate)?;
        SettingError::unless_below_one("the momentum is from 0 and below 1", self.momentum)?;
        SettingError::unless_below_one("the dampening is from 0 and below 1", self.dampening)
    }

    fn learning_rate(&self) -> B::Elem {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: B::Elem) {
        self.learning_rate = learning_rate;
    }

    fn begin(&self, own: &mut [B::Elem; 4]) -> Self::Coefficients {
        let [started, ..] = own;
        let first = *started == B::Elem::ZERO;
        *started = B::Elem::ONE;
        SgdCoefficients {
            learning_rate: self.learning_rate,
            momentum: self.momentum,
            share: if first { B::Elem::ONE } else { B::Elem::ONE - self.dampening },
            nesterov: self.nesterov,
        }
    }

    #[inline(always)]
    fn update(
        c: &Self::Coefficients,
        group: &Group<B::Elem>,
        params: &mut [B::Elem],
        grads: &[B::Elem],
        [buffer, ..]: [&mut [B::Elem]; 3],
    ) {
        let c = *c;
        let (rate, decay) = (c.learning_rate * group.learning_rate_factor, group.weight_decay);
        if MOMENTUM {
            for ((p, &g), b) in params.iter_mut().zip(grads).zip(buffer) {
                let g = decayed::<B>(decay, *p, g);
                *b = B::mul_add(c.momentum, *b, c.share * g);
                let step = if c.nesterov { B::mul_add(c.momentum, *b, g) } else { *b };
                *p -= rate * step;
            }
        } else {
            for (p, &g) in params.iter_mut().zip(grads) {
                *p -= rate * decayed::<B>(decay, *p, g);
            }
        }
    }
}
