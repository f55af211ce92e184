//! W3: a CNN on images of 28 x 28, a batch of 32.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Strict<f32>, nets::workloads::w3::<Strict<f32>, 32>(), Training::with::<Adam>(), Adam::new(1e-3), 32 samples of 784, Some(4));
