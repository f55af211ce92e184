//! What the tests over the golden files share: finding and reading them, and comparing numbers.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;

use serde_json::Value;
use slabgrad::backend::{Backend, Real};
use slabgrad::ops::{Gradient, Op, Spec};
use slabgrad::shape::Shape;
#[cfg(feature = "alloc")]
use slabgrad::tape::{FixedTape, GrowingTape, Handle, Storage, Tape};
#[cfg(feature = "alloc")]
use slabgrad::testing::{self, Outcome};

/// The folder named by `GOLDEN_DIR`, if it is set.
pub(crate) fn other_folder() -> Option<PathBuf> {
    std::env::var_os("GOLDEN_DIR").map(PathBuf::from)
}

/// The repository's folder of golden files.
pub(crate) fn own_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The golden file `name`, from the other folder where that has one, else from the repository's.
pub(crate) fn load(name: &str) -> Value {
    let file = format!("{name}.json");
    let other = other_folder().map(|folder| folder.join(&file)).filter(|path| path.exists());
    let path = other.unwrap_or_else(|| own_folder().join(&file));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The elements of a tensor, or of a plain number or array.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Object(tensor) => numbers(&tensor["data"]),
        Value::Array(elements) => elements.iter().flat_map(numbers).collect(),
        _ => vec![value.as_f64().unwrap_or_else(|| panic!("expected a number, found {value}"))],
    }
}

/// The elements of an array of lengths.
pub(crate) fn lengths(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|x| x.to_index().unwrap_or_else(|| panic!("{x} is no length"))).collect()
}

/// The shape of a tensor.
pub(crate) fn shape(tensor: &Value) -> Shape {
    Shape::from_slice(&lengths(&tensor["shape"]))
}

/// `x` as elements of a backend.
pub(crate) fn elements<E: Real>(x: &[f64]) -> Vec<E> {
    x.iter().map(|&x| E::choose(x as f32, x)).collect()
}

/// The largest |found - want| / max(1, |want|); infinite where a number is not finite or the lengths differ.
pub(crate) fn relative_difference<E: Copy + Into<f64>>(found: &[E], want: &[f64]) -> f64 {
    difference(found, want, |want| want.abs().max(1.0))
}

/// The largest |found - want|; infinite likewise.
pub(crate) fn absolute_difference<E: Copy + Into<f64>>(found: &[E], want: &[f64]) -> f64 {
    difference(found, want, |_| 1.0)
}

fn difference<E: Copy + Into<f64>>(found: &[E], want: &[f64], scale: impl Fn(f64) -> f64) -> f64 {
    if found.len() != want.len() {
        return f64::INFINITY;
    }
    let differences = found.iter().zip(want).map(|(&found, &want)| (found.into() - want).abs() / scale(want));
    // A NaN must not get lost in a maximum.
    differences.fold(0.0, |worst, x| if x.is_finite() { f64::max(worst, x) } else { f64::INFINITY })
}

/// In words, the element that is furthest from what it should be.
pub(crate) fn worst_element<E: Real + Into<f64>>(found: &[E], want: &[f64]) -> String {
    if found.len() != want.len() {
        return format!("{} elements, expected {}", found.len(), want.len());
    }
    let off = |i: &usize| {
        let off = (found[*i].into() - want[*i]).abs();
        if off.is_nan() { f64::INFINITY } else { off }
    };
    let worst = (0..found.len()).max_by(|i, j| off(i).total_cmp(&off(j)));
    worst.map_or_else(String::new, |i| format!("element {i} is {}, expected {}", found[i], want[i]))
}

/// The generator of `train_lcg.json`, which also serves wherever a test needs numbers that repeat.
pub(crate) struct Lcg(pub(crate) u32);

impl Lcg {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    /// A number in [-scale, scale).
    pub(crate) fn value(&mut self, scale: f64) -> f64 {
        (f64::from(self.next() >> 8) / 8_388_608.0 - 1.0) * scale
    }

    pub(crate) fn values(&mut self, count: usize, scale: f64) -> Vec<f64> {
        (0..count).map(|_| self.value(scale)).collect()
    }

    /// An integer below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }
}

/// The modules of [`slabgrad::ops`] that hold operations, as its source lists them.
pub(crate) fn operations() -> Vec<&'static str> {
    let source = include_str!("../../src/ops/mod.rs");
    source.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect()
}

/// Whether the library has a public operation or module named `name`, or a function named so in an optimizer: how a test
/// notices that what it lists as not there yet has arrived.
pub(crate) fn is_in_library(name: &str) -> bool {
    let lib = include_str!("../../src/lib.rs");
    let optim = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/optim");
    let in_optim = std::fs::read_dir(&optim).expect("src/optim is a folder").any(|entry| {
        let source = std::fs::read_to_string(entry.expect("src/optim can be listed").path()).unwrap_or_default();
        ["fn name(", "fn name<", "mod name;"].iter().any(|item| source.contains(&item.replace("name", name)))
    });
    in_optim || operations().contains(&name) || lib.contains(&format!("mod {name};"))
}

/// As [`testing::run`], and on tapes, on the heap and in a slab, with the same bits.
#[cfg(feature = "alloc")]
pub(crate) fn run<B: Backend<Elem: Into<f64>>>(
    op: &'static Op<B>,
    spec: Spec,
    inputs: &[&[B::Elem]],
    dy: &[B::Elem],
) -> Outcome<B::Elem> {
    let outcome = testing::run(op, spec, inputs, dy);
    let mut tape = GrowingTape::<B>::default();
    same_on_tape(&mut tape, op, spec, inputs, dy, &outcome);
    let params = tape.params().len();
    let scratch = spec.scratch + spec.scratch_backward.iter().sum::<usize>();
    let mut slab = vec![B::Elem::ZERO; 2 * params + tape.work_len() + scratch];
    let mut fixed = FixedTape::<8, B>::in_slab(&mut slab, params).expect("the slab holds the parameters");
    same_on_tape(&mut fixed, op, spec, inputs, dy, &outcome);
    outcome
}

#[cfg(feature = "alloc")]
fn same_on_tape<B: Backend<Elem: Into<f64>>, S: Storage<Backend = B>>(
    tape: &mut Tape<S>,
    op: &'static Op<B>,
    spec: Spec,
    inputs: &[&[B::Elem]],
    dy: &[B::Elem],
    want: &Outcome<B::Elem>,
) {
    let bits = |x: &[B::Elem]| x.iter().map(|&x| x.into().to_bits()).collect::<Vec<_>>();
    let differentiable = |i: usize| op.view || !matches!(op.backward[i], Gradient::None);
    let leaf = |(i, data): (usize, &&[B::Elem])| {
        let shape = Shape::new([data.len()]);
        if differentiable(i) { tape.parameter(shape, data) } else { tape.constant(shape, data) }
    };
    let leaves: Vec<Handle> = inputs.iter().enumerate().map(leaf).collect();
    let y = tape.apply(op, &leaves, Ok(spec));
    tape.backward_from(y, dy).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bits(tape.value(y)), bits(&want.y), "{} on a tape", op.name);
    for (leaf, gradient) in leaves.into_iter().zip(&want.gradients) {
        assert_eq!(bits(tape.gradient(leaf).unwrap_or_default()), bits(gradient), "gradients of {} on a tape", op.name);
    }
}
