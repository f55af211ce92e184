//! Models in CBOR: what comes back computes the same, and bad bytes are errors.

use slabgrad::checkpoint::{CborError, Element};
use slabgrad::layer::{
    Activation, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, GlobalAvgPool2d,
    GroupNorm, Layer, LayerNorm, Linear, MaxPool2d, Model, Recorder, Residual, RmsNorm, Sequential, TensorView,
};
use slabgrad::ops::{conv1d, conv2d, linear};
use slabgrad::prelude::{Backend, BatchNorm, CountPadding, Dropout as DropoutSettings, Real, Shape, Strict, Window2d};
use slabgrad::tape;

/// A layer of every kind, with settings that are not the defaults, and the shape of a sample.
fn every_kind<B: Backend>() -> Vec<(Box<dyn Layer<B>>, Shape)> {
    let image = Shape::new([2, 6, 6]);
    let conv = conv2d::Conv2d::kernel_hw([3, 2]).stride_hw([2, 1]).padding_hw([1, 0]).dilation_hw([1, 2]).groups(2);
    let window = Window2d::rect([2, 3]).stride_hw([1, 2]).padding_hw([1, 1]);
    let norm = BatchNorm::new().epsilon(1e-3).momentum(0.2);
    let mut all: Vec<(Box<dyn Layer<B>>, Shape)> = vec![
        (Box::new(Linear::new(3, 4).activation(Activation::Elu(0.7))), Shape::new([3])),
        (Box::new(Linear::new(3, 4).settings(linear::Linear::new().without_bias())), Shape::new([5, 3])),
        (Box::new(Conv2d::new(2, 4, conv).activation(Activation::GeluTanh)), image),
        (Box::new(Conv2d::new(2, 4, conv2d::Conv2d::kernel(3).without_bias())), image),
        (
            Box::new(Conv1d::new(2, 4, conv1d::Conv1d::kernel(3).stride(2).padding(2).dilation(2).groups(2))),
            Shape::new([2, 9]),
        ),
        (Box::new(Conv1d::new(2, 4, conv1d::Conv1d::kernel(3).without_bias())), Shape::new([2, 9])),
        (Box::new(Embedding::new(7, 3)), Shape::new([4])),
        (Box::new(Flatten), image),
        (Box::new(MaxPool2d::new(window)), image),
        (Box::new(MaxPool2d::new(Window2d::size(2))), image),
        (Box::new(AvgPool2d::new(window)), image),
        (Box::new(AvgPool2d::new(window).count_padding(CountPadding::No)), image),
        (Box::new(GlobalAvgPool2d), image),
        (Box::new(Dropout::new(DropoutSettings::new(0.4))), image),
        (Box::new(Dropout::new(DropoutSettings::new(0.4).seed(u64::MAX))), image),
        (Box::new(BatchNorm1d::new(3).settings(norm)), Shape::new([3])),
        (Box::new(BatchNorm1d::new(3).settings(norm.eval())), Shape::new([3])),
        (Box::new(BatchNorm2d::new(2).settings(norm.biased_running_var())), image),
        (Box::new(BatchNorm2d::new(2).settings(norm.without_affine())), image),
        (Box::new(LayerNorm::new([6, 6]).epsilon(1e-3)), image),
        (Box::new(LayerNorm::new([6]).without_affine()), image),
        (Box::new(RmsNorm::new([6]).epsilon(1e-3)), image),
        (Box::new(RmsNorm::new([6]).without_affine()), image),
        (Box::new(GroupNorm::new(2, 2).epsilon(1e-3)), image),
        (Box::new(GroupNorm::new(1, 2).without_affine()), image),
        (
            Box::new(Sequential::new().linear("a", 3, 4).push(Sequential::new().relu().linear("b", 4, 2))),
            Shape::new([3]),
        ),
        (Box::new(Sequential::new().linear("same", 3, 3).linear("same", 3, 3)), Shape::new([3])),
        (Box::new(Residual::new(Linear::new(3, 3))), Shape::new([3])),
        (Box::new(Residual::new(Linear::new(3, 4)).shortcut(Linear::new(3, 4))), Shape::new([3])),
    ];
    for activation in Activation::ALL {
        all.push((Box::new(activation), Shape::new([3])));
    }
    all.push((Box::new(Activation::LeakyRelu(0.3)), Shape::new([3])));
    all
}

