//! Samples from a file on the host, one at a time.

use core::ffi::CStr;

use firmware_example::fine_tune;
use semihosting::{fs::File, io::Read};

/// A file of samples: the values and the class of each, as little-endian `f32`. A file that cannot be opened has none.
pub struct Samples(Option<File>);

impl Samples {
    pub fn open(path: &CStr) -> Self {
        Self(File::open(path).ok())
    }

    fn number(&mut self) -> Option<f32> {
        let mut bytes = [0; 4];
        self.0.as_mut()?.read_exact(&mut bytes).ok()?;
        Some(f32::from_le_bytes(bytes))
    }
}

impl fine_tune::Samples for Samples {
    fn next(&mut self, values: &mut [f32]) -> Option<f32> {
        for value in values {
            *value = self.number()?;
        }
        self.number()
    }
}
