//! The hot loops in instructions of the floating-point unit of Arm microcontrollers (Cortex-M4F, M7, M33): the register tile, Adam
//! and the check for finite numbers. The unit has 32 registers, of which the tile uses 16 for sums, and one instruction loads several
//! neighbours and moves the pointer on: a product takes 1.3 instructions.
//!
//! `vmla` rounds the product before it adds it, so the bits are those of [`Strict`](super::Strict).

#![allow(unsafe_code)]

use core::any::TypeId;
use core::arch::asm;

use super::Real;
use super::tile::Walk;

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

/// What a column of tiles reads and writes; strides are in bytes.
#[repr(C)]
struct Tiles {
    to: *mut f32,
    to_row: usize,
    /// What the sums start from.
    from: *const f32,
    from_row: usize,
    k: usize,
    a: *const f32,
    a_side: usize,
    a_step: usize,
    b: *const f32,
    b_side: usize,
    b_step: usize,
    count: usize,
}

impl Tiles {
    /// Rows of `a`, four for each tile, times four columns of `b`, added to `from`; `a`, `from` and `to` move on. Elements have to be
    /// neighbours along `k`, or along the operand's side of the result, and `b`'s along its side unless `a`'s are neighbours along
    /// `k`.
    ///
    /// # Safety
    /// `k` columns of the rows, `k` rows of the columns and the rows of four neighbours of `from` can be read, those of `to` written.
    /// `k` and `count` are at least 1.
    #[inline(never)]
    unsafe fn run(&mut self) {
        // SAFETY: the instructions read and write what the caller promises. Pointers move past the last element at most once.
        unsafe {
            asm!(
                "1:",
                "ldrd r0, r1, [r12, #8]",
                "vldmia r0, {{s0-s3}}",
                "add r0, r1",
                "vldmia r0, {{s4-s7}}",
                "add r0, r1",
                "vldmia r0, {{s8-s11}}",
                "add r0, r1",
                "vldmia r0, {{s12-s15}}",
                "add r0, r1",
                "str r0, [r12, #8]",
                "ldrd r4, r0, [r12, #16]",
                "ldrd r8, r1, [r12, #24]",
                "ldrd r5, r10, [r12, #32]",
                "ldr r3, [r12, #40]",
                "cmp r8, #4",
                "it eq",
                "cmpeq r10, #4",
                "bne 4f",
                // Both are neighbours along their sides. An odd number of terms starts in the middle.
                "tst r4, #1",
                "bne 3f",
                "2:",
                "vldmia r0, {{s16-s19}}",
                "add r0, r1",
                "vldmia r5, {{s20-s23}}",
                "add r5, r3",
                products!("s16", "s17", "s18", "s19"; "s20", "s21", "s22", "s23"),
                "3:",
                "vldmia r0, {{s16-s19}}",
                "add r0, r1",
                "vldmia r5, {{s20-s23}}",
                "add r5, r3",
                products!("s16", "s17", "s18", "s19"; "s20", "s21", "s22", "s23"),
                "subs r4, #2",
                "bhi 2b",
                "b 9f",
                // `a`'s are neighbours along `k`, so that two terms are loaded at once.
                "4:",
                "add r1, r0, r8",
                "add r2, r1, r8",
                "cmp r10, #4",
                "bne 6f",
                "add r8, r8, r2",
                "subs r4, #1",
                "beq 7f",
                "5:",
                "vldmia r0!, {{s16-s17}}",
                "vldmia r1!, {{s18-s19}}",
                "vldmia r2!, {{s20-s21}}",
                "vldmia r8!, {{s22-s23}}",
                "vldmia r5, {{s24-s27}}",
                "add r5, r3",
                products!("s16", "s18", "s20", "s22"; "s24", "s25", "s26", "s27"),
                "vldmia r5, {{s24-s27}}",
                "add r5, r3",
                products!("s17", "s19", "s21", "s23"; "s24", "s25", "s26", "s27"),
                "subs r4, #2",
                "bhi 5b",
                "bne 9f",
                "7:",
                "vldmia r5, {{s24-s27}}",
                "b 8f",
                // So are `b`'s.
                "6:",
                "add r8, r8, r2",
                "add r3, r5, r10",
                "add r9, r3, r10",
                "add r10, r10, r9",
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
                "7:",
                "vldr s24, [r5]",
                "vldr s25, [r3]",
                "vldr s26, [r9]",
                "vldr s27, [r10]",
                // The last of an odd number of terms.
                "8:",
                "vldr s16, [r0]",
                "vldr s18, [r1]",
                "vldr s20, [r2]",
                "vldr s22, [r8]",
                products!("s16", "s18", "s20", "s22"; "s24", "s25", "s26", "s27"),
                "9:",
                "ldrd r0, r1, [r12]",
                "vstmia r0, {{s0-s3}}",
                "add r0, r1",
                "vstmia r0, {{s4-s7}}",
                "add r0, r1",
                "vstmia r0, {{s8-s11}}",
                "add r0, r1",
                "vstmia r0, {{s12-s15}}",
                "add r0, r1",
                "str r0, [r12]",
                "ldrd r0, r1, [r12, #20]",
                "add r0, r0, r1, lsl #2",
                "str r0, [r12, #20]",
                "ldr r0, [r12, #44]",
                "subs r0, #1",
                "str r0, [r12, #44]",
                "bne 1b",
                in("r12") self,
                out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _, out("r10") _,
                out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
                out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _,
                options(nostack),
            );
        }
    }
}

