//! W2 with fused multiply-adds.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::backend::Fast;
use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Fast<f32>, nets::workloads::w2::<Fast<f32>, 32>(), Training::with::<Adam>(), Adam::new(1e-3), 32 samples of 784, Some(10));
