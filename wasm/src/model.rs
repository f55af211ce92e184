//! A model as JavaScript has it.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use slabgrad::checkpoint::{Block, Contents, Image, ImageError};
use slabgrad::compiled::{CompileError, Context, Input, Use};
use slabgrad::layer;
use slabgrad::metrics::{RunningMean, argmax};
use slabgrad::optim::{HEADER_LEN, Optimizer, steps_done};
use slabgrad::plan::Training;
use slabgrad::prelude::Strict;
use slabgrad::shape::Shape;
use slabgrad::tape::{GrowingTape, Handle};
use slabgrad::train::{DatasetError, FitError};
use wasm_bindgen::prelude::*;

use crate::description::{Description, object};
use crate::failure::Failure;
use crate::js::{self, Array};
use crate::layers;
use crate::settings::{Loss, Settings, set_group, with_optimizer};

/// Compiled steps that are kept: for each use and each size of a batch one, the least recently used of which makes room.
const MAX_CONTEXTS: usize = 8;

/// A model of layers, its compiled steps, its optimizer and its loss.
#[wasm_bindgen]
pub struct Model {
    layers: layer::Model,
    settings: Option<Settings>,
    contexts: Vec<(Use, usize, Context)>,
}

/// `compile` has not been called.
#[derive(Debug)]
struct NotCompiled;

impl core::fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the model has no optimizer and no loss: call compile({ optimizer, loss }) first")
    }
}

impl core::error::Error for NotCompiled {}

