//! What a model is compiled with: an optimizer and a loss.

use slabgrad::layer;
use slabgrad::ops::Reduction;
use slabgrad::optim::{Adagrad, Adam, AmsGrad, Momentum, Optimizer, ParamGroup, RmsProp, Sgd};
use slabgrad::plan::{NotFinite, Training};
use slabgrad::prelude::{CrossEntropy, Strict};
use slabgrad::shape::Shape;
use slabgrad::tape::{GrowingTape, Handle};
use wasm_bindgen::JsValue;

use crate::description::{Description, Result};
use crate::model::batched;

/// Everything that `compile` is told.
pub(crate) struct Settings {
    pub(crate) optimizer: AnyOptimizer,
    pub(crate) loss: Loss,
    pub(crate) training: Training,
    pub(crate) group: ParamGroup,
}

impl Settings {
    pub(crate) fn new(options: JsValue) -> Result<Self> {
        let d = Description::options("compile", options)?;
        let (Some(optimizer), Some(loss)) = (d.get("optimizer"), d.get("loss")) else {
            return d.error("`optimizer` and `loss` are needed");
        };
        let (optimizer, group) = AnyOptimizer::new(&optimizer)?;
        let loss = Loss::new(&loss)?;
        let mut training = Training::with_slots(0);
        if let Some(max) = d.number("clipNorm")? {
            training = training.clip_norm(max);
        }
        training = match d.text("notFinite")?.as_deref() {
            None | Some("error") => training,
            Some("skip") => training.not_finite(NotFinite::Skip),
            Some("pass") => training.not_finite(NotFinite::Pass),
            Some(_) => return d.error("`notFinite` is \"error\", \"skip\" or \"pass\""),
        };
        d.finish()?;
        Ok(Self { optimizer, loss, training, group })
    }
}

/// One of the optimizers.
pub(crate) enum AnyOptimizer {
    Sgd(Sgd),
    Momentum(Momentum),
    Adam(Adam),
    AmsGrad(AmsGrad),
    RmsProp(RmsProp),
    RmsPropMomentum(RmsProp<f32, true>),
    RmsPropCentered(RmsProp<f32, false, true>),
    RmsPropBoth(RmsProp<f32, true, true>),
    Adagrad(Adagrad),
}

/// The same for whichever optimizer it is: `match` with one arm, since each is a type of its own.
macro_rules! with_optimizer {
    ($any:expr, $optimizer:ident => $body:expr) => {
        match $any {
            $crate::settings::AnyOptimizer::Sgd($optimizer) => $body,
            $crate::settings::AnyOptimizer::Momentum($optimizer) => $body,
            $crate::settings::AnyOptimizer::Adam($optimizer) => $body,
            $crate::settings::AnyOptimizer::AmsGrad($optimizer) => $body,
            $crate::settings::AnyOptimizer::RmsProp($optimizer) => $body,
            $crate::settings::AnyOptimizer::RmsPropMomentum($optimizer) => $body,
            $crate::settings::AnyOptimizer::RmsPropCentered($optimizer) => $body,
            $crate::settings::AnyOptimizer::RmsPropBoth($optimizer) => $body,
            $crate::settings::AnyOptimizer::Adagrad($optimizer) => $body,
        }
    };
}
pub(crate) use with_optimizer;

impl AnyOptimizer {
    /// The optimizer, and the weight decay of all parameters.
    fn new(value: &JsValue) -> Result<(Self, ParamGroup)> {
        let (d, kind) = Description::typed("optimizer", value)?;
        let rate = |default| Ok(d.number("learningRate")?.unwrap_or(default) as f32);
        let optimizer = match kind.as_str() {
            "sgd" => match d.number("momentum")? {
                None => Self::Sgd(Sgd::new(rate(0.01)?)),
                Some(momentum) => {
                    let sgd = Sgd::new(rate(0.01)?).momentum(momentum as f32);
                    let sgd = d.number("dampening")?.map_or(sgd, |dampening| sgd.dampening(dampening as f32));
                    Self::Momentum(if d.flag("nesterov", false)? { sgd.nesterov() } else { sgd })
                }
            },
            "adam" | "adamW" => {
                let mut adam = Adam::new(rate(1e-3)?);
                adam = match (d.number("beta1")?, d.number("beta2")?) {
                    (None, None) => adam,
                    (one, two) => adam.betas(one.unwrap_or(0.9) as f32, two.unwrap_or(0.999) as f32),
                };
                adam = d.number("epsilon")?.map_or(adam, |epsilon| adam.epsilon(epsilon as f32));
                adam = if kind == "adamW" { adam.decoupled() } else { adam };
                if d.flag("amsgrad", false)? { Self::AmsGrad(adam.amsgrad()) } else { Self::Adam(adam) }
            }
            "rmsprop" => {
                let rmsprop = RmsProp::new(rate(0.01)?);
                let rmsprop = d.number("alpha")?.map_or(rmsprop, |alpha| rmsprop.alpha(alpha as f32));
                let rmsprop = d.number("epsilon")?.map_or(rmsprop, |epsilon| rmsprop.epsilon(epsilon as f32));
                match (d.number("momentum")?.map(|momentum| momentum as f32), d.flag("centered", false)?) {
                    (None, false) => Self::RmsProp(rmsprop),
                    (None, true) => Self::RmsPropCentered(rmsprop.centered()),
                    (Some(momentum), false) => Self::RmsPropMomentum(rmsprop.momentum(momentum)),
                    (Some(momentum), true) => Self::RmsPropBoth(rmsprop.momentum(momentum).centered()),
                }
            }
            "adagrad" => {
                let adagrad = Adagrad::new(rate(0.01)?);
                Self::Adagrad(d.number("epsilon")?.map_or(adagrad, |epsilon| adagrad.epsilon(epsilon as f32)))
            }
            _ => return d.error("there is no optimizer of this type"),
        };
        // PyTorch's default for AdamW.
        let default = if kind == "adamW" { 0.01 } else { 0.0 };
        let group = ParamGroup::new().weight_decay(d.number("weightDecay")?.unwrap_or(default));
        d.finish()?;
        with_optimizer!(&optimizer, o => Optimizer::<Strict<f32>>::check(o).or_else(|error| d.error(error))?);
        Ok((optimizer, group))
    }

