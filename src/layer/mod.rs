//! Layers: networks that are put together at run time, as PyTorch and Keras do it.
//!
//! A [`Layer`] is a description: it says what it records and which parameters it has, and holds no numbers. A [`Model`] is a
//! layer with its numbers, which lie on a tape of its own, laid out as a static graph of the same network lays them out.
//! A forward pass is recorded on that tape, layer by layer; a [`Context`](crate::compiled::Context) compiles it instead and
//! replays it.
//!
//! ```
//! use slabgrad::layer::{Activation, Model, Sequential};
//! use slabgrad::prelude::*;
//!
//! let net = Sequential::new().linear("hidden", 2, 8).activation(Activation::Tanh).linear("out", 8, 1);
//! let mut model: Model = Model::new(net, [2], 1)?;
//! let (x, y) = ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
//! for _ in 0..200 {
//!     let input = model.tape().constant([4, 2], &x);
//!     let logits = model.forward(input)?;
//!     let target = model.tape().constant([4, 1], &y);
//!     let loss = model.tape().bce_with_logits(logits, target, Reduction::Mean);
//!     model.backward(loss)?;
//!     model.update(&Adam::new(0.1))?;
//!     model.zero_grad();
//! }
//! let single = model.tape().constant([2], &[0.0, 1.0]);
//! let logit = model.forward(single)?;
//! assert!(model.tape().item(logit) > 2.0);
//! assert_eq!(model.parameters().map(|p| p.name().to_string()).collect::<Vec<_>>()[0], "hidden.weight");
//! # Ok::<(), slabgrad::layer::ModelError>(())
//! ```
//!
//! A layer of your own is one more implementation of the trait:
//!
//! ```
//! use slabgrad::layer::{Layer, Model, Recorder};
//! use slabgrad::prelude::*;
//! use slabgrad::tape;
//!
//! /// A factor for every feature.
//! struct Scale(usize);
//!
//! impl<B: Backend> Layer<B> for Scale {
//!     fn kind(&self) -> &'static str {
//!         "Scale"
//!     }
//!     fn forward(&self, r: &mut Recorder<'_, B>, x: tape::Handle) -> tape::Handle {
//!         let factor = r.parameter("factor", [self.0], Init::Ones);
//!         r.tape().mul(x, factor)
//!     }
//! }
//! let model: Model = Model::new(Scale(3), [3], 1)?;
//! assert_eq!(model.parameter_count(), 3);
//! # Ok::<(), slabgrad::layer::ModelError>(())
//! ```

mod activation;
mod containers;
mod conv;
mod dropout;
mod error;
mod flatten;
mod linear;
mod model;
mod norms;
mod pool;
mod recorder;
#[cfg(feature = "cbor")]
pub(crate) mod registry;
mod summary;
mod tensors;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::backend::Backend;
use crate::error::Decimal;
use crate::tape::Handle;

pub use activation::Activation;
pub use containers::{Residual, Sequential};
pub use conv::{Conv1d, Conv2d, Convolution};
pub use dropout::Dropout;
pub use error::ModelError;
pub use flatten::Flatten;
pub use linear::{Embedding, Linear};
pub use model::Model;
pub(crate) use model::batched;
pub use norms::{BatchNorm, BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RmsNorm};
pub use pool::{AvgPool2d, GlobalAvgPool2d, MaxPool2d};
pub use recorder::Recorder;
pub(crate) use recorder::Role;
pub use summary::Summary;
pub use tensors::TensorView;

/// What a layer does. It works on batches: the first axis of its input and its output counts samples.
pub trait Layer<B: Backend> {
    /// The kind of layer, such as `Linear`.
    fn kind(&self) -> &'static str;

    /// Records the layer's operations, and returns its output. It asks the recorder for its parameters, always for the same
    /// ones in the same order.
    fn forward(&self, recorder: &mut Recorder<'_, B>, x: Handle) -> Handle;

    /// Its settings, in the order in which they are shown.
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        Vec::new()
    }

    /// The layers that it is made of, with their names.
    fn children(&self) -> Vec<(&str, &dyn Layer<B>)> {
        Vec::new()
    }

    /// The features or channels of its input; `None` where it takes any.
    fn input_size(&self) -> Option<usize> {
        None
    }

    /// The features or channels of its output; `None` where they depend on the input.
    fn output_size(&self) -> Option<usize> {
        None
    }
}

impl<B: Backend> Layer<B> for Box<dyn Layer<B>> {
    fn kind(&self) -> &'static str {
        (**self).kind()
    }
    fn forward(&self, recorder: &mut Recorder<'_, B>, x: Handle) -> Handle {
        (**self).forward(recorder, x)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        (**self).settings()
    }
    fn children(&self) -> Vec<(&str, &dyn Layer<B>)> {
        (**self).children()
    }
    fn input_size(&self) -> Option<usize> {
        (**self).input_size()
    }
    fn output_size(&self) -> Option<usize> {
        (**self).output_size()
    }
}

/// The value of a layer's setting.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// A count.
    Size(usize),
    /// A height and a width.
    Pair([usize; 2]),
    /// A number.
    Number(f64),
    /// Whether something is so.
    Flag(bool),
    /// An activation.
    Activation(Activation),
    /// The seed of a generator.
    Seed(u64),
}

impl core::fmt::Display for Setting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Pair([height, width]) => write!(f, "{height}x{width}"),
            Self::Number(number) => write!(f, "{}", Decimal(*number)),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Activation(activation) => write!(f, "{activation}"),
            Self::Seed(seed) => write!(f, "{seed}"),
        }
    }
}

/// The structure of a layer as text: a line for each layer, with its settings, children indented.
pub(crate) fn write_structure<B: Backend>(
    f: &mut core::fmt::Formatter<'_>,
    layer: &dyn Layer<B>,
    name: &str,
    indent: usize,
) -> core::fmt::Result {
    write!(f, "{:indent$}", "")?;
    if !name.is_empty() {
        write!(f, "{name}: ")?;
    }
    write!(f, "{}(", layer.kind())?;
    for (i, (setting, value)) in layer.settings().into_iter().enumerate() {
        write!(f, "{}{setting}={value}", if i == 0 { "" } else { ", " })?;
    }
    let children = layer.children();
    if children.is_empty() {
        return f.write_str(")");
    }
    for (name, child) in children {
        f.write_str("\n")?;
        write_structure(f, child, name, indent + 2)?;
    }
    write!(f, "\n{:indent$})", "")
}
