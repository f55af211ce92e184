//! The operands of a step: runs of the memory's spaces, borrowed at once.
//!
//! Where they lie says a table, and that none which is written overlaps another one of its step is looked at once, when the tables
//! are put together: for a constant, while it is computed. Safe code for this (`get_disjoint_mut`) was a third of the runner and of
//! its stack.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

use super::step::{Action, Copying, DY, OUT, Place, SCRATCH, STATE, Step, move_to};
use super::{Memory, Program};
use crate::backend::Backend;
use crate::ops::{Args, BackwardCall, ForwardCall};

/// Which operands kernels may write: what is written, what is kept, and scratch.
const WRITTEN: Range<usize> = OUT..SCRATCH + 1;

/// Checks that every step has its operands and its arguments in the tables, and that the [`WRITTEN`] ones may be written and overlap
/// no other one.
///
/// # Panics
/// Where that is not so: no plan of this crate is such.
pub(crate) const fn check<B: Backend>(steps: &[Step<B>], table: &[Place], args: &[u32]) {
    let mut i = 0;
    while i < steps.len() {
        assert!(steps[i].args() + Args::WORDS <= args.len(), "a step's arguments are not in the table");
        let places = steps[i].places(table);
        let mut written = WRITTEN.start;
        while written < WRITTEN.end {
            assert!(places[written].may_be_written(), "a step writes what may only be read");
            let mut other = 0;
            while other < places.len() {
                let is_apart = written == other || !places[written].overlaps(places[other]);
                assert!(is_apart, "operands of a step overlap");
                other += 1;
            }
            written += 1;
        }
        i += 1;
    }
}

/// What the kernel of a forward step is called with, after copying what it works over to where it works.
#[inline(always)]
pub(super) fn forward_call<'m, B: Backend>(
    step: &Step<B>,
    program: &'m Program<'_, B>,
    memory: &'m mut Memory<'_, B::Elem>,
    inputs: &[&'m [B::Elem]],
) -> ForwardCall<'m, B::Elem> {
    let mut call = MaybeUninit::<ForwardCall<'_, B::Elem>>::uninit();
    let at = call.as_mut_ptr();
    // SAFETY: a call begins with its operands in the order of their places and the arguments, and a reference to a slice lies in
    // memory as a pointer to it does. Memory and inputs are borrowed for `'m`, and what is written overlaps no other operand: see
    // `check`, which every program's tables have passed.
    unsafe {
        gather(step, program, memory, inputs, at.cast());
        call.assume_init()
    }
}

/// What the kernel of a backward step is called with, likewise.
#[inline(always)]
pub(super) fn backward_call<'m, B: Backend>(
    step: &Step<B>,
    program: &'m Program<'_, B>,
    memory: &'m mut Memory<'_, B::Elem>,
    inputs: &[&'m [B::Elem]],
) -> BackwardCall<'m, B::Elem> {
    let mut call = MaybeUninit::<BackwardCall<'_, B::Elem>>::uninit();
    let at = call.as_mut_ptr();
    // SAFETY: as in `forward_call`.
    unsafe {
        gather(step, program, memory, inputs, at.cast());
        (&raw mut (*at).add).write(false);
        (&raw mut (*at).first_row).write(0);
        call.assume_init()
    }
}

/// An operand: neighbouring elements.
type Run<E> = *mut [E];

/// Finds the operands of a step, where it has them, and its arguments, and copies one operand to another where the step says so.
///
/// # Safety
/// The operands of the step's kind of call and a reference can be written at `call`. Those that are written overlap no other one.
#[cfg_attr(target_os = "none", inline(never))]
unsafe fn gather<B: Backend>(
    step: &Step<B>,
    program: &Program<'_, B>,
    memory: &mut Memory<'_, B::Elem>,
    inputs: &[&[B::Elem]],
    call: *mut Run<B::Elem>,
) {
    let count = if matches!(step.action, Action::Forward { .. }) { STATE + 1 } else { DY + 1 };
    // SAFETY: the caller's promise.
    unsafe {
        // By index: where the compiler sees the address of the operands compared with their end's, it copies the call.
        let mut places = step.each_place(program.places);
        for i in 0..count {
            let place = places.next().flatten();
            call.add(i).write(place.map_or(&mut [], |place| find(place, memory, inputs)));
        }
        // See `check`. Arguments are words, and nothing else.
        call.add(count).cast::<&Args>().write(&*program.args.as_ptr().add(step.args()).cast());
        let (Action::Forward { copy, .. } | Action::Backward { copy, .. }) = step.action else { return };
        if copy != Copying::NOTHING {
            let (from, to) = (*call.add(copy.from.into()), *call.add(copy.to.into()));
            move_to(&mut *to, &*from, false);
        }
    }
}

