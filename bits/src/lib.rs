//! Trains networks for 50 steps in `Strict` arithmetic and says after every step what is in their memory, so that targets can
//! be compared bit for bit: a line with hashes for every step, and, for one step, all elements.
//!
//! `cargo xtask bits` runs it on every target and compares with `golden.txt`.

#![no_std]

use core::fmt::{self, Write};

use slabgrad::optim::{HEADER_LEN, Optimizer};
use slabgrad::prelude::*;
use slabgrad::program::Space;

mod nets;
#[cfg(target_family = "wasm")]
mod wasm;

use nets::{BATCH, PIXELS};

const STEPS: usize = 50;

/// The names of the networks, which are trained one after the other.
pub const NETS: [&str; 4] = ["w1", "cnn", "norms", "gru"];

/// Elements that a run needs.
pub const SLAB_LEN: usize = nets::SLAB_LEN + BATCH * (PIXELS + 1);

/// Network and step of which all elements are printed, such as `w1 7`: set when this is compiled.
const SHOWN: Option<&str> = option_env!("BITS_SHOW");

/// Records of 64 pixels (0 to 16) and a label.
static DIGITS: &[u8] = include_bytes!("../../data/digits.bin");

/// Trains the network and writes a line for every step, or the elements after one step.
///
/// # Errors
/// Those of `out`; and when there is no such network, or a step is refused.
pub fn run(net: &str, slab: &mut [f32; SLAB_LEN], out: &mut dyn Write) -> fmt::Result {
    match net {
        "w1" => train(net, &nets::W1, Adam::new(0.01), slab, out),
        "cnn" => train(net, &nets::CNN, Sgd::new(0.05).momentum(0.9), slab, out),
        "norms" => train(net, &nets::NORMS, Adam::new(0.01), slab, out),
        "gru" => train(net, &nets::GRU, RmsProp::new(0.005), slab, out),
        _ => Err(fmt::Error),
    }
}

fn train<O: Optimizer<Strict<f32>>>(
    net: &str,
    program: &Program<'static>,
    mut optimizer: O,
    slab: &mut [f32; SLAB_LEN],
    out: &mut dyn Write,
) -> fmt::Result {
    let refused = |_: RunError| fmt::Error;
    let samples = program.inputs().first().map_or(0, |input| input.shape.axis(0));
    let (batch, slab) = slab.split_at_mut(samples * (PIXELS + 1));
    let mut memory = program.memory(slab).map_err(refused)?;
    program.init(&mut memory, 42).map_err(refused)?;
    for step in 1..=STEPS {
        let (images, labels) = digits(batch, step * samples);
        let loss = program.step(&mut memory, &[images, labels], &mut optimizer).map_err(refused)?;
        let logits = program.output(&memory, "logits").ok_or(fmt::Error)?;
        match SHOWN {
            None => {
                let outputs = hash(hash(START, &[loss]), logits);
                let (params, state) = (hash(START, memory.params), hash(START, memory.state));
                let moments = hash(START, memory.moments);
                writeln!(
                    out,
                    "{net} {step} outputs {outputs:016x} state {state:016x} params {params:016x} moments {moments:016x}"
                )?;
            }
            Some(shown) => {
                let (of, at) = shown.split_once(' ').ok_or(fmt::Error)?;
                if of == net && at.parse() == Ok(step) {
                    show(out, "loss", &[loss])?;
                    show(out, "logits", logits)?;
                    show_tensors(out, program, Space::State, "", memory.state)?;
                    show_tensors(out, program, Space::Params, "", memory.params)?;
                    let (header, moments) = memory.moments.split_at_checked(HEADER_LEN).unwrap_or_default();
                    show(out, "header of the moments", header)?;
                    let kinds = ["moment 1 of ", "moment 2 of "];
                    for (kind, moments) in kinds.iter().zip(moments.chunks_exact(program.params_len())) {
                        show_tensors(out, program, Space::Params, kind, moments)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// A line for each element of the tensors of a space, or of what is laid out as they are.
fn show_tensors(
    out: &mut dyn Write,
    program: &Program<'static>,
    space: Space,
    kind: &str,
    data: &[f32],
) -> fmt::Result {
    program.tensors().iter().filter(|tensor| tensor.space == space).try_for_each(|tensor| {
        show(out, format_args!("{kind}{}", tensor.name), data.get(tensor.range()).unwrap_or_default())
    })
}

/// A line for each element: what it is of, its place and its bits.
fn show(out: &mut dyn Write, name: impl fmt::Display, data: &[f32]) -> fmt::Result {
    data.iter().enumerate().try_for_each(|(i, x)| writeln!(out, "{name}[{i}] {:08x}", x.to_bits()))
}

/// The start of FNV-1a, in 64 bits.
const START: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(start: u64, data: &[f32]) -> u64 {
    let bytes = data.iter().flat_map(|x| x.to_bits().to_le_bytes());
    bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The digits from `first` on, in the range 0 to 1, and their labels.
fn digits(batch: &mut [f32], first: usize) -> (&[f32], &[f32]) {
    let (images, labels) = batch.split_at_mut(batch.len() / (PIXELS + 1) * PIXELS);
    let records = DIGITS.as_chunks::<{ PIXELS + 1 }>().0.iter().cycle().skip(first);
    for ((record, image), label) in records.zip(images.as_chunks_mut::<PIXELS>().0).zip(labels.iter_mut()) {
        let [pixels @ .., digit] = record;
        image.iter_mut().zip(pixels).for_each(|(x, &pixel)| *x = f32::from(pixel) / 16.0);
        *label = f32::from(*digit);
    }
    (images, labels)
}
