//! PyTorch's `state_dict`s: loaded by name, checked as a whole, written back, and computing what PyTorch computes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{SafeTensors, TensorView, serialize};
use slabgrad::checkpoint::{Image, StateDict, StateDictError};
use slabgrad::prelude::*;
use slabgrad::shape::Shape;

/// The network of `tests/pytorch/cnn.py`.
const fn cnn<const B: usize, T: Backend>(frozen: bool) -> Graph<T> {
    let mut g = Graph::new();
    let x = g.input::<R4<B, 1, 8, 8>>("x");
    let h: Var<R4<B, 4, 8, 8>> = g.conv2d("conv1", x, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d("bn1", h);
    let h = g.relu(h);
    let h: Var<R4<B, 4, 4, 4>> = g.max_pool2d(h, Window2d::size(2));
    let h: Var<R4<B, 8, 2, 2>> = g.conv2d("conv2", h, Conv2d::kernel(3).stride(2).padding(1));
    let h = g.batch_norm2d("bn2", h);
    let h = g.relu(h);
    let h: Var<R2<B, 32>> = g.flatten(h);
    let logits: Var<R2<B, 10>> = g.linear("fc", h);
    g.output("logits", logits);
    if frozen {
        g.freeze("conv1");
        g.freeze("bn1");
        g.freeze("conv2");
        g.freeze("bn2");
    }
    g
}

const fn small<T: Backend>() -> Graph<T> {
    let mut g = Graph::new();
    let x = g.input::<R2<2, 3>>("x");
    let h: Var<R2<2, 2>> = g.linear("fc1", x);
    let h = g.batch_norm1d("bn", h);
    let h = g.dropout(h, 0.5);
    let p: Var<R2<2, 1>> = g.linear("fc2", h);
    g.output("p", p);
    g
}

program!(static CNN = cnn::<4, _>(false).infer());
program!(static CNN_FROZEN = cnn::<4, _>(true).infer());
program!(static CNN_DOUBLE: Program<Strict<f64>> = cnn::<4, Strict<f64>>(false).infer());
program!(static SMALL = small().infer());
program!(static SMALL_DOUBLE: Program<Strict<f64>> = small::<Strict<f64>>().infer());

/// The names of PyTorch's modules, and ours.
const NAMES: [(&str, &str); 5] = [
    ("features.0", "conv1"),
    ("features.1", "bn1"),
    ("features.4", "conv2"),
    ("features.5", "bn2"),
    ("classifier", "fc"),
];

/// The files beside the script, or those that `cargo xtask pytorch` has just made.
fn file(name: &str) -> Vec<u8> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch");
    let folder = std::env::var_os("SLABGRAD_PYTORCH").map_or(beside, PathBuf::from);
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{}: {error}", folder.join(name).display()))
}

fn dict(bytes: &[u8]) -> StateDict<'_> {
    NAMES.into_iter().fold(StateDict::parse(bytes).unwrap(), |dict, (from, to)| dict.rename(from, to))
}

