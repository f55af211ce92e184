//! Adagrad (Duchi et al., 2011).

use super::{Group, LEARNING_RATE, Optimizer, SettingError, decayed};
use crate::backend::{Backend, Real};

/// Adagrad as PyTorch's: `g += λ p`, `s += g²`, `p -= lr / (1 + (t - 1) decay) · g / (√s + ε)`. It keeps `s`. The defaults: no
/// decay of the learning rate, ε 1e-10.
///
/// ```
/// use slabgrad::optim::Adagrad;
///
/// let optimizer: Adagrad = Adagrad::new(0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad<E = f32> {
    /// The learning rate of the next steps, before its decay.
    pub learning_rate: E,
    /// The decay of the learning rate.
    pub learning_rate_decay: E,
    /// Added to the denominator.
    pub epsilon: E,
}

/// The coefficients of a step of [`Adagrad`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdagradCoefficients<E> {
    rate: E,
    epsilon: E,
}

impl<E: Real> Adagrad<E> {
    /// With this learning rate and the defaults.
    #[must_use]
    pub fn new(learning_rate: E) -> Self {
        Self { learning_rate, learning_rate_decay: E::ZERO, epsilon: E::choose(1e-10, 1e-10) }
    }

    /// With this decay of the learning rate.
    #[must_use]
    pub const fn learning_rate_decay(self, learning_rate_decay: E) -> Self {
        Self { learning_rate_decay, ..self }
    }

    /// With this epsilon.
    #[must_use]
    pub const fn epsilon(self, epsilon: E) -> Self {
        Self { epsilon, ..self }
    }

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

impl<B: Backend> Optimizer<B> for Adagrad<B::Elem> {
    const SLOTS: usize = 1;
    type Coefficients = AdagradCoefficients<B::Elem>;

    fn check(&self) -> Result<(), SettingError> {
        SettingError::unless_not_negative(LEARNING_RATE, self.learning_rate)?;
        let rule = "the decay of the learning rate is a finite number from 0";
        SettingError::unless_not_negative(rule, self.learning_rate_decay)?;
        SettingError::unless_not_negative("epsilon is a finite number from 0", self.epsilon)
    }

    fn learning_rate(&self) -> B::Elem {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: B::Elem) {
        self.learning_rate = learning_rate;
    }

    fn begin(&self, [steps, ..]: &mut [B::Elem; 4]) -> Self::Coefficients {
        let rate = self.learning_rate / B::mul_add(*steps, self.learning_rate_decay, B::Elem::ONE);
        *steps += B::Elem::ONE;
        AdagradCoefficients { rate, epsilon: self.epsilon }
    }

    #[inline(always)]
    fn update(
        c: &Self::Coefficients,
        group: &Group<B::Elem>,
        params: &mut [B::Elem],
        grads: &[B::Elem],
        [sums, ..]: [&mut [B::Elem]; 3],
    ) {
        let (rate, epsilon) = (c.rate * group.learning_rate_factor, c.epsilon);
        for ((p, &g), s) in params.iter_mut().zip(grads).zip(sums) {
            let g = decayed::<B>(group.weight_decay, *p, g);
            *s = B::mul_add(g, g, *s);
            *p -= rate * (g / (s.sqrt() + epsilon));
        }
    }
}
