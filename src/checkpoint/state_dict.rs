//! PyTorch's `state_dict`s in files of the `safetensors` format.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use super::{Contents, Element, SaveError};
use crate::backend::{Backend, Real};
use crate::graph::Name;
use crate::program::{Memory, Program, RunError, Space, Tensor, at_least, exactly};
use crate::shape::Shape;

/// Tensors by name, as PyTorch's `safetensors.torch.save_file(model.state_dict(), path)` writes them: in `f32`, `f64`, `f16` or
/// `bf16`, which are converted to the program's elements.
///
/// The names of a program and of the file need not be the same:
///
/// ```
/// # use slabgrad::checkpoint::StateDict;
/// # fn load(bytes: &[u8]) -> Result<(), slabgrad::checkpoint::StateDictError> {
/// // `features.0.weight` becomes `conv1.weight`.
/// let dict = StateDict::parse(bytes)?.rename("features.0", "conv1").rename("classifier", "fc");
/// # Ok(())
/// # }
/// ```
///
/// `num_batches_tracked`, which PyTorch's batch norm counts and does not use, is passed over, and so is the absence of
/// `dropout.counter`, which PyTorch does not have.
pub struct StateDict<'b> {
    tensors: SafeTensors<'b>,
    renames: Vec<(&'b str, &'b str)>,
    allow_unexpected: bool,
}

/// Why a `state_dict` was not loaded or written. Nothing was changed then.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateDictError {
    /// It is no file of the format, or is damaged.
    File(SafeTensorError),
    /// It is not one of this network.
    Differs(Report),
    /// The memory is not one of the program.
    Memory(RunError),
    /// The image to be packed is longer than its format can say.
    Save(SaveError<core::convert::Infallible>),
}

/// How a `state_dict` differs from a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What the program has and the file has not.
    pub missing: Vec<String>,
    /// What the file has and the program has not, by its name in the file.
    pub unexpected: Vec<String>,
    /// What has another shape in the file.
    pub shapes: Vec<ShapeDiffers>,
    /// What is of a type that is no floating-point number of 16, 32 or 64 bits, with the type.
    pub types: Vec<(String, String)>,
    /// What two tensors of the file are named when they are renamed.
    pub ambiguous: Vec<String>,
}

/// A tensor with two shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeDiffers {
    /// Its name in the program.
    pub name: String,
    /// Its shape in the program.
    pub expected: Shape,
    /// Its shape in the file.
    pub found: Vec<usize>,
}

impl Report {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl core::fmt::Display for Report {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the file's tensors are not the program's")?;
        let lists = [("missing", &self.missing), ("unexpected", &self.unexpected), ("named twice", &self.ambiguous)];
        for (what, names) in lists {
            if !names.is_empty() {
                write!(f, "; {what}: {}", names.join(", "))?;
            }
        }
        for ShapeDiffers { name, expected, found } in &self.shapes {
            write!(f, "; {name} has shape {found:?}, expected {expected}")?;
        }
        for (name, dtype) in &self.types {
            write!(f, "; {name} is of type {dtype}, expected F16, BF16, F32 or F64")?;
        }
        Ok(())
    }
}

impl core::fmt::Display for StateDictError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(error) => write!(f, "this is no safetensors file, or a damaged one: {error}"),
            Self::Differs(report) => core::fmt::Display::fmt(report, f),
            Self::Memory(error) => core::fmt::Display::fmt(error, f),
            Self::Save(error) => core::fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for StateDictError {}

impl From<SafeTensorError> for StateDictError {
    fn from(error: SafeTensorError) -> Self {
        Self::File(error)
    }
}

impl From<RunError> for StateDictError {
    fn from(error: RunError) -> Self {
        Self::Memory(error)
    }
}

