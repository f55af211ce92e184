//! The same training on the host and in the browser: one hash.

/// FNV-1a of the bits of all parameters and states after the training below.
const HASH: u64 = 0x59b7_9ca4_d730_a03e;

const STEPS: usize = 25;
const BATCH: usize = 16;

fn images() -> Vec<f32> {
    (0..BATCH * 64).map(|i| (i * 389 % 97) as f32 / 96.0).collect()
}

fn labels() -> Vec<f32> {
    (0..BATCH).map(|i| (i * 7 % 10) as f32).collect()
}

fn mix(hash: u64, x: f32) -> u64 {
    (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3)
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

#[cfg(not(target_family = "wasm"))]
mod host {
    use slabgrad::compiled::Context;
    use slabgrad::layer::{self, Model, Sequential};
    use slabgrad::prelude::*;

    use super::*;

    #[test]
    fn the_host_has_these_bits() {
        let net = Sequential::new()
            .conv2d("conv1", 1, 8, Conv2d::kernel(3).padding(1))
            .batch_norm2d("bn1", 8)
            .relu()
            .max_pool2d(Window2d::size(2))
            .flatten()
            .push(layer::Dropout::new(Dropout::new(0.2)))
            .push(layer::Linear::new(128, 32).activation(layer::Activation::Gelu))
            .linear("fc", 32, 10);
        let mut model: Model = Model::new(net, [1, 8, 8], 5).unwrap();
        let (mut context, mut adam) = (Context::new(), Adam::new(0.01));
        let (images, labels) = (images(), labels());
        for _ in 0..STEPS {
            let loss = |tape: &mut slabgrad::tape::GrowingTape, logits, extra: &[_]| {
                tape.cross_entropy(logits, extra[0], CrossEntropy::new())
            };
            let x = (Shape::new([BATCH, 1, 8, 8]), &images[..]);
            context.training_step(&mut model, &mut adam, loss, x, &[(Shape::new([BATCH]), &labels)]).unwrap();
        }
        let hash = model.tensors().flat_map(|tensor| tensor.data).copied().fold(START, mix);
        assert_eq!(hash, HASH, "{hash:#x}");
    }
}

#[cfg(target_family = "wasm")]
mod browser {
    use js_sys::{Array, Float32Array, Reflect};
    use slabgrad_wasm::Model;
    use wasm_bindgen::JsCast;
    use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

    use super::*;

    wasm_bindgen_test_configure!(run_in_dedicated_worker);

    const LAYERS: &str = r#"[
        { "type": "input", "shape": [1, 8, 8] },
        { "type": "conv2d", "name": "conv1", "outputs": 8, "kernel": 3, "padding": 1 },
        { "type": "batchNorm2d", "name": "bn1" },
        "relu",
        { "type": "maxPool2d", "size": 2 },
        "flatten",
        { "type": "dropout", "p": 0.2 },
        { "type": "linear", "outputs": 32, "activation": "gelu" },
        { "type": "linear", "name": "fc", "outputs": 10 }
    ]"#;

    #[wasm_bindgen_test]
    fn a_worker_has_the_bits_of_the_host() {
        let parse = |text| js_sys::JSON::parse(text).unwrap();
        let mut model =
            Model::new(parse(LAYERS).unchecked_ref(), parse(r#"{ "seed": 5 }"#)).unwrap_or_else(|_| panic!());
        let options = r#"{ "optimizer": { "type": "adam", "learningRate": 0.01 }, "loss": "crossEntropy" }"#;
        model.compile(parse(options)).unwrap_or_else(|_| panic!());
        for _ in 0..STEPS {
            model.train_step(&images(), &labels()).unwrap_or_else(|_| panic!());
        }
        let mut hash = START;
        for weight in model.weights().unchecked_ref::<Array>().iter() {
            let data = Reflect::get(&weight, &"data".into()).unwrap();
            hash = data.unchecked_into::<Float32Array>().to_vec().into_iter().fold(hash, mix);
        }
        assert_eq!(hash, HASH, "{hash:#x}");
    }
}
