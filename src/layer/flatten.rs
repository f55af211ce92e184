//! Each sample as a vector.

use super::{Layer, Recorder};
use crate::backend::Backend;
use crate::tape::Handle;

/// Each sample as a vector: `[n, ...]` becomes `[n, product of the rest]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flatten;

impl<B: Backend> Layer<B> for Flatten {
    fn kind(&self) -> &'static str {
        "Flatten"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().flatten(x)
    }
}
