//! nRF52840 (Cortex-M4F), as on Nordic's development kit: `UARTE0` on P0.06 and P0.08, which is the kit's USB serial port.

#![no_std]
#![no_main]

use core::slice;

use defmt_rtt as _;
use firmware_boards::{SLAB_LEN, run};
use nrf52840_hal::gpio::{Level, p0};
use nrf52840_hal::nvmc::Nvmc;
use nrf52840_hal::pac::Peripherals;
use nrf52840_hal::uarte::{Baudrate, Parity, Pins, Uarte};
use panic_probe as _;
use static_cell::ConstStaticCell;

static SLAB: ConstStaticCell<[f32; SLAB_LEN]> = ConstStaticCell::new([0.0; SLAB_LEN]);

/// The flash that `memory.x` leaves to the slots: the last 128 KB.
const SLOTS: (usize, usize) = (0xe_0000, 0x2_0000);

#[cortex_m_rt::entry]
fn main() -> ! {
    let Some(chip) = Peripherals::take() else { panic!("the peripherals are taken") };
    let port = p0::Parts::new(chip.P0);
    let pins = Pins {
        txd: port.p0_06.into_push_pull_output(Level::High).degrade(),
        rxd: port.p0_08.into_floating_input().degrade(),
        cts: None,
        rts: None,
    };
    let mut uart = Uarte::new(chip.UARTE0, pins, Parity::EXCLUDED, Baudrate::BAUD115200);
    // SAFETY: these bytes are flash that nothing is linked into; the driver alone gets at them.
    let storage = unsafe { slice::from_raw_parts_mut(SLOTS.0 as *mut u8, SLOTS.1) };
    let flash = Nvmc::new(chip.NVMC, storage);
    let ask = |bytes: &mut [u8]| uart.write(b">").is_ok() && uart.read(bytes).is_ok();
    run(SLAB.take(), flash, 0..SLOTS.1 as u32, ask);
    loop {
        cortex_m::asm::wfi();
    }
}
