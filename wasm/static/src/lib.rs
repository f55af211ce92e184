//! Static programs as WebAssembly modules: without an allocator, without imports, with a memory that never grows. The class
//! `StaticModel` of the npm package loads them.
//!
//! [`export!`] is all that a module needs; `wasm/digits` is one.

#![no_std]

use core::cell::RefCell;

use slabgrad::checkpoint::{Contents, Image, ImageError};
use slabgrad::optim::Optimizer;
use slabgrad::prelude::{Memory, Program, RunError, Strict};

/// A static that the module's functions share.
pub struct Shared<T>(RefCell<T>);

// SAFETY: a module without threads is used by one.
#[allow(unsafe_code)]
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// With this value.
    pub const fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// Lends the value.
    pub fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        what(&mut self.0.borrow_mut())
    }
}

/// What went wrong, as numbers: texts would be a good part of such a module, so JavaScript writes them.
#[derive(Clone, Copy, Default)]
struct Fault {
    /// 0 where nothing did.
    kind: u32,
    /// Which input, which of its elements, how many classes there are.
    places: [u32; 3],
    value: f32,
}

impl From<RunError> for Fault {
    fn from(error: RunError) -> Self {
        let fault = |kind, places, value| Self { kind, places, value };
        match error {
            RunError::InputNotFinite { input, element, value } => fault(1, [input as u32, element as u32, 0], value),
            RunError::IndexOutOfRange { input, element, value, classes } => {
                fault(2, [input as u32, element as u32, classes as u32], value)
            }
            RunError::LossNotFinite { loss } => fault(3, [0; 3], loss),
            RunError::GradientNotFinite { found } => fault(4, [0; 3], found),
            RunError::Setting(error) => fault(5, [0; 3], error.found),
            _ => fault(6, [0; 3], 0.0),
        }
    }
}

impl From<ImageError> for Fault {
    fn from(error: ImageError) -> Self {
        let kind = match error {
            ImageError::Checksum { .. } => 8,
            ImageError::Layout { .. } => 9,
            ImageError::Block { .. } => 10,
            _ => 7,
        };
        Self { kind, ..Self::default() }
    }
}

/// The memory of a module: a slab, the inputs of a training step one after the other, a slab image, and what went wrong last.
/// Functions that return a `u32` return 0, or the kind of what went wrong.
pub struct State<const SLAB: usize, const INPUTS: usize, const IMAGE: usize> {
    slab: [f32; SLAB],
    inputs: [f32; INPUTS],
    image: [u8; IMAGE],
    fault: Fault,
    loss: f32,
}

/// Elements of all inputs.
#[must_use]
pub const fn inputs_len(program: &Program<'_>) -> usize {
    let (mut len, mut i) = (0, 0);
    while i < program.inputs().len() {
        len += program.inputs()[i].shape.len();
        i += 1;
    }
    len
}

/// The most inputs that a step has.
const MAX_INPUTS: usize = 8;

/// The inputs of a program in the memory for those of the training.
fn inputs<'m>(program: &Program<'_>, memory: &'m [f32]) -> [&'m [f32]; MAX_INPUTS] {
    let (mut all, mut rest) = ([&[][..]; MAX_INPUTS], memory);
    for (input, declared) in all.iter_mut().zip(program.inputs()) {
        let (elements, others) = rest.split_at_checked(declared.shape.len()).unwrap_or_default();
        (*input, rest) = (elements, others);
    }
    all
}

impl<const SLAB: usize, const INPUTS: usize, const IMAGE: usize> Default for State<SLAB, INPUTS, IMAGE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SLAB: usize, const INPUTS: usize, const IMAGE: usize> State<SLAB, INPUTS, IMAGE> {
    /// Zeros.
    #[must_use]
    pub const fn new() -> Self {
        let fault = Fault { kind: 0, places: [0; 3], value: 0.0 };
        Self { slab: [0.0; SLAB], inputs: [0.0; INPUTS], image: [0; IMAGE], fault, loss: 0.0 }
    }

    fn outcome<E: Into<Fault>>(&mut self, outcome: Result<(), E>) -> u32 {
        self.fault = outcome.err().map_or_else(Fault::default, E::into);
        self.fault.kind
    }

