//! Functions of `f64`.

pub(crate) use libm::{cos, erf, exp, expm1 as exp_m1, log as ln, log1p as ln_1p, pow as powf, sin, tanh};