fn numbers(bytes: &[u8], name: &str) -> Vec<f32> {
    let tensors = SafeTensors::deserialize(bytes).unwrap();
    let data = tensors.tensor(name).unwrap().data();
    data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// The largest difference of the logits of a program from PyTorch's.
fn difference<B: Backend>(program: &Program<'_, B>, memory: &mut Memory<'_, B::Elem>) -> f64 {
    let expected = file("cnn_expected.safetensors");
    let x: Vec<_> = numbers(&expected, "x").iter().map(|&x| B::Elem::choose(x, f64::from(x))).collect();
    program.run(memory, &[&x]).unwrap();
    let logits = program.output(memory, "logits").unwrap();
    let expected = numbers(&expected, "logits");
    assert_eq!(logits.len(), expected.len());
    let differences = logits.iter().zip(expected).map(|(a, b)| f64::from((a.to_f32() - b).abs()));
    differences.fold(0.0, f64::max)
}

#[test]
fn a_network_with_batch_norm_computes_the_logits_of_pytorch() {
    let bytes = file("cnn.safetensors");
    let mut slab = vec![0.0; CNN.slab_len()];
    let mut memory = CNN.memory(&mut slab).unwrap();
    CNN.load_state_dict(&mut memory, &dict(&bytes)).unwrap();
    let found = difference(&CNN, &mut memory);
    assert!(found < 1e-5, "the logits differ by {found}");

    for (name, tolerance) in
        [("cnn_f64.safetensors", 1e-5), ("cnn_f16.safetensors", 1e-2), ("cnn_bf16.safetensors", 5e-2)]
    {
        let bytes = file(name);
        let mut slab = vec![0.0; CNN_DOUBLE.slab_len()];
        let mut memory = CNN_DOUBLE.memory(&mut slab).unwrap();
        CNN_DOUBLE.load_state_dict(&mut memory, &dict(&bytes)).unwrap();
        let found = difference(&CNN_DOUBLE, &mut memory);
        assert!(found < tolerance, "{name}: the logits differ by {found}");
    }
}

#[test]
fn packed_weights_are_used_in_place_and_compute_the_same() {
    let bytes = file("cnn.safetensors");
    let packed = CNN_FROZEN.pack(&dict(&bytes)).unwrap();
    // What `include_bytes!` in an `Aligned` gives a firmware.
    let mut flash = vec![0_u64; packed.len().div_ceil(8)];
    let flash: &mut [u8] = bytemuck::cast_slice_mut(&mut flash);
    flash[..packed.len()].copy_from_slice(&packed);
    let image = Image::parse(&flash[..packed.len()]).unwrap();
    let mut slab = vec![0.0; CNN_FROZEN.slab_len()];
    let mut memory = CNN_FROZEN.memory_with(&mut slab, CNN_FROZEN.frozen_in(&image).unwrap()).unwrap();
    CNN_FROZEN.load(&mut memory, &image).unwrap();
    let found = difference(&CNN_FROZEN, &mut memory);
    assert!(found < 1e-5, "the logits differ by {found}");
}

#[test]
fn what_is_saved_is_loaded_to_the_bit() {
    let mut slab = vec![0.0; SMALL_DOUBLE.slab_len()];
    let mut memory = SMALL_DOUBLE.memory(&mut slab).unwrap();
    SMALL_DOUBLE.init(&mut memory, 5).unwrap();
    memory.state.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64 + 0.1);
    let bytes = SMALL_DOUBLE.save_state_dict(&memory).unwrap();
    let names: Vec<_> = SafeTensors::deserialize(&bytes).unwrap().names().into_iter().map(String::from).collect();
    assert_eq!(names.len(), SMALL_DOUBLE.tensors().len(), "{names:?}");
    let mut other_slab = vec![0.0; SMALL_DOUBLE.slab_len()];
    let mut other = SMALL_DOUBLE.memory(&mut other_slab).unwrap();
    SMALL_DOUBLE.load_state_dict(&mut other, &StateDict::parse(&bytes).unwrap()).unwrap();
    assert_eq!((&other.params, &other.state), (&memory.params, &memory.state));

    // In the other precision the numbers are rounded.
    let mut single_slab = vec![0.0; SMALL.slab_len()];
    let mut single = SMALL.memory(&mut single_slab).unwrap();
    SMALL.load_state_dict(&mut single, &StateDict::parse(&bytes).unwrap()).unwrap();
    let rounded: Vec<f32> = memory.params.iter().map(|&x| x as f32).collect();
    assert_eq!(*single.params, rounded);
    let bytes = SMALL.save_state_dict(&single).unwrap();
    SMALL_DOUBLE.load_state_dict(&mut other, &StateDict::parse(&bytes).unwrap()).unwrap();
    let widened: Vec<f64> = single.state.iter().map(|&x| f64::from(x)).collect();
    assert_eq!(*other.state, widened);
}

/// A file with these tensors, all elements `0x3c00` of 16 bits, or the same in other types.
fn file_of(tensors: &[(&str, Dtype, &[usize])]) -> Vec<u8> {
    let one = |dtype| match dtype {
        Dtype::F16 => vec![0x00, 0x3c],
        Dtype::BF16 => vec![0x80, 0x3f],
        Dtype::F32 => 1_f32.to_le_bytes().to_vec(),
        Dtype::F64 => 1_f64.to_le_bytes().to_vec(),
        _ => 1_u64.to_le_bytes().to_vec(),
    };
    let data: BTreeMap<&str, Vec<u8>> =
        tensors.iter().map(|&(name, dtype, shape)| (name, one(dtype).repeat(shape.iter().product()))).collect();
    let views = tensors
        .iter()
        .map(|&(name, dtype, shape)| (name, TensorView::new(dtype, shape.to_vec(), &data[name]).unwrap()));
    serialize(views, None).unwrap()
}

const SMALL_FILE: [(&str, Dtype, &[usize]); 9] = [
    ("fc1.weight", Dtype::F16, &[2, 3]),
    ("fc1.bias", Dtype::BF16, &[2]),
    ("bn.weight", Dtype::F32, &[2]),
    ("bn.bias", Dtype::F64, &[2]),
    ("bn.running_mean", Dtype::F16, &[2]),
    ("bn.running_var", Dtype::BF16, &[2]),
    ("bn.num_batches_tracked", Dtype::I64, &[]),
    ("fc2.weight", Dtype::F64, &[1, 2]),
    ("fc2.bias", Dtype::F32, &[1]),
];

