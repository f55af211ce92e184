//! Slab images: a resumed run has the bits of one that never stopped, and bad bytes change nothing.

use slabgrad::checkpoint::{Aligned, Block, Contents, Element, HEADER_LEN, Image, ImageError, SaveError, Sink};
use slabgrad::prelude::*;
use slabgrad::program::Space;
use slabgrad::tape::FixedTape;

/// Something of everything that has memory: parameters, running statistics, a counter of masks.
const fn net<const B: usize, T: Backend>(frozen: bool) -> Graph<T> {
    let mut g = Graph::new();
    let x = g.input::<R2<B, 3>>("x");
    let label = g.class_indices::<B>("label");
    let h: Var<R2<B, 5>> = g.linear("fc1", x);
    let h = g.batch_norm1d("bn", h);
    let h = g.tanh(h);
    let h = g.dropout(h, 0.5);
    let logits: Var<R2<B, 2>> = g.linear("fc2", h);
    g.output("logits", logits);
    let loss = g.cross_entropy(logits, label);
    g.loss(loss);
    if frozen {
        g.freeze("fc1");
    }
    g
}

/// The same with the names of the layers exchanged.
const fn other_net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<4, 3>>("x");
    let h: Var<R2<4, 5>> = g.linear("fc2", x);
    let p: Var<R2<4, 2>> = g.linear("fc1", h);
    g.output("p", p);
    g
}

program!(static TRAIN = net::<4, _>(false).train(Training::with::<Adam>()));
program!(static TRAIN_SGD = net::<4, _>(false).train(Training::with::<Sgd>()));
program!(static INFER = net::<1, _>(false).infer());
program!(static FROZEN = net::<4, _>(true).train(Training::with::<Adam>()));
program!(static FROZEN_INFER = net::<1, _>(true).infer());
program!(static DOUBLE: Program<Strict<f64>> = net::<4, Strict<f64>>(false).train(Training::with::<Adam>()));
program!(static OTHER = other_net().infer());

const X: [f32; 12] = [0.5, -1.0, 2.0, 0.0, 1.0, -0.5, 0.25, 0.75, -2.0, 1.5, -0.125, 0.0];
const LABELS: [f32; 4] = [1.0, 0.0, 0.0, 1.0];

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|x| x.to_bits()).collect()
}

/// All bits of a memory.
fn all(memory: &Memory<'_, f32>) -> Vec<Vec<u32>> {
    [&memory.params, &memory.state, &memory.grads, &memory.moments, &memory.work].iter().map(|x| bits(x)).collect()
}

/// Trains the program from its start.
fn trained<'a>(program: &Program, slab: &'a mut [f32], frozen: &'a [f32], steps: usize) -> Memory<'a, f32> {
    let mut memory = program.memory_with(slab, frozen).unwrap();
    program.init(&mut memory, 3).unwrap();
    train(program, &mut memory, steps);
    memory
}

fn train(program: &Program, memory: &mut Memory<'_, f32>, steps: usize) {
    for _ in 0..steps {
        program.step(memory, &[&X, &LABELS], &mut Adam::new(0.05)).unwrap();
    }
}

fn image_of(program: &Program, memory: &Memory<'_, f32>, contents: Contents<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = program.save(memory, contents, &mut Bytes(&mut bytes)).unwrap();
    assert_eq!((written, program.image_len(&contents)), (bytes.len(), bytes.len()));
    bytes
}

/// A sink of one's own.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Sink for Bytes<'_> {
    type Error = &'static str;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Puts the right checksum at the end of an image that was changed.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let mut crc = !0_u32;
    for byte in &bytes[..end] {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    bytes[end..].copy_from_slice(&(!crc).to_le_bytes());
    bytes
}

