//! Adam and its kin.

use super::{Group, LEARNING_RATE, Optimizer, SettingError, decayed};
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

/// Adam (Kingma and Ba, 2015): `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`, `p -= lr m̂ / (√v̂ + ε)` with the moments
/// corrected for their start at 0. It keeps `m` and `v`. The defaults are PyTorch's: β₁ 0.9, β₂ 0.999, ε 1e-8.
///
/// Weight decay is added to the gradient, or with [`Adam::decoupled`] (AdamW) taken from the parameter: `p -= lr λ p`. The
/// type `Adam<E, true>`, or [`AmsGrad`], keeps the largest `v̂` so far besides and divides by its root (Reddi et al., 2018).
///
/// ```
/// use slabgrad::optim::Adam;
///
/// let mut optimizer = Adam::<f32>::new(1e-3).decoupled();
/// optimizer.set_learning_rate(5e-4);
/// assert_eq!(optimizer.learning_rate(), 5e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "AdamW")]
pub struct Adam<E = f32, const AMSGRAD: bool = false> {
    /// The learning rate of the next steps.
    pub learning_rate: E,
    /// The decay rates of the moments.
    pub betas: [E; 2],
    /// Added to the denominator.
    pub epsilon: E,
    /// Where it is added.
    pub form: AdamForm,
    /// Whether weight decay is taken from the parameter instead of added to the gradient.
    pub decoupled: bool,
}

/// [`Adam`] that divides by the root of the largest second moment so far.
pub type AmsGrad<E = f32> = Adam<E, true>;

/// The coefficients of a step of [`Adam`]: with gradient g, `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`,
/// `p -= rate m / (√v root_scale + ε)`.
// The first seven in the order in which the instructions for Arm microcontrollers read them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct AdamCoefficients<E> {
    /// β₁ and β₂.
    pub betas: [E; 2],
    /// 1 - β₁ and 1 - β₂.
    pub rest: [E; 2],
    /// The learning rate with the correction for the start of m, and in the fast form for that of v.
    pub rate: E,
    /// The correction for the start of v, under the root; 1 in the fast form.
    pub root_scale: E,
    /// ε.
    pub epsilon: E,
    /// The learning rate, which decoupled weight decay is multiplied by.
    pub learning_rate: E,
    /// Whether weight decay is taken from the parameter instead of added to the gradient.
    pub decoupled: bool,
}

/// 1 - βᵗ for the next t, from what is kept of the last: βᵗ, and 1 - βᵗ gathered as a moment gathers its gradients. In double
/// precision it is the power, as the reference systems have it; in single precision, where that would cancel all but four
/// digits in the first steps, what was gathered.
fn gathered<E: Real>(beta: E, power: &mut E, gathered: &mut E) -> E {
    let before = if *gathered == E::ZERO { E::ONE } else { *power };
    *power = before * beta;
    *gathered = beta * *gathered + (E::ONE - beta);
    if E::PRECISION > 24 { E::ONE - *power } else { *gathered }
}

impl<E: Real> Adam<E> {
    /// With this learning rate and the defaults.
    #[must_use]
    pub fn new(learning_rate: E) -> Self {
        Self {
            learning_rate,
            betas: [E::choose(0.9, 0.9), E::choose(0.999, 0.999)],
            epsilon: E::choose(1e-8, 1e-8),
            form: AdamForm::Corrected,
            decoupled: false,
        }
    }

    /// Divides by the root of the largest second moment so far.
    #[must_use]
    pub const fn amsgrad(self) -> AmsGrad<E> {
        let Self { learning_rate, betas, epsilon, form, decoupled } = self;
        Adam { learning_rate, betas, epsilon, form, decoupled }
    }
}

impl<E: Real, const AMSGRAD: bool> Adam<E, AMSGRAD> {
    /// With these decay rates of the moments, each from 0 and below 1.
    #[must_use]
    pub const fn betas(self, beta1: E, beta2: E) -> Self {
        Self { betas: [beta1, beta2], ..self }
    }

    /// With this epsilon.
    #[must_use]
    pub const fn epsilon(self, epsilon: E) -> Self {
        Self { epsilon, ..self }
    }

