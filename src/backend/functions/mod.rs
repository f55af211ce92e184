//! The elementary functions, the same bits on every target.

pub(super) mod double;
pub(super) mod single;
