//! Files for others to read: what is written comes back, and `cargo xtask test python` has `tests/python/read.py` read it too.

use std::path::PathBuf;

use slabgrad::checkpoint::StateDict;
use slabgrad::layer::{Activation, Model, Sequential};
use slabgrad::prelude::*;

/// `(i - n / 2) / 16` in every parameter and state, as `read.py` expects it.
fn model<B: Backend>() -> Model<B> {
    let net = Sequential::new().conv2d("conv", 1, 2, Conv2d::kernel(3).padding(1)).relu().flatten();
    let net = net.linear("fc1", 8, 4).activation(Activation::Tanh).linear("fc2", 4, 3);
    let mut model = Model::new(net, [1, 2, 2], 1).unwrap();
    let tensors: Vec<(String, usize)> = model.tensors().map(|t| (t.name().to_string(), t.data.len())).collect();
    for (name, len) in tensors {
        let number = |i: usize| (B::Elem::from_usize(i) - B::Elem::from_usize(len / 2)) / B::Elem::from_usize(16);
        model.set(&name, &(0..len).map(number).collect::<Vec<_>>()).unwrap();
    }
    model
}

const fn net<B: Backend>() -> Graph<B> {
    let mut g = Graph::new();
    let x = g.input::<R4<1, 1, 2, 2>>("x");
    let h: Var<R4<1, 2, 2, 2>> = g.conv2d("conv", x, Conv2d::kernel(3).padding(1));
    let h = g.batch_norm2d("bn", h);
    let h: Var<R2<1, 8>> = g.flatten(h);
    let y: Var<R2<1, 3>> = g.linear("fc", h);
    g.output("y", y);
    g
}

program!(static SINGLE = net().infer());
program!(static DOUBLE: Program<Strict<f64>> = net::<Strict<f64>>().infer());

fn state_dict<B: Backend>(program: &Program<'_, B>) -> Vec<u8> {
    let mut slab = vec![B::Elem::ZERO; program.slab_len()];
    let mut memory = program.memory(&mut slab).unwrap();
    for tensor in program.tensors() {
        let name = format!("{}.{}", tensor.name.scope, tensor.name.leaf);
        let data = program.tensor_mut(&mut memory, &name).unwrap();
        let len = data.len();
        for (i, x) in data.iter_mut().enumerate() {
            *x = (B::Elem::from_usize(i) - B::Elem::from_usize(len / 2)) / B::Elem::from_usize(16);
        }
    }
    program.save_state_dict(&memory).unwrap()
}

/// Names and numbers of a model.
fn tensors<B: Backend>(model: &Model<B>) -> Vec<(String, Vec<B::Elem>)> {
    model.tensors().map(|tensor| (tensor.name().to_string(), tensor.data.to_vec())).collect()
}

/// The files go to `SLABGRAD_PYTHON`, where `read.py` looks for them, or to a folder of the tests.
#[test]
fn what_is_written_for_python_is_read_here_too() {
    fn models<B: Backend>(write: &impl Fn(&str, Vec<u8>) -> Vec<u8>, element: &str) {
        let model = model::<B>();
        let cbor = write(&format!("model_{element}.cbor"), model.to_cbor().unwrap());
        assert_eq!(tensors(&Model::<B>::from_cbor(&cbor).unwrap()), tensors(&model));
        let nanograd = write(&format!("nanograd_{element}.cbor"), model.to_nanograd().unwrap());
        let read = Model::<B>::from_nanograd(&nanograd, Some(model.input_shape())).unwrap();
        assert_eq!(tensors(&read), tensors(&model));
    }
    fn dict<B: Backend>(write: &impl Fn(&str, Vec<u8>) -> Vec<u8>, element: &str, program: &Program<'_, B>) {
        let saved = state_dict(program);
        let bytes = write(&format!("dict_{element}.safetensors"), saved.clone());
        let mut slab = vec![B::Elem::ZERO; program.slab_len()];
        let mut memory = program.memory(&mut slab).unwrap();
        program.load_state_dict(&mut memory, &StateDict::parse(&bytes).unwrap()).unwrap();
        assert_eq!(program.save_state_dict(&memory).unwrap(), saved);
    }
    let folder = std::env::var_os("SLABGRAD_PYTHON").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let write = |name: &str, bytes: Vec<u8>| {
        std::fs::write(folder.join(name), bytes).unwrap();
        std::fs::read(folder.join(name)).unwrap()
    };
    models::<Strict<f32>>(&write, "f32");
    models::<Strict<f64>>(&write, "f64");
    dict(&write, "f32", &SINGLE);
    dict(&write, "f64", &DOUBLE);
}
