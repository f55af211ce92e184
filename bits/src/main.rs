//! Prints what `bits` computes: on a board (under QEMU) by semihosting, on the host to standard output. There, an argument `2`
//! trains every network in two threads at once, which have to agree.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board {
    use core::fmt::Write;

    use semihosting::process::exit;

    struct Out;

    impl Write for Out {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            semihosting::print!("{text}");
            Ok(())
        }
    }

    #[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
    #[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
    fn main() -> ! {
        // On the stack, which has the rest of the memory.
        let mut slab = [0.0; bits::SLAB_LEN];
        let done = bits::NETS.iter().all(|net| bits::run(net, &mut slab, &mut Out).is_ok());
        exit(i32::from(!done))
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    fn text(net: &str) -> String {
        let mut text = String::new();
        bits::run(net, &mut [0.0; bits::SLAB_LEN], &mut text).expect("the training runs");
        text
    }
    let twice = std::env::args().nth(1).as_deref() == Some("2");
    for net in bits::NETS {
        let first = if twice {
            let [first, second] =
                [(); 2].map(|()| std::thread::spawn(|| text(net))).map(|thread| thread.join().expect("no panic"));
            assert_eq!(first, second, "two threads computed different bits");
            first
        } else {
            text(net)
        };
        print!("{first}");
    }
}
