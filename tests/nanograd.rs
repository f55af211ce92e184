//! nanograd's checkpoints: files that Python's cbor2 has written by the rules of nanograd's encoder
//! (`tests/nanograd/golden.py`), both ways, the other encoding of pairs, and bad bytes.

use slabgrad::checkpoint::{CborError, Element};
use slabgrad::layer::{Activation, BatchNorm2d, Conv2d, Layer, Linear, Model, Residual, Sequential};
use slabgrad::ops::{conv2d, linear};
use slabgrad::prelude::{Backend, Real, Shape, Strict};

const CNN: &[u8] = include_bytes!("nanograd/cnn_f32.cbor");
const DENSE: &[u8] = include_bytes!("nanograd/dense_f64.cbor");
const IMAGE: Option<Shape> = Some(Shape::new([1, 2, 2]));

/// `(i - n / 2) / 16` everywhere, as in `golden.py`.
fn ramps<B: Backend>(mut model: Model<B>) -> Model<B> {
    let tensors: Vec<(String, usize)> = model.tensors().map(|t| (t.name().to_string(), t.data.len())).collect();
    for (name, len) in tensors {
        let number = |i: usize| (B::Elem::from_usize(i) - B::Elem::from_usize(len / 2)) / B::Elem::from_usize(16);
        model.set(&name, &(0..len).map(number).collect::<Vec<_>>()).unwrap();
    }
    model
}

fn cnn() -> Model {
    let conv = Conv2d::new(1, 2, conv2d::Conv2d::kernel(3).padding(1)).activation(Activation::Relu);
    let head = Sequential::new().named("fc1", Linear::new(8, 4).activation(Activation::GeluTanh)).linear("fc2", 4, 3);
    let net = Sequential::new().named("conv1", conv).named("flat", slabgrad::layer::Flatten).named("head", head);
    ramps(Model::new(net, [1, 2, 2], 1).unwrap())
}

fn dense() -> Model<Strict<f64>> {
    let layer = Linear::new(3, 2).settings(linear::Linear::new().without_bias()).activation(Activation::Tanh);
    ramps(Model::new(layer, [3], 1).unwrap())
}

fn output<B: Backend>(model: &mut Model<B>) -> Vec<B::Elem> {
    let sample = model.input_shape();
    let data: Vec<B::Elem> = (0..sample.len()).map(B::Elem::from_usize).collect();
    let x = model.tape().constant(sample, &data);
    let y = model.forward(x).unwrap();
    model.tape().value(y).to_vec()
}

fn check_same<B: Backend>(read: &mut Model<B>, model: &mut Model<B>) {
    assert_eq!(read.to_string(), model.to_string());
    for (found, expected) in read.tensors().zip(model.tensors()) {
        assert_eq!((found.name(), found.data), (expected.name(), expected.data));
    }
    assert_eq!(output(read), output(model));
}

#[test]
fn checkpoints_are_read() {
    check_same(&mut Model::from_nanograd(CNN, IMAGE).unwrap(), &mut cnn());
    check_same(&mut Model::from_nanograd(DENSE, None).unwrap(), &mut dense());
}

#[test]
fn checkpoints_are_written_byte_for_byte_as_another_encoder_does() {
    assert_eq!(cnn().to_nanograd().unwrap(), CNN);
    assert_eq!(dense().to_nanograd().unwrap(), DENSE);
}

/// A tagged pair is the five bytes of its tag and an array of two: without the tag it is that array.
#[test]
fn untagged_pairs_are_read_too() {
    let tag = [0xda, 0x00, 0x5c, 0x4e, 0x00];
    let mut plain = CNN.to_vec();
    while let Some(at) = plain.windows(5).position(|bytes| bytes == tag) {
        plain.drain(at..at + 5);
    }
    check_same(&mut Model::from_nanograd(&plain, IMAGE).unwrap(), &mut cnn());
    // Without the tag that says that it is CBOR.
    check_same(&mut Model::from_nanograd(&plain[3..], IMAGE).unwrap(), &mut cnn());
}