/// The outputs of two training steps and of an evaluation; the first changes the state.
fn outputs<B: Backend>(model: &mut Model<B>) -> Vec<B::Elem> {
    let sample = model.input_shape();
    let batch = match sample.rank() {
        1 => Shape::new([2, sample.axis(0)]),
        2 => Shape::new([2, sample.axis(0), sample.axis(1)]),
        _ => Shape::new([2, sample.axis(0), sample.axis(1), sample.axis(2)]),
    };
    let whole = model.layer().kind() == "Embedding";
    let number = |i: usize| {
        if whole { B::Elem::from_usize(i % 7) } else { B::Elem::from_usize(i * 7 % 11) / B::Elem::from_usize(10) }
    };
    let data: Vec<B::Elem> = (0..batch.len()).map(number).collect();
    let mut all = Vec::new();
    for trains in [true, true, false] {
        if trains {
            model.train();
        } else {
            model.eval();
        }
        model.zero_grad();
        let x = model.tape().constant(batch, &data);
        let y = model.forward(x).unwrap();
        all.extend_from_slice(model.tape().value(y));
        let loss = model.tape().sum(y, &[], false);
        if trains {
            // Moves running statistics and counters.
            let _ = model.backward(loss);
        }
    }
    model.zero_grad();
    model.train();
    all
}

fn bits<B: Backend>(model: &Model<B>) -> Vec<(String, Shape, bool, Vec<u8>)> {
    let bytes = |data: &[B::Elem]| bytemuck::cast_slice(data).to_vec();
    model.tensors().map(|t| (t.name().to_string(), t.shape(), t.is_frozen(), bytes(t.data))).collect()
}

fn every_kind_comes_back<B: Backend>() {
    for (layer, sample) in every_kind::<B>() {
        let mut model = Model::<B>::new(layer, sample, 7).unwrap();
        let structure = model.to_string();
        outputs(&mut model);
        let bytes = model.to_cbor().unwrap_or_else(|error| panic!("{structure}: {error}"));
        let mut read = Model::<B>::from_cbor(&bytes).unwrap_or_else(|error| panic!("{structure}: {error}"));
        assert_eq!(read.to_string(), structure);
        assert_eq!((read.seed(), read.input_shape()), (7, sample), "{structure}");
        assert_eq!(bits(&read), bits(&model), "{structure}: parameters and states");
        assert_eq!(read.to_cbor().unwrap(), bytes, "{structure}: written again");
        let (found, expected) = (outputs(&mut read), outputs(&mut model));
        assert_eq!(
            bytemuck::cast_slice::<_, u8>(&found),
            bytemuck::cast_slice::<_, u8>(&expected),
            "{structure}: outputs in training and evaluation"
        );
    }
}

#[test]
fn every_kind_of_layer_comes_back_with_the_same_bits() {
    every_kind_comes_back::<Strict<f32>>();
    every_kind_comes_back::<Strict<f64>>();
}

fn network() -> Model {
    let conv = conv2d::Conv2d::kernel(3).padding(1);
    let block = Sequential::new().conv2d("conv", 2, 2, conv).batch_norm2d("bn", 2).relu();
    let net = Sequential::new().conv2d("first", 1, 2, conv).named("block", Residual::new(block)).dropout(0.2);
    let net =
        net.max_pool2d(Window2d::size(2)).flatten().named("fc", Linear::new(8, 3).activation(Activation::Elu(0.5)));
    let mut model = Model::new(net, [1, 4, 4], 3).unwrap();
    model.freeze("first.weight").unwrap();
    model
}

