//! Where each buffer of the work space starts.
//!
//! Packing intervals into the least memory is hard in general; placing one after the other at the lowest free offset, the
//! largest first, is within a few percent of the lower bound on the graphs that occur. Three orders are tried and the best
//! is kept.

use super::Buffer;

/// In which order buffers are placed.
#[derive(Clone, Copy)]
enum Order {
    Largest,
    LongestLived,
    First,
}

/// Sets the offsets and returns the size of the space that holds all buffers.
pub(super) const fn assign(buffers: &mut [Buffer]) -> usize {
    let candidates = [Order::Largest, Order::LongestLived, Order::First];
    let mut best = 0;
    let mut best_len = usize::MAX;
    let mut i = 0;
    while i < candidates.len() {
        let len = place_all(buffers, candidates[i]);
        if len < best_len {
            best_len = len;
            best = i;
        }
        i += 1;
    }
    place_all(buffers, candidates[best])
}

/// No layout is smaller: the largest total of buffers that are needed at the same tick.
pub(super) const fn lower_bound(buffers: &[Buffer]) -> usize {
    let mut largest = 0;
    let mut i = 0;
    while i < buffers.len() {
        // A total only grows where a buffer starts.
        let tick = buffers[i].start;
        let (mut total, mut j) = (0, 0);
        while j < buffers.len() {
            if buffers[j].start <= tick && tick <= buffers[j].end {
                total += buffers[j].len;
            }
            j += 1;
        }
        if total > largest {
            largest = total;
        }
        i += 1;
    }
    largest
}

const fn precedes(a: &Buffer, b: &Buffer, order: Order) -> bool {
    match order {
        Order::Largest => a.len > b.len,
        Order::LongestLived => a.end - a.start > b.end - b.start,
        Order::First => a.start < b.start,
    }
}

/// The `rank` fields of the buffers hold a list of buffers, side by side with them: all of them in the order of placing,
/// of which the part that is placed is sorted by offset.
const fn place_all(buffers: &mut [Buffer], order: Order) -> usize {
    let count = buffers.len();
    let mut i = 0;
    while i < count {
        let mut at = i;
        while at > 0 && precedes(&buffers[i], &buffers[buffers[at - 1].rank as usize], order) {
            buffers[at].rank = buffers[at - 1].rank;
            at -= 1;
        }
        buffers[at].rank = i as u32;
        i += 1;
    }
    let mut size = 0;
    let mut placed = 0;
    while placed < count {
        let this = buffers[placed].rank as usize;
        let offset = lowest_free(buffers, placed, this);
        buffers[this].offset = offset;
        if offset + buffers[this].len > size {
            size = offset + buffers[this].len;
        }
        let mut at = placed;
        while at > 0 && buffers[buffers[at - 1].rank as usize].offset > offset {
            buffers[at].rank = buffers[at - 1].rank;
            at -= 1;
        }
        buffers[at].rank = this as u32;
        placed += 1;
    }
    size
}

/// The lowest offset at which buffer `this` overlaps none of the `placed` ones.
const fn lowest_free(buffers: &[Buffer], placed: usize, this: usize) -> usize {
    let mut offset = 0;
    let mut i = 0;
    while i < placed {
        let other = &buffers[buffers[i].rank as usize];
        let end = other.offset + other.len;
        if other.offset < offset + buffers[this].len && offset < end && other.meets(&buffers[this]) {
            offset = end;
        }
        i += 1;
    }
    offset
}
