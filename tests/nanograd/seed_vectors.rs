//! The sections `cbor_v1` and `serialization_gates`: rules and gates in words, each of which has a test here. A gate or a rule that
//! is added to the file fails these tests.

use serde_json::Value;
use slabgrad::layer::{Activation, Conv2d, Flatten, Linear, Model, Sequential};
use slabgrad::ops::{conv2d, linear};
use slabgrad::prelude::*;

type Double = Strict<f64>;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("an array").iter().map(|text| text.as_str().expect("a text")).collect()
}

/// The bytes of a text that is shorter than 24 bytes.
fn text(text: &str) -> Vec<u8> {
    assert!(text.len() < 24, "{text} has a longer head");
    [&[0x60 | text.len() as u8], text.as_bytes()].concat()
}

fn symbol(name: &str) -> Vec<u8> {
    [vec![0xd8, 39], text(name)].concat()
}

fn pair(key: &str, atom: &[u8]) -> Vec<u8> {
    [vec![0xda, 0x00, 0x5c, 0x4e, 0x00, 0x82], symbol(key), atom.to_vec()].concat()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// All kinds of layers that nanograd saves, in both element types.
fn everything<B: Backend>() -> Model<B> {
    let conv = Conv2d::new(3, 2, conv2d::Conv2d::kernel(3).stride(2).padding(1)).activation(Activation::Silu);
    let dense = Linear::new(18, 300).settings(linear::Linear::new().without_bias());
    let net = Sequential::new().named("conv", conv).named("flat", Flatten).named("fc", dense);
    Model::new(net, [3, 6, 6], 5).unwrap()
}

#[test]
fn checkpoints_are_written_by_the_rules() {
    let file = super::file();
    let section = &file["cbor_v1"];
    let bytes = everything::<Double>().to_nanograd().unwrap();
    assert_eq!(section["self_describe"], "d9d9f7");
    assert_eq!(bytes[..3], [0xd9, 0xd9, 0xf7]);
    let rules = [
        ("symbol", "tag 39 + text string", pair("dtype", &symbol("f64"))),
        ("string", "text string", pair("name", &text("conv"))),
        ("integer", "shortest head", pair("output-size", &[0x19, 1, 44])),
        ("integer", "shortest head", pair("stride", &[2])),
        ("bool", "f4/f5", pair("biases", &[0xf4])),
        ("list", "array", [vec![0x83], symbol("shape"), vec![0x19, 1, 44, 18]].concat()),
        ("(k . atom)", "tag 6049280 (da005c4e00) over array [k, atom]", pair("requires-grad", &[0xf5])),
        ("(k a b ..)", "plain array [k,a,b,..]", [vec![0x84], symbol("layers"), vec![0x8b]].concat()),
        ("f64vector", "tag 86 byte string (LE)", [&[0xd8, 86, 0x59][..], &43200_u16.to_be_bytes()].concat()),
    ];
    for (rule, words, part) in &rules {
        assert_eq!(section["rules"][rule], *words, "`{rule}`");
        assert!(contains(&bytes, part), "`{rule}`: {part:02x?}");
    }
    let single = everything::<Strict<f32>>().to_nanograd().unwrap();
    assert_eq!(section["rules"]["f32vector"], "tag 85 byte string (LE)");
    assert!(contains(&single, &[&[0xd8, 85, 0x59][..], &21600_u16.to_be_bytes()].concat()), "5400 floats");
    // Numbers with a point are in typed arrays alone, and no checkpoint has a Scheme vector.
    let others = ["f32vector", "float", "scheme vector"];
    for rule in section["rules"].as_object().unwrap().keys() {
        let tested = rules.iter().any(|(tested, ..)| tested == rule);
        assert!(tested || others.contains(&rule.as_str()), "the rule `{rule}` is not tested");
    }
}

#[test]
fn checkpoints_have_the_fields_of_the_schema_in_their_order() {
    let file = super::file();
    let bytes = everything::<Double>().to_nanograd().unwrap();
    assert_eq!(texts(&file["cbor_v1"]["top"])[..2], ["format=nanograd-checkpoint (symbol)", "version=1"]);
    assert!(bytes[3..].starts_with(&[vec![0x83], pair("format", &symbol("nanograd-checkpoint"))].concat()));
    for (kind, fields) in file["cbor_v1"]["schema"].as_object().unwrap() {
        // `type=dense-layer` names the kind, `biases|#f` says what else is there, `name in ...` what is possible.
        let fields = texts(fields);
        let mut rest = &bytes[..];
        if let Some(kind) = fields[0].strip_prefix("type=") {
            let part = pair("type", &symbol(kind));
            let at = rest.windows(part.len()).position(|window| window == part);
            rest = &rest[at.unwrap_or_else(|| panic!("there is a {kind}"))..];
        }
        for field in fields {
            let key = symbol(field.split(['=', '|', ' ']).next().unwrap());
            let at = rest.windows(key.len()).position(|window| window == key);
            rest = &rest[at.unwrap_or_else(|| panic!("`{kind}` has `{field}`, behind those before")) + key.len()..];
        }
    }
}

fn forward<B: Backend>(model: &mut Model<B>, x: &[B::Elem]) -> Vec<B::Elem> {
    let sample = model.input_shape();
    let x = model.tape().constant(sample, x);
    let y = model.forward(x).unwrap();
    model.tape().value(y).to_vec()
}

/// Through both formats: the weights and the output bit for bit, which is within any tolerance of the file.
fn round_trip<B: Backend>(mut model: Model<B>, x: &[B::Elem]) {
    let expected = forward(&mut model, x);
    let nanograd = Model::<B>::from_nanograd(&model.to_nanograd().unwrap(), Some(model.input_shape())).unwrap();
    let own = Model::<B>::from_cbor(&model.to_cbor().unwrap()).unwrap();
    for mut read in [nanograd, own] {
        assert_eq!(read.to_string(), model.to_string());
        assert!(read.tensors().zip(model.tensors()).all(|(a, b)| a.data == b.data), "the weights of {model}");
        assert_eq!(forward(&mut read, x), expected, "the output of {model}");
    }
}

fn mlp(sizes: &[usize], activation: Activation) -> Sequential<Double> {
    sizes.windows(2).enumerate().fold(Sequential::new(), |net, (i, pair)| {
        net.named(format!("fc{i}"), Linear::new(pair[0], pair[1]).activation(activation))
    })
}

fn ramp(len: usize) -> Vec<f64> {
    (0..len).map(|i| i as f64 / len as f64).collect()
}

/// Bytes of a checkpoint with something of the same length in another's place, all of which have to be errors.
fn is_refused(from: &[u8], to: &[u8]) -> bool {
    let model: Model<Double> = Model::new(Linear::new(3, 2).activation(Activation::Tanh), [3], 1).unwrap();
    let mut bytes = model.to_nanograd().unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the checkpoint has this");
    bytes[at..at + from.len()].copy_from_slice(to);
    Model::<Double>::from_nanograd(&bytes, None).is_err()
}

#[test]
fn every_gate_of_serialization_is_passed() {
    let file = super::file();
    for gate in texts(&file["serialization_gates"]["list"]) {
        match gate {
            "dense 3->2 save/load: weights within 1e-9, forward within 1e-6" => {
                round_trip(Model::<Double>::new(Linear::new(3, 2), [3], 1).unwrap(), &ramp(3));
            }
            "MLP 4-8-4-2 round trip" => {
                round_trip(Model::new(mlp(&[4, 8, 4, 2], Activation::Relu), [4], 1).unwrap(), &ramp(4));
            }
            "f32 and f64 dtype preserved" => {
                let single = everything::<Strict<f32>>().to_nanograd().unwrap();
                assert!(contains(&single, &pair("dtype", &symbol("f32"))));
                assert!(Model::<Double>::from_nanograd(&single, Some(Shape::new([3, 6, 6]))).is_err());
                round_trip(everything::<Strict<f32>>(), &[0.5; 108]);
                round_trip(everything::<Double>(), &[0.5; 108]);
            }
            "4 activations preserved" => {
                use Activation::{GeluTanh, Identity, Relu, Sigmoid, Silu, Tanh};
                for activation in [Relu, Tanh, Sigmoid, Identity, GeluTanh, Silu] {
                    round_trip(Model::new(mlp(&[3, 2], activation), [3], 1).unwrap(), &ramp(3));
                }
            }
            "conv 3->16 k3 on 3x8x8 ramp i/192: forward equal" => {
                let conv = Conv2d::new(3, 16, conv2d::Conv2d::kernel(3));
                round_trip(Model::<Double>::new(conv, [3, 8, 8], 1).unwrap(), &ramp(192));
            }
            "corrupted shape must signal an error" => {
                let key = [vec![0x83], symbol("shape")].concat();
                let shape = |axes: [u8; 2]| [key.clone(), axes.to_vec()].concat();
                for axes in [[2, 4], [3, 2], [1, 6], [2, 0x20], [2, 0x80]] {
                    assert!(is_refused(&shape([2, 3]), &shape(axes)), "shape {axes:?}");
                }
            }
            "deep net 100-80-60-40-20-10 round trip" => {
                let net = mlp(&[100, 80, 60, 40, 20, 10], Activation::Relu);
                round_trip(Model::new(net, [100], 1).unwrap(), &ramp(100));
            }
            "missing activation/type/dtype name -> error" => {
                assert!(is_refused(&symbol("activation"), &symbol("activatiom")));
                assert!(is_refused(&symbol("type"), &symbol("tipe")));
                assert!(is_refused(&symbol("dtype"), &symbol("dtipe")));
                assert!(is_refused(&text("Tanh"), &text("Tan ")));
            }
            _ => panic!("the gate \"{gate}\" is not tested"),
        }
    }
}
