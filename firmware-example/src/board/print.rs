//! Text and numbers without `core::fmt`.
//!
//! Nothing here is inlined, so that a look at the symbols tells printing and training apart.

use super::semihosting::write0;

/// Semihosting wants a terminating zero, which a `str` does not have: the text goes out in pieces of this size.
const PIECE: usize = 32;

#[inline(never)]
pub fn text(text: &str) {
    bytes(text.as_bytes());
}

#[inline(never)]
fn bytes(bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        let mut zero_terminated = [0; PIECE + 1];
        for (to, from) in zero_terminated.iter_mut().zip(piece) {
            *to = *from;
        }
        write0(&zero_terminated);
    }
}

/// Eight hex digits, as `{:08x}`.
#[inline(never)]
pub fn hex(value: u32) {
    let mut digits = [0; 8];
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = match (rest & 15) as u8 {
            low @ 0..10 => b'0' + low,
            high => b'a' + (high - 10),
        };
        rest >>= 4;
    }
    bytes(&digits);
}

/// A number without leading zeros, as `{}`.
#[inline(never)]
pub fn decimal(value: u64) {
    // Twenty digits are enough for the largest u64.
    let mut digits = [0; 20];
    let mut rest = value;
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        first -= 1;
        if rest == 0 {
            break;
        }
    }
    // `get`, because an index could link the code for a panic.
    bytes(digits.get(first..).unwrap_or(&digits));
}
