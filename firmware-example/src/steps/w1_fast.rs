//! W1 with fused multiply-adds.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::backend::Fast;
use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Fast<f32>, nets::workloads::w1::<Fast<f32>, 16>(), Training::with::<Adam>(), Adam::new(1e-3), 16 samples of 64, Some(10));
