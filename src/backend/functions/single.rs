//! Functions of `f32`.

pub(crate) use libm::{
    cosf as cos, erff as erf, expf as exp, expm1f as exp_m1, log1pf as ln_1p, logf as ln, powf, sinf as sin,
    tanhf as tanh,
};
