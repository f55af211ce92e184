//! Gradients that explode, vanish or drift apart: statistics, checks, a monitor over the last steps, and what to do about it.
//!
//! Nothing here allocates. Thresholds and factors default to those of nanograd.
//!
//! ```
//! use slabgrad::diagnostics::{Monitor, Thresholds, check};
//! use slabgrad::prelude::*;
//!
//! const fn net() -> Graph {
//!     let mut g = Graph::new();
//!     let x = g.input::<R2<1, 2>>("x");
//!     let target = g.input::<R2<1, 1>>("target");
//!     let y = g.linear("fc", x);
//!     let loss = g.mse(y, target);
//!     g.loss(loss);
//!     g
//! }
//! program!(static TRAIN = net().train(Training::with::<Sgd>()));
//!
//! let mut slab = [0.0; TRAIN.slab_len()];
//! let mut memory = TRAIN.memory(&mut slab)?;
//! TRAIN.init(&mut memory, 1)?;
//! let mut monitor = Monitor::<f32, 16>::new();
//! for step in 0..20 {
//!     TRAIN.gradients(&mut memory, &[&[1.0, 2.0], &[3.0]])?;
//!     let health = check(&TRAIN, &memory, &Thresholds::default());
//!     monitor.record(step, &health);
//!     TRAIN.update(&mut memory, &mut Sgd::new(0.01))?;
//! }
//! let diagnosis = monitor.diagnose();
//! assert!(diagnosis.mean < 10.0);
//! println!("{diagnosis}");
//! # Ok::<(), RunError>(())
//! ```

mod health;
mod monitor;

pub use health::{GradientStats, Health, Issues, Thresholds, check, check_parts};
pub use monitor::{Diagnosis, Monitor, Record};

use crate::backend::Real;

/// A learning rate for gradients of this norm: a tenth of `current` above 10, half of it above 5, ten times below 1e-6, twice
/// below 1e-4.
///
/// ```
/// assert_eq!(slabgrad::diagnostics::suggest_learning_rate(0.1_f64, 6.0), 0.05);
/// ```
#[must_use]
pub fn suggest_learning_rate<E: Real>(current: E, norm: E) -> E {
    let factor = if norm > E::choose(10.0, 10.0) {
        E::choose(0.1, 0.1)
    } else if norm > E::choose(5.0, 5.0) {
        E::choose(0.5, 0.5)
    } else if norm < E::choose(1e-6, 1e-6) {
        E::choose(10.0, 10.0)
    } else if norm < E::choose(1e-4, 1e-4) {
        E::choose(2.0, 2.0)
    } else {
        E::ONE
    };
    current * factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_norm() {
        let factors =
            [(20.0, 0.1), (10.0, 0.5), (6.0, 0.5), (5.0, 1.0), (1e-4, 1.0), (9e-5, 2.0), (1e-6, 2.0), (9e-7, 10.0)];
        for (norm, factor) in factors {
            assert_eq!(suggest_learning_rate(1.0_f64, norm), factor, "norm {norm}");
        }
    }
}
