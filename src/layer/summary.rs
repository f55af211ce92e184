//! A model as a table.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter};

use super::model::batched;
use super::recorder::Role;
use super::{Model, ModelError};
use crate::backend::Backend;
use crate::compiled::{self, CompileError, Stats};
use crate::shape::Shape;

/// A model as a table: a line for each layer with the shape of its output for a sample and its parameters, and below it
/// totals and the RAM that training and inference take.
#[derive(Clone, Debug)]
pub struct Summary {
    lines: Vec<Line>,
    /// Elements of the trained parameters.
    pub trained: usize,
    /// Elements of the frozen parameters.
    pub frozen: usize,
    /// Elements of the state.
    pub state: usize,
    /// How many samples a batch has.
    pub batch: usize,
    /// A training step with Adam. The loss stands in: it is the sum of the output.
    pub training: Stats,
    /// An inference of a batch.
    pub inference: Stats,
}

#[derive(Clone, Debug)]
struct Line {
    layer: String,
    kind: &'static str,
    depth: usize,
    output: Shape,
    trained: usize,
    frozen: usize,
}

impl<B: Backend> Model<B> {
    /// The model as a table, with the RAM for batches of so many samples: what a program takes that is compiled for them.
    ///
    /// ```
    /// use slabgrad::layer::{Model, Sequential};
    ///
    /// let net = Sequential::new().linear("fc1", 64, 32).relu().linear("fc2", 32, 10);
    /// let mut model: Model = Model::new(net, [64], 1)?;
    /// model.freeze("fc1")?;
    /// let summary = model.summary(16).unwrap();
    /// assert_eq!((summary.trained, summary.frozen), (330, 2080));
    /// println!("{summary}");
    /// # Ok::<(), slabgrad::layer::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// When the model cannot be compiled for training: without a trained parameter, for instance.
    pub fn summary(&mut self, batch: usize) -> Result<Summary, CompileError> {
        let shape = batched(self.input_shape(), batch);
        let x = alloc::vec![B::Elem::default(); shape.len()];
        let training = compiled::stats(self, true, (shape, &x))?;
        let inference = compiled::stats(self, false, (shape, &x))?;
        let count =
            |role: Role| self.entries.iter().filter(|entry| entry.role == role).map(|entry| entry.shape.len()).sum();
        let line = |row: &super::recorder::Row| {
            // What a container's layers have is theirs.
            let own = if row.is_leaf { row.entries.clone() } else { 0..0 };
            let own = self.entries.get(own).unwrap_or_default();
            let of = |role: Role| own.iter().filter(|entry| entry.role == role).map(|entry| entry.shape.len()).sum();
            Line {
                layer: if row.path.is_empty() { "(model)".into() } else { row.path.clone() },
                kind: row.kind,
                depth: row.depth,
                output: row.output.without(0),
                trained: of(Role::Trained),
                frozen: of(Role::Frozen),
            }
        };
        Ok(Summary {
            lines: self.rows().iter().map(line).collect(),
            trained: count(Role::Trained),
            frozen: count(Role::Frozen),
            state: count(Role::State),
            batch,
            training,
            inference,
        })
    }
}

impl From<CompileError> for ModelError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Model(error) => error,
            other => Self::Compile(format!("{other}")),
        }
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        let name = |line: &Line| format!("{:indent$}{} ({})", "", line.layer, line.kind, indent = 2 * line.depth);
        let names: Vec<String> = self.lines.iter().map(name).collect();
        let outputs: Vec<String> = self.lines.iter().map(|line| format!("{}", line.output)).collect();
        let width = |texts: &[String], least: usize| texts.iter().map(String::len).max().unwrap_or(0).max(least);
        let (layer, output) = (width(&names, "Layer".len()), width(&outputs, "Output shape".len()));
        writeln!(f, "{:<layer$}  {:<output$}  {:>12}", "Layer", "Output shape", "Parameters")?;
        let rule = "=".repeat(layer + output + 26);
        writeln!(f, "{rule}")?;
        for ((line, name), shape) in self.lines.iter().zip(&names).zip(&outputs) {
            write!(f, "{name:<layer$}  {shape:<output$}  {:>12}", grouped(line.trained + line.frozen))?;
            match (line.trained, line.frozen) {
                (0, 0) => {}
                (_, 0) => f.write_str("  trained")?,
                (0, _) => f.write_str("  frozen")?,
                _ => f.write_str("  partly")?,
            }
            writeln!(f)?;
        }
        writeln!(f, "{rule}")?;
        let Self { trained, frozen, state, batch, training, inference, .. } = self;
        writeln!(
            f,
            "Parameters: {}, trained {}, frozen {}; state: {}",
            grouped(trained + frozen),
            grouped(*trained),
            grouped(*frozen),
            grouped(*state)
        )?;
        writeln!(f, "Bytes of RAM, batch {batch}:")?;
        for (what, stats) in [("training with Adam", training), ("inference", inference)] {
            let Stats { params_bytes, state_bytes, grads_bytes, moments_bytes, work_bytes, .. } = stats;
            writeln!(
                f,
                "  {what:<20} {:>12}  (parameters {}, state {}, gradients {}, moments {}, work {})",
                grouped(stats.ram_bytes()),
                grouped(*params_bytes),
                grouped(*state_bytes),
                grouped(*grads_bytes),
                grouped(*moments_bytes),
                grouped(*work_bytes)
            )?;
        }
        write!(f, "  {:<20} {:>12}", "frozen, also in flash", grouped(training.frozen_bytes))
    }
}

/// A number with its digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = format!("{number}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
