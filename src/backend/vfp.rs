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
pub(super) const SIDE: usize = 4;

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

/// The sums from `c`, the instructions, and the sums back to `c`.
macro_rules! with_sums {
    ($c:expr, $c_row:expr, [$($text:expr),* $(,)?], $($operands:tt)*) => {
        asm!(
            "vldmia {c}, {{s0-s3}}",
            "add {c}, {c}, {c_row}",
            "vldmia {c}, {{s4-s7}}",
            "add {c}, {c}, {c_row}",
            "vldmia {c}, {{s8-s11}}",
            "add {c}, {c}, {c_row}",
            "vldmia {c}, {{s12-s15}}",
            $($text,)*
            "vstmia {c}, {{s12-s15}}",
            "sub {c}, {c}, {c_row}",
            "vstmia {c}, {{s8-s11}}",
            "sub {c}, {c}, {c_row}",
            "vstmia {c}, {{s4-s7}}",
            "sub {c}, {c}, {c_row}",
            "vstmia {c}, {{s0-s3}}",
            c = inout(reg) $c => _,
            c_row = in(reg) $c_row * size_of::<f32>(),
            $($operands)*
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _, out("d13") _,
            options(nostack),
        )
    };
}

/// The moments `m` and `v` after the gradient `g`, which is lost.
#[rustfmt::skip]
macro_rules! adam_moments {
    ($g:literal, $m:literal, $v:literal) => {
        concat!(
            "vmul.f32 ", $m, ", ", $m, ", s16\n",
            "vmla.f32 ", $m, ", s18, ", $g, "\n",
            "vmul.f32 ", $g, ", ", $g, ", ", $g, "\n",
            "vmul.f32 ", $v, ", ", $v, ", s17\n",
            "vmla.f32 ", $v, ", s19, ", $g, "\n",
        )
    };
}

/// The parameter `p` after the moments `m` and `v`.
#[rustfmt::skip]
macro_rules! adam_step {
    ($p:literal, $m:literal, $v:literal) => {
        concat!(
            "vsqrt.f32 s23, ", $v, "\n",
            "vmov.f32 s24, s22\n",
            "vmla.f32 s24, s23, s21\n",
            "vmul.f32 s23, s20, ", $m, "\n",
            "vdiv.f32 s23, s23, s24\n",
            "vsub.f32 ", $p, ", ", $p, ", s23\n",
        )
    };
}

/// Whether [`tile`] takes these operands: elements have to be neighbours along `k`, or along the operand's side of the result, and
/// `b`'s along its side unless `a`'s are neighbours along `k`.
#[inline(always)]
pub(super) fn takes(a: Walk<f32>, b: Walk<f32>) -> bool {
    b.side == 1 && (a.side == 1 || a.step == 1) || a.step == 1 && b.step == 1
}

/// `c += a b` for four rows of `a` and four columns of `b`.
///
/// # Safety
/// As the tile in `tile.rs`, for a `k` of at least 1 and operands that [`takes`] is true for.
#[inline(always)]
pub(super) unsafe fn tile(k: usize, a: Walk<f32>, b: Walk<f32>, c: *mut f32, c_row: usize) {
    // SAFETY: the instructions read `k` columns of four rows of `a`, `k` rows of four columns of `b`, and read and write four
    // rows of four columns of `c`, all of which the caller promises. Pointers move past the last element at most once.
    unsafe {
        if b.side != 1 {
            along_both(k, a, b, c, c_row);
        } else if a.side == 1 {
            with_sums!(
                c, c_row,
                [
                    "tst {k}, #1",
                    "bne 3f",
                    "2:",
                    "vldmia {a}, {{s16-s19}}",
                    "add {a}, {a}, {a_step}",
                    "vldmia {b}, {{s20-s23}}",
                    "add {b}, {b}, {b_step}",
                    products!("s16", "s17", "s18", "s19"; "s20", "s21", "s22", "s23"),
                    // An odd number starts here.
                    "3:",
                    "vldmia {a}, {{s16-s19}}",
                    "add {a}, {a}, {a_step}",
                    "vldmia {b}, {{s20-s23}}",
                    "add {b}, {b}, {b_step}",
                    products!("s16", "s17", "s18", "s19"; "s20", "s21", "s22", "s23"),
                    "subs {k}, {k}, #2",
                    "bhi 2b",
                ],
                a = inout(reg) a.at => _,
                a_step = in(reg) a.step * size_of::<f32>(),
                b = inout(reg) b.at => _,
                b_step = in(reg) b.step * size_of::<f32>(),
                k = inout(reg) k => _,
            );
        } else {
            with_sums!(
                c, c_row,
                [
                    "subs {k}, {k}, #1",
                    "beq 3f",
                    "2:",
                    "vldmia {a0}!, {{s16-s17}}",
                    "vldmia {a1}!, {{s18-s19}}",
                    "vldmia {a2}!, {{s20-s21}}",
                    "vldmia {a3}!, {{s22-s23}}",
                    "vldmia {b}, {{s24-s27}}",
                    "add {b}, {b}, {b_step}",
                    products!("s16", "s18", "s20", "s22"; "s24", "s25", "s26", "s27"),
                    "vldmia {b}, {{s24-s27}}",
                    "add {b}, {b}, {b_step}",
                    products!("s17", "s19", "s21", "s23"; "s24", "s25", "s26", "s27"),
                    "subs {k}, {k}, #2",
                    "bhi 2b",
                    "bne 4f",
                    // The last of an odd number.
                    "3:",
                    "vldr s16, [{a0}]",
                    "vldr s18, [{a1}]",
                    "vldr s20, [{a2}]",
                    "vldr s22, [{a3}]",
                    "vldmia {b}, {{s24-s27}}",
                    products!("s16", "s18", "s20", "s22"; "s24", "s25", "s26", "s27"),
                    "4:",
                ],
                a0 = inout(reg) a.at => _,
                a1 = inout(reg) a.skip(1).at => _,
                a2 = inout(reg) a.skip(2).at => _,
                a3 = inout(reg) a.skip(3).at => _,
                b = inout(reg) b.at => _,
                b_step = in(reg) b.step * size_of::<f32>(),
                k = inout(reg) k => _,
            );
        }
    }
}

