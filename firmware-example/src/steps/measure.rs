//! Measures a training step: instructions, stack, and the memory of its program.

#[path = "../board/mod.rs"]
mod board;

use core::arch::asm;
use core::ptr;

use slabgrad::backend::Backend;
use slabgrad::optim::Optimizer;
use slabgrad::prelude::*;

use super::nets;
use board::{counter, print, semihosting::exit};

/// What a stack is painted with.
const PAINT: u32 = 0xa5a5_a5a5;
/// As far down as a step could reach.
const PAINTED: usize = 16 * 1024;

/// Trains for a few steps on the same samples, of so many classes where there are any, and prints what a step takes.
pub fn run<B: Backend<Elem = f32>, O: Optimizer<B>>(
    program: &Program<'static, B>,
    slab: &mut [f32],
    [x, y]: [&mut [f32]; 2],
    classes: Option<u32>,
    optimizer: &mut O,
) -> ! {
    if let Some(classes) = classes {
        nets::fill(x, y, classes);
    } else {
        nets::fill_xor(x, y);
    }
    let inputs: &[&[f32]] = &[x, y];
    let steps = if program.params_len() < 100_000 { 20 } else { 2 };
    let Ok(mut memory) = program.memory(slab) else { exit(1) };
    if program.init(&mut memory, 42).is_err() {
        exit(2);
    }
    let mut step = || program.step(&mut memory, inputs, optimizer);
    let Ok(first) = step() else { exit(3) };
    counter::start();
    let before = counter::instructions();
    for _ in 0..steps {
        if step().is_err() {
            exit(4);
        }
    }
    board::count("instructions ", before, counter::instructions(), steps);
    let stack = stack_of(|| {
        let _ = step();
    });
    number("stack ", stack);
    let Ok(last) = step() else { exit(5) };
    if last >= first {
        exit(6);
    }
    for (label, len) in [
        ("params ", program.params_len()),
        ("state ", program.state_len()),
        ("grads ", program.grads_len()),
        ("moments ", program.moments_len()),
        ("work ", program.work_len()),
    ] {
        number(label, len * size_of::<f32>());
    }
    exit(0)
}

pub fn give_up() -> ! {
    exit(7)
}

fn number(label: &str, number: usize) {
    print::text(label);
    print::decimal(number as u64);
    print::text("\n");
}

/// Bytes of the stack below the caller's that a call takes: the stack is painted before, and looked at afterwards.
#[inline(never)]
fn stack_of(call: impl FnOnce()) -> usize {
    let top: usize;
    // SAFETY: reads a register. What is painted and read lies below the stack pointer, so it belongs to nobody; interrupts are off.
    unsafe {
        asm!("mov {}, sp", out(reg) top, options(nomem, nostack));
        let words = |from: usize, to: usize| (from..to).step_by(4).map(|at| at as *mut u32);
        words(top - PAINTED, top).for_each(|word| ptr::write_volatile(word, PAINT));
        call();
        let untouched = words(top - PAINTED, top).take_while(|&word| ptr::read_volatile(word) == PAINT).count();
        PAINTED - 4 * untouched
    }
}
