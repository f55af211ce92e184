//! RP2350 (Cortex-M33), as on the Raspberry Pi Pico 2: `UART0` on GPIO 0 and 1.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_rp::flash::{Blocking, Flash};
use embassy_rp::uart::{Config, Uart};
use firmware_boards::{SLAB_LEN, run};
use panic_probe as _;
use static_cell::ConstStaticCell;

static SLAB: ConstStaticCell<[f32; SLAB_LEN]> = ConstStaticCell::new([0.0; SLAB_LEN]);

const FLASH_LEN: usize = 4 * 1024 * 1024;
/// The flash that `memory.x` leaves to the slots: the last 128 KB.
const SLOTS_LEN: usize = 128 * 1024;

#[cortex_m_rt::entry]
fn main() -> ! {
    let chip = embassy_rp::init(embassy_rp::config::Config::default());
    let mut uart = Uart::new_blocking(chip.UART0, chip.PIN_0, chip.PIN_1, Config::default());
    let flash: Flash<'_, _, Blocking, FLASH_LEN> = Flash::new_blocking(chip.FLASH);
    let ask = |bytes: &mut [u8]| uart.blocking_write(b">").is_ok() && uart.blocking_read(bytes).is_ok();
    run(SLAB.take(), flash, (FLASH_LEN - SLOTS_LEN) as u32..FLASH_LEN as u32, ask);
    loop {
        cortex_m::asm::wfi();
    }
}