impl<'b> StateDict<'b> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// When it is no file of the format.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, StateDictError> {
        Ok(Self { tensors: SafeTensors::deserialize(bytes)?, renames: Vec::new(), allow_unexpected: false })
    }

    /// Names in the file that are `from`, or start with `from` and a dot, get `to` in its place. The first rule that applies
    /// is the one that does. An empty `from` puts `to` and a dot before all names, an empty `to` takes `from` away.
    #[must_use]
    pub fn rename(mut self, from: &'b str, to: &'b str) -> Self {
        self.renames.push((from, to));
        self
    }

    /// Passes over tensors that the program does not have.
    #[must_use]
    pub fn allow_unexpected(self) -> Self {
        Self { allow_unexpected: true, ..self }
    }

    /// The names of all tensors in the file, renamed.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.tensors.iter().map(|(name, _)| self.renamed(name))
    }

    fn renamed(&self, name: &str) -> String {
        let parts = |&(from, to): &(&str, &str)| {
            let rest = if from.is_empty() { Some(name) } else { name.strip_prefix(from) }?;
            let rest = match rest.strip_prefix('.') {
                Some(rest) if !from.is_empty() => rest,
                _ if from.is_empty() || rest.is_empty() => rest,
                _ => return None,
            };
            let dot = if to.is_empty() || rest.is_empty() { "" } else { "." };
            Some([to, dot, rest].concat())
        };
        self.renames.iter().find_map(parts).unwrap_or_else(|| name.to_owned())
    }

    /// The tensors of `spaces` with their data, once it is known that all of them are there and fit.
    fn matched<'p>(
        &self,
        tensors: &'p [Tensor<'p>],
        spaces: &[Space],
    ) -> Result<Vec<(&'p Tensor<'p>, TensorView<'b>)>, StateDictError> {
        let (mut report, mut found) = (Report::default(), BTreeMap::new());
        for (name, view) in self.tensors.iter() {
            let renamed = self.renamed(name);
            if found.insert(renamed.clone(), (name, view)).is_some() {
                report.ambiguous.push(renamed);
            }
        }
        let mut matched = Vec::new();
        for tensor in tensors {
            let name = joined(tensor.name);
            let entry = found.remove(&name);
            if !spaces.contains(&tensor.space) {
                continue;
            }
            match entry {
                None if name != "dropout.counter" => report.missing.push(name),
                None => {}
                Some((_, view)) => {
                    let shape = view.shape();
                    if !axes(tensor.shape).eq(shape.iter().copied()) {
                        report.shapes.push(ShapeDiffers { name, expected: tensor.shape, found: shape.to_vec() });
                    } else if !matches!(view.dtype(), Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64) {
                        report.types.push((name, alloc::format!("{:?}", view.dtype())));
                    } else {
                        matched.push((tensor, view));
                    }
                }
            }
        }
        if !self.allow_unexpected {
            let left = found.into_values().map(|(name, _)| name);
            let counted = |name: &&str| name.rsplit('.').next() != Some("num_batches_tracked");
            report.unexpected = left.filter(counted).map(ToString::to_string).collect();
        }
        if report.is_empty() { Ok(matched) } else { Err(StateDictError::Differs(report)) }
    }
}

fn joined(Name { scope, leaf }: Name<'_>) -> String {
    if scope.is_empty() { leaf.to_owned() } else { [scope, ".", leaf].concat() }
}

fn axes(shape: Shape) -> impl Iterator<Item = usize> {
    (0..shape.rank()).map(move |i| shape.axis(i))
}

/// Converts the data of a tensor; how much there is has been checked when the file was parsed.
fn fill<E: Real>(elements: &mut [E], view: &TensorView<'_>) {
    fn each<E, const N: usize>(elements: &mut [E], bytes: &[u8], convert: impl Fn([u8; N]) -> E) {
        elements.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, &from)| *to = convert(from));
    }
    let single = |x: f32| E::choose(x, f64::from(x));
    let bytes = view.data();
    match view.dtype() {
        Dtype::F16 => each(elements, bytes, |x| single(f16::from_le_bytes(x).to_f32())),
        Dtype::BF16 => each(elements, bytes, |x| single(bf16::from_le_bytes(x).to_f32())),
        Dtype::F64 => each(elements, bytes, |x| E::choose(f64::from_le_bytes(x) as f32, f64::from_le_bytes(x))),
        _ => each(elements, bytes, |x| single(f32::from_le_bytes(x))),
    }
}