#[test]
fn a_resumed_run_has_the_bits_of_one_that_never_stopped() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = trained(&TRAIN, &mut slab, &[], 7);
    let bytes = image_of(&TRAIN, &memory, Contents::training());
    train(&TRAIN, &mut memory, 9);

    let mut other_slab = vec![f32::NAN; TRAIN.slab_len()];
    let mut other = TRAIN.memory(&mut other_slab).unwrap();
    TRAIN.load(&mut other, &Image::parse(&bytes).unwrap()).unwrap();
    assert_eq!(TRAIN.steps_done(&other), 7);
    train(&TRAIN, &mut other, 9);

    assert_eq!(bits(other.params), bits(memory.params));
    assert_eq!(bits(other.state), bits(memory.state));
    assert_eq!(bits(other.moments), bits(memory.moments));
    assert_eq!(TRAIN.tensor(&other, "dropout.counter").unwrap(), [16.0, 0.0], "masks go on where they were");
}

#[test]
fn the_users_bytes_come_back() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = trained(&TRAIN, &mut slab, &[], 1);
    for len in 0..9 {
        let user: Vec<u8> = (1..=len).collect();
        let bytes = image_of(&TRAIN, &memory, Contents::weights().with_user(&user));
        let image = Image::parse(&bytes).unwrap();
        assert_eq!(image.user(), user);
        assert_eq!((bytes.len() % 4, image.header().steps()), (0, 1));
    }
}

#[test]
fn an_image_that_is_read_in_pieces_is_the_same() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = trained(&TRAIN, &mut slab, &[], 1);
    let contents = Contents::training().with_user(b"shuffle");
    let whole = image_of(&TRAIN, &memory, contents);
    for size in [1, 2, 3, 7, 64, 100, 5000] {
        let mut image = TRAIN.image(&memory, contents).unwrap();
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            let count = image.read(&mut buffer);
            bytes.extend_from_slice(&buffer[..count]);
            if count < size {
                break;
            }
        }
        assert!(bytes == whole, "pieces of {size} bytes");
        assert_eq!(image.read(&mut buffer), 0);
    }
}

#[test]
fn a_slice_takes_an_image_if_it_is_long_enough() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = trained(&TRAIN, &mut slab, &[], 1);
    let len = TRAIN.image_len(&Contents::weights());
    let mut bytes = vec![0; len + 3];
    assert_eq!(TRAIN.save(&memory, Contents::weights(), &mut bytes[..]).unwrap(), len);
    assert!(Image::parse(&bytes[..len]).is_ok());
    let error = TRAIN.save(&memory, Contents::weights(), &mut bytes[..100]).unwrap_err();
    assert!(matches!(error, SaveError::Sink(_)), "{error}");
    assert_eq!(error.to_string(), "the slice is too short: 128 bytes were to be written when 100 were left");
}

#[test]
fn weights_load_into_programs_that_infer_or_start_anew() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = trained(&TRAIN, &mut slab, &[], 5);
    let (weights, whole) =
        (image_of(&TRAIN, &memory, Contents::weights()), image_of(&TRAIN, &memory, Contents::training()));
    let mut infer_slab = vec![0.0; INFER.slab_len()];
    for bytes in [&weights, &whole] {
        let mut infer = INFER.memory(&mut infer_slab).unwrap();
        INFER.load(&mut infer, &Image::parse(bytes).unwrap()).unwrap();
        assert_eq!((bits(infer.params), bits(infer.state)), (bits(memory.params), bits(memory.state)));
        infer_slab.fill(f32::NAN);
    }

    let image = Image::parse(&weights).unwrap();
    let mut other_slab = vec![0.0; TRAIN.slab_len()];
    let mut other = trained(&TRAIN, &mut other_slab, &[], 2);
    let (before, moments) = (all(&other), TRAIN.moments_len());
    let error = TRAIN.load(&mut other, &image).unwrap_err();
    assert_eq!(error, ImageError::Block { block: Block::Moments, expected: moments, found: 0 });
    assert_eq!(error.to_string(), format!("the image's moments block has 0 elements, {moments} are needed"));
    assert_eq!(all(&other), before);
    TRAIN.load_weights(&mut other, &image).unwrap();
    assert_eq!(bits(other.params), bits(memory.params));
    assert_eq!(bits(other.moments), before[3]);
}

