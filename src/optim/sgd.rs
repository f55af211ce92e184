//! Stochastic gradient descent, plain and with momentum.

use super::Optimizer;
use crate::backend::{Backend, Real};

/// Stochastic gradient descent: `p -= lr g`. It keeps no moments.
///
/// ```
/// use slabgrad::optim::Sgd;
///
/// const OPTIMIZER: Sgd = Sgd::new(0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd<E = f32> {
    learning_rate: E,
}

impl<E: Real> Sgd<E> {
    /// With this learning rate.
    #[must_use]
    pub const fn new(learning_rate: E) -> Self {
        Self { learning_rate }
    }
}

impl<B: Backend> Optimizer<B> for Sgd<B::Elem> {
    const SLOTS: usize = 0;
    type Rates = B::Elem;

    fn begin(&mut self) -> B::Elem {
        self.learning_rate
    }

    #[inline]
    fn update(&rate: &B::Elem, params: &mut [B::Elem], grads: &[B::Elem], _: [&mut [B::Elem]; 3]) {
        for (p, &g) in params.iter_mut().zip(grads) {
            *p -= rate * g;
        }
    }
}

/// Stochastic gradient descent with momentum, as PyTorch's: `b = μ b + g`, `p -= lr b`. It keeps `b`.
///
/// ```
/// use slabgrad::optim::Momentum;
///
/// const OPTIMIZER: Momentum = Momentum::new(0.02, 0.9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Momentum<E = f32> {
    rates: MomentumRates<E>,
}

/// The coefficients of [`Momentum`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentumRates<E> {
    learning_rate: E,
    momentum: E,
}

impl<E: Real> Momentum<E> {
    /// With this learning rate and momentum.
    #[must_use]
    pub const fn new(learning_rate: E, momentum: E) -> Self {
        Self { rates: MomentumRates { learning_rate, momentum } }
    }
}

impl<B: Backend> Optimizer<B> for Momentum<B::Elem> {
    const SLOTS: usize = 1;
    type Rates = MomentumRates<B::Elem>;

    fn begin(&mut self) -> Self::Rates {
        self.rates
    }

    #[inline]
    fn update(rates: &Self::Rates, params: &mut [B::Elem], grads: &[B::Elem], [velocity, ..]: [&mut [B::Elem]; 3]) {
        for ((p, &g), b) in params.iter_mut().zip(grads).zip(velocity) {
            *b = B::mul_add(rates.momentum, *b, g);
            *p -= rates.learning_rate * *b;
        }
    }
}
