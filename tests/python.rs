//! Files for Python to read: `cargo xtask test` runs this, and then `tests/python/read.py` on what it writes.

use std::path::PathBuf;

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

#[test]
#[ignore = "writes files for `cargo xtask test python`"]
fn files_for_python() {
    let folder = PathBuf::from(std::env::var_os("SLABGRAD_PYTHON").expect("SLABGRAD_PYTHON names a folder"));
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.join(name), bytes).unwrap();
    write("model_f32.cbor", model::<Strict<f32>>().to_cbor().unwrap());
    write("model_f64.cbor", model::<Strict<f64>>().to_cbor().unwrap());
    write("nanograd_f32.cbor", model::<Strict<f32>>().to_nanograd().unwrap());
    write("nanograd_f64.cbor", model::<Strict<f64>>().to_nanograd().unwrap());
    write("dict_f32.safetensors", state_dict(&SINGLE));
    write("dict_f64.safetensors", state_dict(&DOUBLE));
}
