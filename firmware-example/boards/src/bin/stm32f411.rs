//! STM32F411 (Cortex-M4F), as on ST's Nucleo board: `USART2` on PA2 and PA3, which is the board's USB serial port.

#![no_std]
#![no_main]

use defmt_rtt as _;
use firmware_boards::{SLAB_LEN, run};
use panic_probe as _;
use static_cell::ConstStaticCell;
use stm32f4xx_hal::flash::{FlashExt, LockedFlash};
use stm32f4xx_hal::pac::Peripherals;
use stm32f4xx_hal::prelude::*;
use stm32f4xx_hal::rcc::Config;
use stm32f4xx_hal::serial;

static SLAB: ConstStaticCell<[f32; SLAB_LEN]> = ConstStaticCell::new([0.0; SLAB_LEN]);

#[cortex_m_rt::entry]
fn main() -> ! {
    let Some(chip) = Peripherals::take() else { panic!("the peripherals are taken") };
    let mut rcc = chip.RCC.freeze(Config::hsi().sysclk(84.MHz()));
    let port = chip.GPIOA.split(&mut rcc);
    let settings = serial::Config::default().baudrate(115_200.bps());
    let Ok(mut uart) = serial::Serial::new(chip.USART2, (port.pa2, port.pa3), settings, &mut rcc) else {
        panic!("the port was refused")
    };
    let mut flash = LockedFlash::new(chip.FLASH);
    let ask = |bytes: &mut [u8]| {
        let asked = nb::block!(uart.write(b'>')).is_ok();
        asked && bytes.iter_mut().all(|byte| nb::block!(uart.read()).map(|read| *byte = read).is_ok())
    };
    // The last two sectors, of 128 KB each.
    run(SLAB.take(), flash.unlocked(), 0x4_0000..0x8_0000, ask);
    loop {
        cortex_m::asm::wfi();
    }
}