#[test]
fn frozen_parameters_are_used_in_place() {
    let mut frozen = vec![0.0; FROZEN.frozen_len()];
    FROZEN.init_frozen(&mut frozen, 9).unwrap();
    let mut slab = vec![0.0; FROZEN.slab_len()];
    let memory = trained(&FROZEN, &mut slab, &frozen, 3);
    let bytes = image_of(&FROZEN, &memory, Contents::weights().with_frozen());

    let mut flash = Aligned([0; 1024]);
    flash.0[..bytes.len()].copy_from_slice(&bytes);
    let image = Image::parse(&flash.0[..bytes.len()]).unwrap();
    let in_place = FROZEN_INFER.frozen_in(&image).unwrap();
    assert_eq!(in_place.as_ptr().cast::<u8>(), flash.0[HEADER_LEN..].as_ptr(), "without a copy");
    assert_eq!(bits(in_place), bits(&frozen));

    let mut infer_slab = vec![0.0; FROZEN_INFER.slab_len()];
    let mut infer = FROZEN_INFER.memory_with(&mut infer_slab, in_place).unwrap();
    FROZEN_INFER.load(&mut infer, &image).unwrap();
    FROZEN_INFER.run(&mut infer, &[&X[..3]]).unwrap();
    let found = bits(FROZEN_INFER.output(&infer, "logits").unwrap());
    let mut infer = Memory { grads: &mut [], moments: &mut [], ..memory };
    FROZEN_INFER.run(&mut infer, &[&X[..3]]).unwrap();
    assert_eq!(found, bits(FROZEN_INFER.output(&infer, "logits").unwrap()));

    // Anywhere else it is an error.
    for shift in 1..4 {
        let mut moved = Aligned([0; 1024]);
        let moved = &mut moved.0[shift..shift + bytes.len()];
        moved.copy_from_slice(&bytes);
        let error = FROZEN.frozen_in(&Image::parse(moved).unwrap()).unwrap_err();
        assert_eq!(error, ImageError::Unaligned { block: Block::Frozen, align: 4 });
    }
    let weights = image_of(&FROZEN, &infer, Contents::weights());
    let error = FROZEN.frozen_in(&Image::parse(&weights).unwrap()).unwrap_err();
    assert_eq!(error, ImageError::Block { block: Block::Frozen, expected: 20, found: 0 });
}

#[test]
fn saving_what_is_not_there_is_an_error() {
    let (mut params, mut state) = (vec![0.0; FROZEN.params_len()], vec![0.0; FROZEN.state_len()]);
    let (mut grads, mut moments) = (vec![0.0; FROZEN.grads_len()], vec![0.0; FROZEN.moments_len()]);
    let (frozen, mut work) = (vec![0.0; 19], vec![0.0; FROZEN.work_len()]);
    let memory = Memory {
        params: &mut params,
        frozen: &frozen,
        state: &mut state,
        grads: &mut grads,
        moments: &mut moments,
        work: &mut work,
    };
    let error = FROZEN.image(&memory, Contents::weights().with_frozen()).err().unwrap();
    let expected = RunError::SpaceLength { space: Space::Frozen, expected: 20, found: 19 };
    assert_eq!(error, SaveError::Memory(expected));
    assert!(FROZEN.image(&memory, Contents::training()).is_ok());
}

