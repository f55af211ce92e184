//! W1: an MLP 64-32-10, a batch of 16.

#![no_std]
#![no_main]

#[path = "mod.rs"]
mod steps;

use slabgrad::prelude::*;
use static_cell::ConstStaticCell;
use steps::{nets, step};

step!(Strict<f32>, nets::workloads::w1::<Strict<f32>, 16>(), Training::with::<Adam>(), Adam::new(1e-3), 16 samples of 64, Some(10));
