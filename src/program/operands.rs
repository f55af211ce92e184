//! The operands of a step: runs of the memory's spaces, borrowed at once.
//!
//! A run is a pointer and a length until it is known that no run which is written overlaps another one of the step; so no plan is
//! trusted. Safe code for this (`get_disjoint_mut`) was a third of the runner and of its stack, for moving slices to and fro.

#![allow(unsafe_code)]

use core::ops::Range;
use core::{ptr, slice};

use super::step::{OUT, PLACES, Place, SCRATCH, Step};
use super::{Memory, Program, Space};
use crate::backend::Backend;
use crate::ops::{BackwardCall, ForwardCall};

/// What the kernel of a forward step is called with. `is_sound` becomes false, and the operands are empty, where they overlap.
#[cfg_attr(target_os = "none", inline(never))]
pub(super) fn forward_call<'m, B: Backend>(
    step: &Step<B>,
    program: &'m Program<'_, B>,
    memory: &'m mut Memory<'_, B::Elem>,
    inputs: &[&'m [B::Elem]],
    is_sound: &mut bool,
) -> ForwardCall<'m, B::Elem> {
    let mut runs = [Run::EMPTY; PLACES];
    *is_sound = find(step, program.places, memory, inputs, &mut runs);
    let [x0, x1, x2, _, _, out, saved, scratch, state] = runs;
    // SAFETY: see `find`. Memory and inputs are borrowed for `'m`.
    unsafe {
        ForwardCall {
            args: step.args(program.args),
            x: [x0.read(), x1.read(), x2.read()],
            y: out.write(),
            saved: saved.write(),
            scratch: scratch.write(),
            state: state.read(),
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
    is_sound: &mut bool,
) -> BackwardCall<'m, B::Elem> {
    let mut runs = [Run::EMPTY; PLACES];
    *is_sound = find(step, program.places, memory, inputs, &mut runs);
    let [x0, x1, x2, y, dy, out, saved, scratch, _] = runs;
    // SAFETY: see `find`. Memory and inputs are borrowed for `'m`.
    unsafe {
        BackwardCall {
            args: step.args(program.args),
            x: [x0.read(), x1.read(), x2.read()],
            y: y.read(),
            saved: saved.read(),
            dy: dy.read(),
            dx: out.write(),
            add: false,
            scratch: scratch.write(),
            first_row: 0,
        }
    }
}

/// Which operands kernels may write: what is written, what is kept, and scratch.
const WRITTEN: Range<usize> = OUT..SCRATCH + 1;

/// Finds the operands of a step in the order of its places, within memory and inputs. The [`WRITTEN`] ones may be written, and overlap
/// no other one. Where that is not so, or a place is none of its space, this is false and all are empty.
#[cfg_attr(target_os = "none", inline(never))]
fn find<B: Backend>(
    step: &Step<B>,
    table: &[Place],
    memory: &mut Memory<'_, B::Elem>,
    inputs: &[&[B::Elem]],
    runs: &mut [Run<B::Elem>; PLACES],
) -> bool {
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
    let mut is_sound = true;
    let mut places = step.given_places(table);
    for (i, run) in runs.iter_mut().enumerate() {
        *run = Run::EMPTY;
        if step.has(i)
            && let Some(place) = places.next()
        {
            let found = if place.is_in(Space::Input) {
                inputs.get(place.offset()).map(|input| Run::of(input))
            } else {
                spaces.get(place.space_number()).and_then(|space| space.part(*place))
            };
            let is_read_only = place.is_in(Space::Input) || place.is_in(Space::Frozen);
            match found {
                Some(found) if !(is_read_only && WRITTEN.contains(&i)) => *run = found,
                _ => is_sound = false,
            }
        }
    }
    is_sound &= WRITTEN.clone().all(|i| runs.get(i).is_none_or(|run| run.overlaps_none_but(i, runs)));
    if !is_sound {
        runs.fill(Run::EMPTY);
    }
    is_sound
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

    /// Whether it has no element in common with other ones than that at `own`.
    fn overlaps_none_but(self, own: usize, runs: &[Self]) -> bool {
        let end = |run: Self| run.at.wrapping_add(run.len);
        let meets = |other: Self| self.at.max(other.at) < end(self).min(end(other));
        self.len == 0 || !runs.iter().enumerate().any(|(i, &other)| i != own && other.len > 0 && meets(other))
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
    use super::super::step::{Action, Pass, Places};
    use super::super::{RunError, Sizes};
    use super::*;
    use crate::backend::Strict;
    use crate::optim::NoUpdate;

    /// Moves what lies at `x` to `out`, as a plan could say. The spaces that are written have eight elements, 0 to 7.
    fn moved(x: Place, out: Place) -> (Result<(), RunError>, [[f32; 8]; 2]) {
        let mut all: Places = [Place::NOWHERE; PLACES];
        (all[0], all[OUT]) = (x, out);
        let steps = [Step::<Strict<f32>>::new(Action::Move { add: false }, 0, &all, 0)];
        let places: std::vec::Vec<Place> = all.into_iter().filter(|place| !place.equals(Place::NOWHERE)).collect();
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
        let pass = Pass::<_, NoUpdate> {
            program: &program,
            inputs: &[&numbers],
            coefficients: &(),
            seed: 1.0,
            accumulate: false,
        };
        let result = steps[0].backward(&pass, &mut memory);
        (result, [work, state])
    }

    const BEFORE: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

    #[test]
    fn neighbours_and_other_spaces_are_moved() {
        let after = [4.0, 5.0, 6.0, 7.0, 4.0, 5.0, 6.0, 7.0];
        let front = Place::new(Space::Work, 0, 4);
        for space in [Space::Work, Space::State, Space::Frozen] {
            let found = moved(Place::new(space, 4, 4), front);
            assert_eq!(found, (Ok(()), [after, BEFORE]), "{space:?}");
        }
        let state = Place::new(Space::State, 0, 4);
        assert_eq!(moved(Place::new(Space::Work, 4, 4), state), (Ok(()), [BEFORE, after]));
        // An input is taken as a whole.
        let found = moved(Place::new(Space::Input, 0, 8), front);
        assert_eq!(found, (Ok(()), [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], BEFORE]));
    }

    #[test]
    fn a_broken_plan_is_an_error_and_writes_nothing() {
        let place = Place::new;
        for (what, x, out) in [
            ("overlaps in front", place(Space::Work, 0, 4), place(Space::Work, 3, 4)),
            ("overlaps behind", place(Space::Work, 3, 4), place(Space::Work, 0, 4)),
            ("lies within", place(Space::Work, 0, 8), place(Space::Work, 2, 2)),
            ("is the same", place(Space::State, 1, 3), place(Space::State, 1, 3)),
            ("ends beyond its space", place(Space::Frozen, 0, 4), place(Space::Work, 6, 4)),
            ("begins beyond its space", place(Space::Frozen, 9, 1), place(Space::Work, 0, 1)),
            ("is an input that there is not", place(Space::Input, 1, 8), place(Space::Work, 0, 8)),
            ("is a frozen parameter", place(Space::Work, 0, 4), place(Space::Frozen, 0, 4)),
            ("is an input", place(Space::Work, 0, 8), place(Space::Input, 0, 8)),
        ] {
            assert_eq!(moved(x, out), (Err(RunError::BrokenPlan), [BEFORE; 2]), "what {what}");
        }
    }
}