/// Every way in which an image can be wrong, beside damage.
#[test]
fn a_wrong_image_is_an_error_with_the_facts_in_it_and_changes_nothing() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = trained(&TRAIN, &mut slab, &[], 3);
    let good = image_of(&TRAIN, &memory, Contents::training());

    let mut other_slab = vec![0.0; OTHER.slab_len()];
    let other = OTHER.memory(&mut other_slab).unwrap();
    let mut double_slab = vec![0.0; DOUBLE.slab_len()];
    let double = DOUBLE.memory(&mut double_slab).unwrap();
    let mut double_image = Vec::new();
    DOUBLE.save(&double, Contents::training(), &mut Bytes(&mut double_image)).unwrap();
    let mut sgd_slab = vec![0.0; TRAIN_SGD.slab_len()];
    let sgd = TRAIN_SGD.memory(&mut sgd_slab).unwrap();
    let mut frozen_slab = vec![0.0; FROZEN.slab_len()];
    let frozen = FROZEN.memory_with(&mut frozen_slab, &[0.0; 20]).unwrap();

    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        sealed(bytes)
    };
    let (len, own) = (good.len(), TRAIN.fingerprint());
    let moments = TRAIN.moments_len();
    let cases: Vec<(&str, Vec<u8>, String)> = vec![
        ("empty", vec![], "the image has 0 bytes, its header alone has 64".into()),
        ("no image", b"PK\x03\x04 and sixty bytes that are those of something else entirely, though".into(), {
            "this is no slab image: it starts with \"PK\\x03\\x04 and\"".into()
        }),
        ("future version", changed(8, 2), {
            "the image has version 2 of the format, the newest that can be read is 1".into()
        }),
        ("version 0", changed(8, 0), "the image has version 0 of the format, the newest that can be read is 1".into()),
        ("unknown element", changed(9, 2), "the image's header is damaged: it cannot be decoded".into()),
        ("wrong element", double_image, "the image holds f64, the model has f32".into()),
        ("wrong model", image_of(&OTHER, &other, Contents::weights()), {
            let found = OTHER.fingerprint();
            format!(
                "the image is one of another model: the fingerprint of its parameters' names and shapes is {found:08x}, \
                 the model's {own:08x}"
            )
        }),
        ("frozen elsewhere", image_of(&FROZEN, &frozen, Contents::training()), {
            let found = FROZEN.fingerprint();
            format!(
                "the image is one of another model: the fingerprint of its parameters' names and shapes is {found:08x}, \
                 the model's {own:08x}"
            )
        }),
        ("another optimizer", image_of(&TRAIN_SGD, &sgd, Contents::training()), {
            format!("the image's moments block has 8 elements, {moments} are needed")
        }),
        ("trailing bytes", [&good[..], &[0; 4]].concat(), {
            format!("the image has {} bytes, its header says that it has {len}", len + 4)
        }),
        (
            "oversized lengths",
            {
                let mut bytes = good.clone();
                // Seven bits a byte: 2^32 - 1 elements, or bytes, in every block.
                for block in 0..5 {
                    bytes[15 + 5 * block..20 + 5 * block].copy_from_slice(&[255, 255, 255, 255, 15]);
                }
                sealed(bytes)
            },
            format!("the image has {len} bytes, its header says that it has {}", 64 + 17_u64 * 0xffff_ffff + 1 + 4),
        ),
    ];
    let before = all(&memory);
    for (name, bytes, text) in cases {
        let result = Image::parse(&bytes).and_then(|image| TRAIN.load(&mut memory, &image));
        assert_eq!(result.unwrap_err().to_string(), text, "{name}");
        assert_eq!(all(&memory), before, "changed by: {name}");
    }
    assert!(Image::parse(&good).and_then(|image| TRAIN.load(&mut memory, &image)).is_ok());
}

