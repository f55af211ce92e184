//! Slots of flash: whatever is cut and whatever rots, there is an image to load, and never an older one than the last that
//! was acknowledged.

#[path = "common/flash.rs"]
mod mock;

use mock::{Mock, NoPower};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use slabgrad::checkpoint::{Contents, FlashError, Image, ImageError, Slots, UserBytes};
use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 2>>("x");
    let p: Var<R2<1, 1>> = g.linear("out", x);
    g.output("p", p);
    g
}

const fn wide() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 40>>("x");
    let p: Var<R2<1, 3>> = g.linear("out", x);
    g.output("p", p);
    g
}

program!(static SMALL = net().infer());
program!(static WIDE = wide().infer());

/// Saves a model whose parameters are all `version`.
fn save<const W: usize, const E: usize, const P: usize>(
    slots: &mut Slots<&mut Mock<W, E>, P>,
    program: &Program,
    version: u16,
) -> Result<u64, FlashError<NoPower>> {
    let mut slab = vec![0.0; program.slab_len()];
    let memory = program.memory(&mut slab).unwrap();
    memory.params.fill(f32::from(version));
    let user = version.to_le_bytes();
    slots.save(program.image(&memory, Contents::weights().with_user(&user)).unwrap())
}

/// The version that is loaded.
fn load<const W: usize, const E: usize, const P: usize>(
    slots: &mut Slots<&mut Mock<W, E>, P>,
    program: &Program,
) -> Result<u16, FlashError<NoPower>> {
    let (mut slab, mut user) = (vec![-1.0; program.slab_len()], [0; 2]);
    let mut memory = program.memory(&mut slab).unwrap();
    let mut user = UserBytes::new(&mut user);
    let result = slots.load(&mut (program.target(&mut memory), &mut user));
    if result.is_err() {
        assert!(
            *memory.params == vec![-1.0; program.params_len()] || matches!(result, Err(FlashError::Flash(NoPower)))
        );
    }
    result?;
    let version = u16::from_le_bytes(user.get().try_into().unwrap());
    assert!(*memory.params == vec![f32::from(version); program.params_len()], "a mixture of images was loaded");
    Ok(version)
}

type Small = Mock<4, 64>;

fn small_slots(flash: &mut Small) -> Slots<&mut Small, 128> {
    Slots::new(flash, 0..256, 2).unwrap()
}

/// A save that the power leaves after `power` units; whether it was acknowledged, and how much was left.
fn save_until(flash: &mut Small, version: u16, power: usize) -> (bool, usize) {
    flash.power = Some(power);
    let acknowledged = save(&mut small_slots(flash), &SMALL, version).is_ok();
    (acknowledged, flash.power.take().unwrap())
}

fn load_small(flash: &mut Small) -> u16 {
    load(&mut small_slots(flash), &SMALL).expect("there is always a whole image")
}

/// Every place of a cut, and after each every place of a second cut in the save that follows.
#[test]
fn any_two_cuts_leave_an_image_and_none_that_is_too_old() {
    let mut start = Small::new(256, 1);
    for version in [1, 2] {
        assert!(save_until(&mut start, version, 10_000).0);
    }
    let (mut cuts, mut outcomes) = (0, std::collections::BTreeSet::new());
    for first in 0.. {
        let mut flash = start.clone();
        let (acknowledged, left) = save_until(&mut flash, 3, first);
        let found = load_small(&mut flash);
        assert!(found == 3 || found == 2 && !acknowledged, "cut after {first}: found {found}, {acknowledged}");
        for second in 0.. {
            let mut flash = flash.clone();
            let (acknowledged, left) = save_until(&mut flash, 4, second);
            let again = load_small(&mut flash);
            let why = format!("cuts after {first} and {second}: found {found}, then {again}, {acknowledged}");
            assert!(again == 4 || again == found && !acknowledged, "{why}");
            outcomes.insert((found, again));
            cuts += 1;
            assert!(save_until(&mut flash, 5, 10_000).0);
            assert_eq!(load_small(&mut flash), 5);
            if left > 0 {
                break;
            }
        }
        if left > 0 {
            break;
        }
    }
    assert!(cuts > 50_000, "only {cuts} pairs of cuts");
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(2, 2), (2, 4), (3, 3), (3, 4)]);
}

