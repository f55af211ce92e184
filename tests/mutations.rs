//! Bad bytes, made from good ones by a generator with a fixed seed: no reader panics, and none changes anything and fails.
//! `fuzz/` looks for more of them.

#[path = "common/readers.rs"]
mod readers;

use readers::{
    DOUBLE, Flash, NET, image, image_of_a_tape, model, nanograd, sealed, slots, small_model, small_nanograd, state_dict,
};
use slabgrad::checkpoint::{Contents, Slots};
use slabgrad::layer::{Embedding, Model};
use slabgrad::prelude::*;

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    /// One to four changes, half of them near the start, where headers are.
    fn mutate(&mut self, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
        for _ in 0..=self.below(4) {
            let near = if self.below(2) == 0 { 64 } else { bytes.len() };
            let at = self.below(near.min(bytes.len()));
            match self.below(7) {
                0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => bytes.truncate(at),
                4 => bytes.insert(at, self.below(256) as u8),
                5 => {
                    let (from, len) = (self.below(other.len()), self.below(40));
                    let part = &other[from..other.len().min(from + len)];
                    let end = bytes.len().min(at + self.below(40));
                    bytes.splice(at..end, part.iter().copied());
                }
                _ => bytes.extend_from_slice(&other[..self.below(other.len())]),
            }
        }
        bytes
    }
}

/// Good bytes; all of them are taken, so that the mutations start from something.
struct Corpus {
    images: Vec<Vec<u8>>,
    flashes: Vec<Vec<u8>>,
    dicts: Vec<Vec<u8>>,
    models: Vec<Vec<u8>>,
    nanograds: Vec<Vec<u8>>,
}

fn corpus() -> Corpus {
    fn of<B: Backend>(program: &Program<'_, B>) -> (Vec<Vec<u8>>, Vec<u8>) {
        let frozen = vec![B::Elem::ONE; program.frozen_len()];
        let mut slab = vec![B::Elem::ZERO; program.slab_len()];
        let mut memory = program.memory_with(&mut slab, &frozen).unwrap();
        program.init(&mut memory, 1).unwrap();
        let contents =
            [Contents::training().with_user(b"user"), Contents::weights().with_frozen(), Contents::weights()];
        let image = |&contents: &Contents| {
            let mut bytes = vec![0; program.image_len(&contents)];
            program.save(&memory, contents, &mut bytes[..]).unwrap();
            bytes
        };
        (contents.iter().map(image).collect(), program.save_state_dict(&memory).unwrap())
    }
    let ((single, single_dict), (double, double_dict)) = (of(&NET), of(&DOUBLE));
    let flash = |saves: u8| {
        let mut slots: Slots<_, 128> = Slots::new(Flash::with(&[]), 0..Flash::LEN as u32, 2).unwrap();
        let mut slab = vec![0.0; NET.slab_len()];
        let frozen = vec![0.0; NET.frozen_len()];
        for version in 0..saves {
            let memory = NET.memory_with(&mut slab, &frozen).unwrap();
            let user = [version; 3];
            slots.save(NET.image(&memory, Contents::training().with_user(&user)).unwrap()).unwrap();
        }
        slots.into_inner().0
    };
    Corpus {
        images: [single, double, vec![image_of_a_tape()]].concat(),
        flashes: vec![flash(1), flash(2), flash(3)],
        dicts: vec![single_dict, double_dict],
        models: vec![
            small_model::<Strict<f32>>().to_cbor().unwrap(),
            small_model::<Strict<f64>>().to_cbor().unwrap(),
            Model::<Strict<f32>>::new(Embedding::new(2, 2), [3], 1).unwrap().to_cbor().unwrap(),
        ],
        nanograds: vec![
            small_nanograd::<Strict<f32>>().to_nanograd().unwrap(),
            small_nanograd::<Strict<f64>>().to_nanograd().unwrap(),
            include_bytes!("nanograd/dense_f64.cbor").to_vec(),
        ],
    }
}

fn run(seed: u64, good: &[Vec<u8>], reader: fn(&[u8]) -> bool, mut also: impl FnMut(&[u8])) -> usize {
    assert!(good.iter().all(|bytes| reader(bytes)), "good bytes are refused");
    let mut random = Random(seed);
    let mut taken = 0;
    for _ in 0..20_000 {
        let (start, other) = (&good[random.below(good.len())], &good[random.below(good.len())]);
        let bytes = random.mutate(start.clone(), other);
        taken += usize::from(reader(&bytes));
        also(&bytes);
    }
    taken
}

#[test]
fn mutated_images_are_refused() {
    let mut sealed_and_taken = 0;
    let taken = run(1, &corpus().images, image, |bytes| sealed_and_taken += usize::from(image(&sealed(bytes))));
    assert!(taken < 200, "{taken} of 20000 were taken: what a mutation leaves as it was, and nothing else");
    assert!(sealed_and_taken > 500, "only {sealed_and_taken} of 20000 reach a memory with the right checksum");
}

#[test]
fn mutated_flash_is_passed_over() {
    run(2, &corpus().flashes, slots, |_| ());
}

#[test]
fn mutated_state_dicts_are_refused_or_hold_other_numbers() {
    run(3, &corpus().dicts, state_dict, |_| ());
}

#[test]
fn mutated_models_are_refused_or_hold_other_numbers() {
    run(4, &corpus().models, model, |_| ());
}

#[test]
fn mutated_checkpoints_of_nanograd_are_refused_or_hold_other_numbers() {
    run(5, &corpus().nanograds, nanograd, |_| ());
}

type Reader = fn(&[u8]) -> bool;

/// `UPDATE_CORPUS=1` writes the good bytes as seeds for the fuzzer.
#[test]
fn the_seeds_of_the_fuzzer_are_good() {
    let Corpus { images, flashes, dicts, models, nanograds } = corpus();
    let readers: [(_, _, Reader); 5] = [
        ("image", images, image),
        ("slots", flashes, slots),
        ("state_dict", dicts, state_dict),
        ("model", models, model),
        ("nanograd", nanograds, nanograd),
    ];
    for (target, good, reader) in readers {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
        for (i, bytes) in good.iter().enumerate() {
            let path = folder.join(format!("{i}"));
            if std::env::var_os("UPDATE_CORPUS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, bytes).unwrap();
            }
            let seed = std::fs::read(&path).unwrap();
            assert!(reader(&seed), "{}", path.display());
        }
    }
}