#[wasm_bindgen]
impl Model {
    /// A model of these layers, the first of which is `{ type: "input", shape }`. Parameters are drawn from `seed`, and are the
    /// same wherever it is the same.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "LayerDescription[]")] layers: &Array,
        #[wasm_bindgen(unchecked_optional_param_type = "ModelOptions")] options: JsValue,
    ) -> Result<Self, Failure> {
        let options = Description::options("Model", options)?;
        let seed = options.seed("seed")?.unwrap_or(0);
        options.finish()?;
        let (network, sample) = layers::network(layers)?;
        let Some(sample) = sample else {
            return Err(Failure::new("the first layer has to be { type: \"input\", shape: [...] }"));
        };
        Ok(Self { layers: layer::Model::new(network, sample, seed)?, settings: None, contexts: Vec::new() })
    }

    /// Sets the optimizer and the loss. It may be called again, while training goes on: another kind of optimizer starts
    /// without moments.
    pub fn compile(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "CompileOptions")] options: JsValue,
    ) -> Result<(), Failure> {
        let settings = Settings::new(options)?;
        match &self.settings {
            Some(before) if before.optimizer.is_like(&settings.optimizer) => (),
            Some(_) => self.layers.reset_moments(),
            None => self.check_moments(self.layers.moments().len(), settings.optimizer.slots())?,
        }
        set_group(&mut self.layers, settings.group);
        self.contexts.clear();
        self.settings = Some(settings);
        Ok(())
    }

    /// One training step with a batch, whose size follows from the number of elements; returns the loss before the update.
    #[wasm_bindgen(js_name = trainStep)]
    pub fn train_step(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] x: &[f32],
        #[wasm_bindgen(unchecked_param_type = "Numbers")] y: &[f32],
    ) -> Result<f32, Failure> {
        let samples = self.samples(x.len())?;
        let target = self.target(samples, y.len())?;
        self.step(samples, x, y, target)
    }

    /// The outputs for samples, one after the other.
    #[wasm_bindgen(unchecked_return_type = "Float32Array")]
    pub fn predict(&mut self, #[wasm_bindgen(unchecked_param_type = "Numbers")] x: &[f32]) -> Result<JsValue, Failure> {
        let samples = self.samples(x.len())?;
        let shape = batched(self.layers.input_shape(), samples);
        let (context, model) = self.context(Use::Inference, samples, Training::with_slots(0));
        Ok(js::Floats::new(context.forward(model, (shape, x))?).into())
    }

    /// All parameters and states, each with a copy of its numbers.
    #[wasm_bindgen(unchecked_return_type = "Weight[]")]
    pub fn weights(&self) -> Array {
        array(self.layers.tensors().map(|tensor| weight(&tensor)))
    }

    /// The parameter or state of this name, with a copy of its numbers.
    #[wasm_bindgen(unchecked_return_type = "Weight | undefined")]
    pub fn weight(&self, name: &str) -> JsValue {
        self.layers.tensor(name).map_or(JsValue::UNDEFINED, |tensor| weight(&tensor))
    }

    /// Gives a parameter or state these numbers.
    #[wasm_bindgen(js_name = setWeight)]
    pub fn set_weight(
        &mut self,
        name: &str,
        #[wasm_bindgen(unchecked_param_type = "Numbers")] data: &[f32],
    ) -> Result<(), Failure> {
        Ok(self.layers.set(name, data)?)
    }

    /// The numbers of a parameter or state where they lie, without a copy; for reading at once. The view is of the module's memory:
    /// it becomes empty when that grows, and shows something else when the model has been freed or layers are frozen.
    #[wasm_bindgen(unchecked_return_type = "Float32Array | undefined")]
    pub fn view(&self, name: &str) -> JsValue {
        self.layers.tensor(name).map_or(JsValue::UNDEFINED, |tensor| js::view(tensor.data))
    }

    /// Excludes the parameters of layer `name` from training; all with an empty name.
    pub fn freeze(&mut self, name: &str) -> Result<(), Failure> {
        self.layers.freeze(name)?;
        self.contexts.clear();
        Ok(())
    }

    /// The opposite of `freeze`.
    pub fn unfreeze(&mut self, name: &str) -> Result<(), Failure> {
        self.layers.unfreeze(name)?;
        self.contexts.clear();
        Ok(())
    }

    /// A slab image: parameters, state and, unless told otherwise, the optimizer's moments, so that training goes on with the same
    /// bits wherever it is loaded; and bytes of your own.
    pub fn save(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "SaveOptions")] options: JsValue,
    ) -> Result<Vec<u8>, Failure> {
        let options = Description::options("save", options)?;
        let moments = options.flag("moments", true)?;
        let user = options.get("user").map_or_else(Vec::new, |user| js::Bytes::new(&user).slice());
        options.finish()?;
        let contents = if moments { Contents::training() } else { Contents::weights() };
        let mut bytes = Vec::new();
        self.layers.save(contents.with_frozen().with_user(&user), &mut bytes)?;
        Ok(bytes)
    }

    /// Loads a slab image of the same network; returns the bytes of your own in it. An image without moments leaves those that
    /// there are.
    pub fn load(&mut self, image: &[u8]) -> Result<Vec<u8>, Failure> {
        let image = Image::parse(image)?;
        let header = image.header();
        if let Some(settings) = &self.settings
            && header.fingerprint() == self.layers.fingerprint()
        {
            self.check_moments(header.len(Block::Moments), settings.optimizer.slots())?;
        }
        self.layers.load(&image)?;
        Ok(image.block(Block::User).to_vec())
    }

    /// Forgets the optimizer's moments: its next step is a first one.
    #[wasm_bindgen(js_name = resetMoments)]
    pub fn reset_moments(&mut self) {
        self.layers.reset_moments();
    }

    /// The learning rate of the next steps.
    #[wasm_bindgen(getter, js_name = learningRate)]
    pub fn learning_rate(&self) -> Result<f32, Failure> {
        Ok(self.settings()?.optimizer.learning_rate())
    }

    /// Sets it, while training goes on as well.
    #[wasm_bindgen(setter, js_name = learningRate)]
    pub fn set_learning_rate(&mut self, rate: f32) -> Result<(), Failure> {
        Ok(self.settings.as_mut().ok_or(NotCompiled)?.optimizer.set_learning_rate(rate)?)
    }

    /// How many updates there have been.
    #[wasm_bindgen(getter)]
    pub fn steps(&self) -> usize {
        steps_done(self.layers.moments())
    }

    /// The shape of a sample.
    #[wasm_bindgen(getter, js_name = inputShape)]
    pub fn input_shape(&self) -> Vec<u32> {
        axes(self.layers.input_shape())
    }

    /// The shape of the output for a sample.
    #[wasm_bindgen(getter, js_name = outputShape)]
    pub fn output_shape(&self) -> Vec<u32> {
        axes(self.layers.output_shape())
    }

    /// Elements of all parameters.
    #[wasm_bindgen(getter, js_name = parameterCount)]
    pub fn parameter_count(&self) -> usize {
        self.layers.parameter_count()
    }

    /// What training steps take, in bytes; undefined before the first.
    #[wasm_bindgen(unchecked_return_type = "Memory | undefined")]
    pub fn memory(&self) -> JsValue {
        let mut trained = self.contexts.iter().rev().filter(|(use_, ..)| *use_ == Use::Training);
        let Some(report) = trained.find_map(|(_, _, context)| context.program()) else { return JsValue::UNDEFINED };
        let stats = report.stats();
        object([
            ("total", (stats.ram_bytes() + stats.frozen_bytes).into()),
            ("params", (stats.params_bytes + stats.frozen_bytes).into()),
            ("state", stats.state_bytes.into()),
            ("grads", stats.grads_bytes.into()),
            ("moments", stats.moments_bytes.into()),
            ("work", stats.work_bytes.into()),
        ])
    }

    /// The structure as text, a line for each layer.
    #[wasm_bindgen(js_name = toString)]
    pub fn describe(&self) -> String {
        self.layers.to_string()
    }
}