#[test]
fn damage_is_detected_wherever_it_is() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let mut memory = trained(&TRAIN, &mut slab, &[], 3);
    let good = image_of(&TRAIN, &memory, Contents::weights().with_user(b"abc"));
    let before = all(&memory);
    for len in 0..good.len() {
        let error = Image::parse(&good[..len]).unwrap_err();
        let expected = if len < HEADER_LEN { HEADER_LEN } else { good.len() } as u64;
        assert_eq!(error, ImageError::Length { expected, found: len as u64 }, "cut to {len} bytes");
    }
    let mut bytes = good.clone();
    for bit in 0..8 * good.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let result = Image::parse(&bytes).and_then(|image| TRAIN.load_weights(&mut memory, &image));
        let error = result.expect_err("a flipped bit");
        if bit / 8 >= HEADER_LEN {
            assert!(matches!(error, ImageError::Checksum { .. }), "bit {bit}: {error}");
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(all(&memory), before);
}

#[test]
fn a_memory_that_is_too_short_is_an_error() {
    let mut slab = vec![0.0; TRAIN.slab_len()];
    let memory = trained(&TRAIN, &mut slab, &[], 1);
    let bytes = image_of(&TRAIN, &memory, Contents::training());
    let mut other_slab = vec![0.0; INFER.slab_len()];
    let mut other = INFER.memory(&mut other_slab).unwrap();
    let error = TRAIN.load(&mut other, &Image::parse(&bytes).unwrap()).unwrap_err();
    assert!(matches!(error, ImageError::Memory(RunError::SpaceLength { space: Space::Moments, .. })), "{error}");
}

#[test]
fn programs_of_one_network_have_one_fingerprint() {
    assert_eq!(TRAIN.fingerprint(), INFER.fingerprint());
    assert_eq!(TRAIN.fingerprint(), TRAIN_SGD.fingerprint());
    assert_eq!(TRAIN.fingerprint(), DOUBLE.fingerprint(), "element types are told apart by the header");
    assert_ne!(TRAIN.fingerprint(), FROZEN.fingerprint());
    assert_ne!(TRAIN.fingerprint(), OTHER.fingerprint());
}

#[test]
fn a_resumed_tape_has_the_bits_of_one_that_never_stopped() {
    let eager = resume_a_tape(false);
    assert_eq!(resume_a_tape(true), eager, "lazily");
}

/// What a lazy tape has recorded and not computed is computed from what was loaded.
#[test]
fn a_lazy_tape_computes_from_what_was_loaded() {
    let mut slab = [0.0; 64];
    let mut tape: FixedTape<8> = FixedTape::in_slab(&mut slab, 2).unwrap().lazily();
    let w = tape.parameter([2], &[3.0, -4.0]);
    let mut bytes = Vec::new();
    tape.image(&[], b"").unwrap().write_to(&mut Bytes(&mut bytes)).unwrap();
    tape.value_mut(w).fill(0.0);
    let y = tape.square(w);
    tape.load(&mut [], &Image::parse(&bytes).unwrap()).unwrap();
    assert_eq!(tape.force(y), [9.0, 16.0]);
}

