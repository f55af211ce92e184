//! Literal checks for the tests of the operations' files.

use std::vec;
use std::vec::Vec;

use super::{Op, Spec};
use crate::backend::{Backend, Strict};
use crate::testing::run;

/// Runs `op` in double precision and compares the output, and the gradients of its sum, with literal values.
pub(super) fn check(op: &'static Op<Strict<f64>>, spec: Spec, inputs: &[&[f64]], y: &[f64], gradients: &[&[f64]]) {
    let outcome = run(op, spec, inputs, &vec![1.0; spec.shape.len()]);
    close(op.name, "output", &outcome.y, y);
    for (found, want) in outcome.gradients.iter().zip(gradients) {
        close(op.name, "gradient", found, want);
    }
    assert_eq!(outcome.gradients.len(), gradients.len(), "{}: gradients", op.name);
}

fn close(op: &str, what: &str, found: &[f64], want: &[f64]) {
    let near = found.iter().zip(want).all(|(f, w)| (f - w).abs() <= 1e-14 * w.abs().max(1.0));
    assert!(near && found.len() == want.len(), "{op}: the {what} is {found:?}, expected {want:?}");
}

/// The output, and the gradient for input `i`, from `dy`.
pub(super) fn gradient<B: Backend>(
    op: &'static Op<B>,
    spec: Spec,
    inputs: &[&[B::Elem]],
    dy: &[B::Elem],
    i: usize,
) -> (Vec<B::Elem>, Vec<B::Elem>) {
    let outcome = run(op, spec, inputs, dy);
    (outcome.y, outcome.gradients[i].clone())
}