    fn with_memory<T>(
        &mut self,
        program: &Program<'_>,
        what: impl FnOnce(&mut Memory<'_, f32>, &[f32]) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut memory = program.memory(&mut self.slab)?;
        what(&mut memory, &self.inputs)
    }

    /// Draws the parameters from a seed.
    pub fn init(&mut self, program: &Program<'_>, seed: u64) -> u32 {
        self.slab.fill(0.0);
        let outcome = self.with_memory(program, |memory, _| program.init(memory, seed));
        self.outcome(outcome)
    }

    /// A training step with what lies in the inputs; the loss is in [`State::loss`] then.
    pub fn step<O: Optimizer<Strict<f32>>>(&mut self, program: &Program<'_>, mut optimizer: O, rate: f32) -> u32 {
        optimizer.set_learning_rate(rate);
        let outcome = self.with_memory(program, |memory, elements| {
            program.step(memory, &inputs(program, elements)[..program.inputs().len().min(MAX_INPUTS)], &mut optimizer)
        });
        let outcome = outcome.map(|loss| self.loss = loss);
        self.outcome(outcome)
    }

    /// An inference with what lies in the first inputs; the first output is in them then.
    pub fn infer(&mut self, program: &Program<'_>) -> u32 {
        let outcome = program.memory(&mut self.slab).and_then(|mut memory| {
            program.run(&mut memory, &inputs(program, &self.inputs)[..program.inputs().len().min(MAX_INPUTS)])?;
            let name = program.outputs().first().map_or("", |output| output.name);
            let output = program.output(&memory, name).unwrap_or_default();
            self.inputs.iter_mut().zip(output).for_each(|(to, from)| *to = *from);
            Ok(())
        });
        self.outcome(outcome)
    }

    /// Writes a slab image with all that training needs.
    pub fn save(&mut self, program: &Program<'_>) -> u32 {
        let outcome = program.memory(&mut self.slab).and_then(|memory| {
            let saved = program.save(&memory, Contents::training(), &mut self.image[..]);
            // The image is as long as one of this program.
            saved.map(|_| ()).map_err(|_| RunError::BrokenPlan)
        });
        self.outcome(outcome)
    }

    /// Loads the slab image.
    pub fn load(&mut self, program: &Program<'_>) -> u32 {
        let mut memory = match program.memory(&mut self.slab) {
            Ok(memory) => memory,
            Err(error) => return self.outcome(Err(error)),
        };
        let outcome = Image::parse(&self.image).and_then(|image| program.load(&mut memory, &image));
        self.outcome(outcome)
    }

    /// The loss of the last step.
    #[must_use]
    pub const fn loss(&self) -> f32 {
        self.loss
    }

    /// Where the inputs lie.
    #[must_use]
    pub const fn inputs(&self) -> *const f32 {
        self.inputs.as_ptr()
    }

    /// Where the slab image lies.
    #[must_use]
    pub const fn image(&self) -> *const u8 {
        self.image.as_ptr()
    }

    /// Where the last fault was: which input, which element, how many classes there are.
    #[must_use]
    pub fn fault_place(&self, i: usize) -> u32 {
        self.fault.places.get(i).copied().unwrap_or(0)
    }

    /// The number that was at fault.
    #[must_use]
    pub const fn fault_value(&self) -> f32 {
        self.fault.value
    }
}

/// Exports a training program, an inference program of the same network, and an optimizer, for `StaticModel`:
///
/// ```ignore
/// program!(static TRAIN = net::<16>().train(Training::with::<Adam>()));
/// program!(static INFER = net::<1>().infer());
/// slabgrad_static::export!(TRAIN, INFER, Adam::new(1e-3));
/// ```
///
/// It becomes a `Shared<State<..>>`, one function of C's calling convention for each of its methods, and a panic handler that
/// traps. On other targets it is nothing.
#[macro_export]
macro_rules! export {
    ($train:ident, $infer:ident, $optimizer:expr) => {
        #[cfg(target_family = "wasm")]
        mod exported {
            use super::*;

            const IMAGE: usize = $train.image_len(&slabgrad::checkpoint::Contents::training());
            type State = $crate::State<{ $train.slab_len_with(&$infer) }, { $crate::inputs_len(&$train) }, { IMAGE }>;
            static STATE: $crate::Shared<State> = $crate::Shared::new(State::new());

            #[unsafe(no_mangle)]
            extern "C" fn init(low: u32, high: u32) -> u32 {
                STATE.with(|state| state.init(&$train, u64::from(high) << 32 | u64::from(low)))
            }
            #[unsafe(no_mangle)]
            extern "C" fn step(rate: f32) -> u32 {
                STATE.with(|state| state.step(&$train, $optimizer, rate))
            }
            #[unsafe(no_mangle)]
            extern "C" fn infer() -> u32 {
                STATE.with(|state| state.infer(&$infer))
            }
            #[unsafe(no_mangle)]
            extern "C" fn save() -> u32 {
                STATE.with(|state| state.save(&$train))
            }
            #[unsafe(no_mangle)]
            extern "C" fn load() -> u32 {
                STATE.with(|state| state.load(&$train))
            }
            #[unsafe(no_mangle)]
            extern "C" fn loss() -> f32 {
                STATE.with(|state| state.loss())
            }
            #[unsafe(no_mangle)]
            extern "C" fn inputs() -> *const f32 {
                STATE.with(|state| state.inputs())
            }
            #[unsafe(no_mangle)]
            extern "C" fn input_len(training: u32, i: usize) -> usize {
                let program = if training == 0 { &$infer } else { &$train };
                program.inputs().get(i).map_or(0, |input| input.shape.len())
            }
            #[unsafe(no_mangle)]
            extern "C" fn output_len() -> usize {
                $infer.outputs().first().map_or(0, |output| output.shape.len())
            }
            #[unsafe(no_mangle)]
            extern "C" fn image() -> *const u8 {
                STATE.with(|state| state.image())
            }
            #[unsafe(no_mangle)]
            extern "C" fn image_len() -> usize {
                IMAGE
            }
            #[unsafe(no_mangle)]
            extern "C" fn fault_place(i: usize) -> u32 {
                STATE.with(|state| state.fault_place(i))
            }
            #[unsafe(no_mangle)]
            extern "C" fn fault_value() -> f32 {
                STATE.with(|state| state.fault_value())
            }
            #[panic_handler]
            fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
                core::arch::wasm32::unreachable()
            }
        }
    };
}