/// The elements at this place; none where it does not lie within its space.
#[cfg_attr(target_os = "none", inline(never))]
fn find<E>(place: Place, memory: &mut Memory<'_, E>, inputs: &[&[E]]) -> Run<E> {
    let (space, first) = match place.space_number() {
        0 => (ptr::from_ref(inputs.get(place.offset()).copied().unwrap_or_default()).cast_mut(), 0),
        // SAFETY: the other spaces are the fields of a memory, in that order, and a place is made of a space. A reference to a slice
        // lies there as a pointer to it does.
        number => (unsafe { *ptr::from_mut(memory).cast::<Run<E>>().add(number - 1) }, place.offset()),
    };
    let is_within = space.len().checked_sub(first).is_some_and(|rest| place.len() <= rest);
    if is_within { ptr::slice_from_raw_parts_mut(space.cast::<E>().wrapping_add(first), place.len()) } else { &mut [] }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use super::super::step::{PLACES, Pass, Places};
    use super::super::{Sizes, Space};
    use super::*;
    use crate::backend::Strict;

    /// A step that moves what lies at `x` to `out`, and its table.
    fn moving(x: Place, out: Place) -> (Step<Strict<f32>>, Vec<Place>) {
        let mut all: Places = [Place::NOWHERE; PLACES];
        (all[0], all[OUT]) = (x, out);
        let step = Step::new(Action::Move { add: false }, 0, &all, 0);
        (step, all.into_iter().filter(|place| !place.equals(Place::NOWHERE)).collect())
    }

    /// Moves what lies at `x` to `out`, as a plan could say. The spaces that are written have eight elements, 0 to 7.
    fn moved(x: Place, out: Place) -> [[f32; 8]; 2] {
        let (step, places) = moving(x, out);
        let steps = [step];
        check(&steps, &places, &Args::NONE.0);
        let (tensors, draws, inputs, expected, outputs, groups) = (&[], &[], &[], &[], &[], &[]);
        let sizes = Sizes::NONE;
        let (steps, places, args, normal) = (&steps, &places[..], &Args::NONE.0, None);
        let program = Program { steps, places, args, tensors, draws, inputs, expected, outputs, groups, sizes, normal };
        let numbers: [f32; 8] = core::array::from_fn(|i| i as f32);
        let (mut work, mut state) = (numbers, numbers);
        let mut memory = Memory {
            params: &mut [],
            frozen: &numbers,
            state: &mut state,
            grads: &mut [],
            moments: &mut [],
            work: &mut work,
        };
        let pass = Pass { program: &program, inputs: &[&numbers], seed: 1.0, accumulate: false };
        steps[0].backward(&pass, &mut memory);
        [work, state]
    }

    const BEFORE: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

    #[test]
    fn neighbours_and_other_spaces_are_moved() {
        let after = [4.0, 5.0, 6.0, 7.0, 4.0, 5.0, 6.0, 7.0];
        let front = Place::new(Space::Work, 0, 4);
        for space in [Space::Work, Space::State, Space::Frozen] {
            let found = moved(Place::new(space, 4, 4), front);
            assert_eq!(found, [after, BEFORE], "{space:?}");
        }
        let state = Place::new(Space::State, 0, 4);
        assert_eq!(moved(Place::new(Space::Work, 4, 4), state), [BEFORE, after]);
        // An input is taken as a whole.
        let found = moved(Place::new(Space::Input, 0, 8), front);
        assert_eq!(found, [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], BEFORE]);
    }

    #[test]
    fn an_operand_beyond_its_space_is_empty() {
        let place = Place::new;
        for (what, x, out) in [
            ("ends beyond its space", place(Space::Frozen, 0, 4), place(Space::Work, 6, 4)),
            ("begins beyond its space", place(Space::Frozen, 9, 1), place(Space::Work, 0, 1)),
            ("is an input that there is not", place(Space::Input, 1, 8), place(Space::Work, 0, 8)),
            ("is in a space without elements", place(Space::Moments, 0, 8), place(Space::Work, 0, 8)),
        ] {
            assert_eq!(moved(x, out), [BEFORE; 2], "what {what}");
        }
    }

    #[test]
    fn tables_with_operands_that_overlap_or_may_not_be_written_are_refused() {
        let place = Place::new;
        for (what, x, out, text) in [
            ("overlaps in front", place(Space::Work, 0, 4), place(Space::Work, 3, 4), "overlap"),
            ("overlaps behind", place(Space::Work, 3, 4), place(Space::Work, 0, 4), "overlap"),
            ("lies within", place(Space::Work, 0, 8), place(Space::Work, 2, 2), "overlap"),
            ("is the same", place(Space::State, 1, 3), place(Space::State, 1, 3), "overlap"),
            ("is a frozen parameter", place(Space::Work, 0, 4), place(Space::Frozen, 0, 4), "only be read"),
            ("is an input", place(Space::Work, 0, 8), place(Space::Input, 0, 8), "only be read"),
        ] {
            let (step, places) = moving(x, out);
            let refused = std::panic::catch_unwind(|| check(&[step], &places, &Args::NONE.0)).unwrap_err();
            let message = refused.downcast_ref::<&str>().copied().map(String::from).unwrap_or_default();
            assert!(message.contains(text), "what {what}: {message}");
        }
        let (step, _) = moving(place(Space::Work, 0, 4), place(Space::Work, 4, 4));
        assert!(std::panic::catch_unwind(|| check(&[step], &[], &Args::NONE.0)).is_err(), "a table that is too short");
        let step = Step::new(Action::<Strict<f32>>::Seed, 1, &[Place::NOWHERE; PLACES], 0);
        check(&[step], &[], &[0; Args::WORDS + 1]);
        assert!(
            std::panic::catch_unwind(|| check(&[step], &[], &[0; Args::WORDS])).is_err(),
            "arguments that are too short"
        );
    }
}
