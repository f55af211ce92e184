//! Fine-tuning on a microcontroller: what a firmware is copied from.
//!
//! The networks ([`digits`], [`motions`]) were trained on the host. Their backbones lie in flash, and their heads learn on the
//! device ([`fine_tune`]) from samples that arrive one at a time. The programs are in `bin/`, what depends on the board is in
//! `device/`. `cargo xtask firmware` runs them under QEMU.

#![no_std]

pub mod bits;
pub mod choice;
pub mod digits;
pub mod fine_tune;
pub mod motions;

use slabgrad::program::Program;

/// The networks whose weights can be built in, by the name that `cargo xtask pack --model` takes.
pub static MODELS: &[(&str, &Program<'static>)] =
    &[("digits", &digits::TRAIN), ("motions", &motions::TRAIN), ("pretrained", &bits::pretrained::TRAIN)];
