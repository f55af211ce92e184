//! The hot loops in instructions of the floating-point unit of Arm microcontrollers (Cortex-M4F, M7, M33): the register tile, Adam
//! and the check for finite numbers. The unit has 32 registers, of which the tile uses 16 for sums, and one instruction loads several
//! neighbours and moves the pointer on: a product takes 1.3 instructions.
//!
//! `vmla` rounds the product before it adds it, so the bits are those of [`Strict`](super::Strict).

#![allow(unsafe_code)]

use core::any::TypeId;
use core::arch::asm;
use core::mem::{self, MaybeUninit};
use core::ptr;

use super::tile::Walk;
use super::{MatrixProduct, Real, Sums};
use crate::optim::AdamCoefficients;

/// Rows and columns of the tile.
const SIDE: usize = 4;

/// Adds the products of four values of `a` and four of `b` to the sums in `s0` to `s15`, row by row; `@row`: those of one value and
/// four others to four sums.
macro_rules! products {
    ($a0:literal, $a1:literal, $a2:literal, $a3:literal; $($b:literal),*) => {
        concat!(
            products!(@row $a0; "s0", "s1", "s2", "s3"; $($b),*),
            products!(@row $a1; "s4", "s5", "s6", "s7"; $($b),*),
            products!(@row $a2; "s8", "s9", "s10", "s11"; $($b),*),
            products!(@row $a3; "s12", "s13", "s14", "s15"; $($b),*),
        )
    };
    (@row $a:literal; $($sum:literal),*; $($b:literal),*) => {
        concat!($("vmla.f32 ", $sum, ", ", $a, ", ", $b, "\n",)*)
    };
}

/// One term of a tile whose operands are neighbours along their sides.
macro_rules! term_of_neighbours {
    () => {
        concat!(
            "vldmia r0, {{s16-s19}}\n",
            "add r0, r1\n",
            "vldmia r5, {{s20-s23}}\n",
            "add r5, r3\n",
            products!("s16", "s17", "s18", "s19"; "s20", "s21", "s22", "s23"),
        )
    };
}

/// The bytes of an element.
const ELEMENT: usize = size_of::<f32>();

impl Walk<f32> {
    /// Takes the strides as bytes, which were elements. One that has too many bytes for a number lies beyond every slice, so that it
    /// counts no more which.
    #[inline(always)]
    fn count_bytes(&mut self) {
        (self.side, self.step) = (self.side.wrapping_mul(ELEMENT), self.step.wrapping_mul(ELEMENT));
    }

    /// Goes on, or back, by so many sides and steps.
    #[inline(always)]
    fn advance(&mut self, sides: isize, steps: isize) {
        let bytes = |count: isize, stride: usize| count.wrapping_mul(stride.cast_signed());
        self.at = self.at.wrapping_byte_offset(bytes(sides, self.side).wrapping_add(bytes(steps, self.step)));
    }

    /// Goes from the column behind the last one of a matrix to the row below its last one, and takes rows as columns.
    #[inline(always)]
    fn transpose_rest(&mut self, rows: isize, columns: isize) {
        self.advance(rows, -columns);
        mem::swap(&mut self.side, &mut self.step);
    }

    /// Whether an `outer x inner` matrix lies within so many elements.
    #[inline(never)]
    fn fits(&self, outer: usize, inner: usize, len: usize) -> bool {
        let last = |count: usize, stride: usize| (count - 1).saturating_mul(stride);
        last(outer, self.side).saturating_add(last(inner, self.step)) < len * ELEMENT
    }
}

/// A product, as the instructions read it. Strides are in bytes.
#[repr(C)]
pub(super) struct Walks {
    /// The result, by rows and columns.
    to: Walk<f32>,
    /// What the sums start from, likewise.
    from: Walk<f32>,
    a: Walk<f32>,
    b: Walk<f32>,
    k: usize,
    m: usize,
    n: usize,
}

