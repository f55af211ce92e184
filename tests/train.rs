//! Training loops: what they see, what they tell, when they end, and what they leave.
#![cfg(feature = "alloc")]

use std::ops::ControlFlow;

use slabgrad::layer::{Activation, Model, Sequential};
use slabgrad::metrics::EarlyStopping;
use slabgrad::optim::{Constant, Exponential, Optimizer};
use slabgrad::prelude::*;
use slabgrad::tape::{GrowingTape, Handle};
use slabgrad::train::{
    BatchReport, Callback, Dataset, EpochReport, FitError, History, LastBatch, Stop, Trainer, evaluate, predict,
};

fn cross_entropy(tape: &mut GrowingTape, logits: Handle, label: Handle) -> Handle {
    tape.cross_entropy(logits, label, CrossEntropy::new())
}

fn mse(tape: &mut GrowingTape, y: Handle, target: Handle) -> Handle {
    tape.mse(y, target, Reduction::Mean)
}

/// Points in a square and on which side of a diagonal they lie.
fn points(count: usize) -> Dataset {
    let points: Vec<f32> = (0..2 * count).map(|i| (i * 389 % 1000) as f32 / 500.0 - 1.0).collect();
    let labels: Vec<usize> = points.chunks(2).map(|p| usize::from(p[0] + p[1] > 0.0)).collect();
    Dataset::with_labels([2], points, 2, labels).unwrap()
}

fn classifier() -> Model {
    let layers = Sequential::new().linear("fc1", 2, 8).batch_norm1d("bn", 8).relu().dropout(0.1).linear("fc2", 8, 2);
    Model::new(layers, [2], 3).unwrap()
}