#[test]
fn frozen_parameters_stay_frozen() {
    let read: Model = Model::from_cbor(&network().to_cbor().unwrap()).unwrap();
    let frozen: Vec<&str> = read.parameters().filter(TensorView::is_frozen).map(|p| p.name()).collect();
    assert_eq!(frozen, ["first.weight"]);
}

#[test]
fn files_hold_models() {
    let path = std::env::temp_dir().join(format!("slabgrad-model-{}.cbor", std::process::id()));
    let model = network();
    model.save_model(&path).unwrap();
    model.save_model(&path).unwrap();
    let read: Model = Model::load_model(&path).unwrap();
    assert_eq!(bits(&read), bits(&model));
    std::fs::remove_file(&path).unwrap();
    assert!(Model::<Strict<f32>>::load_model(&path).is_err(), "the file is gone");
}

/// A file from before layers of batch norm asked for their state first.
#[test]
fn tensors_are_found_by_name() {
    let file = include_bytes!("model/v1_parameters_before_state.cbor");
    let read: Model = Model::from_cbor(file).unwrap();
    let written = read.to_cbor().unwrap();
    assert_ne!(written, file, "another order");
    assert_eq!(written.len(), file.len());
    assert_eq!(bits(&Model::<Strict<f32>>::from_cbor(&written).unwrap()), bits(&read));
    let data = |name| read.tensor(name).unwrap().data;
    assert_eq!(data("block.block.bn.weight"), [1.0]);
    assert_eq!(data("block.block.bn.bias"), [0.0]);
    assert_eq!(data("block.block.bn.running_var"), [1.0]);

    for (old, new, expected) in [
        (&b"block.block.bn.bias"[..], &b"block.block.bn.bia_"[..], "`block.block.bn.bias` [1] is missing"),
        // Texts with their lengths before them.
        (b"\x75block.block.bn.weight", b"\x73block.block.bn.bias", "`block.block.bn.weight` [1] is missing"),
    ] {
        let error = Model::<Strict<f32>>::from_cbor(&replaced(file, old, new)).err().expect("a bad name");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// The bytes with the one place of `old` replaced.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(old.len()).position(|window| window == old).expect("it is there");
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

/// A layer of the user's own.
struct Scale;

impl<B: Backend> Layer<B> for Scale {
    fn kind(&self) -> &'static str {
        "Scale"
    }
    fn forward(&self, _: &mut Recorder<'_, B>, x: tape::Handle) -> tape::Handle {
        x
    }
}

#[test]
fn layers_of_the_users_own_are_refused_by_kind() {
    let net = Sequential::new().linear("fc", 3, 3).named("inner", Sequential::new().named("mine", Scale));
    let model: Model = Model::new(net, [3], 1).unwrap();
    let error = model.to_cbor().unwrap_err();
    assert_eq!(error.to_string(), "layer `inner.mine`, a Scale: this is no layer of slabgrad's own");
}

#[test]
fn layers_are_nested_to_a_bound() {
    let nested = |depth: usize| {
        let layer = (0..depth).fold(Sequential::new().linear("fc", 3, 3), |layer, _| Sequential::new().push(layer));
        Model::<Strict<f32>>::new(layer, [3], 1).unwrap()
    };
    let deep = nested(30);
    assert!(Model::<Strict<f32>>::from_cbor(&deep.to_cbor().unwrap()).is_ok(), "32 layers");
    assert!(nested(31).to_cbor().unwrap_err().to_string().contains("more than 32 deep"));
    let arrays = [vec![0x81; 100_000], vec![0]].concat();
    assert_eq!(Model::<Strict<f32>>::from_cbor(&arrays).err(), Some(CborError::Depth { at: 160 }));
}

#[test]
fn another_type_of_elements_is_an_error() {
    let (expected, found) = (Element::F64, Element::F32);
    let error = Model::<Strict<f64>>::from_cbor(&network().to_cbor().unwrap()).err();
    assert_eq!(error, Some(CborError::Element { expected, found }));
}

#[test]
fn every_truncation_and_a_byte_too_many_are_errors() {
    let mut bytes = network().to_cbor().unwrap();
    for len in 0..bytes.len() {
        assert!(Model::<Strict<f32>>::from_cbor(&bytes[..len]).is_err(), "the first {len} bytes are no model");
    }
    bytes.push(0);
    assert_eq!(Model::<Strict<f32>>::from_cbor(&bytes).err(), Some(CborError::Trailing { at: bytes.len() - 1 }));
}

#[test]
fn bits_that_flip_are_errors_or_models() {
    let bytes = network().to_cbor().unwrap();
    let mut models = 0;
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(model) = Model::<Strict<f32>>::from_cbor(&bytes) {
            models += 1;
            assert!(model.parameter_count() <= bytes.len(), "bit {bit}");
        }
    }
    assert!(models > 0, "a weight may have any bits");
}