/// The product of `m x k` and `k x n` elements, written to `c` or, with `keep`, added to what it holds: in tiles, and line by line
/// what is left over.
///
/// # Safety
/// The three matrices lie within memory that `a` and `b` may read and `c` may write; `m`, `n` and `k` are at least 1.
pub(super) unsafe fn product([m, n, k]: [usize; 3], a: Walk<f32>, b: Walk<f32>, c: *mut f32, c_row: usize, keep: bool) {
    const ELEMENT: usize = size_of::<f32>();
    static ZEROS: [f32; SIDE] = [0.0; SIDE];

    let taken = if b.side == 1 { a.side == 1 || a.step == 1 } else { a.step == 1 && b.step == 1 };
    let (in_tiles, columns) = if m < SIDE || !taken { (0, n) } else { (m / SIDE * SIDE, n / SIDE * SIDE) };
    // SAFETY: tiles and lines stay within the matrices.
    unsafe {
        if in_tiles > 0 {
            for j in (0..columns).step_by(SIDE) {
                let (b_at, to) = (b.skip(j).at, c.add(j));
                let (from, from_row) = if keep { (to.cast_const(), c_row) } else { (ZEROS.as_ptr(), 0) };
                Tiles {
                    to,
                    to_row: c_row * ELEMENT,
                    from,
                    from_row: from_row * ELEMENT,
                    k,
                    a: a.at,
                    a_side: a.side * ELEMENT,
                    a_step: a.step * ELEMENT,
                    b: b_at,
                    b_side: b.side * ELEMENT,
                    b_step: b.step * ELEMENT,
                    count: in_tiles / SIDE,
                }
                .run();
            }
        }
        for i in in_tiles..m {
            line(k, columns, a.skip(i), b, c.add(i * c_row), 1, keep);
        }
        for j in columns..n {
            line(k, m, b.skip(j), a, c.add(j), c_row, keep);
        }
    }
}

/// `count` elements of the product that have one operand's row or column in common: `one`. The others' are those of `each`, and
/// the results lie `c_side` apart.
///
/// # Safety
/// As [`product`].
#[inline(never)]
unsafe fn line(k: usize, count: usize, one: Walk<f32>, each: Walk<f32>, c: *mut f32, c_side: usize, keep: bool) {
    // Four at once, of which the last begin further back where fewer are left, or one by one.
    let (lanes, side) = if count < SIDE { (1, 0) } else { (SIDE, each.side) };
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..count).step_by(lanes) {
            let first = at.min(count - lanes);
            let mut sums = [0.0; SIDE];
            if keep {
                (0..lanes).for_each(|i| sums[i] = *c.add((first + i) * c_side));
            }
            dots(k, one, Walk { side, ..each.skip(first) }, &mut sums);
            (at - first..lanes).for_each(|i| *c.add((first + i) * c_side) = sums[i]);
        }
    }
}

