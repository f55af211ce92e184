//! What a page does with a model.
#![cfg(target_family = "wasm")]
// Values are exact.
#![allow(clippy::float_cmp)]

use js_sys::{Array, Float32Array, Reflect};
use slabgrad_wasm::{EvaluationSession, Failure, FitSession, Model};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

const XOR: &str = r#"[{ "type": "input", "shape": [2] }, { "type": "linear", "name": "hidden", "outputs": 8,
    "activation": "tanh" }, { "type": "linear", "name": "out", "outputs": 2 }]"#;
const ADAM: &str = r#"{ "optimizer": { "type": "adam", "learningRate": 0.05 }, "loss": "crossEntropy" }"#;
const X: [f32; 8] = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
const Y: [f32; 4] = [0.0, 1.0, 1.0, 0.0];

fn parse(text: &str) -> JsValue {
    js_sys::JSON::parse(text).expect("JSON")
}

fn model_of(layers: &str) -> Result<Model, Failure> {
    Model::new(parse(layers).unchecked_ref(), JsValue::UNDEFINED)
}

/// The value, or the test fails with the error's text.
fn ok<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|error| panic!("{}", text(error)))
}

fn text(error: Failure) -> String {
    JsValue::from(error).unchecked_into::<js_sys::Error>().message().into()
}

fn error<T>(result: Result<T, Failure>) -> String {
    text(result.err().expect("an error"))
}

fn compiled() -> Model {
    let mut model = ok(model_of(XOR));
    ok(model.compile(parse(ADAM)));
    model
}

fn data(model: &Model, name: &str) -> Vec<f32> {
    Reflect::get(&model.weight(name), &"data".into()).unwrap().unchecked_into::<Float32Array>().to_vec()
}

fn number(object: &JsValue, key: &str) -> f64 {
    Reflect::get(object, &key.into()).unwrap().as_f64().expect(key)
}

#[wasm_bindgen_test]
fn a_model_learns_and_predicts() {
    let mut model = compiled();
    let first = ok(model.train_step(&X, &Y));
    for _ in 0..150 {
        ok(model.train_step(&X, &Y));
    }
    let last = ok(model.train_step(&X, &Y));
    assert!(last < 0.1 && last < first, "{first} {last}");
    let logits = ok(model.predict(&X)).unchecked_into::<Float32Array>().to_vec();
    for (logits, label) in logits.chunks(2).zip(Y) {
        assert_eq!(f32::from(u8::from(logits[1] > logits[0])), label);
    }
    assert_eq!(model.steps(), 152);
    assert!(number(&model.memory(), "total") > 0.0);
    assert_eq!(model.parameter_count(), 2 * 8 + 8 + 8 * 2 + 2);
}

#[wasm_bindgen_test]
fn a_saved_training_goes_on_with_the_same_bits() {
    let mut model = compiled();
    for _ in 0..10 {
        ok(model.train_step(&X, &Y));
    }
    let options = js_sys::Object::new();
    Reflect::set(&options, &"user".into(), &js_sys::Uint8Array::from(&b"mine"[..])).unwrap();
    let image = ok(model.save(options.into()));
    let mut other = compiled();
    assert_eq!(ok(other.load(&image)), b"mine");
    for _ in 0..10 {
        assert_eq!(ok(model.train_step(&X, &Y)).to_bits(), ok(other.train_step(&X, &Y)).to_bits());
    }
    assert!(ok(model.save(JsValue::UNDEFINED)) == ok(other.save(JsValue::UNDEFINED)));
}