/// [`tile`] for operands whose elements are both neighbours along `k`, two of which are loaded at once.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn along_both(k: usize, a: Walk<f32>, b: Walk<f32>, c: *mut f32, c_row: usize) {
    // SAFETY: as in `tile`.
    unsafe {
        with_sums!(
            c, c_row,
            [
                "subs {k}, {k}, #1",
                "beq 3f",
                "2:",
                "vldmia {a0}!, {{s16-s17}}",
                "vldmia {a1}!, {{s18-s19}}",
                "vldmia {a2}!, {{s20-s21}}",
                "vldmia {a3}!, {{s22-s23}}",
                "vldmia {b0}!, {{s24-s25}}",
                "vldmia {b1}!, {{s26-s27}}",
                products!(@row "s24"; "s0", "s4", "s8", "s12"; "s16", "s18", "s20", "s22"),
                products!(@row "s26"; "s1", "s5", "s9", "s13"; "s16", "s18", "s20", "s22"),
                products!(@row "s25"; "s0", "s4", "s8", "s12"; "s17", "s19", "s21", "s23"),
                products!(@row "s27"; "s1", "s5", "s9", "s13"; "s17", "s19", "s21", "s23"),
                "vldmia {b2}!, {{s24-s25}}",
                "vldmia {b3}!, {{s26-s27}}",
                products!(@row "s24"; "s2", "s6", "s10", "s14"; "s16", "s18", "s20", "s22"),
                products!(@row "s26"; "s3", "s7", "s11", "s15"; "s16", "s18", "s20", "s22"),
                products!(@row "s25"; "s2", "s6", "s10", "s14"; "s17", "s19", "s21", "s23"),
                products!(@row "s27"; "s3", "s7", "s11", "s15"; "s17", "s19", "s21", "s23"),
                "subs {k}, {k}, #2",
                "bhi 2b",
                "bne 4f",
                // The last of an odd number.
                "3:",
                "vldr s16, [{a0}]",
                "vldr s18, [{a1}]",
                "vldr s20, [{a2}]",
                "vldr s22, [{a3}]",
                "vldr s24, [{b0}]",
                "vldr s25, [{b1}]",
                "vldr s26, [{b2}]",
                "vldr s27, [{b3}]",
                products!("s16", "s18", "s20", "s22"; "s24", "s25", "s26", "s27"),
                "4:",
            ],
            a0 = inout(reg) a.at => _,
            a1 = inout(reg) a.skip(1).at => _,
            a2 = inout(reg) a.skip(2).at => _,
            a3 = inout(reg) a.skip(3).at => _,
            b0 = inout(reg) b.at => _,
            b1 = inout(reg) b.skip(1).at => _,
            b2 = inout(reg) b.skip(2).at => _,
            b3 = inout(reg) b.skip(3).at => _,
            k = inout(reg) k => _,
        );
    }
}

/// What an update by Adam multiplies with and adds: both decay rates, what is left of 1 by each, the learning rate, the second
/// moment's scale and epsilon.
pub(crate) type AdamNumbers = [f32; 7];

/// Updates parameters by Adam without weight decay, four at a time; returns how many, from the first on.
pub(crate) fn adam<E: Real>(numbers: &AdamNumbers, p: &mut [E], g: &[E], m: &mut [E], v: &mut [E]) -> usize {
    let fours = p.len().min(g.len()).min(m.len()).min(v.len()) / 4;
    if fours == 0 || TypeId::of::<E>() != TypeId::of::<f32>() {
        return 0;
    }
    // SAFETY: the elements are `f32`, and each pointer moves over `4 fours` of them, which its slice has.
    unsafe {
        asm!(
            "vldmia {numbers}, {{s16-s22}}",
            "2:",
            "vldmia {g}!, {{s12-s15}}",
            "vldmia {m}, {{s0-s3}}",
            "vldmia {v}, {{s4-s7}}",
            adam_moments!("s12", "s0", "s4"),
            adam_moments!("s13", "s1", "s5"),
            adam_moments!("s14", "s2", "s6"),
            adam_moments!("s15", "s3", "s7"),
            "vstmia {m}!, {{s0-s3}}",
            "vstmia {v}!, {{s4-s7}}",
            "vldmia {p}, {{s8-s11}}",
            adam_step!("s8", "s0", "s4"),
            adam_step!("s9", "s1", "s5"),
            adam_step!("s10", "s2", "s6"),
            adam_step!("s11", "s3", "s7"),
            "vstmia {p}!, {{s8-s11}}",
            "subs {fours}, {fours}, #1",
            "bne 2b",
            numbers = in(reg) numbers.as_ptr(),
            p = inout(reg) p.as_mut_ptr() => _,
            g = inout(reg) g.as_ptr() => _,
            m = inout(reg) m.as_mut_ptr() => _,
            v = inout(reg) v.as_mut_ptr() => _,
            fours = inout(reg) fours => _,
            out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _, out("d6") _, out("d7") _,
            out("d8") _, out("d9") _, out("d10") _, out("d11") _, out("d12") _,
            options(nostack),
        );
    }
    4 * fours
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