#[test]
fn big_endian_arrays_are_read() {
    let mut bytes = DENSE.to_vec();
    let at = bytes.windows(2).position(|bytes| bytes == [0xd8, 86]).unwrap();
    bytes[at + 1] = 82;
    assert_eq!(bytes[at + 2..at + 4], [0x58, 48], "a byte string of six doubles");
    bytes[at + 4..at + 52].chunks_exact_mut(8).for_each(<[u8]>::reverse);
    check_same(&mut Model::from_nanograd(&bytes, None).unwrap(), &mut dense());
}

#[test]
fn the_sample_is_told_where_the_first_layer_is_dense() {
    assert_eq!(Model::<Strict<f64>>::from_nanograd(DENSE, None).unwrap().input_shape(), Shape::new([3]));
    let error = Model::<Strict<f32>>::from_nanograd(CNN, None).err().unwrap().to_string();
    assert!(error.contains("the shape of a sample has to be given"), "{error}");
}

#[test]
fn names_that_cannot_be_used_become_places() {
    let net = Sequential::new().linear("Dense", 3, 4).linear("Dense", 4, 2);
    let model: Model = Model::new(net, [3], 1).unwrap();
    let read: Model = Model::from_nanograd(&model.to_nanograd().unwrap(), None).unwrap();
    let names: Vec<&str> = read.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["0.weight", "0.bias", "1.weight", "1.bias"]);
}

#[test]
fn activations_behind_layers_become_settings() {
    let net = Sequential::new().linear("a", 3, 4).relu().activation(Activation::Identity).linear("b", 4, 2);
    let mut model: Model = Model::new(net.activation(Activation::Silu), [3], 1).unwrap();
    let mut read: Model = Model::from_nanograd(&model.to_nanograd().unwrap(), None).unwrap();
    assert_eq!(output(&mut read), output(&mut model));
    assert_eq!(read.layer().children().len(), 2);
}

#[test]
fn frozen_parameters_stay_frozen() {
    let mut model = dense();
    model.freeze("weight").unwrap();
    let read: Model<Strict<f64>> = Model::from_nanograd(&model.to_nanograd().unwrap(), None).unwrap();
    assert!(read.tensor("weight").unwrap().is_frozen());
}