/// The product of `m x k` and `k x n` elements, added to what its sums start from; nothing is written where the operands do not lie
/// within their slices. Only for `f32`.
///
/// How it is read is put together at `room`, of which only the place is used: any bytes may lie there afterwards.
#[inline(always)]
pub(super) fn product<E: Real, T>(room: &mut MaybeUninit<T>, product: MatrixProduct<'_, E>) {
    const { assert!(size_of::<T>() >= size_of::<Walks>() && align_of::<T>() >= align_of::<Walks>()) };
    let MatrixProduct { sizes: [m, n, k], a, b, c, c_row, sums } = product;
    let walk = |at: *const E, side: usize, step: usize| Walk { at: at.cast(), side, step };
    let to = c.as_mut_ptr();
    let from = match sums {
        Sums::Zero => ptr::null(),
        Sums::Result => to,
        Sums::Row(row) if row.len() < n => return,
        Sums::Row(row) => row.as_ptr(),
    };
    let (to, from) = (walk(to, c_row, 1), walk(from, 0, 0));
    let (a_len, b_len) = (a.data.len(), b.data.len());
    let (a, b) = (walk(a.data.as_ptr(), a.row, a.col), walk(b.data.as_ptr(), b.col, b.row));
    let walks = room.as_mut_ptr().cast::<Walks>();
    // SAFETY: the room is large enough and aligned. The operands are borrowed, and have so many elements.
    unsafe {
        walks.write(Walks { to, from, a, b, k, m, n });
        (*walks).run(a_len, b_len, c.len());
    }
}

impl Walks {
    /// Computes it, if the operands lie within so many elements. Strides are in elements still, and `from` has but its pointer: to
    /// nothing, to the result, or to a row.
    ///
    /// # Safety
    /// They have so many, those of the result may be written, and what sums start from can be read for all of them.
    #[inline(never)]
    unsafe fn run(&mut self, a_len: usize, b_len: usize, to_len: usize) {
        static ZEROS: [f32; SIDE] = [0.0; SIDE];
        for walk in [&mut self.to, &mut self.a, &mut self.b] {
            walk.count_bytes();
        }
        if self.from.at.is_null() {
            self.from.at = ZEROS.as_ptr();
        } else if self.from.at == self.to.at {
            self.from = self.to;
        } else {
            self.from.step = ELEMENT;
        }
        let Self { m, n, k, .. } = *self;
        let has_elements = m > 0 && n > 0;
        if has_elements
            && (k == 0 || self.a.fits(m, k, a_len) && self.b.fits(n, k, b_len))
            && self.to.fits(m, n, to_len)
            && (m == 1 || self.to.side >= n.wrapping_mul(ELEMENT))
        {
            // SAFETY: all three lie within their elements.
            unsafe { self.rows_and_rest() };
        }
    }

    /// Rows are taken four at a time, with four columns or one; what is left over is taken as columns of the transposed product, and
    /// the last elements one by one. It takes the place of the checks on the stack.
    ///
    /// # Safety
    /// All operands can be read, the result written.
    #[inline(never)]
    unsafe fn rows_and_rest(&mut self) {
        let (a, b) = (&self.a, &self.b);
        let are_along_k = a.step == ELEMENT && b.step == ELEMENT;
        let has_tiles = are_along_k || b.side == ELEMENT && (a.step == ELEMENT || a.side == ELEMENT);
        // In one number, as it lies on the stack: how many rows are left over, and more than these where there are wide tiles.
        let mut rest = self.m % SIDE + if has_tiles { SIDE } else { 0 };
        self.m -= self.m % SIDE;
        loop {
            let mut left = self.n;
            while left > 0 {
                let is_wide = rest >= SIDE && left >= SIDE;
                // SAFETY: the caller's promise.
                unsafe {
                    if self.k > 0 && self.m >= SIDE {
                        self.tiles(self.m / SIDE, is_wide);
                    }
                    for _ in 0..if self.k > 0 { self.m % SIDE } else { self.m } {
                        self.element();
                    }
                }
                let (m, width) = (self.m.cast_signed(), if is_wide { SIDE } else { 1 });
                self.to.advance(-m, width.cast_signed());
                self.from.advance(-m, width.cast_signed());
                self.a.advance(-m, 0);
                self.b.advance(width.cast_signed(), 0);
                left -= width;
            }
            rest %= SIDE;
            if rest == 0 {
                return;
            }
            let (m, n) = (self.m.cast_signed(), self.n.cast_signed());
            for walk in [&mut self.to, &mut self.from] {
                walk.transpose_rest(m, n);
            }
            self.a.advance(m, 0);
            self.b.advance(-n, 0);
            mem::swap(&mut self.a, &mut self.b);
            (self.m, self.n) = (self.n, rest);
            rest = 0;
        }
    }

