//! XOR by a net 2-8-1, a batch of 4: the smallest training there is.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{measure, nets};

program!(static TRAIN = nets::xor().train(Training::with::<Sgd>()));

static SLAB: ConstStaticCell<[f32; TRAIN.slab_len()]> = ConstStaticCell::new([0.0; TRAIN.slab_len()]);

#[cortex_m_rt::entry]
fn main() -> ! {
    let (x, y) = ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
    let Some(slab) = SLAB.try_take() else { steps::board::semihosting::exit(7) };
    measure(&TRAIN, slab, &[&x, &y], &mut Sgd::new(0.1))
}