/// Trains, saves, goes on; loads elsewhere and goes on; returns the parameters and moments that both end with.
fn resume_a_tape(lazy: bool) -> (Vec<u32>, Vec<u32>) {
    type Tape<'s> = FixedTape<'s, 32>;
    fn start(slab: &mut [f32], lazy: bool) -> (Tape<'_>, [slabgrad::tape::Handle; 3]) {
        let tape = Tape::in_slab(slab, 3).unwrap();
        let mut tape = if lazy { tape.lazily() } else { tape };
        let w = tape.parameter([2], &[0.5, -1.0]);
        let b = tape.parameter([], &[0.25]);
        let running = tape.state([2], &[0.0; 2]);
        (tape, [w, b, running])
    }
    fn steps(tape: &mut Tape<'_>, [w, b, running]: [slabgrad::tape::Handle; 3], moments: &mut [f32], steps: usize) {
        let mark = tape.mark();
        for _ in 0..steps {
            let x = tape.constant([2], &[1.0, 2.0]);
            let y = tape.mul(x, w);
            let y = tape.add(y, b);
            let y = tape.square(y);
            let loss = tape.sum(y, &[], false);
            tape.backward(loss).unwrap();
            tape.update(&Adam::new(0.1), moments).unwrap();
            tape.value_mut(running)[1] += 1.0;
            tape.reset_to(mark);
        }
    }
    let (mut slab, mut moments) = ([0.0; 64], [0.0; 14]);
    let (mut tape, vars) = start(&mut slab, lazy);
    steps(&mut tape, vars, &mut moments, 5);
    let mut bytes = Vec::new();
    tape.image(&moments, b"u").unwrap().write_to(&mut Bytes(&mut bytes)).unwrap();
    steps(&mut tape, vars, &mut moments, 6);

    let image = Image::parse(&bytes).unwrap();
    assert_eq!((image.header().steps(), image.header().element(), image.user()), (5, Element::F32, &b"u"[..]));
    let (mut other_slab, mut other_moments) = ([0.0; 64], [0.0; 14]);
    let (mut other, vars) = start(&mut other_slab, lazy);
    other.load(&mut other_moments, &image).unwrap();
    assert_eq!(other.value(vars[2]), [0.0, 5.0]);
    steps(&mut other, vars, &mut other_moments, 6);
    assert_eq!((bits(other.params()), bits(&other_moments)), (bits(tape.params()), bits(&moments)));
    assert_eq!(other.value(vars[2]), [0.0, 11.0]);

    let result = (bits(other.params()), bits(&other_moments));
    let error = other.load(&mut other_moments[..8], &image).unwrap_err();
    assert_eq!(error, ImageError::Block { block: Block::Moments, expected: 8, found: 14 });
    other.constant([1], &[0.0]);
    assert!(other.load(&mut other_moments, &image).is_ok(), "what is computed from them has no part in it");
    other.parameter([1, 1], &[0.0]);
    assert!(matches!(other.load(&mut other_moments, &image), Err(ImageError::Layout { .. })) || other.check().is_err());
    result
}

/// The files of every version: they are read for as long as the promise in `docs/FORMAT.md` holds, and those of the version
/// that is written come out byte for byte. `UPDATE_IMAGES=1` writes these anew, which is right only before a release.
#[test]
fn golden_images_are_read_and_written_byte_for_byte() {
    fn check<B: Backend>(program: &Program<'_, B>, golden: &[u8], path: &str, number: impl Fn(usize) -> B::Elem) {
        let frozen: Vec<B::Elem> = (0..program.frozen_len()).map(|i| number(1000 + i)).collect();
        let mut slab: Vec<B::Elem> = vec![B::Elem::ZERO; program.slab_len()];
        let mut memory = program.memory_with(&mut slab, &frozen).unwrap();
        memory.params.iter_mut().enumerate().for_each(|(i, x)| *x = number(2000 + i));
        memory.state.iter_mut().enumerate().for_each(|(i, x)| *x = number(3000 + i));
        memory.moments.iter_mut().enumerate().for_each(|(i, x)| *x = number(4000 + i));
        // 3 * 2^20 + 5 updates.
        (memory.moments[0], memory.moments[1]) = (B::Elem::from_usize(5), B::Elem::from_usize(3));
        let contents = Contents::training().with_frozen().with_user(b"generator");
        let mut bytes = Vec::new();
        program.save(&memory, contents, &mut Bytes(&mut bytes)).unwrap();
        if std::env::var_os("UPDATE_IMAGES").is_some() {
            std::fs::write(path, &bytes).unwrap();
            return;
        }
        assert!(bytes == golden, "{path}: other bytes are written");

        let image = Image::parse(golden).unwrap();
        assert_eq!(image.header().steps(), 3 << 20 | 5);
        assert_eq!(image.user(), b"generator");
        let before: Vec<Vec<B::Elem>> = [&memory.params, &memory.state, &memory.moments].map(|x| x.to_vec()).into();
        for space in [&mut *memory.params, &mut *memory.state, &mut *memory.moments] {
            space.fill(B::Elem::ZERO);
        }
        program.load(&mut memory, &image).unwrap();
        assert!(before == [&memory.params, &memory.state, &memory.moments].map(|x| x.to_vec()));
    }
    program!(static DOUBLE_FROZEN: Program<Strict<f64>> = net::<4, Strict<f64>>(true).train(Training::with::<Adam>()));
    let single = Aligned(*include_bytes!("images/v1_f32.slab"));
    let double = Aligned(*include_bytes!("images/v1_f64.slab"));
    check(&FROZEN, &single.0, "tests/images/v1_f32.slab", |i| i as f32 / 8.0);
    check(&DOUBLE_FROZEN, &double.0, "tests/images/v1_f64.slab", |i| i as f64 / 8.0);
    let image = Image::parse(&single.0).unwrap();
    assert_eq!(image.elements::<f32>(Block::Frozen).unwrap()[..2], [125.0, 125.125]);
    assert_eq!(image.elements::<f64>(Block::Frozen), {
        Err(ImageError::Element { expected: Element::F64, found: Element::F32 })
    });
    assert_eq!(Image::parse(&double.0).unwrap().elements::<f64>(Block::Params).unwrap()[..1], [250.0]);
}