#[test]
fn what_nanograd_does_not_have_is_named() {
    fn error(layer: impl Layer<Strict<f32>> + 'static) -> String {
        let net = Sequential::new().named("x", layer);
        Model::<Strict<f32>>::new(net, [2, 6, 6], 1).unwrap().to_nanograd().unwrap_err().to_string()
    }
    let conv = |settings| Conv2d::new(2, 2, settings);
    let kernel = conv2d::Conv2d::kernel(3);
    let cases = [
        (error(BatchNorm2d::new(2)), "layer `x`, a BatchNorm2d: nanograd's checkpoints have no such layer"),
        (
            error(Residual::new(conv(kernel.padding(1)))),
            "layer `x`, a Residual: nanograd's checkpoints have no such layer",
        ),
        (
            error(conv(kernel.groups(2))),
            "layer `x`, a Conv2d: nanograd's convolutions have neither dilation nor groups",
        ),
        (error(conv(kernel.without_bias())), "layer `x`, a Conv2d: nanograd's convolutions have a bias"),
        (
            error(conv(kernel.stride_hw([1, 2]))),
            "layer `x`, a Conv2d: nanograd's convolutions have the same stride in both directions",
        ),
        (error(conv(kernel).activation(Activation::Gelu)), "layer `x`, a Conv2d: nanograd has no activation GELU"),
        (
            error(Activation::Relu),
            "layer `x`, a ReLU: nanograd has activations only behind dense layers and convolutions without one",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

/// The checkpoint with a text in it replaced by one of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn errors_say_what_and_where() {
    let error = |from, to| Model::<Strict<f64>>::from_nanograd(&replaced(DENSE, from, to), None).err().unwrap();
    let texts = [
        ("nanograd-checkpoint", "nanograd-checkpoinT", "byte 4, `format`: expected the symbol nanograd-checkpoint"),
        ("dense-layer", "dance-layer", "layer `model`, a dance-layer: this layer of nanograd's is not known"),
        ("Tanh", "Tank", "`model.activation.name`: nanograd has no activation `Tank`"),
        // With its length before it: a length of four looks like a `d`, before `type`.
        ("\x65dtype", "\x65dtyke", "`model`: `dtype` is missing"),
        ("requires-grad", "requires-grab", "`model.weights`: `requires-grad` is missing"),
    ];
    for (from, to, expected) in texts {
        let found = error(from, to).to_string();
        assert!(found.contains(expected), "{from} for {to}: {found}");
    }
    let (expected, found) = (Element::F32, Element::F64);
    assert_eq!(Model::<Strict<f32>>::from_nanograd(DENSE, None).err(), Some(CborError::Element { expected, found }));
}

#[test]
fn every_truncation_and_a_byte_too_many_are_errors() {
    for len in 0..CNN.len() {
        assert!(Model::<Strict<f32>>::from_nanograd(&CNN[..len], IMAGE).is_err(), "the first {len} bytes");
    }
    let longer = [CNN, &[0]].concat();
    let error = Model::<Strict<f32>>::from_nanograd(&longer, IMAGE).err();
    assert_eq!(error, Some(CborError::Trailing { at: CNN.len() }));
}

#[test]
fn bits_that_flip_are_errors_or_models() {
    let mut models = 0;
    for bit in 0..CNN.len() * 8 {
        let mut bytes = CNN.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        models += usize::from(Model::<Strict<f32>>::from_nanograd(&bytes, IMAGE).is_ok());
    }
    assert!(models > 0, "a weight may have any bits");
}

/// An array without a length, with a break at its end: other encoders write lists so.
#[test]
fn arrays_without_a_length_are_read() {
    let key = [&[0x83, 0xd8, 39, 0x65][..], b"shape"].concat();
    let at = DENSE.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let end = at + key.len() + 2;
    let bytes = [&DENSE[..at], &[0x9f], &DENSE[at + 1..end], &[0xff], &DENSE[end..]].concat();
    check_same(&mut Model::from_nanograd(&bytes, None).unwrap(), &mut dense());
}

#[test]
fn nesting_is_bounded() {
    let arrays = [vec![0x81; 100_000], vec![0]].concat();
    assert_eq!(Model::<Strict<f32>>::from_nanograd(&arrays, None).err(), Some(CborError::Depth { at: 160 }));
    let nested = |depth: usize| {
        let net = (0..depth).fold(Sequential::new().linear("fc", 3, 3), |layer, _| Sequential::new().push(layer));
        Model::<Strict<f32>>::new(net, [3], 1).unwrap()
    };
    let bytes = nested(30).to_nanograd().unwrap();
    assert!(Model::<Strict<f32>>::from_nanograd(&bytes, None).is_ok(), "32 layers");
    assert!(nested(31).to_nanograd().unwrap_err().to_string().contains("more than 32 deep"));
}

/// Sizes that the tensors do not bear out: no memory is asked for.
#[test]
fn sizes_have_to_be_those_of_the_tensors() {
    let key = [&[0xd8, 39, 0x6a][..], b"input-size", &[3]].concat();
    let at = DENSE.windows(key.len()).position(|bytes| bytes == key).unwrap() + key.len();
    let large = [&DENSE[..at - 1], &[0x1a, 0xff, 0xff, 0xff, 0xff], &DENSE[at..]].concat();
    let error = Model::<Strict<f64>>::from_nanograd(&large, None).err().unwrap().to_string();
    assert!(error.contains("`model.weights`: expected shape [2, 4294967295], found [2, 3]"), "{error}");
}
