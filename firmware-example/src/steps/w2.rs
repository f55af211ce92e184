//! W2: an MLP 784-256-128-10, a batch of 32.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Strict<f32>, nets::workloads::w2::<Strict<f32>, 32>(), Training::with::<Adam>(), Adam::new(1e-3), 32 samples of 784, Some(10));