/// Many cuts in a row, also of what recovers from one, with two to four slots, other sizes of units, and images of several pages.
#[test]
fn any_number_of_cuts_leaves_an_image_and_none_that_is_too_old() {
    // One page before the slots is not theirs.
    fn open<const W: usize, const E: usize>(flash: &mut Mock<W, E>, slots: usize) -> Slots<&mut Mock<W, E>, 128> {
        Slots::new(flash, E as u32..(E + 4 * 1024) as u32, slots).unwrap()
    }
    fn check<const W: usize, const E: usize>(slots: usize, powers: &[u16], seed: u64) {
        let mut flash = Mock::<W, E>::new(E + 4 * 1024, seed);
        assert!(matches!(load(&mut open(&mut flash, slots), &WIDE), Err(FlashError::Empty)));
        assert_eq!(save(&mut open(&mut flash, slots), &WIDE, 1), Ok(1));
        let mut newest = 1;
        for (version, &power) in (2..).zip(powers) {
            flash.power = Some(usize::from(power));
            // Recovery reads, then the next save: both until the power fails.
            let mut opened = open(&mut flash, slots);
            let _ = load(&mut opened, &WIDE);
            let acknowledged = save(&mut opened, &WIDE, version).is_ok();
            flash.power = None;
            let found = load(&mut open(&mut flash, slots), &WIDE).expect("there is always a whole image");
            assert!(found == version || found == newest && !acknowledged, "{found} after {newest}, {acknowledged}");
            newest = found;
        }
    }
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let powers = prop::collection::vec(0..1800_u16, 1..20);
    let strategy = (2..5_usize, powers, any::<u64>());
    let result = runner.run(&strategy, |(slots, powers, seed)| {
        check::<1, 256>(slots, &powers, seed);
        check::<4, 512>(slots, &powers, seed);
        check::<32, 128>(slots, &powers, seed);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn rot_in_either_slot_is_detected_and_the_other_one_loaded() {
    let mut flash = Small::new(256, 1);
    for version in [1, 2] {
        assert!(save_until(&mut flash, version, 10_000).0);
    }
    let record = 16 + SMALL.image_len(&Contents::weights().with_user(&[0; 2])) + 4;
    for (slot, other) in [(0, 2), (1, 1)] {
        for bit in 0..8 * record {
            let mut flash = flash.clone();
            flash.bytes[128 * slot + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(load_small(&mut flash), other, "bit {bit} of slot {slot}");
            // The next save goes over the rotten one.
            assert!(save_until(&mut flash, 3, 10_000).0);
            assert_eq!(load_small(&mut flash), 3);
            assert_eq!(flash.erases.iter().sum::<usize>(), 6);
        }
    }
    for slot in [0, 1] {
        flash.bytes[128 * slot + 50] ^= 1;
    }
    assert_eq!(load(&mut small_slots(&mut flash), &SMALL), Err(FlashError::Empty));
}

#[test]
fn slots_wear_alike_and_sequence_numbers_count() {
    let mut flash = Mock::<4, 64>::new(640, 1);
    let mut slots: Slots<_, 128> = Slots::new(&mut flash, 64..640, 3).unwrap();
    for version in 1..=30 {
        assert_eq!(save(&mut slots, &SMALL, version), Ok(u64::from(version)));
    }
    assert_eq!(load(&mut slots, &SMALL), Ok(30));
    // 104 bytes are two pages of 64; the third page of each slot is not needed.
    assert_eq!(flash.erases, [0, 10, 10, 0, 10, 10, 0, 10, 10, 0]);
    assert_eq!(flash.written, 30 * 104);
}

/// Some cells of a slot no longer clear: the save says so, the image before is there, and the next attempt goes elsewhere.
#[test]
fn flash_that_is_worn_out_is_noticed() {
    let mut flash = Mock::<4, 64>::new(384, 1);
    let mut slots: Slots<_, 128> = Slots::new(&mut flash, 0..384, 3).unwrap();
    for version in 1..=3 {
        save(&mut slots, &SMALL, version).unwrap();
    }
    // The third save went to slot 2; slot 0 is next, and keeps an old image whatever is written.
    let mut worn = Worn { flash, stuck: 82 };
    let mut slots: Slots<_, 128> = Slots::new(&mut worn, 0..384, 3).unwrap();
    let mut slab = vec![4.0; SMALL.slab_len()];
    let memory = SMALL.memory(&mut slab).unwrap();
    let image = SMALL.image(&memory, Contents::weights()).unwrap();
    assert_eq!(slots.save(image.clone()), Err(FlashError::NotKept { slot: 0 }));
    assert_eq!(slots.save(image), Ok(4));
    let mut flash = worn.flash;
    assert_eq!(flash.bytes[128 + 8], 4, "in slot 1");
    let mut slots: Slots<_, 128> = Slots::new(&mut flash, 0..384, 3).unwrap();
    let mut slab = vec![0.0; SMALL.slab_len()];
    assert_eq!(slots.load(&mut SMALL.target(&mut SMALL.memory(&mut slab).unwrap())), Ok(4));
    assert_eq!(slab[..1], [4.0]);
}

/// A flash with a byte that stays 0.
struct Worn {
    flash: Mock<4, 64>,
    stuck: usize,
}

impl embedded_storage::nor_flash::ErrorType for Worn {
    type Error = NoPower;
}

impl embedded_storage::nor_flash::ReadNorFlash for Worn {
    const READ_SIZE: usize = 4;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NoPower> {
        self.flash.bytes[self.stuck] = 0;
        self.flash.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.flash.capacity()
    }
}

impl embedded_storage::nor_flash::NorFlash for Worn {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 64;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NoPower> {
        self.flash.erase(from, to)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NoPower> {
        self.flash.write(offset, bytes)
    }
}

#[test]
fn ranges_that_hold_no_slots_and_images_that_fit_none_are_refused() {
    let mut flash = Small::new(256, 1);
    for (range, slots) in [(0..256, 1), (0..256, 3), (0..256, 0), (32..256, 2), (0..320, 2), (128..128, 2)] {
        let error = Slots::<_, 128>::new(&mut flash, range.clone(), slots).err();
        assert!(matches!(error, Some(FlashError::Geometry { .. })), "{range:?}, {slots}: {error:?}");
    }
    let error = Slots::<_, 128>::new(&mut flash, 0..100, 2).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the flash from 0x0 to 0x64 does not hold 2 slots: two or more are needed that start at multiples of the erase size 64, \
         within 256 bytes"
    );
    let mut slots = small_slots(&mut flash);
    assert_eq!(slots.room(), 108);
    let needed = (20 + WIDE.image_len(&Contents::weights().with_user(&[0; 2]))) as u64;
    assert_eq!(save(&mut slots, &WIDE, 1), Err(FlashError::TooLong { needed, found: 128 }));
    assert_eq!(flash.erases, [0; 4]);
}

#[test]
fn an_image_of_another_model_is_refused() {
    let mut flash = Mock::<4, 512>::new(2048, 1);
    let mut slots: Slots<_> = Slots::new(&mut flash, 0..2048, 2).unwrap();
    save(&mut slots, &WIDE, 1).unwrap();
    let error = load(&mut slots, &SMALL).unwrap_err();
    assert!(matches!(error, FlashError::Image(ImageError::Layout { .. })), "{error}");
    // The image itself is the one that other readers know.
    let image = &flash.bytes[16..16 + WIDE.image_len(&Contents::weights().with_user(&[0; 2]))];
    assert!(Image::parse(image).is_ok());
}

/// No number is the last: after the largest comes 0, which is newer.
#[test]
fn sequence_numbers_go_round() {
    let mut flash = Small::new(256, 1);
    assert!(save_until(&mut flash, 1, 10_000).0);
    let end = 16 + SMALL.image_len(&Contents::weights().with_user(&[0; 2]));
    flash.bytes[8..16].fill(0xff);
    let mut crc = !0_u32;
    for byte in &flash.bytes[..end] {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    flash.bytes[end..end + 4].copy_from_slice(&(!crc).to_le_bytes());
    assert_eq!(load_small(&mut flash), 1);
    for (version, sequence) in [(2, 0), (3, 1), (4, 2)] {
        assert_eq!(save(&mut small_slots(&mut flash), &SMALL, version), Ok(sequence));
        assert_eq!(load_small(&mut flash), version);
    }
}