#[wasm_bindgen_test]
fn what_is_wrong_is_said_with_the_numbers_and_changes_nothing() {
    let error_of = |layers: &str| error(model_of(layers));
    assert!(error_of("[]").contains("the first layer has to be"));
    let input = r#"{ "type": "input", "shape": [2] }"#;
    for (layer, expected) in [
        (r#"{ "type": "lineal", "outputs": 2 }"#, "layer 0 `lineal`: there is no layer of this type"),
        (r#"{ "type": "linear" }"#, "layer 0 `linear`: `outputs` is missing"),
        (r#"{ "type": "linear", "outputs": -1 }"#, "layer 0 `linear`: `outputs` is -1, expected a count below 2^32"),
        (r#"{ "type": "linear", "outputs": 2, "units": 3 }"#, "there is no setting `units`"),
        (r#"{ "type": "linear", "outputs": 2, "activation": "rely" }"#, "there is no activation `rely`"),
        (r#"{ "type": "conv2d", "outputs": 2, "kernel": 3 }"#, "conv2d"),
        ("7", "layer 0: expected an object"),
    ] {
        let found = error_of(&format!("[{input}, {layer}]"));
        assert!(found.contains(expected), "{layer}: {found}");
    }

    let mut model = ok(model_of(XOR));
    assert!(error(model.train_step(&X, &Y)).contains("call compile"));
    assert!(
        error(model.compile(parse(r#"{ "optimizer": "adan", "loss": "mse" }"#))).contains("no optimizer of this type")
    );
    let rate = r#"{ "optimizer": { "type": "sgd", "learningRate": -1 }, "loss": "mse" }"#;
    assert!(error(model.compile(parse(rate))).contains("found -1"));

    let mut model = compiled();
    ok(model.train_step(&X, &Y));
    let before = ok(model.save(JsValue::UNDEFINED));
    assert_eq!(error(model.train_step(&X[..7], &Y)), "there are 7 elements, which do not divide into samples of 2");
    assert!(error(model.train_step(&X, &Y[..3])).contains("4 samples need 4 elements of targets, there are 3"));
    assert!(error(model.train_step(&X, &[0.0, 1.0, 2.0, 0.0])).contains('2'));
    let mut x = X;
    x[3] = f32::NAN;
    assert!(error(model.train_step(&x, &Y)).contains("NaN"));
    let mut damaged = before.clone();
    damaged[70] ^= 1;
    assert!(error(model.load(&damaged)).contains("checksum"));
    assert!(error(model.set_weight("hidden.weight", &[1.0])).contains("16"));
    assert!(ok(model.save(JsValue::UNDEFINED)) == before);
}

#[wasm_bindgen_test]
fn another_optimizer_starts_without_moments_and_refuses_those_of_others() {
    let mut model = compiled();
    ok(model.train_step(&X, &Y));
    let of_adam = ok(model.save(JsValue::UNDEFINED));
    ok(model.compile(parse(ADAM)));
    assert_eq!(model.steps(), 1, "the same kind goes on");
    ok(model.compile(parse(r#"{ "optimizer": { "type": "sgd", "momentum": 0.9 }, "loss": "crossEntropy" }"#)));
    assert_eq!(model.steps(), 0);
    let found = error(model.load(&of_adam));
    assert!(found.contains("moments"), "{found}");
    ok(model.train_step(&X, &Y));

    for optimizer in ["sgd", "adamW", "rmsprop", "adagrad"] {
        ok(model.compile(parse(&format!(r#"{{ "optimizer": "{optimizer}", "loss": "crossEntropy" }}"#))));
        ok(model.train_step(&X, &Y));
    }
    ok(model.set_learning_rate(0.5));
    assert!(error(model.set_learning_rate(f32::NAN)).contains("learning rate"));
    assert_eq!(ok(model.learning_rate()), 0.5);
}

#[wasm_bindgen_test]
fn rmsprop_keeps_what_its_settings_need() {
    let settings = ["", r#", "momentum": 0.9"#, r#", "centered": true"#, r#", "momentum": 0.9, "centered": true"#];
    let mut trained = Vec::new();
    for (settings, slots) in settings.into_iter().zip([1, 2, 2, 3]) {
        let mut model = compiled();
        let optimizer = format!(r#"{{ "type": "rmsprop"{settings} }}"#);
        ok(model.compile(parse(&format!(r#"{{ "optimizer": {optimizer}, "loss": "crossEntropy" }}"#))));
        ok(model.train_step(&X, &Y));
        ok(model.train_step(&X, &Y));
        assert_eq!(
            number(&model.memory(), "moments"),
            4.0 * (8 + slots * model.parameter_count()) as f64,
            "{optimizer}"
        );
        trained.push(data(&model, "hidden.weight"));
    }
    trained.sort_by(|a, b| a.partial_cmp(b).unwrap());
    trained.dedup();
    assert_eq!(trained.len(), 4, "each goes its own way");
}

#[wasm_bindgen_test]
fn weights_are_copies_and_views_are_not() {
    let mut model = compiled();
    assert_eq!(model.weights().unchecked_ref::<Array>().length(), 4);
    let copy = data(&model, "hidden.weight");
    let view: Float32Array = model.view("hidden.weight").unchecked_into();
    assert_eq!(view.to_vec(), copy);
    ok(model.set_weight("hidden.weight", &[0.5; 16]));
    assert_eq!(view.to_vec(), [0.5; 16]);
    assert!(model.weight("nobody").is_undefined() && model.view("nobody").is_undefined());

    ok(model.freeze("hidden"));
    ok(model.train_step(&X, &Y));
    assert_eq!(data(&model, "hidden.weight"), [0.5; 16]);
    ok(model.unfreeze("hidden"));
    ok(model.train_step(&X, &Y));
    assert_ne!(data(&model, "hidden.weight"), [0.5; 16]);
}

#[wasm_bindgen_test]
fn a_training_in_sessions_has_the_order_of_the_library() {
    let x: Vec<f32> = (0..60).map(|i| (i * 31 % 17) as f32 / 17.0).collect();
    let y: Vec<f32> = (0..30).map(|i| (i % 2) as f32).collect();
    let fit = |model: &mut Model, options: &str| {
        let mut session = ok(FitSession::new(model, x.clone(), y.clone(), parse(options)));
        while !session.is_done() {
            while ok(session.step(model)) {}
            session.next_epoch();
        }
    };
    let (mut whole, mut resumed) = (compiled(), compiled());
    fit(&mut whole, r#"{ "epochs": 3, "batchSize": 8, "seed": 4 }"#);

    // Two epochs and a half, and the rest after a reload.
    fit(&mut resumed, r#"{ "epochs": 2, "batchSize": 8, "seed": 4 }"#);
    let mut session = ok(FitSession::new(
        &resumed,
        x.clone(),
        y.clone(),
        parse(r#"{ "epochs": 3, "batchSize": 8, "seed": 4, "firstEpoch": 2 }"#),
    ));
    ok(session.step(&mut resumed));
    ok(session.step(&mut resumed));
    assert_eq!(number(&ok(session.progress(&resumed)), "batch"), 2.0);
    let image = ok(resumed.save(JsValue::UNDEFINED));
    let mut reloaded = compiled();
    ok(reloaded.load(&image));
    fit(&mut reloaded, r#"{ "epochs": 3, "batchSize": 8, "seed": 4, "firstEpoch": 2, "firstBatch": 2 }"#);
    assert!(ok(whole.save(JsValue::UNDEFINED)) == ok(reloaded.save(JsValue::UNDEFINED)));

    let mut evaluation = ok(EvaluationSession::new(&whole, x.clone(), y.clone(), 7));
    while ok(evaluation.step(&mut whole)) {}
    let result = evaluation.result();
    assert!(number(&result, "loss") > 0.0 && (0.0..=1.0).contains(&number(&result, "accuracy")));

    let labels = y.iter().map(|label| label + 1.0).collect();
    let found = error(FitSession::new(&whole, x.clone(), labels, JsValue::UNDEFINED));
    assert!(found.contains("has label 2, there are 2 classes"), "{found}");
    assert!(error(EvaluationSession::new(&whole, x, y, 0)).contains("do not make a batch of 0"));
}

#[wasm_bindgen_test]
fn every_layer_can_be_described() {
    let layers = r#"[{ "type": "input", "shape": [2, 8, 8] },
        { "type": "conv2d", "outputs": 4, "kernel": [3, 3], "padding": 1, "bias": false },
        { "type": "batchNorm2d", "epsilon": 0.001, "momentum": 0.2 },
        { "type": "leakyRelu", "setting": 0.1 },
        { "type": "residual", "layers": [{ "type": "conv2d", "outputs": 4, "kernel": 1 }, "tanh"],
          "shortcut": [{ "type": "groupNorm", "groups": 2 }] },
        { "type": "avgPool2d", "size": 2, "countPadding": false },
        { "type": "maxPool2d", "size": 2, "stride": 1 },
        { "type": "sequential", "name": "tail", "layers": ["globalAvgPool2d", { "type": "layerNorm" }, { "type": "rmsNorm" }] },
        { "type": "dropout", "p": 0.1, "seed": 3 },
        { "type": "linear", "outputs": 3, "activation": { "type": "elu", "setting": 0.5 } },
        { "type": "batchNorm1d", "affine": false }]"#;
    let mut model = ok(model_of(layers));
    assert_eq!((model.input_shape(), model.output_shape()), (vec![2, 8, 8], vec![3]));
    let shape: Array = Reflect::get(&model.weight("0.weight"), &"shape".into()).unwrap().unchecked_into();
    assert_eq!(shape.join(","), "4,2,3,3");
    let x: Vec<f32> = (0..4 * 128).map(|i| (i % 13) as f32 / 13.0).collect();
    for (loss, y) in [
        ("crossEntropy", vec![0.0, 1.0, 2.0, 0.0]),
        ("crossEntropy", vec![0.25; 12]),
        ("mse", vec![0.5; 12]),
        ("huber", vec![0.5; 12]),
        ("smoothL1", vec![0.5; 12]),
        ("l1", vec![0.5; 12]),
        ("bceWithLogits", vec![1.0; 12]),
    ] {
        ok(model.compile(parse(&format!(r#"{{ "optimizer": "sgd", "loss": "{loss}", "clipNorm": 1 }}"#))));
        assert!(ok(model.train_step(&x, &y)).is_finite(), "{loss}");
    }
    let words = r#"[{ "type": "input", "shape": [3] }, { "type": "embedding", "count": 5, "size": 4 }, "flatten",
        { "type": "linear", "outputs": 2 }]"#;
    let scores: Float32Array = ok(ok(model_of(words)).predict(&[0.0, 4.0, 2.0])).unchecked_into();
    assert_eq!(scores.length(), 2);
}

#[wasm_bindgen_test]
fn memory_does_not_grow() {
    let bytes = || wasm_bindgen::memory().unchecked_into::<js_sys::WebAssembly::Memory>().buffer();
    let len = || bytes().unchecked_into::<js_sys::ArrayBuffer>().byte_length();
    let train = |steps| {
        let mut model = compiled();
        for i in 0..steps {
            ok(model.train_step(&X, &Y));
            // Sizes of batches that come and go do not add up either.
            let samples = 1 + i % 12;
            ok(model.predict(&[0.5; 24][..2 * samples]));
        }
    };
    train(100);
    let before = len();
    train(5000);
    assert_eq!(len(), before);
}