/// PyTorch's files.
impl<B: Backend> Program<'_, B> {
    /// Loads trained parameters and state by name. Frozen parameters in the file are passed over: they lie elsewhere, see
    /// [`Program::load_frozen_state_dict`].
    ///
    /// # Errors
    /// When a tensor is missing or unexpected, or has another shape; the report names all of them, and the memory is as it was.
    pub fn load_state_dict(
        &self,
        memory: &mut Memory<'_, B::Elem>,
        dict: &StateDict<'_>,
    ) -> Result<(), StateDictError> {
        exactly(Space::Params, self.params_len(), memory.params.len())?;
        at_least(Space::State, self.state_len(), memory.state.len())?;
        for (tensor, view) in dict.matched(self.tensors(), &[Space::Params, Space::State])? {
            let space = if tensor.space == Space::Params { &mut *memory.params } else { &mut *memory.state };
            fill(space.get_mut(tensor.range()).unwrap_or_default(), &view);
        }
        Ok(())
    }

    /// Loads frozen parameters by name, into what a [`Memory`] takes as its frozen space.
    ///
    /// # Errors
    /// As [`Program::load_state_dict`]; `frozen` is as it was then.
    pub fn load_frozen_state_dict(&self, frozen: &mut [B::Elem], dict: &StateDict<'_>) -> Result<(), StateDictError> {
        at_least(Space::Frozen, self.frozen_len(), frozen.len())?;
        for (tensor, view) in dict.matched(self.tensors(), &[Space::Frozen])? {
            fill(frozen.get_mut(tensor.range()).unwrap_or_default(), &view);
        }
        Ok(())
    }

    /// The parameters, frozen ones too, and the state as a file that PyTorch's `safetensors.torch.load_file` reads.
    ///
    /// # Errors
    /// When a space of `memory` is too short.
    pub fn save_state_dict(&self, memory: &Memory<'_, B::Elem>) -> Result<Vec<u8>, StateDictError> {
        exactly(Space::Params, self.params_len(), memory.params.len())?;
        at_least(Space::State, self.state_len(), memory.state.len())?;
        at_least(Space::Frozen, self.frozen_len(), memory.frozen.len())?;
        let dtype = if Element::of::<B::Elem>() == Element::F64 { Dtype::F64 } else { Dtype::F32 };
        let named = self.tensors().iter().map(|tensor| {
            let space = match tensor.space {
                Space::Params => &*memory.params,
                Space::State => &*memory.state,
                _ => memory.frozen,
            };
            let mut bytes: Vec<u8> = bytemuck::must_cast_slice(space.get(tensor.range()).unwrap_or_default()).to_vec();
            if cfg!(target_endian = "big") {
                bytes.chunks_exact_mut(size_of::<B::Elem>()).for_each(<[u8]>::reverse);
            }
            let shape: Vec<usize> = axes(tensor.shape).collect();
            (joined(tensor.name), shape, bytes)
        });
        let named: Vec<_> = named.collect();
        let views: Result<Vec<_>, SafeTensorError> = named
            .iter()
            .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(dtype, shape.clone(), bytes)?)))
            .collect();
        Ok(safetensors::serialize(views?, None)?)
    }

    /// A slab image of the weights in a file, frozen ones included: what a firmware has built in and uses in place with
    /// [`Program::frozen_in`].
    ///
    /// # Errors
    /// As [`Program::load_state_dict`].
    pub fn pack(&self, dict: &StateDict<'_>) -> Result<Vec<u8>, StateDictError> {
        let zeros = |len: usize| vec![B::Elem::ZERO; len];
        let (mut frozen, mut params, mut state) =
            (zeros(self.frozen_len()), zeros(self.params_len()), zeros(self.state_len()));
        self.load_frozen_state_dict(&mut frozen, dict)?;
        let mut memory = Memory {
            params: &mut params,
            frozen: &frozen,
            state: &mut state,
            grads: &mut [],
            moments: &mut [],
            work: &mut [],
        };
        self.load_state_dict(&mut memory, dict)?;
        let mut image = self.image(&memory, Contents::weights().with_frozen()).map_err(StateDictError::Save)?;
        let mut bytes = vec![0; image.image_len() as usize];
        image.read(&mut bytes);
        Ok(bytes)
    }
}
