//! Programs that train the standard workloads: they measure a step, or with the feature `bare` only train, to show what a firmware
//! takes without what measures.

#[cfg(not(feature = "bare"))]
mod measure;
pub mod nets;
#[cfg(feature = "bare")]
mod train;

/// Interrupts of the board, MPS2 AN386; none is switched on. A crate for a chip has such a table. Without one, cortex-m-rt's has the
/// 240 that a core can have.
const INTERRUPTS: usize = 32;

unsafe extern "C" {
    /// Of cortex-m-rt.
    fn DefaultHandler();
}

// SAFETY: this is where a core looks for its handlers, behind those of the exceptions, and the name that cortex-m-rt expects.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); INTERRUPTS] = [DefaultHandler; INTERRUPTS];

#[cfg(not(feature = "bare"))]
pub use measure::{give_up, run};
#[cfg(feature = "bare")]
pub use train::{give_up, run};

/// A program that trains a network.
macro_rules! step {
    ($backend:ty, $net:expr, $training:expr, $optimizer:expr, $batch:literal samples of $features:literal, $classes:expr) => {
        program!(static TRAIN: Program<$backend> = $net.train($training));

        /// The slab and the samples.
        static MEMORY: ConstStaticCell<([f32; TRAIN.slab_len()], [f32; $batch * $features], [f32; $batch])> =
            ConstStaticCell::new(([0.0; TRAIN.slab_len()], [0.0; $batch * $features], [0.0; $batch]));

        #[cortex_m_rt::entry]
        fn main() -> ! {
            let Some((slab, x, labels)) = MEMORY.try_take() else { steps::give_up() };
            steps::run(&TRAIN, slab, [x, labels], $classes, &mut $optimizer)
        }
    };
}
pub(crate) use step;