    /// One element of the result; `to`, `from` and `a` move on to the next row.
    ///
    /// # Safety
    /// `k` elements of a row and a column can be read, and the result written.
    #[inline(always)]
    unsafe fn element(&mut self) {
        // In instructions, so that all is in registers that nobody has to save.
        // SAFETY: the instructions read and write what the caller promises. Pointers move past the last element at most once.
        unsafe {
            asm!(
                "ldr r1, [r0, #12]",
                "vldr s0, [r1]",
                "ldr r1, [r0, #24]",
                "ldrd r2, r3, [r0, #32]",
                "ldrd r12, lr, [r0, #44]",
                "cmp lr, #0",
                "beq 3f",
                "2:",
                "vldr s2, [r1]",
                "add r1, r2",
                "vldr s3, [r3]",
                "add r3, r12",
                "vmla.f32 s0, s2, s3",
                "subs lr, #1",
                "bne 2b",
                "3:",
                "ldrd r1, r2, [r0]",
                "vstr s0, [r1]",
                "add r1, r2",
                "str r1, [r0]",
                "ldrd r1, r2, [r0, #12]",
                "add r1, r2",
                "str r1, [r0, #12]",
                "ldrd r1, r2, [r0, #24]",
                "add r1, r2",
                "str r1, [r0, #24]",
                in("r0") self,
                out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _, out("d0") _, out("d1") _,
                options(nostack),
            );
        }
    }

    /// Rows of `a`, four for each of `count` tiles, times four columns of `b` or one; `to`, `from` and `a` move on.
    /// Of four columns elements have to be neighbours along `k`, or along the operand's side of the result, and `b`'s along its side
    /// unless `a`'s are along `k`.
    ///
    /// # Safety
    /// `k` columns of the rows and `k` rows of the columns can be read, the tiles written. `k` and `count` are at least 1.
    // One block of instructions.
    #[allow(clippy::too_many_lines)]
    #[inline(always)]
    unsafe fn tiles(&mut self, count: usize, is_wide: bool) {
        // SAFETY: the instructions read and write what the caller promises. Pointers move past the last element at most once.
        unsafe {
            asm!(
                "1:",
                "ldrd r0, r1, [r12, #12]",
                "ldrd r5, r10, [r12, #36]",
                "ldrd r3, r4, [r12, #44]",
                "cmp r11, #0",
                "beq 20f",
                "vldmia r0, {{s0-s3}}",
                "add r0, r1",
                "vldmia r0, {{s4-s7}}",
                "add r0, r1",
                "vldmia r0, {{s8-s11}}",
                "add r0, r1",
                "vldmia r0, {{s12-s15}}",
                "add r0, r1",
                "str r0, [r12, #12]",
                "ldrd r0, r8, [r12, #24]",
                "ldr r1, [r12, #32]",
                "cmp r8, #4",
                "it eq",
                "cmpeq r10, #4",
                "bne 4f",
                // Both are neighbours along their sides. An odd number of terms starts within the loop.
                "lsls r2, r4, #31",
                "bmi 6f",
                "5:",
                term_of_neighbours!(),
                "6:",
                term_of_neighbours!(),
                "subs r4, #2",
                "bhi 5b",
                "b 9f",
                // `a`'s are neighbours along `k`.
                "4:",
                "add r1, r0, r8",
                "add r2, r1, r8",
                "add r8, r2",
                "cmp r10, #4",
                "bne 6f",
                "5:",
                "vldmia r5, {{s24-s27}}",
                "add r5, r3",
                "8:",
                "vldmia r0!, {{s16}}",
                "vldmia r1!, {{s17}}",
                "vldmia r2!, {{s18}}",
                "vldmia r8!, {{s19}}",
                products!("s16", "s17", "s18", "s19"; "s24", "s25", "s26", "s27"),
                "subs r4, #1",
                "bne 5b",
                "b 9f",
                // So are `b`'s, and two terms are loaded at once.
                "6:",
                "add r3, r5, r10",
                "add r9, r3, r10",
                "add r10, r9",
                "subs r4, #1",
                "beq 7f",
                "6:",
                "vldmia r0!, {{s16-s17}}",
                "vldmia r1!, {{s18-s19}}",
                "vldmia r2!, {{s20-s21}}",
                "vldmia r8!, {{s22-s23}}",
                "vldmia r5!, {{s24-s25}}",
                "vldmia r3!, {{s26-s27}}",
                products!(@row "s24"; "s0", "s4", "s8", "s12"; "s16", "s18", "s20", "s22"),
                products!(@row "s26"; "s1", "s5", "s9", "s13"; "s16", "s18", "s20", "s22"),
                products!(@row "s25"; "s0", "s4", "s8", "s12"; "s17", "s19", "s21", "s23"),
                products!(@row "s27"; "s1", "s5", "s9", "s13"; "s17", "s19", "s21", "s23"),
                "vldmia r9!, {{s24-s25}}",
                "vldmia r10!, {{s26-s27}}",
                products!(@row "s24"; "s2", "s6", "s10", "s14"; "s16", "s18", "s20", "s22"),
                products!(@row "s26"; "s3", "s7", "s11", "s15"; "s16", "s18", "s20", "s22"),
                products!(@row "s25"; "s2", "s6", "s10", "s14"; "s17", "s19", "s21", "s23"),
                products!(@row "s27"; "s3", "s7", "s11", "s15"; "s17", "s19", "s21", "s23"),
                "subs r4, #2",
                "bhi 6b",
                "bne 9f",
                // The last of an odd number.
                "7:",
                "vldr s24, [r5]",
                "vldr s25, [r3]",
                "vldr s26, [r9]",
                "vldr s27, [r10]",
                "movs r4, #1",
                "b 8b",
                "9:",
                "ldrd r0, r1, [r12]",
                "vstmia r0, {{s0-s3}}",
                "add r0, r1",
                "vstmia r0, {{s4-s7}}",
                "add r0, r1",
                "vstmia r0, {{s8-s11}}",
                "add r0, r1",
                "vstmia r0, {{s12-s15}}",
                "28:",
                "add r0, r1",
                "str r0, [r12]",
                "ldrd r0, r1, [r12, #24]",
                "add r0, r0, r1, lsl #2",
                "str r0, [r12, #24]",
                "subs lr, #1",
                "bne 1b",
                "b 30f",
                // One column.
                "20:",
                "vldr s0, [r0]",
                "add r0, r1",
                "vldr s1, [r0]",
                "add r0, r1",
                "vldr s2, [r0]",
                "add r0, r1",
                "vldr s3, [r0]",
                "add r0, r1",
                "str r0, [r12, #12]",
                "ldrd r0, r2, [r12, #24]",
                "ldr r1, [r12, #32]",
                "cmp r2, #4",
                "bne 22f",
                "21:",
                "vldmia r0, {{s20-s23}}",
                "add r0, r1",
                "vldr s16, [r5]",
                "add r5, r3",
                products!(@row "s16"; "s0", "s1", "s2", "s3"; "s20", "s21", "s22", "s23"),
                "subs r4, #1",
                "bne 21b",
                "b 24f",
                "22:",
                "sub r1, r1, r2, lsl #1",
                "subs r1, r1, r2",
                "23:",
                "vldr s20, [r0]",
                "add r0, r2",
                "vldr s21, [r0]",
                "add r0, r2",
                "vldr s22, [r0]",
                "add r0, r2",
                "vldr s23, [r0]",
                "add r0, r1",
                "vldr s16, [r5]",
                "add r5, r3",
                products!(@row "s16"; "s0", "s1", "s2", "s3"; "s20", "s21", "s22", "s23"),
                "subs r4, #1",
                "bne 23b",
                "24:",
                "ldrd r0, r1, [r12]",
                "vstr s0, [r0]",
                "add r0, r1",
                "vstr s1, [r0]",
                "add r0, r1",
                "vstr s2, [r0]",
                "add r0, r1",
                "vstr s3, [r0]",
                "b 28b",
                "30:",
                // So that the compiler has it in a register whose instructions are short.
                inout("r12") self => _,
                in("r11") usize::from(is_wide),
                inout("lr") count => _,
                out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _, out("r10") _,
                out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
                out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _,
                options(nostack),
            );
        }
    }
}

