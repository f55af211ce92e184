//! Adam (Kingma and Ba, 2015).

use super::Optimizer;
use crate::backend::{Backend, Real};

/// Where Adam adds epsilon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdamForm {
    /// To the root of the corrected second moment, as PyTorch: `lr m̂ / (√v̂ + ε)`.
    #[default]
    Corrected,
    /// To the root of the uncorrected second moment: `lr √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε)`, the form that the paper
    /// gives for speed.
    Uncorrected,
}

/// Adam: `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`, `p -= lr m̂ / (√v̂ + ε)` with the moments corrected for their
/// start at 0. It keeps `m` and `v`. The defaults are PyTorch's: β₁ 0.9, β₂ 0.999, ε 1e-8.
///
/// ```
/// use slabgrad::optim::Adam;
///
/// let optimizer = Adam::<f32>::new(1e-3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam<E = f32> {
    learning_rate: E,
    beta1: Decay<E>,
    beta2: Decay<E>,
    epsilon: E,
    form: AdamForm,
}

/// The coefficients of one step of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamRates<E> {
    beta1: E,
    one_minus_beta1: E,
    beta2: E,
    one_minus_beta2: E,
    rate: E,
    root_scale: E,
    epsilon: E,
}

/// A decay rate β with 1 - βᵗ, the weight that a moment has gathered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decay<E> {
    beta: E,
    power: E,
    gathered: E,
}

impl<E: Real> Decay<E> {
    fn new(beta: E) -> Self {
        Self { beta, power: E::ONE, gathered: E::ZERO }
    }

    fn one_minus(&self) -> E {
        E::ONE - self.beta
    }

    /// 1 - βᵗ for the next t. In double precision by the power; in single precision, where that would cancel all but four
    /// digits at the first steps, by the recurrence of the moments themselves.
    fn advance(&mut self) -> E {
        self.power *= self.beta;
        self.gathered = self.beta * self.gathered + self.one_minus();
        if E::PRECISION > 24 { E::ONE - self.power } else { self.gathered }
    }
}

impl<E: Real> Adam<E> {
    /// With this learning rate and the defaults.
    #[must_use]
    pub fn new(learning_rate: E) -> Self {
        Self {
            learning_rate,
            beta1: Decay::new(E::choose(0.9, 0.9)),
            beta2: Decay::new(E::choose(0.999, 0.999)),
            epsilon: E::choose(1e-8, 1e-8),
            form: AdamForm::Corrected,
        }
    }

    /// With these decay rates of the moments.
    #[must_use]
    pub fn betas(self, beta1: E, beta2: E) -> Self {
        Self { beta1: Decay::new(beta1), beta2: Decay::new(beta2), ..self }
    }

    /// With this epsilon.
    #[must_use]
    pub fn epsilon(self, epsilon: E) -> Self {
        Self { epsilon, ..self }
    }

    /// With epsilon added there.
    #[must_use]
    pub fn form(self, form: AdamForm) -> Self {
        Self { form, ..self }
    }

    fn advance(&mut self) -> AdamRates<E> {
        let (correction1, correction2) = (self.beta1.advance(), self.beta2.advance());
        let root = correction2.sqrt();
        let (rate, root_scale) = match self.form {
            AdamForm::Corrected => (self.learning_rate / correction1, E::ONE / root),
            AdamForm::Uncorrected => (self.learning_rate * (root / correction1), E::ONE),
        };
        AdamRates {
            beta1: self.beta1.beta,
            one_minus_beta1: self.beta1.one_minus(),
            beta2: self.beta2.beta,
            one_minus_beta2: self.beta2.one_minus(),
            rate,
            root_scale,
            epsilon: self.epsilon,
        }
    }
}

impl<B: Backend> Optimizer<B> for Adam<B::Elem> {
    const SLOTS: usize = 2;
    type Rates = AdamRates<B::Elem>;

    fn begin(&mut self) -> Self::Rates {
        self.advance()
    }

    #[inline]
    fn update(r: &Self::Rates, params: &mut [B::Elem], grads: &[B::Elem], [m, v, _]: [&mut [B::Elem]; 3]) {
        let r = *r;
        for (((p, &g), m), v) in params.iter_mut().zip(grads).zip(m).zip(v) {
            *m = B::mul_add(r.beta1, *m, r.one_minus_beta1 * g);
            *v = B::mul_add(r.beta2, *v, r.one_minus_beta2 * (g * g));
            *p -= r.rate * *m / B::mul_add(v.sqrt(), r.root_scale, r.epsilon);
        }
    }
}
