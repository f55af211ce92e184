//! A progress bar.

use alloc::format;
use alloc::string::String;
use core::ops::ControlFlow;

use indicatif::{ProgressBar as Bar, ProgressStyle};

use super::{BatchReport, Callback, EpochReport};
use crate::backend::{Backend, Real};
use crate::layer::Model;

/// A bar for each epoch, on the terminal's error output, with the losses and the accuracy. Without a terminal there is a line
/// for each epoch instead.
///
/// ```
/// use slabgrad::layer::{Model, Sequential};
/// use slabgrad::prelude::*;
/// use slabgrad::train::{Dataset, ProgressBar, Trainer};
///
/// let data = Dataset::new([1], vec![0.0, 1.0, 2.0], [1], vec![1.0, 3.0, 5.0])?;
/// let mut model: Model = Model::new(Sequential::new().linear("line", 1, 1), [1], 1)?;
/// let mut bar = ProgressBar::new();
/// Trainer::new(3, 3).callback(&mut bar).fit(&mut model, &data, &mut Sgd::new(0.1), |tape, y, target| {
///     tape.mse(y, target, Reduction::Mean)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ProgressBar {
    bar: Option<Bar>,
}

impl ProgressBar {
    /// A bar that appears with the first batch.
    #[must_use]
    pub const fn new() -> Self {
        Self { bar: None }
    }
}

impl<B: Backend> Callback<B> for ProgressBar {
    fn on_batch(&mut self, report: &BatchReport<B::Elem>) -> ControlFlow<()> {
        if report.batch == 0 {
            let bar = Bar::new(report.batches as u64);
            if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:24} {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(format!("epoch {:>3}/{}", report.epoch + 1, report.epochs));
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.inc(1);
            bar.set_message(format!("loss {:.4}", report.mean_loss.to_f32()));
        }
        ControlFlow::Continue(())
    }

    fn on_epoch(&mut self, report: &EpochReport<B::Elem>, _: &Model<B>) -> ControlFlow<()> {
        let Some(bar) = self.bar.take() else { return ControlFlow::Continue(()) };
        let validation = report.validation_loss.map(|loss| format!("  validation {:.4}", loss.to_f32()));
        let accuracy = report.accuracy.map(|accuracy| format!("  accuracy {:.2} %", 100.0 * accuracy.to_f32()));
        let text = |part: Option<String>| part.unwrap_or_default();
        bar.set_message(format!("loss {:.4}{}{}", report.loss.to_f32(), text(validation), text(accuracy)));
        bar.finish();
        if bar.is_hidden() {
            std::eprintln!("{}  {}", bar.prefix(), bar.message());
        }
        ControlFlow::Continue(())
    }
}
