//! Prints what `bits` computes: on a board (under QEMU) by semihosting, on the host to standard output. With the feature `rayon`
//! there, the argument is the number of threads.

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
    fn print() {
        let mut slab = vec![0.0; bits::SLAB_LEN];
        let slab = slab.first_chunk_mut().expect("it is as long as that");
        for net in bits::NETS {
            let mut text = String::new();
            bits::run(net, slab, &mut text).expect("the training runs");
            print!("{text}");
        }
    }
    #[cfg(feature = "rayon")]
    {
        let threads = std::env::args().nth(1).expect("how many threads").parse().expect("a number of threads");
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads").install(print);
    }
    #[cfg(not(feature = "rayon"))]
    print();
}