/// The moments `m` and `v` after the gradient `g`, which is lost.
#[rustfmt::skip]
macro_rules! adam_moments {
    ($($g:literal, $m:literal, $v:literal;)*) => {
        concat!($(
            "vmul.f32 ", $m, ", ", $m, ", s24\n",
            "vmla.f32 ", $m, ", s26, ", $g, "\n",
            "vmul.f32 ", $g, ", ", $g, ", ", $g, "\n",
            "vmul.f32 ", $v, ", ", $v, ", s25\n",
            "vmla.f32 ", $v, ", s27, ", $g, "\n",
        )*)
    };
}

/// The parameter `p` after the moments `m` and `v`, which are lost.
#[rustfmt::skip]
macro_rules! adam_step {
    ($($p:literal, $m:literal, $v:literal;)*) => {
        concat!($(
            "vsqrt.f32 ", $v, ", ", $v, "\n",
            "vmul.f32 ", $v, ", ", $v, ", s29\n",
            "vadd.f32 ", $v, ", ", $v, ", s30\n",
            "vmul.f32 ", $m, ", ", $m, ", s28\n",
            "vdiv.f32 ", $m, ", ", $m, ", ", $v, "\n",
            "vsub.f32 ", $p, ", ", $p, ", ", $m, "\n",
        )*)
    };
}