fn bits(model: &Model) -> Vec<u32> {
    model.tensors().flat_map(|tensor| tensor.data).map(|x| x.to_bits()).collect()
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let (training, validation) = points(75).split(0.2, 1).unwrap();
    let run = |seed| {
        let mut model = classifier();
        let trainer = Trainer::new(3, 16).seed(seed).validation(&validation);
        let history = trainer.fit(&mut model, &training, &mut Adam::new(0.01), cross_entropy).unwrap();
        assert_eq!((history.epochs.len(), history.stop), (3, Stop::Done));
        (bits(&model), history)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn steps_are_those_of_a_loop_on_the_tape() {
    let data = points(21);
    let (mut fitted, mut by_hand) = (classifier(), classifier());
    let history = Trainer::new(2, 8).seed(5).fit(&mut fitted, &data, &mut Adam::new(0.01), cross_entropy).unwrap();
    let mut batches = data.batches(8).shuffled(5);
    let mut losses = Vec::new();
    for epoch in 0..2 {
        batches.start(epoch);
        let mut sum = 0.0;
        while let Some(batch) = batches.next_batch() {
            let x = by_hand.tape().constant(batch.x.0, batch.x.1);
            let label = by_hand.tape().constant(batch.target.0, batch.target.1);
            let logits = by_hand.forward(x).unwrap();
            let loss = cross_entropy(by_hand.tape(), logits, label);
            by_hand.backward(loss).unwrap();
            by_hand.update(&Adam::new(0.01)).unwrap();
            sum += by_hand.tape().item(loss) * batch.len as f32;
            by_hand.zero_grad();
        }
        losses.push(sum / 21.0);
    }
    assert_eq!(bits(&fitted), bits(&by_hand));
    for (report, loss) in history.epochs.iter().zip(losses) {
        assert!((report.loss - loss).abs() < 1e-6, "{} is the mean of the samples' losses, {loss}", report.loss);
    }
}

/// Notes down what it is told, and ends training after some batches or epochs.
#[derive(Default)]
struct Notes {
    batches: Vec<BatchReport<f32>>,
    epochs: Vec<EpochReport<f32>>,
    parameters: Vec<Vec<u32>>,
    last_batch: Option<usize>,
    last_epoch: Option<usize>,
}

fn break_if(condition: bool) -> ControlFlow<()> {
    if condition { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl Callback<Strict<f32>> for Notes {
    fn on_batch(&mut self, report: &BatchReport<f32>) -> ControlFlow<()> {
        self.batches.push(*report);
        break_if(self.last_batch == Some(self.batches.len()))
    }
    fn on_epoch(&mut self, report: &EpochReport<f32>, model: &Model) -> ControlFlow<()> {
        self.epochs.push(*report);
        self.parameters.push(bits(model));
        break_if(self.last_epoch == Some(self.epochs.len()))
    }
}

fn fit_with(notes: &mut Notes, last: LastBatch) -> History<f32> {
    let (data, schedule) = (points(21), Exponential::new(0.5, 0.5));
    let trainer = Trainer::new(3, 8).last_batch(last).schedule(&schedule).callback(notes);
    trainer.fit(&mut classifier(), &data, &mut Sgd::new(9.0), cross_entropy).unwrap()
}

#[test]
fn callbacks_are_told_of_every_batch_and_epoch() {
    let mut notes = Notes::default();
    let history = fit_with(&mut notes, LastBatch::Keep);
    let places: Vec<_> = notes.batches.iter().map(|report| (report.epoch, report.batch, report.batches)).collect();
    assert_eq!(places, (0..9).map(|i| (i / 3, i % 3, 3)).collect::<Vec<_>>());
    let rates: Vec<f32> = notes.batches.iter().map(|report| report.learning_rate).collect();
    assert_eq!(rates[..4], [0.5, 0.25, 0.125, 0.0625], "the schedule counts steps over all epochs");
    assert_eq!(history.epochs, notes.epochs);
    let first = &history.epochs[0];
    assert_eq!((first.learning_rate, first.loss), (0.125, notes.batches[2].mean_loss));
    assert_eq!((first.validation_loss, first.accuracy), (None, None));

    let mut notes = Notes::default();
    fit_with(&mut notes, LastBatch::LeaveOut);
    assert_eq!(notes.batches.len(), 6, "two full batches an epoch");
}

#[test]
fn callbacks_end_the_training() {
    let mut notes = Notes { last_epoch: Some(2), ..Notes::default() };
    let history = fit_with(&mut notes, LastBatch::Keep);
    assert_eq!((history.stop, history.epochs.len(), notes.batches.len()), (Stop::Callback, 2, 6));
    let mut notes = Notes { last_batch: Some(5), ..Notes::default() };
    let history = fit_with(&mut notes, LastBatch::Keep);
    assert_eq!((history.stop, history.epochs.len(), notes.batches.len()), (Stop::Callback, 1, 5));
}

#[test]
fn training_stops_early_and_keeps_the_best_model() {
    // With ascent instead of descent every epoch is worse than the one before: the first one is the best.
    let (training, validation) = points(80).split(0.25, 1).unwrap();
    let worse = |tape: &mut GrowingTape, logits, label| {
        let loss = cross_entropy(tape, logits, label);
        tape.neg(loss)
    };
    let run = |keep: bool| {
        let (mut model, mut notes) = (classifier(), Notes::default());
        let trainer = Trainer::new(50, 20)
            .validation(&validation)
            .early_stopping(EarlyStopping::new(4, 1e9))
            .callback(&mut notes);
        let trainer = if keep { trainer.keep_best() } else { trainer };
        let history = trainer.fit(&mut model, &training, &mut Sgd::new(0.01), worse).unwrap();
        assert_eq!(
            (history.stop, history.epochs.len()),
            (Stop::Early, 5),
            "the first loss is the best, four more follow"
        );
        let losses: Vec<f32> = history.epochs.iter().map(EpochReport::watched).collect();
        let best = (0..5).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        assert_eq!(history.best, best, "{losses:?}");
        (bits(&model), notes.parameters, history.best.unwrap())
    };
    let (model, after, _) = run(false);
    assert_eq!(model, after[4]);
    let (model, after, best) = run(true);
    assert_eq!(model, after[best]);
}

#[test]
fn validation_is_in_evaluation() {
    let (training, validation) = points(75).split(0.2, 1).unwrap();
    let mut model = classifier();
    let trainer = Trainer::new(40, 16).validation(&validation);
    let history = trainer.fit(&mut model, &training, &mut Adam::new(0.02), cross_entropy).unwrap();
    let last = history.last().unwrap();

    // By hand, all at once: no dropout, running statistics.
    model.eval();
    let samples: Vec<f32> = (0..15).flat_map(|i| validation.sample(i)).copied().collect();
    let labels: Vec<f32> = (0..15).flat_map(|i| validation.target(i)).copied().collect();
    let (x, target) = (model.tape().constant([15, 2], &samples), model.tape().constant([15], &labels));
    let logits = model.forward(x).unwrap();
    let loss = cross_entropy(model.tape(), logits, target);
    let loss = model.tape().item(loss);
    let logits = model.tape().value(logits).to_vec();
    model.zero_grad();

    for batch in [1, 4, 15, 100] {
        let evaluation = evaluate(&mut model, &validation, batch, cross_entropy).unwrap();
        assert!((evaluation.loss - loss).abs() < 1e-6, "batches of {batch}: {} and {loss}", evaluation.loss);
        assert_eq!(evaluation.accuracy, last.accuracy);
        assert_eq!(predict(&mut model, &samples, batch).unwrap(), logits);
    }
    assert!((last.validation_loss.unwrap() - loss).abs() < 1e-6);
    let right = logits.chunks(2).zip(&labels).filter(|(l, label)| (l[1] > l[0]) == (**label > 0.5)).count();
    assert_eq!(last.accuracy, Some(right as f32 / 15.0));
    assert!(right >= 13, "{right} of 15");
}

#[test]
fn real_targets_have_no_accuracy() {
    let x: Vec<f32> = (0..12_u8).map(|i| f32::from(i) / 6.0 - 1.0).collect();
    let y = x.iter().map(|x| 2.0 * x - 0.5).collect();
    let data = Dataset::new([1], x, [1], y).unwrap();
    let mut model = Model::new(Sequential::new().linear("line", 1, 1), [1], 1).unwrap();
    Trainer::new(200, 4).fit(&mut model, &data, &mut Sgd::new(0.1), mse).unwrap();
    let evaluation = evaluate(&mut model, &data, 5, mse).unwrap();
    assert!(evaluation.loss < 1e-8 && evaluation.accuracy.is_none(), "{evaluation:?}");
    assert!((predict(&mut model, &[2.0], 1).unwrap()[0] - 3.5).abs() < 1e-3);
}

#[test]
fn what_cannot_be_trained_is_an_error_and_changes_nothing() {
    let mut model = classifier();
    let before = bits(&model);
    let mut refused = |trainer: Trainer<'_>, data: &Dataset| {
        let error = trainer.fit(&mut model, data, &mut Adam::new(0.01), cross_entropy).unwrap_err();
        assert_eq!(bits(&model), before);
        error.to_string()
    };
    let with = |element: f32, labels: [usize; 4]| {
        Dataset::with_labels([2], vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, element], 5, labels).unwrap()
    };
    let fine = with(0.8, [0, 1, 1, 0]);
    // The faults are in batches that come late.
    for (data, text) in [
        (&with(0.8, [0, 1, 1, 4]), "the target of sample 3, element 0 is 4, not a class index: there are 2 classes"),
        (&with(f32::NAN, [0; 4]), "sample 3, element 1 is NaN, which is not finite"),
        (
            &Dataset::with_labels([4], vec![0.0; 8], 2, [0, 1]).unwrap(),
            "the samples have shape [4], the model takes [2]",
        ),
        (&Dataset::with_labels([2], vec![], 2, []).unwrap(), "0 samples do not make a batch of 2"),
    ] {
        assert_eq!(refused(Trainer::new(1, 2), data), text);
        // The same in validation data.
        assert_eq!(refused(Trainer::new(1, 2).validation(data), &fine), text);
    }
    let text = refused(Trainer::new(1, 5).last_batch(LastBatch::LeaveOut), &fine);
    assert_eq!(text, "4 samples do not make a batch of 5");
    assert_eq!(refused(Trainer::new(1, 0), &fine), "4 samples do not make a batch of 0");
    let real = Dataset::new([2], vec![0.0; 4], [3], vec![0.0; 6]).unwrap();
    assert!(refused(Trainer::new(1, 2), &real).starts_with("cross_entropy"), "a loss that does not fit the targets");

    assert_eq!(predict(&mut model, &[0.0; 3], 1), Err(FitError::Elements { found: 3, of_a_sample: 2 }));
    assert_eq!(predict(&mut model, &[0.0; 4], 0), Err(FitError::NoBatch { samples: 2, batch: 0 }));
    assert_eq!(predict(&mut model, &[], 1), Ok(vec![]));
}

#[test]
fn a_step_that_fails_is_an_error() {
    let data = points(8);
    let mut model = classifier();
    let error = Trainer::new(1, 4).fit(&mut model, &data, &mut Adam::new(-1.0), cross_entropy).unwrap_err();
    assert_eq!(error.to_string(), "the learning rate is a finite number from 0, found -1");
}

#[test]
fn double_precision_and_fused_updates() {
    let layers = Sequential::new().linear("fc", 1, 4).activation(Activation::Tanh).linear("out", 4, 1);
    let mut model: Model<Strict<f64>> = Model::new(layers, [1], 1).unwrap();
    let x: Vec<f64> = (0..10_u8).map(|i| f64::from(i) / 5.0 - 1.0).collect();
    let data = Dataset::new([1], x.clone(), [1], x.iter().map(|x| x * x).collect()).unwrap();
    let trainer = Trainer::new(300, 4).training(Training::with_slots(2).fused()).schedule(&Constant(0.02));
    let loss = |tape: &mut GrowingTape<Strict<f64>>, y, target| tape.mse(y, target, Reduction::Mean);
    let history = trainer.fit(&mut model, &data, &mut Adam::new(0.0), loss).unwrap();
    let last = history.last().unwrap();
    assert!(last.loss < 0.01, "{last:?}");
    assert_eq!(last.learning_rate.to_bits(), 0.02_f64.to_bits());
}

#[test]
fn every_optimizer_takes_a_learning_rate() {
    fn check<O: Optimizer<Strict<f32>>>(mut optimizer: O) {
        optimizer.set_learning_rate(0.125);
        assert_eq!(optimizer.learning_rate().to_bits(), 0.125_f32.to_bits());
    }
    check(Sgd::new(1.0));
    check(Sgd::new(1.0).momentum(0.9));
    check(Adam::new(1.0));
    check(Adam::new(1.0).amsgrad());
    check(RmsProp::new(1.0));
    check(Adagrad::new(1.0));
}