    /// With epsilon added there.
    #[must_use]
    pub const fn form(self, form: AdamForm) -> Self {
        Self { form, ..self }
    }

    /// With weight decay that is no part of the gradient: AdamW (Loshchilov and Hutter, 2019).
    #[must_use]
    pub const fn decoupled(self) -> Self {
        Self { decoupled: true, ..self }
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

impl<B: Backend, const AMSGRAD: bool> Optimizer<B> for Adam<B::Elem, AMSGRAD> {
    const SLOTS: usize = 2 + AMSGRAD as usize;
    type Coefficients = AdamCoefficients<B::Elem>;

    fn check(&self) -> Result<(), SettingError> {
        let [beta1, beta2] = self.betas;
        SettingError::unless_not_negative(LEARNING_RATE, self.learning_rate)?;
        SettingError::unless_below_one("beta 1 is from 0 and below 1", beta1)?;
        SettingError::unless_below_one("beta 2 is from 0 and below 1", beta2)?;
        SettingError::unless_not_negative("epsilon is a finite number from 0", self.epsilon)
    }

    fn learning_rate(&self) -> B::Elem {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: B::Elem) {
        self.learning_rate = learning_rate;
    }

    fn begin(&self, [power1, gathered1, power2, gathered2]: &mut [B::Elem; 4]) -> Self::Coefficients {
        let [beta1, beta2] = self.betas;
        let correction1 = gathered(beta1, power1, gathered1);
        let root = gathered(beta2, power2, gathered2).sqrt();
        let (rate, root_scale) = match self.form {
            AdamForm::Corrected => (self.learning_rate / correction1, B::Elem::ONE / root),
            AdamForm::Uncorrected => (self.learning_rate * (root / correction1), B::Elem::ONE),
        };
        AdamCoefficients {
            betas: self.betas,
            rest: [B::Elem::ONE - beta1, B::Elem::ONE - beta2],
            rate,
            root_scale,
            epsilon: self.epsilon,
            learning_rate: self.learning_rate,
            decoupled: self.decoupled,
        }
    }

    #[inline(always)]
    fn update(
        c: &Self::Coefficients,
        group: &Group<B::Elem>,
        params: &mut [B::Elem],
        grads: &[B::Elem],
        [m, v, largest]: [&mut [B::Elem]; 3],
    ) {
        let rate = c.rate * group.learning_rate_factor;
        let (in_gradient, keep) = if c.decoupled {
            let shrink = c.learning_rate * group.learning_rate_factor * group.weight_decay;
            (B::Elem::ZERO, B::Elem::ONE - shrink)
        } else {
            (group.weight_decay, B::Elem::ONE)
        };
        #[cfg(all(target_arch = "arm", target_abi = "eabihf", target_os = "none"))]
        if !AMSGRAD && in_gradient == B::Elem::ZERO && crate::backend::vfp::adam(c, rate, keep, params, grads, m, v) {
            return;
        }
        let c = *c;
        // Values, not places: a compiler that cannot tell the slices apart would load again what it has just stored.
        let step = |p: B::Elem, g: B::Elem, m: &mut B::Elem, v: &mut B::Elem| {
            let g = decayed::<B>(in_gradient, p, g);
            let (next_m, next_v) =
                (B::mul_add(c.betas[0], *m, c.rest[0] * g), B::mul_add(c.betas[1], *v, c.rest[1] * (g * g)));
            (*m, *v) = (next_m, next_v);
            (if c.decoupled { p * keep } else { p }, next_m, next_v)
        };
        let denominator = |v: B::Elem| B::mul_add(v.sqrt(), c.root_scale, c.epsilon);
        if AMSGRAD {
            for ((((p, &g), m), v), largest) in params.iter_mut().zip(grads).zip(m).zip(v).zip(largest) {
                let (decayed, m, v) = step(*p, g, m, v);
                *largest = largest.maximum(v);
                *p = decayed - rate * m / denominator(*largest);
            }
        } else {
            for (((p, &g), m), v) in params.iter_mut().zip(grads).zip(m).zip(v) {
                let (decayed, m, v) = step(*p, g, m, v);
                *p = decayed - rate * m / denominator(v);
            }
        }
    }
}
