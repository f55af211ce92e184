//! The operands of a step: runs of the memory's spaces, borrowed at once.
//!
//! Where they lie says a table, and that none which is written overlaps another one of its step is looked at once, when the tables
//! are put together: for a constant, while it is computed. Safe code for this (`get_disjoint_mut`) was a third of the runner and of
//! its stack.

#![allow(unsafe_code)]

use core::ops::Range;
use core::{ptr, slice};

use super::step::{Action, DY, OUT, PLACES, Place, SAVED, SCRATCH, STATE, Step, Y, move_to};
use super::{Memory, Program, Space};
use crate::backend::{Backend, Real};
use crate::ops::{BackwardCall, ForwardCall, Over, OverGradient};

/// Which operands kernels may write: what is written, what is kept, and scratch.
const WRITTEN: Range<usize> = OUT..SCRATCH + 1;

/// Checks that every step has its operands in the table, and that the [`WRITTEN`] ones may be written and overlap no other one.
///
/// # Panics
/// Where that is not so: no plan of this crate is such.
pub(crate) const fn check<B: Backend>(steps: &[Step<B>], table: &[Place]) {
    let mut i = 0;
    while i < steps.len() {
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
#[cfg_attr(target_os = "none", inline(never))]
pub(super) fn forward_call<'m, B: Backend>(
    step: &Step<B>,
    program: &'m Program<'_, B>,
    memory: &'m mut Memory<'_, B::Elem>,
    inputs: &[&'m [B::Elem]],
) -> ForwardCall<'m, B::Elem> {
    let mut runs = [Run::EMPTY; PLACES];
    find(step, program.places, memory, inputs, &mut runs);
    match step.action {
        Action::Forward { copy: Over::Output, .. } => copy(runs[0], runs[OUT]),
        Action::Forward { copy: Over::Saved, .. } => copy(runs[0], runs[SAVED]),
        _ => {}
    }
    // SAFETY: memory and inputs are borrowed for `'m`. What is written overlaps no other operand: see `check`, which every
    // program's tables have passed.
    unsafe {
        ForwardCall {
            args: step.args(program.args),
            x: [runs[0].read(), runs[1].read(), runs[2].read()],
            y: runs[OUT].write(),
            saved: runs[SAVED].write(),
            scratch: runs[SCRATCH].write(),
            state: runs[STATE].read(),
        }
    }
}

/// What the kernel of a backward step is called with, likewise.
#[cfg_attr(target_os = "none", inline(never))]
pub(super) fn backward_call<'m, B: Backend>(
    step: &Step<B>,
    program: &'m Program<'_, B>,
    memory: &'m mut Memory<'_, B::Elem>,
    inputs: &[&'m [B::Elem]],
) -> BackwardCall<'m, B::Elem> {
    let mut runs = [Run::EMPTY; PLACES];
    find(step, program.places, memory, inputs, &mut runs);
    match step.action {
        Action::Backward { copy: OverGradient::Dy, .. } => copy(runs[DY], runs[OUT]),
        Action::Backward { copy: OverGradient::Saved, .. } => copy(runs[SAVED], runs[OUT]),
        _ => {}
    }
    // SAFETY: as in `forward_call`.
    unsafe {
        BackwardCall {
            args: step.args(program.args),
            x: [runs[0].read(), runs[1].read(), runs[2].read()],
            y: runs[Y].read(),
            saved: runs[SAVED].read(),
            dy: runs[DY].read(),
            dx: runs[OUT].write(),
            add: false,
            scratch: runs[SCRATCH].write(),
            first_row: 0,
        }
    }
}

/// Finds the operands of a step in the order of its places, where it has them and they are parts of their spaces.
#[cfg_attr(target_os = "none", inline(never))]
fn find<B: Backend>(
    step: &Step<B>,
    table: &[Place],
    memory: &mut Memory<'_, B::Elem>,
    inputs: &[&[B::Elem]],
    runs: &mut [Run<B::Elem>; PLACES],
) {
    // By the number of the space. Moments are no operands.
    let spaces = [
        Run::EMPTY,
        Run::of(memory.frozen),
        Run::of_mut(memory.params),
        Run::of_mut(memory.state),
        Run::of_mut(memory.grads),
        Run::EMPTY,
        Run::of_mut(memory.work),
    ];
    for (i, place) in step.given_places(table) {
        let found = if place.is_in(Space::Input) {
            inputs.get(place.offset()).map(|input| Run::of(input))
        } else {
            spaces.get(place.space_number()).and_then(|space| space.part(*place))
        };
        if let (Some(run), Some(found)) = (runs.get_mut(i), found) {
            *run = found;
        }
    }
}

/// Copies one operand of a step to another one, which is written.
fn copy<E: Real>(from: Run<E>, to: Run<E>) {
    // SAFETY: as in `forward_call`.
    unsafe { move_to(to.write(), from.read(), false) }
}

/// Neighbouring elements.
struct Run<E> {
    at: *mut E,
    len: usize,
}

impl<E> Clone for Run<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Run<E> {}

impl<E> Run<E> {
    const EMPTY: Self = Self { at: ptr::dangling_mut(), len: 0 };

    /// Elements that are only to be read.
    fn of(x: &[E]) -> Self {
        Self { at: x.as_ptr().cast_mut(), len: x.len() }
    }

    fn of_mut(x: &mut [E]) -> Self {
        Self { at: x.as_mut_ptr(), len: x.len() }
    }

    /// The part of a space that is this place.
    fn part(self, place: Place) -> Option<Self> {
        let rest = self.len.checked_sub(place.offset())?;
        (place.len() <= rest).then(|| Self { at: self.at.wrapping_add(place.offset()), len: place.len() })
    }

    /// # Safety
    /// The elements are borrowed for `'m`, and nobody writes them.
    unsafe fn read<'m>(self) -> &'m [E] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts(self.at, self.len) }
    }

    /// # Safety
    /// The elements are borrowed for `'m`, may be written, and belong to this slice alone.
    unsafe fn write<'m>(self) -> &'m mut [E] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.at, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use super::super::Sizes;
    use super::super::step::{Action, Pass, Places};
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
        check(&steps, &places);
        let (tensors, inputs, outputs, groups, args) = (&[], &[], &[], &[], &[]);
        let sizes = Sizes::NONE;
        let program =
            Program { steps: &steps, places: &places, args, tensors, inputs, outputs, groups, sizes, normal: None };
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
            ("is in no space", place(Space::Moments, 0, 8), place(Space::Work, 0, 8)),
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
            let refused = std::panic::catch_unwind(|| check(&[step], &places)).unwrap_err();
            let message = refused.downcast_ref::<&str>().copied().map(String::from).unwrap_or_default();
            assert!(message.contains(text), "what {what}: {message}");
        }
        let (step, _) = moving(place(Space::Work, 0, 4), place(Space::Work, 4, 4));
        assert!(std::panic::catch_unwind(|| check(&[step], &[])).is_err(), "a table that is too short");
    }
}
