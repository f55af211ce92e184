//! Trains and does nothing else: a firmware without its samples.

use core::hint::{black_box, spin_loop};
use core::panic::PanicInfo;

use slabgrad::backend::Backend;
use slabgrad::optim::Optimizer;
use slabgrad::prelude::*;

/// Trains until a step fails.
pub fn run<B: Backend<Elem = f32>, O: Optimizer<B>>(
    program: &Program<'static, B>,
    slab: &mut [f32],
    samples: [&mut [f32]; 2],
    _classes: Option<u32>,
    optimizer: &mut O,
) -> ! {
    if let Ok(mut memory) = program.memory(slab)
        && program.init(&mut memory, 42).is_ok()
    {
        // A box that the compiler does not look into: it must not know that there are no samples.
        let [x, y] = black_box(samples);
        while program.step(&mut memory, &[x, y], optimizer).is_ok() {}
    }
    give_up()
}

pub fn give_up() -> ! {
    loop {
        spin_loop();
    }
}

/// Not reachable: `cargo xtask size` fails when it is linked.
#[panic_handler]
fn panic(_info: &PanicInfo) -> ! {
    give_up()
}