    /// Slots of moments, each as long as the parameters.
    pub(crate) fn slots(&self) -> usize {
        fn of<O: Optimizer<Strict<f32>>>(_: &O) -> usize {
            O::SLOTS
        }
        with_optimizer!(self, o => of(o))
    }

    /// Whether the moments of one go on in the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
    }

    pub(crate) fn learning_rate(&self) -> f32 {
        with_optimizer!(self, o => o.learning_rate())
    }

    pub(crate) fn set_learning_rate(&mut self, rate: f32) -> core::result::Result<(), slabgrad::optim::SettingError> {
        let before = self.learning_rate();
        with_optimizer!(self, o => {
            o.set_learning_rate(rate);
            let checked = Optimizer::<Strict<f32>>::check(o);
            if checked.is_err() {
                o.set_learning_rate(before);
            }
            checked
        })
    }
}

/// One of the losses, each a mean over the batch.
#[derive(Clone, Copy)]
pub(crate) enum Loss {
    CrossEntropy { label_smoothing: f64 },
    Nll,
    Mse,
    L1,
    Huber { delta: f64 },
    SmoothL1 { beta: f64 },
    BceWithLogits,
}

impl Loss {
    fn new(value: &JsValue) -> Result<Self> {
        let (d, kind) = Description::typed("loss", value)?;
        let loss = match kind.as_str() {
            "crossEntropy" => Self::CrossEntropy { label_smoothing: d.number("labelSmoothing")?.unwrap_or(0.0) },
            "nll" => Self::Nll,
            "mse" => Self::Mse,
            "l1" => Self::L1,
            "huber" => Self::Huber { delta: d.number("delta")?.unwrap_or(1.0) },
            "smoothL1" => Self::SmoothL1 { beta: d.number("beta")?.unwrap_or(1.0) },
            "bceWithLogits" => Self::BceWithLogits,
            _ => return d.error("there is no loss of this type"),
        };
        d.finish()?;
        Ok(loss)
    }

    /// How many classes its targets name, where they are class indices, for outputs of this shape.
    pub(crate) fn classes(self, output: Shape) -> Option<usize> {
        match self {
            Self::CrossEntropy { .. } | Self::Nll if output.rank() > 0 => Some(output.axis(0)),
            _ => None,
        }
    }

    /// The shape of a sample's target: of class indices one for each position, or else that of the output. Cross-entropy
    /// takes probabilities too, which are told by their number.
    pub(crate) fn target(self, output: Shape, samples: usize, elements: usize) -> Shape {
        let indices = match self.classes(output) {
            Some(_) => output.without(0),
            None => return output,
        };
        let are_probabilities = matches!(self, Self::CrossEntropy { .. })
            && elements != batched(indices, samples).len()
            && elements == batched(output, samples).len();
        if are_probabilities { output } else { indices }
    }

    pub(crate) fn record(self, tape: &mut GrowingTape, output: Handle, target: Handle) -> Handle {
        let mean = Reduction::Mean;
        match self {
            Self::CrossEntropy { label_smoothing } => {
                tape.cross_entropy(output, target, CrossEntropy::new().label_smoothing(label_smoothing))
            }
            Self::Nll => tape.nll(output, target, mean),
            Self::Mse => tape.mse(output, target, mean),
            Self::L1 => tape.l1(output, target, mean),
            Self::Huber { delta } => tape.huber(output, target, delta, mean),
            Self::SmoothL1 { beta } => tape.smooth_l1(output, target, beta, mean),
            Self::BceWithLogits => tape.bce_with_logits(output, target, mean),
        }
    }
}

/// Sets the decay of all parameters; a model without any has none to decay.
pub(crate) fn set_group(model: &mut layer::Model, group: ParamGroup) {
    let _ = model.set_group("", group);
}