/// Adds the products of `one` with four of `each` to the sums.
///
/// # Safety
/// `k` elements of the five can be read, and `k` is at least 1.
#[inline(always)]
unsafe fn dots(k: usize, one: Walk<f32>, each: Walk<f32>, sums: &mut [f32; SIDE]) {
    let [side, step, one_step] = [each.side, each.step, one.step].map(|n| n * size_of::<f32>());
    // SAFETY: the instructions read what the caller promises, and the sums.
    unsafe {
        asm!(
            "vldmia {sums}, {{s0-s3}}",
            "cmp {side}, #4",
            "bne 3f",
            "2:",
            "vldr s4, [{one}]",
            "add {one}, {one}, {one_step}",
            "vldmia {each}, {{s5-s8}}",
            "add {each}, {each}, {step}",
            products!(@row "s4"; "s0", "s1", "s2", "s3"; "s5", "s6", "s7", "s8"),
            "subs {k}, {k}, #1",
            "bne 2b",
            "b 4f",
            "3:",
            "sub {step}, {step}, {side}, lsl #1",
            "sub {step}, {step}, {side}",
            "2:",
            "vldr s4, [{one}]",
            "add {one}, {one}, {one_step}",
            "vldr s5, [{each}]",
            "add {each}, {each}, {side}",
            "vldr s6, [{each}]",
            "add {each}, {each}, {side}",
            "vldr s7, [{each}]",
            "add {each}, {each}, {side}",
            "vldr s8, [{each}]",
            "add {each}, {each}, {step}",
            products!(@row "s4"; "s0", "s1", "s2", "s3"; "s5", "s6", "s7", "s8"),
            "subs {k}, {k}, #1",
            "bne 2b",
            "4:",
            "vstmia {sums}, {{s0-s3}}",
            sums = in(reg) sums,
            one = inout(reg) one.at => _,
            one_step = in(reg) one_step,
            each = inout(reg) each.at => _,
            side = in(reg) side,
            step = inout(reg) step => _,
            k = inout(reg) k => _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _,
            options(nostack),
        );
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

/// What an update by Adam multiplies with and adds: both decay rates, what is left of 1 by each, the learning rate, the second
/// moment's scale and epsilon.
pub(crate) type AdamNumbers = [f32; 7];

/// Updates parameters by Adam without weight decay, eight at a time; returns how many, from the first on.
pub(crate) fn adam<E: Real>(numbers: &AdamNumbers, p: &mut [E], g: &[E], m: &mut [E], v: &mut [E]) -> usize {
    let eights = p.len().min(g.len()).min(m.len()).min(v.len()) / 8;
    if eights == 0 || TypeId::of::<E>() != TypeId::of::<f32>() {
        return 0;
    }
    // SAFETY: the elements are `f32`, and each pointer moves over `8 eights` of them, which its slice has.
    unsafe {
        asm!(
            "vldmia {numbers}, {{s24-s30}}",
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
            "subs {eights}, {eights}, #1",
            "bne 2b",
            numbers = in(reg) numbers.as_ptr(),
            p = inout(reg) p.as_mut_ptr() => _,
            g = inout(reg) g.as_ptr() => _,
            m = inout(reg) m.as_mut_ptr() => _,
            v = inout(reg) v.as_mut_ptr() => _,
            eights = inout(reg) eights => _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _, out("d14") _, out("d15") _,
            options(nostack),
        );
    }
    8 * eights
}

/// Whether all elements are finite, for a multiple of eight of them from the first on, and how many those are; none where the elements
/// are no `f32`.
pub(super) fn finite_prefix<E: Real>(x: &[E]) -> (bool, usize) {
    let eights = x.len() / 8;
    if eights == 0 || TypeId::of::<E>() != TypeId::of::<f32>() {
        return (true, 0);
    }
    let mut sum = 0.0_f32;
    // SAFETY: the elements are `f32`, and the pointer moves over `8 eights` of them, which the slice has.
    unsafe {
        asm!(
            "vldr s9, [{sum}]",
            "vldr s8, [{sum}]",
            "2:",
            "vldmia {x}!, {{s0-s7}}",
            // What is finite gives zero when multiplied by it, and nothing else does.
            "vmla.f32 s8, s0, s9",
            "vmla.f32 s8, s1, s9",
            "vmla.f32 s8, s2, s9",
            "vmla.f32 s8, s3, s9",
            "vmla.f32 s8, s4, s9",
            "vmla.f32 s8, s5, s9",
            "vmla.f32 s8, s6, s9",
            "vmla.f32 s8, s7, s9",
            "subs {eights}, {eights}, #1",
            "bne 2b",
            "vstr s8, [{sum}]",
            sum = in(reg) &raw mut sum,
            x = inout(reg) x.as_ptr() => _,
            eights = inout(reg) eights => _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _,
            options(nostack),
        );
    }
    (sum == 0.0, x.len() / 8 * 8)
}
