//! A counting allocator: whatever lengths a file claims, a reader asks for memory in proportion to the bytes that are there.

// No layout is longer than an isize.
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

#[path = "common/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use slabgrad::checkpoint::{Image, StateDict};
use slabgrad::layer::{Model, Sequential};
use slabgrad::prelude::*;
use slabgrad::shape::Shape;

struct Counting;

thread_local! {
    /// Bytes that this thread holds, and the most that it held.
    static HELD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

fn held(change: isize) {
    let [now, most] = HELD.get();
    let now = now + change;
    HELD.set([now, most.max(now)]);
}

// SAFETY: every call goes on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        held(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `run` holds at a time.
fn peak(run: impl FnOnce()) -> usize {
    HELD.set([0; 2]);
    run();
    HELD.get()[1] as usize
}

/// Reads all variants of good bytes in which a length, wherever it may be, is as large as can be written there.
fn check(name: &str, good: &[u8], read: fn(&[u8])) {
    /// A tree of items takes more than the bytes that it is read from.
    const FACTOR: usize = 100;
    const ROOM: usize = 1 << 16;
    let lengths: [&[u8]; 8] = [
        &[0xff; 4],
        &[0xff; 8],
        &[0xff, 0xff, 0xff, 0x7f],
        &[0, 0, 0, 0, 1, 0, 0, 0],
        // CBOR: integers, bytes, texts, arrays of so many.
        &[0x1a, 0x7f, 0xff, 0xff, 0xff],
        &[0x5b, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff],
        &[0x9b, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff],
        &[0x1a, 0, 0x80, 0, 0],
    ];
    let mut worst = peak(|| read(good));
    assert!(worst > 0, "{name}: reading asks for nothing at all, or the allocator does not count");
    for at in 0..good.len() {
        for length in lengths {
            for skipped in [0, 1, length.len()] {
                let rest = good.get(at + skipped..).unwrap_or_default();
                let bytes = [&good[..at], length, rest].concat();
                let found = peak(|| read(&bytes));
                assert!(found <= FACTOR * bytes.len() + ROOM, "{name}: {found} bytes for {}: {bytes:x?}", bytes.len());
                worst = worst.max(found);
            }
        }
    }
    println!("{name}: at most {worst} bytes for {}", good.len());
}

#[test]
fn models_ask_for_no_more_than_their_files_account_for() {
    let model = readers::small_model::<Strict<f32>>().to_cbor().unwrap();
    check("model", &model, |bytes| drop(Model::<Strict<f32>>::from_cbor(bytes)));
}

#[test]
fn models_whose_layers_do_not_fit_ask_for_no_memory() {
    let large = 1 << 20;
    for (sample, layers) in [
        (1, Sequential::new().linear("fc", large, large)),
        (large, Sequential::new().batch_norm1d("bn", large).linear("fc", 1, large)),
        (1, Sequential::new().linear("fc1", 1, large).linear("fc2", 1, large)),
    ] {
        let found = peak(|| assert!(Model::<Strict<f32>>::new(layers, [sample], 1).is_err()));
        assert!((1..1 << 16).contains(&found), "{found} bytes");
    }
}

#[test]
fn checkpoints_of_nanograd_ask_for_no_more_than_they_account_for() {
    let model = readers::small_nanograd::<Strict<f32>>().to_nanograd().unwrap();
    let sample = Some(Shape::new([1, 4, 4]));
    check("nanograd", &model, |bytes| drop(Model::<Strict<f32>>::from_nanograd(bytes, None)));
    for at in 0..model.len() {
        let bytes = [&model[..at], &[0x9b, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff], &model[at..]].concat();
        let found = peak(|| drop(Model::<Strict<f32>>::from_nanograd(&bytes, sample)));
        assert!(found < 100 * bytes.len() + (1 << 16), "{found} bytes");
    }
}

#[test]
fn state_dicts_ask_for_no_more_than_their_files_account_for() {
    let mut slab = vec![0.0; readers::NET.slab_len()];
    let frozen = vec![0.0; readers::NET.frozen_len()];
    let memory = readers::NET.memory_with(&mut slab, &frozen).unwrap();
    let dict = readers::NET.save_state_dict(&memory).unwrap();
    check("state_dict", &dict, |bytes| {
        let mut slab = [0.0; readers::NET.slab_len()];
        let frozen = [0.0; readers::NET.frozen_len()];
        let mut memory = readers::NET.memory_with(&mut slab, &frozen).unwrap();
        if let Ok(dict) = StateDict::parse(bytes) {
            let _ = readers::NET.load_state_dict(&mut memory, &dict);
        }
    });
}

/// Images and slots ask for nothing: they work without an allocator.
#[test]
fn images_ask_for_nothing() {
    let good = readers::image_of_a_tape();
    for at in 0..good.len() {
        for length in [[0xff; 4], [0xff, 0xff, 0xff, 0x7f]] {
            let mut bytes = good.clone();
            bytes.splice(at..good.len().min(at + 4), length);
            for bytes in [readers::sealed(&bytes), bytes] {
                let found = peak(|| {
                    let (mut slab, mut moments) = ([0.0; 32], [0.0; 14]);
                    let mut tape: slabgrad::tape::FixedTape<4> =
                        slabgrad::tape::FixedTape::in_slab(&mut slab, 3).unwrap();
                    tape.parameter([3], &[0.0; 3]);
                    tape.state([2], &[0.0; 2]);
                    if let Ok(image) = Image::parse(&bytes) {
                        let _ = tape.load(&mut moments, &image);
                    }
                });
                assert_eq!(found, 0);
            }
        }
    }
}
