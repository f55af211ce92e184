//! Comparing gradients with central differences.

use alloc::vec::Vec;

use super::{Expr, GrowingTape, Tape, TapeError};
use crate::backend::{Real, Strict};
use crate::shape::Shape;

type Double = super::Growing<Strict<f64>>;

/// The element at which the gradient is furthest from the central difference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gradcheck {
    /// Which input, counted from 0.
    pub input: usize,
    /// Which of its elements, counted from 0.
    pub element: usize,
    /// The element.
    pub x: f64,
    /// The gradient by backward.
    pub gradient: f64,
    /// The gradient by central differences.
    pub difference: f64,
    /// How far they are apart, relative to the larger of the latter and 1.
    pub error: f64,
}

/// Why a check failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GradcheckError {
    /// A gradient is off.
    Off {
        /// The worst element.
        worst: Gradcheck,
        /// How far it may have been off.
        tolerance: f64,
    },
    /// The tape had a fault.
    Tape(TapeError),
}

impl core::fmt::Display for GradcheckError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Off { worst, tolerance } => {
                let Gradcheck { input, element, x, gradient, difference, error } = worst;
                write!(
                    f,
                    "the gradient for input {input}, element {element} (at {x}) is {gradient}, central differences give \
                     {difference}: off by {error:.1e}, {tolerance:.1e} is allowed"
                )
            }
            Self::Tape(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for GradcheckError {}

impl From<TapeError> for GradcheckError {
    fn from(error: TapeError) -> Self {
        Self::Tape(error)
    }
}

/// Compares the gradients of a function with central differences of step `1e-6 max(1, |x|)`, in double precision, at every
/// element of every input. The output may have any shape: its elements are weighted differently and summed. Returns the worst
/// element.
///
/// # Errors
/// When a gradient is off by more than `tolerance`, relative to the larger of the difference quotient and 1, with the worst
/// element; or the tape's fault.
///
/// ```
/// use slabgrad::shape::Shape;
/// use slabgrad::tape::gradcheck;
///
/// let (x, w) = ([0.5, -1.0, 2.0, 0.1], [0.3, 0.7, -0.2, 0.4]);
/// let inputs = [(Shape::new([2, 2]), &x[..]), (Shape::new([2, 2]), &w[..])];
/// let worst = gradcheck(|x| x[0].matmul(x[1]).tanh(), &inputs, 1e-8)?;
/// assert!(worst.error < 1e-8);
/// # Ok::<(), slabgrad::tape::GradcheckError>(())
/// ```
#[track_caller]
pub fn gradcheck(
    f: impl for<'t> Fn(&[Expr<'t, Double>]) -> Expr<'t, Double>,
    inputs: &[(Shape, &[f64])],
    tolerance: f64,
) -> Result<Gradcheck, GradcheckError> {
    let mut tape = GrowingTape::<Strict<f64>>::default();
    let vars: Vec<_> = inputs.iter().map(|&(shape, data)| tape.parameter(shape, data)).collect();
    let mark = tape.mark();
    let run = |tape: &mut Tape<Double>| {
        let scope = tape.scope();
        let operands: Vec<_> = vars.iter().map(|&var| scope.of(var)).collect();
        f(&operands).handle()
    };
    let y = run(&mut tape);
    tape.check()?;
    let weights: Vec<f64> = (0..tape.value(y).len()).map(|i| 1.0 + (i * 7 % 11) as f64 / 11.0).collect();
    tape.backward_from(y, &weights)?;
    let gradients: Vec<Vec<f64>> = vars.iter().map(|&x| tape.gradient(x).unwrap_or_default().to_vec()).collect();

    let mut worst = Gradcheck::default();
    for (input, (&var, &(_, data))) in vars.iter().zip(inputs).enumerate() {
        for (element, (&x, &gradient)) in data.iter().zip(&gradients[input]).enumerate() {
            let mut at = |x: f64| {
                tape.reset_to(mark);
                tape.value_mut(var)[element] = x;
                let y = run(&mut tape);
                tape.check()?;
                Ok::<f64, TapeError>(tape.value(y).iter().zip(&weights).map(|(y, w)| y * w).sum())
            };
            let h = 1e-6 * Real::abs(x).max(1.0);
            let difference = (at(x + h)? - at(x - h)?) / (2.0 * h);
            tape.value_mut(var)[element] = x;
            let error = Real::abs(gradient - difference) / Real::abs(difference).max(1.0);
            if error >= worst.error || Real::is_nan(error) {
                worst = Gradcheck { input, element, x, gradient, difference, error };
            }
            if Real::is_nan(error) {
                return Err(GradcheckError::Off { worst, tolerance });
            }
        }
    }
    if worst.error > tolerance { Err(GradcheckError::Off { worst, tolerance }) } else { Ok(worst) }
}
