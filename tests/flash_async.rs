//! Slots behind an asynchronous driver: the same records as those of a blocking one.

#[path = "common/flash.rs"]
#[allow(dead_code)]
mod mock;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use embedded_storage::nor_flash::{ErrorType, NorFlash as _, ReadNorFlash as _};
use embedded_storage_async::nor_flash::{NorFlash, ReadNorFlash};
use mock::{Mock, NoPower};
use slabgrad::checkpoint::{AsyncSlots, Contents, Slots};
use slabgrad::prelude::*;

const fn net() -> Graph {
    let mut g = Graph::new();
    let x = g.input::<R2<1, 40>>("x");
    let p: Var<R2<1, 3>> = g.linear("out", x);
    g.output("p", p);
    g
}

program!(static NET = net().infer());

/// Each call takes a while.
struct Slow(Mock<4, 256>);

async fn wait() {
    let mut waited = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

impl ErrorType for Slow {
    type Error = NoPower;
}

impl ReadNorFlash for Slow {
    const READ_SIZE: usize = 4;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NoPower> {
        wait().await;
        self.0.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl NorFlash for Slow {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 256;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NoPower> {
        wait().await;
        self.0.erase(from, to)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NoPower> {
        wait().await;
        self.0.write(offset, bytes)
    }
}

/// Polls until it is done, or `limit` times: then it is dropped.
fn poll<F: Future>(future: F, limit: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..limit).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

#[test]
fn records_are_those_of_a_blocking_driver() {
    let mut slab = vec![0.5; NET.slab_len()];
    let memory = NET.memory(&mut slab).unwrap();
    let image = NET.image(&memory, Contents::weights().with_user(b"user")).unwrap();
    let mut blocking: Slots<_> = Slots::new(Mock::<4, 256>::new(2048, 1), 0..2048, 2).unwrap();
    let mut slots: AsyncSlots<_> = AsyncSlots::new(Slow(Mock::new(2048, 1)), 0..2048, 2).unwrap();
    for sequence in 1..=3 {
        assert_eq!(blocking.save(image.clone()), Ok(sequence));
        assert_eq!(poll(slots.save(image.clone()), 1000), Some(Ok(sequence)));
    }
    let mut other = vec![0.0; NET.slab_len()];
    let mut other = NET.memory(&mut other).unwrap();
    assert_eq!(poll(slots.load(&mut NET.target(&mut other)), 1000), Some(Ok(3)));
    assert_eq!(other.params, memory.params);
    assert!(slots.into_inner().0.bytes == blocking.into_inner().bytes);
}

#[test]
fn a_save_that_is_dropped_leaves_the_image_before() {
    let mut slab = vec![0.0; NET.slab_len()];
    let mut slots: AsyncSlots<_> = AsyncSlots::new(Slow(Mock::new(2048, 1)), 0..2048, 2).unwrap();
    let mut newest = None;
    for polls in 0..200_u16 {
        let memory = NET.memory(&mut slab).unwrap();
        memory.params.fill(f32::from(polls));
        let image = NET.image(&memory, Contents::weights()).unwrap();
        let saved = poll(slots.save(image), usize::from(polls));
        let Some(loaded) = poll(slots.load(&mut NET.target(&mut NET.memory(&mut slab).unwrap())), 1000) else {
            panic!("loading takes more than 1000 steps");
        };
        let found = loaded.is_ok().then(|| slab[0] as u16);
        match saved {
            None => assert!(found == newest || found == Some(polls), "{found:?} after {newest:?} and {polls}"),
            Some(saved) => assert_eq!((saved.is_ok(), &loaded, found), (true, &saved, Some(polls))),
        }
        newest = found;
    }
    assert_eq!(newest, Some(199));
}