/// Updates parameters by Adam, at this learning rate, after multiplying them with `keep`, without weight decay in the gradient; does
/// nothing and says so where the elements are no `f32`.
pub(crate) fn adam<E: Real>(
    c: &AdamCoefficients<E>,
    rate: E,
    keep: E,
    p: &mut [E],
    g: &[E],
    m: &mut [E],
    v: &mut [E],
) -> bool {
    if TypeId::of::<E>() != TypeId::of::<f32>() {
        return false;
    }
    let len = p.len().min(g.len()).min(m.len()).min(v.len());
    if keep != E::ONE {
        p.iter_mut().take(len).for_each(|p| *p *= keep);
    }
    // SAFETY: the elements are `f32`, the first seven numbers of `c` lie in this order, and each pointer moves over `len` elements, which
    // its slice has.
    unsafe {
        asm!(
            // Both decay rates, what is left of 1 by each, the rate, the second moment's scale and epsilon.
            "vldmia {c}, {{s24-s30}}",
            "vmov s28, {rate}",
            "b 3f",
            "2:",
            "vldmia {g}!, {{s16-s23}}",
            "vldmia {m}, {{s0-s7}}",
            "vldmia {v}, {{s8-s15}}",
            adam_moments!(
                "s16", "s0", "s8"; "s17", "s1", "s9"; "s18", "s2", "s10"; "s19", "s3", "s11";
                "s20", "s4", "s12"; "s21", "s5", "s13"; "s22", "s6", "s14"; "s23", "s7", "s15";
            ),
            "vstmia {m}!, {{s0-s7}}",
            "vstmia {v}!, {{s8-s15}}",
            "vldmia {p}, {{s16-s23}}",
            adam_step!(
                "s16", "s0", "s8"; "s17", "s1", "s9"; "s18", "s2", "s10"; "s19", "s3", "s11";
                "s20", "s4", "s12"; "s21", "s5", "s13"; "s22", "s6", "s14"; "s23", "s7", "s15";
            ),
            "vstmia {p}!, {{s16-s23}}",
            "3:",
            "subs {len}, #8",
            "bhs 2b",
            "adds {len}, #8",
            "beq 5f",
            // What is left, one by one.
            "4:",
            "vldmia {g}!, {{s16}}",
            "vldr s0, [{m}]",
            "vldr s8, [{v}]",
            adam_moments!("s16", "s0", "s8";),
            "vstmia {m}!, {{s0}}",
            "vstmia {v}!, {{s8}}",
            "vldr s16, [{p}]",
            adam_step!("s16", "s0", "s8";),
            "vstmia {p}!, {{s16}}",
            "subs {len}, #1",
            "bne 4b",
            "5:",
            c = in(reg) c,
            rate = in(reg) rate.to_f32(),
            p = inout(reg) p.as_mut_ptr() => _,
            g = inout(reg) g.as_ptr() => _,
            m = inout(reg) m.as_mut_ptr() => _,
            v = inout(reg) v.as_mut_ptr() => _,
            len = inout(reg) len => _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _, out("d14") _, out("d15") _,
            options(nostack),
        );
    }
    true
}

/// Adds the products of these numbers and `s13` to `s12`.
macro_rules! add_products {
    ($($x:literal)*) => {
        concat!($("vmla.f32 s12, ", $x, ", s13\n",)*)
    };
}

/// How many elements are finite for certain, from the first on: a multiple of twelve, and none where the elements are no `f32`.
pub(super) fn finite_prefix<E: Real>(x: &[E]) -> usize {
    if TypeId::of::<E>() != TypeId::of::<f32>() {
        return 0;
    }
    let (mut sum, mut rest) = (0.0_f32, x.len());
    // SAFETY: the elements are `f32`, and the pointer moves over twelve of them as often as the slice has so many.
    unsafe {
        asm!(
            "vldr s12, [{sum}]",
            "vldr s13, [{sum}]",
            "b 3f",
            "2:",
            "vldmia {x}!, {{s0-s11}}",
            // What is finite gives zero when multiplied by it, and nothing else does.
            add_products!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7" "s8" "s9" "s10" "s11"),
            "3:",
            "subs {rest}, #12",
            "bhs 2b",
            "adds {rest}, #12",
            "vstr s12, [{sum}]",
            sum = in(reg) &raw mut sum,
            x = inout(reg) x.as_ptr() => _,
            rest = inout(reg) rest,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _,
            options(nostack),
        );
    }
    if sum == 0.0 { x.len() - rest } else { 0 }
}
