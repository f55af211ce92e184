//! Dropout.

use alloc::vec;
use alloc::vec::Vec;

use super::{Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::ops::dropout;
use crate::tape::Handle;

/// Sets elements to 0 at random in training, and does nothing in evaluation; see [`ops::dropout`](crate::ops::dropout).
#[derive(Clone, Copy, Debug)]
pub struct Dropout(dropout::Dropout);

impl Dropout {
    /// With these settings.
    #[must_use]
    pub const fn new(settings: dropout::Dropout) -> Self {
        Self(settings)
    }
}

impl<B: Backend> Layer<B> for Dropout {
    fn kind(&self) -> &'static str {
        "Dropout"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let (counter, stream) = r.dropout_counter();
        if r.is_training() { r.tape().dropout(x, counter, self.0, stream) } else { x }
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![("p", Setting::Number(self.0.p))];
        if self.0.seed != 0 {
            settings.push(("seed", Setting::Seed(self.0.seed)));
        }
        settings
    }
}