/// Two changes at once under a fixed generator: bytes that matter to CBOR, bytes gone, bytes from elsewhere.
#[test]
fn mutations_are_errors_or_models() {
    let bytes = network().to_cbor().unwrap();
    let mut state = 1_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for _ in 0..5_000 {
        let mut bytes = bytes.clone();
        for _ in 0..2 {
            let at = below(bytes.len().min(1500));
            match below(4) {
                0 => bytes[at] = [0, 0x1a, 0x1b, 0x5b, 0x7f, 0x80, 0x9b, 0x9f, 0xbf, 0xf6, 0xff][below(11)],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, below(256) as u8),
                _ => bytes[at] = bytes[below(bytes.len())],
            }
        }
        let _ = Model::<Strict<f32>>::from_cbor(&bytes);
    }
}

/// Settings of some text lie in the file as they are: with more inputs than the file has weights, no memory is asked for.
#[test]
fn sizes_are_bounded_by_the_file() {
    let model: Model = Model::new(Linear::new(3, 4), [3], 1).unwrap();
    let bytes = model.to_cbor().unwrap();
    let at = bytes.windows(7).position(|bytes| bytes == b"\x66inputs").unwrap() + 7;
    let mut large = bytes[..at].to_vec();
    large.extend([0x1a, 0xff, 0xff, 0xff, 0xff]);
    large.extend(&bytes[at + 1..]);
    let error = Model::<Strict<f32>>::from_cbor(&large).err().unwrap().to_string();
    assert_eq!(error, "the model, a Linear: it has more parameters (17179869180) than are left in the file (16)");
    let at = bytes.windows(8).position(|bytes| bytes == b"\x66sample\x81").unwrap() + 8;
    let mut large = bytes[..at].to_vec();
    large.extend([0x1a, 0x7f, 0xff, 0xff, 0xff]);
    large.extend(&bytes[at + 1..]);
    let error = Model::<Strict<f32>>::from_cbor(&large).err().unwrap().to_string();
    assert!(error.contains("input features are 2147483647, weight expects 3"), "{error}");
}

/// The names of parameters repeat those of the layers around them: long ones would take the square of the file's length.
#[test]
fn names_are_bounded() {
    let named = |len: usize| {
        let net = Sequential::new().named("n".repeat(len), Sequential::new().linear("fc", 3, 3));
        Model::<Strict<f32>>::new(net, [3], 1).unwrap()
    };
    assert!(Model::<Strict<f32>>::from_cbor(&named(255).to_cbor().unwrap()).is_ok());
    let error = named(256).to_cbor().unwrap_err().to_string();
    assert!(error.ends_with("the name of a layer in it has 256 bytes, at most 255 are possible"), "{error}");
    // nanograd's names of that length become places.
    let read: Model = Model::from_nanograd(&named(256).to_nanograd().unwrap(), None).unwrap();
    assert!(read.tensor("0.fc.weight").is_some());
}