#[cfg(feature = "std")]
mod files {
    use super::*;
    use slabgrad::checkpoint::FileError;

    /// A folder of this test's own.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_and_read_back() {
        let folder = folder("files");
        let path = folder.join("model.slab");
        let mut slab = vec![0.0; TRAIN.slab_len()];
        let mut memory = trained(&TRAIN, &mut slab, &[], 1);
        for user in [&b"first"[..], b"", b"third"] {
            TRAIN.save_file(&memory, Contents::training().with_user(user), &path).unwrap();
            let before = all(&memory);
            memory.params.fill(0.0);
            assert_eq!(TRAIN.load_file(&mut memory, &path).unwrap(), user);
            assert_eq!(all(&memory), before);
            assert_eq!(names(&folder), ["model.slab"]);
            train(&TRAIN, &mut memory, 1);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let folder = folder("refused");
        let path = folder.join("model.slab");
        let mut slab = vec![0.0; TRAIN.slab_len()];
        let memory = trained(&TRAIN, &mut slab, &[], 1);
        TRAIN.save_file(&memory, Contents::weights(), &path).unwrap();
        let old = std::fs::read(&path).unwrap();
        // Something is in the way of the file beside it.
        std::fs::create_dir(folder.join("model.slab.tmp")).unwrap();
        let error = TRAIN.save_file(&memory, Contents::training(), &path).unwrap_err();
        assert!(matches!(error, FileError::Io(_)), "{error}");
        assert!(std::fs::read(&path).unwrap() == old);
        // A writer that was killed left half a file: the next one takes its place.
        std::fs::remove_dir(folder.join("model.slab.tmp")).unwrap();
        std::fs::write(folder.join("model.slab.tmp"), &old[..100]).unwrap();
        TRAIN.save_file(&memory, Contents::training(), &path).unwrap();
        assert_eq!(names(&folder), ["model.slab"]);
        assert!(TRAIN.save_file(&memory, Contents::training(), folder.join("..")).is_err());
    }

    #[test]
    fn a_file_that_is_no_image_changes_nothing() {
        let folder = folder("wrong");
        let path = folder.join("model.slab");
        let mut slab = vec![0.0; TRAIN.slab_len()];
        let mut memory = trained(&TRAIN, &mut slab, &[], 1);
        let before = all(&memory);
        assert!(matches!(TRAIN.load_file(&mut memory, &path), Err(FileError::Io(_))));
        std::fs::write(&path, b"nothing").unwrap();
        let error = TRAIN.load_file(&mut memory, &path).unwrap_err();
        assert_eq!(error.to_string(), "the image has 7 bytes, its header alone has 64");
        assert_eq!(all(&memory), before);
    }
}
