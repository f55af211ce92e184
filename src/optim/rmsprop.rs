//! `RMSprop` (Tieleman and Hinton, 2012).

use super::{Group, LEARNING_RATE, Optimizer, SettingError, decayed};
use crate::backend::{Backend, Real};

/// `RMSprop` as PyTorch's: `g += λ p`, `v = α v + (1 - α) g²`, `p -= lr g / (√v + ε)`. With the type's first flag it has
/// momentum: `b = μ b + g / (√v + ε)`, `p -= lr b`; with the second it is centered: it keeps the mean `a = α a + (1 - α) g` too
/// and takes `v - a²` for `v` in the root. The defaults: α 0.99, ε 1e-8.
///
/// ```
/// use slabgrad::optim::RmsProp;
///
/// let plain: RmsProp = RmsProp::new(0.01);
/// let both: RmsProp<f32, true, true> = RmsProp::new(0.01).momentum(0.9).centered();
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp<E = f32, const MOMENTUM: bool = false, const CENTERED: bool = false> {
    /// The settings, which are also the coefficients of every step.
    pub coefficients: RmsPropCoefficients<E>,
}

/// The coefficients of a step of [`RmsProp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsPropCoefficients<E> {
    /// The learning rate of the next steps.
    pub learning_rate: E,
    /// The smoothing constant.
    pub alpha: E,
    /// Added to the denominator.
    pub epsilon: E,
    /// The momentum; without it, the type has none.
    pub momentum: E,
}

impl<E: Real> RmsProp<E> {
    /// With this learning rate and the defaults.
    #[must_use]
    pub fn new(learning_rate: E) -> Self {
        let (alpha, epsilon) = (E::choose(0.99, 0.99), E::choose(1e-8, 1e-8));
        Self { coefficients: RmsPropCoefficients { learning_rate, alpha, epsilon, momentum: E::ZERO } }
    }
}

impl<E: Real, const MOMENTUM: bool, const CENTERED: bool> RmsProp<E, MOMENTUM, CENTERED> {
    /// With this smoothing constant, from 0 and below 1.
    #[must_use]
    pub const fn alpha(mut self, alpha: E) -> Self {
        self.coefficients.alpha = alpha;
        self
    }

    /// With this epsilon.
    #[must_use]
    pub const fn epsilon(mut self, epsilon: E) -> Self {
        self.coefficients.epsilon = epsilon;
        self
    }

    /// With this momentum, from 0 and below 1.
    #[must_use]
    pub const fn momentum(mut self, momentum: E) -> RmsProp<E, true, CENTERED> {
        self.coefficients.momentum = momentum;
        RmsProp { coefficients: self.coefficients }
    }

    /// Centered.
    #[must_use]
    pub const fn centered(self) -> RmsProp<E, MOMENTUM, true> {
        RmsProp { coefficients: self.coefficients }
    }

    /// The learning rate.
    #[must_use]
    pub const fn learning_rate(&self) -> E {
        self.coefficients.learning_rate
    }

    /// Sets the learning rate of the next steps.
    pub const fn set_learning_rate(&mut self, learning_rate: E) {
        self.coefficients.learning_rate = learning_rate;
    }
}

impl<B: Backend, const MOMENTUM: bool, const CENTERED: bool> Optimizer<B> for RmsProp<B::Elem, MOMENTUM, CENTERED> {
    const SLOTS: usize = 1 + MOMENTUM as usize + CENTERED as usize;
    type Coefficients = RmsPropCoefficients<B::Elem>;

    fn check(&self) -> Result<(), SettingError> {
        let c = &self.coefficients;
        SettingError::unless_not_negative(LEARNING_RATE, c.learning_rate)?;
        SettingError::unless_below_one("alpha is from 0 and below 1", c.alpha)?;
        SettingError::unless_below_one("the momentum is from 0 and below 1", c.momentum)?;
        SettingError::unless_not_negative("epsilon is a finite number from 0", c.epsilon)
    }

    fn learning_rate(&self) -> B::Elem {
        self.coefficients.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: B::Elem) {
        self.coefficients.learning_rate = learning_rate;
    }

    fn begin(&self, _: &mut [B::Elem; 4]) -> Self::Coefficients {
        self.coefficients
    }

    #[inline(always)]
    fn update(
        c: &Self::Coefficients,
        group: &Group<B::Elem>,
        params: &mut [B::Elem],
        grads: &[B::Elem],
        [v, second, third]: [&mut [B::Elem]; 3],
    ) {
        let c = *c;
        let rate = c.learning_rate * group.learning_rate_factor;
        let rest = B::Elem::ONE - c.alpha;
        let smoothed = |average: B::Elem, x: B::Elem| B::mul_add(c.alpha, average, rest * x);
        // The slots that there are come first; a zip with one that is not would be empty.
        let (mut buffers, mut means) =
            if MOMENTUM { (second.iter_mut(), third.iter_mut()) } else { (third.iter_mut(), second.iter_mut()) };
        for ((p, &g), v) in params.iter_mut().zip(grads).zip(v) {
            let g = decayed::<B>(group.weight_decay, *p, g);
            *v = smoothed(*v, g * g);
            let mut variance = *v;
            if CENTERED && let Some(mean) = means.next() {
                *mean = smoothed(*mean, g);
                variance -= *mean * *mean;
            }
            let denominator = variance.sqrt() + c.epsilon;
            if MOMENTUM && let Some(b) = buffers.next() {
                *b = B::mul_add(c.momentum, *b, g / denominator);
                *p -= rate * *b;
            } else {
                *p -= rate * g / denominator;
            }
        }
    }
}