impl Model {
    pub(crate) fn settings(&self) -> Result<&Settings, Failure> {
        Ok(self.settings.as_ref().ok_or(NotCompiled)?)
    }

    /// Shapes of a sample and of an output, and the loss.
    pub(crate) fn task(&self) -> Result<(Shape, Shape, Loss), Failure> {
        Ok((self.layers.input_shape(), self.layers.output_shape(), self.settings()?.loss))
    }

    /// A training step with a batch that fits.
    pub(crate) fn step(&mut self, samples: usize, x: &[f32], y: &[f32], target: Shape) -> Result<f32, Failure> {
        let Settings { loss, training, .. } = *self.settings()?;
        let x = (batched(self.layers.input_shape(), samples), x);
        let y = (batched(target, samples), y);
        // Taken out for the step, which needs the model's other parts too.
        let mut settings = self.settings.take().ok_or(NotCompiled)?;
        let (context, model) = self.context(Use::Training, samples, training);
        // In two halves: the first one, which is big, is the same code for all optimizers.
        let record = &recorded(loss) as &Recorded;
        let outcome = with_optimizer!(&mut settings.optimizer, o => {
            gradients(context, model, o, record, x, y).and_then(|loss| context.update(model, o).map(|()| loss))
        });
        self.settings = Some(settings);
        Ok(outcome?)
    }

    /// The loss of a batch, and how many of its samples were taken for what they are where targets are class indices.
    pub(crate) fn evaluate(
        &mut self,
        samples: usize,
        x: &[f32],
        y: &[f32],
        target: Shape,
        sums: &mut Sums,
    ) -> Result<(), Failure> {
        let (sample, output, loss) = self.task()?;
        let has_scores = target.rank() == 0 && output.rank() == 1;
        let (x, targets) = ((batched(sample, samples), x), (batched(target, samples), y));
        let (context, model) = self.context(Use::Evaluation, samples, Training::with_slots(0));
        let value = context.loss(model, &recorded(loss) as &Recorded, x, &[targets])?;
        sums.loss.add_mean(value, samples);
        if has_scores {
            let scores = context.output().unwrap_or_default().chunks_exact(output.len().max(1));
            let right = scores.zip(y).filter(|(scores, label)| argmax(scores) == Some(**label as usize)).count();
            sums.right = Some(sums.right.unwrap_or(0) + right);
        }
        Ok(())
    }