#[test]
fn types_may_be_mixed() {
    let bytes = file_of(&SMALL_FILE);
    let mut slab = vec![0.0; SMALL.slab_len()];
    let mut memory = SMALL.memory(&mut slab).unwrap();
    SMALL.load_state_dict(&mut memory, &StateDict::parse(&bytes).unwrap()).unwrap();
    assert_eq!(*memory.params, vec![1.0; SMALL.params_len()]);
    assert_eq!(SMALL.tensor(&memory, "bn.running_var").unwrap(), [1.0, 1.0]);
    assert_eq!(SMALL.tensor(&memory, "dropout.counter").unwrap(), [0.0, 0.0], "PyTorch has no such thing");
}

#[test]
fn all_that_differs_is_reported_and_nothing_is_changed() {
    let mut tensors: Vec<_> = SMALL_FILE.to_vec();
    tensors[0].2 = &[3, 2];
    tensors[2].1 = Dtype::I64;
    tensors[8].0 = "fc3.bias";
    tensors.push(("head.weight", Dtype::F32, &[1]));
    tensors.push(("old.bn.bias", Dtype::F32, &[2]));
    let bytes = file_of(&tensors);
    let mut slab = vec![0.5; SMALL.slab_len()];
    let mut memory = SMALL.memory(&mut slab).unwrap();
    let dict = StateDict::parse(&bytes).unwrap().rename("old", "");
    let error = SMALL.load_state_dict(&mut memory, &dict).unwrap_err();
    let StateDictError::Differs(report) = &error else { panic!("{error}") };
    assert_eq!(report.missing, ["fc2.bias"]);
    assert_eq!(report.unexpected, ["fc3.bias", "head.weight"]);
    assert_eq!(report.ambiguous, ["bn.bias"]);
    assert_eq!((report.shapes.len(), report.shapes[0].expected), (1, Shape::new([2, 3])));
    assert_eq!(
        error.to_string(),
        "the file's tensors are not the program's; missing: fc2.bias; unexpected: fc3.bias, head.weight; named twice: bn.bias; \
         fc1.weight has shape [3, 2], expected [2, 3]; bn.weight is of type I64, expected F16, BF16, F32 or F64"
    );
    assert_eq!(slab, vec![0.5; SMALL.slab_len()]);
}

#[test]
fn names_are_renamed_by_whole_parts() {
    let bytes = file_of(&[("a.weight", Dtype::F32, &[1]), ("ab.weight", Dtype::F32, &[1]), ("a", Dtype::F32, &[1])]);
    let names = |from, to| {
        let mut names: Vec<_> = StateDict::parse(&bytes).unwrap().rename(from, to).names().collect();
        names.sort();
        names
    };
    assert_eq!(names("a", "b"), ["ab.weight", "b", "b.weight"]);
    assert_eq!(names("", "m"), ["m.a", "m.a.weight", "m.ab.weight"]);
    assert_eq!(names("a.weight", "w"), ["a", "ab.weight", "w"]);
    let mut tensors = SMALL_FILE.to_vec();
    tensors.push(("extra", Dtype::I64, &[]));
    let bytes = file_of(&tensors);
    let mut slab = vec![0.0; SMALL.slab_len()];
    let mut memory = SMALL.memory(&mut slab).unwrap();
    assert!(SMALL.load_state_dict(&mut memory, &StateDict::parse(&bytes).unwrap()).is_err());
    SMALL.load_state_dict(&mut memory, &StateDict::parse(&bytes).unwrap().allow_unexpected()).unwrap();
}

#[test]
fn a_file_that_is_none_is_refused() {
    let bytes = file_of(&SMALL_FILE);
    for len in 0..bytes.len() {
        assert!(StateDict::parse(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
    let nested = ["{\"a\":".repeat(10_000), "}".repeat(10_000)].concat();
    let huge = [&(u64::MAX.to_le_bytes())[..], b"{}"].concat();
    let nested = [&(nested.len() as u64).to_le_bytes()[..], nested.as_bytes()].concat();
    for bytes in [nested, huge, [&bytes[..], b"more"].concat()] {
        let error = StateDict::parse(&bytes).err().unwrap().to_string();
        assert!(error.starts_with("this is no safetensors file, or a damaged one: "), "{error}");
    }
}
