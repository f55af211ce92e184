//! W1 with updates as soon as a gradient is complete.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Strict<f32>, nets::workloads::w1::<Strict<f32>, 16>(), Training::with::<Adam>().fused(), Adam::new(1e-3), 16 samples of 64, Some(10));
