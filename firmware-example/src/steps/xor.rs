//! XOR by a net 2-8-1, a batch of 4: the smallest training there is.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Strict<f32>, nets::xor(), Training::with::<Sgd>(), Sgd::new(0.1), 4 samples of 2, None);