    /// How many samples so many elements are.
    fn samples(&self, elements: usize) -> Result<usize, FitError> {
        let of_a_sample = self.layers.input_shape().len();
        match elements.checked_div(of_a_sample) {
            Some(samples) if elements.is_multiple_of(of_a_sample) && samples > 0 => Ok(samples),
            _ => Err(FitError::Elements { found: elements, of_a_sample }),
        }
    }

    /// The shape of a target, of which there are as many as samples.
    fn target(&self, samples: usize, elements: usize) -> Result<Shape, Failure> {
        let (_, output, loss) = self.task()?;
        let target = loss.target(output, samples, elements);
        let expected = batched(target, samples).len();
        if expected == elements {
            Ok(target)
        } else {
            Err(DatasetError::Targets { samples, expected, found: elements }.into())
        }
    }

    /// Moments of another optimizer are no use.
    fn check_moments(&self, found: usize, slots: usize) -> Result<(), Failure> {
        let trained = self.layers.parameters().filter(|parameter| !parameter.is_frozen());
        let expected = HEADER_LEN + slots * trained.map(|parameter| parameter.data.len()).sum::<usize>();
        if found == 0 || found == expected {
            Ok(())
        } else {
            Err(ImageError::Block { block: Block::Moments, expected, found }.into())
        }
    }

    /// The compiled steps for this use and this size of a batch, beside the model.
    fn context(&mut self, use_: Use, samples: usize, training: Training) -> (&mut Context, &mut layer::Model) {
        // The last one is the one used last.
        if let Some(at) = self.contexts.iter().rposition(|(of, size, _)| (*of, *size) == (use_, samples)) {
            self.contexts[at..].rotate_left(1);
        } else {
            if self.contexts.len() == MAX_CONTEXTS {
                self.contexts.remove(0);
            }
            self.contexts.push((use_, samples, Context::with(training)));
        }
        let at = self.contexts.len() - 1;
        (&mut self.contexts[at].2, &mut self.layers)
    }
}

/// A loss as contexts take it, and one type for all uses: what compiles a step is big, and there once.
type Recorded = dyn Fn(&mut GrowingTape, Handle, &[Handle]) -> Handle;

fn recorded(loss: Loss) -> impl Fn(&mut GrowingTape, Handle, &[Handle]) -> Handle {
    move |tape, output, extra| loss.record(tape, output, extra[0])
}

fn gradients<O: Optimizer<Strict<f32>>>(
    context: &mut Context,
    model: &mut layer::Model,
    _: &O,
    loss: &Recorded,
    x: Input<'_, f32>,
    y: Input<'_, f32>,
) -> Result<f32, CompileError> {
    context.gradients::<O>(model, loss, x, &[y])
}

/// What an evaluation adds up.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) loss: RunningMean<f32>,
    pub(crate) right: Option<usize>,
}

impl Sums {
    pub(crate) fn result(&self) -> JsValue {
        let accuracy = self.right.map(|right| right as f32 / self.loss.count().max(1) as f32);
        object([("loss", self.loss.mean().into()), ("accuracy", accuracy.into())])
    }
}

/// The shape of a batch of so many samples.
pub(crate) fn batched(sample: Shape, samples: usize) -> Shape {
    (0..sample.rank()).fold(Shape::new([samples]), |shape, axis| shape.push(sample.axis(axis)))
}

fn axes(shape: Shape) -> Vec<u32> {
    (0..shape.rank()).map(|axis| shape.axis(axis) as u32).collect()
}

fn array(items: impl Iterator<Item = JsValue>) -> Array {
    let array = Array::new();
    items.for_each(|item| array.push(&item));
    array
}

fn weight(tensor: &layer::TensorView<'_, f32>) -> JsValue {
    let kind = match (tensor.is_state(), tensor.is_frozen()) {
        (true, _) => "state",
        (_, true) => "frozen",
        _ => "trained",
    };
    object([
        ("name", tensor.name().into()),
        ("shape", array(axes(tensor.shape()).into_iter().map(JsValue::from)).into()),
        ("kind", kind.into()),
        ("data", js::Floats::new(tensor.data).into()),
    ])
}
