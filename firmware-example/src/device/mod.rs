//! What depends on the board: where samples come from, the flash, a reset, and what becomes of a panic. Here QEMU's boards,
//! which talk to the host by semihosting; on yours it is the hardware abstraction of the chip.

mod flash;
mod samples;

use core::panic::PanicInfo;

use defmt::{error, info};
use defmt_semihosting as _;
use embedded_storage::nor_flash::NorFlashErrorKind;
use firmware_example::fine_tune::{Event, FineTuning};
use slabgrad::checkpoint::Slots;

use flash::RamFlash;
use samples::Samples;

type Fault = firmware_example::fine_tune::Fault<NorFlashErrorKind>;

/// Learns with each setup by itself, one after the other, and ends the program with success when all did.
pub fn run(setups: &[(&str, &'static FineTuning)], slab: &mut [f32]) -> ! {
    let fault = match learn_all(setups, slab) {
        Ok(()) => semihosting::process::exit(0),
        Err(fault) => fault,
    };
    match fault {
        Fault::Weights(error) => error!("the weights: {}", error),
        Fault::Run(error) => error!("a step was refused: {}", error),
        Fault::Save(error) => error!("no image was made: {}", error),
        Fault::Flash(error) => error!("the flash: {}", defmt::Debug2Format(&error)),
    }
    semihosting::process::exit(1)
}

fn learn_all(setups: &[(&str, &'static FineTuning)], slab: &mut [f32]) -> Result<(), Fault> {
    let mut slots = Slots::new(RamFlash::take(), 0..RamFlash::LEN, 2)?;
    for (name, setup) in setups {
        info!("learns: {=str} in {=usize} bytes of RAM", name, setup.ram_bytes());
        learn(setup, slab, &mut slots)?;
    }
    Ok(())
}

fn learn(setup: &'static FineTuning, slab: &mut [f32], slots: &mut Slots<RamFlash>) -> Result<(), Fault> {
    let mut learner = setup.start(slab)?;
    if learner.resume(slots)? {
        info!("resumed after {=u32} samples", learner.seen());
    } else {
        let before = learner.accuracy(&mut Samples::open(c"test.samples"))?;
        info!("accuracy before {=f32} % of {=u32}", before.percent(), before.of);
        learner.forget();
    }
    learner.learn(&mut Samples::open(c"training.samples"), slots, |event| match event {
        Event::Updated { seen, loss } if seen.is_multiple_of(20) => info!("{=u32} samples, loss {=f32}", seen, loss),
        Event::Updated { .. } => {}
        Event::Saved { seen } => info!("saved after {=u32} samples", seen),
    })?;
    let after = learner.accuracy(&mut Samples::open(c"test.samples"))?;
    info!("accuracy after {=f32} % of {=u32}, by {=u32} samples", after.percent(), after.of, learner.seen());
    info!("checksum {=u32:08x}", learner.checksum()?);
    Ok(())
}

/// Starts the program anew, as a loss of power does.
fn reset() -> ! {
    #[cfg(target_arch = "arm")]
    cortex_m::peripheral::SCB::sys_reset();
    #[cfg(target_arch = "riscv32")]
    {
        // SAFETY: the register of QEMU's `virt` board that ends or resets it (SiFive's test finisher).
        unsafe { (0x10_0000 as *mut u32).write_volatile(0x7777) };
        loop {
            core::hint::spin_loop();
        }
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let (file, line) = info.location().map_or(("an unknown place", 0), |at| (at.file(), at.line()));
    error!("panic at {=str}:{=u32}", file, line);
    semihosting::process::exit(101)
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
unsafe fn HardFault(_frame: &cortex_m_rt::ExceptionFrame) -> ! {
    fault()
}

#[cfg(target_arch = "riscv32")]
#[unsafe(export_name = "ExceptionHandler")]
fn exception(_frame: &riscv_rt::TrapFrame) -> ! {
    fault()
}

fn fault() -> ! {
    error!("fault");
    semihosting::process::exit(102)
}
