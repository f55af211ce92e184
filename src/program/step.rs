//! One planned step, and how it is run.

use core::iter;

use super::operands::{backward_call, forward_call};
use super::{GradientNotFinite, Memory, Program, Space};
use crate::backend::{Backend, Real};
use crate::ops::{Backward, Forward, MAX_INPUTS, Over, OverGradient};
use crate::optim::{self, Optimizer};

/// Where an operand lies: a run of elements of one space, in two words, since programs lie in flash. Made by a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The space in the upper three bits; below, the first element, or which input it is.
    start: u32,
    len: u32,
}

impl Place {
    /// Every space has fewer elements.
    pub(crate) const LIMIT: usize = 1 << 29;
    pub(crate) const NOWHERE: Self = Self::new(Space::Work, 0, 0);

    pub(crate) const fn new(space: Space, offset: usize, len: usize) -> Self {
        assert!(offset < Self::LIMIT && len < Self::LIMIT, "a place lies beyond the limit of its space");
        Self { start: (space as u32) << 29 | offset as u32, len: len as u32 }
    }

    pub(crate) const fn space(self) -> Space {
        match self.space_number() {
            0 => Space::Input,
            1 => Space::Frozen,
            2 => Space::Params,
            3 => Space::State,
            4 => Space::Grads,
            5 => Space::Moments,
            _ => Space::Work,
        }
    }

    /// Whether it lies where kernels write.
    pub(super) const fn may_be_written(self) -> bool {
        matches!(self.space(), Space::Params | Space::State | Space::Grads | Space::Work)
    }

    /// Whether both have an element in common.
    pub(super) const fn overlaps(self, other: Self) -> bool {
        let (a, b) = (self.range(), other.range());
        self.space_number() == other.space_number()
            && a.start < b.end
            && b.start < a.end
            && self.len > 0
            && other.len > 0
    }

    pub(super) const fn space_number(self) -> usize {
        (self.start >> 29) as usize
    }

    pub(crate) const fn offset(self) -> usize {
        (self.start & (Self::LIMIT as u32 - 1)) as usize
    }

    pub(crate) const fn len(self) -> usize {
        self.len as usize
    }

    pub(crate) const fn equals(self, other: Self) -> bool {
        self.start == other.start && self.len == other.len
    }

    pub(crate) const fn range(self) -> core::ops::Range<usize> {
        self.offset()..self.offset() + self.len()
    }

    /// The run of elements in its space.
    #[cfg_attr(target_os = "none", inline(never))]
    fn of<E>(self, space: &[E]) -> &[E] {
        space.get(self.offset()..).and_then(|rest| rest.get(..self.len())).unwrap_or_default()
    }
}

/// Which operand of a step is copied to which one before its kernel runs; none is copied to itself.
// Aligned so that it lies at the same place in all actions.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(align(2))]
pub(crate) struct Copying {
    pub(super) from: u8,
    pub(super) to: u8,
}

impl Copying {
    pub(crate) const NOTHING: Self = Self { from: 0, to: 0 };

    pub(crate) const fn forward(over: Over) -> Self {
        match over {
            Over::Nothing => Self::NOTHING,
            Over::Output => Self { from: 0, to: OUT as u8 },
            Over::Saved => Self { from: 0, to: SAVED as u8 },
        }
    }

    pub(crate) const fn backward(over: OverGradient) -> Self {
        match over {
            OverGradient::Nothing => Self::NOTHING,
            OverGradient::Dy => Self { from: DY as u8, to: OUT as u8 },
            OverGradient::Saved => Self { from: SAVED as u8, to: OUT as u8 },
        }
    }

    /// Whether what forward kept is copied.
    pub(crate) const fn is_of_saved(self) -> bool {
        self.from == SAVED as u8
    }
}

/// What a step does.
#[derive(Clone, Copy)]
pub(crate) enum Action<B: Backend> {
    /// Runs a forward kernel.
    Forward { run: Forward<B>, copy: Copying },
    /// Runs a backward kernel.
    Backward { run: Backward<B>, copy: Copying, add: bool },
    /// Copies `x[0]` to `out`, or adds it.
    Move { add: bool },
    /// Starts backward: `out` is the gradient of the loss with respect to itself.
    Seed,
    /// Updates the parameter at `param` with the gradient at `x[0]`.
    Update,
    /// Computes the gradient of the parameter at `param` `rows` rows at a time, in `out`, and updates these rows.
    UpdateRows { run: Backward<B>, rows: u8 },
}

/// The most operands that a step has.
pub(super) const PLACES: usize = MAX_INPUTS + 6;
/// Where they come among them, behind the inputs, in the order of the fields of [`ForwardCall`] and [`BackwardCall`]: what is written,
/// what is kept, scratch; forward the state, backward the output and its gradient; of an update the parameter.
pub(super) const OUT: usize = MAX_INPUTS;
const SAVED: usize = OUT + 1;
pub(super) const SCRATCH: usize = OUT + 2;
const Y: usize = OUT + 3;
pub(super) const STATE: usize = Y;
pub(super) const DY: usize = OUT + 4;
const PARAM: usize = OUT + 5;

/// Where the operands of a step lie, in that order.
pub(crate) type Places = [Place; PLACES];

/// One planned step. Made by a plan, run by a program.
#[derive(Clone, Copy)]
pub struct Step<B: Backend> {
    pub(crate) action: Action<B>,
    /// Where the places of its operands begin in the program's table.
    first: u32,
    /// A bit for each of its [`Places`] that is somewhere, [`Self::GRADIENT`], and above these where its arguments begin in the
    /// program's table.
    given: u32,
}

impl<B: Backend> Step<B> {
    pub(crate) const EMPTY: Self = Self::new(Action::Seed, 0, &[Place::NOWHERE; PLACES], 0);

    /// Says that it writes the gradient of a parameter, which is kept.
    const GRADIENT: u32 = 1 << PLACES;
    /// Where the bits of its arguments' place begin.
    const ARGS: usize = PLACES + 1;

    /// A step whose operands begin at `first` in the table of places, which has those that are somewhere.
    pub(crate) const fn new(action: Action<B>, args: u32, places: &Places, first: usize) -> Self {
        assert!(args.leading_zeros() as usize >= Self::ARGS, "a program has too many arguments");
        let mut given = args << Self::ARGS;
        if matches!(places[OUT].space(), Space::Grads) {
            given |= Self::GRADIENT;
        }
        let mut i = 0;
        while i < PLACES {
            given |= (!places[i].equals(Place::NOWHERE) as u32) << i;
            i += 1;
        }
        Self { action, first: first as u32, given }
    }

    const fn is_gradient(&self) -> bool {
        self.given & Self::GRADIENT != 0
    }

    /// Whether it has operand `i`.
    pub(super) const fn has(&self, i: usize) -> bool {
        self.given >> i & 1 == 1
    }

    /// Where its operands lie, one after the other, where it has them; without end.
    pub(super) fn each_place<'t>(&self, table: &'t [Place]) -> impl Iterator<Item = Option<Place>> + use<'t, B> {
        let (mut given, mut places) = (self.given, table.get(self.first as usize..).unwrap_or_default().iter());
        iter::from_fn(move || {
            let place = if given & 1 == 1 { places.next() } else { None };
            given >>= 1;
            Some(place.copied())
        })
    }

    /// Where operand `i` lies.
    fn place(&self, table: &[Place], i: usize) -> Place {
        self.each_place(table).nth(i).flatten().unwrap_or(Place::NOWHERE)
    }

    /// Where its operands lie.
    ///
    /// # Panics
    /// When the table lacks one.
    pub(crate) const fn places(&self, table: &[Place]) -> Places {
        let mut places = [Place::NOWHERE; PLACES];
        let (mut next, mut i) = (self.first as usize, 0);
        while i < PLACES {
            if self.has(i) {
                places[i] = table[next];
                next += 1;
            }
            i += 1;
        }
        places
    }

    /// Where its arguments begin in their table.
    pub(super) const fn args(&self) -> usize {
        (self.given >> Self::ARGS) as usize
    }
}

/// What is the same for all steps of a backward pass.
pub(super) struct Pass<'p, B: Backend> {
    pub(super) program: &'p Program<'p, B>,
    pub(super) inputs: &'p [&'p [B::Elem]],
    /// The gradient of the loss with respect to itself.
    pub(super) seed: B::Elem,
    /// Whether gradients of parameters are added to what their space holds.
    pub(super) accumulate: bool,
}

impl<B: Backend> Step<B> {
    /// Runs a forward step; others come later.
    pub(super) fn forward(&self, program: &Program<'_, B>, memory: &mut Memory<'_, B::Elem>, inputs: &[&[B::Elem]]) {
        if matches!(self.action, Action::Forward { .. }) {
            let call = forward_call(self, program, memory, inputs);
            // Read after the call is put together: one number less that lives meanwhile.
            if let Action::Forward { run, .. } = self.action {
                run(call);
            }
        }
    }

    /// Runs a backward step, unless it is an update.
    #[inline(always)]
    pub(super) fn backward(&self, pass: &Pass<'_, B>, memory: &mut Memory<'_, B::Elem>) {
        let mut call = backward_call(self, pass.program, memory, pass.inputs);
        let adds = pass.accumulate && self.is_gradient();
        match self.action {
            Action::Backward { run, add, .. } => {
                call.add = add || adds;
                run(call);
            }
            Action::Move { add } => move_to(call.dx, call.x[0], add || adds),
            Action::Seed => {
                if let Some(dx) = call.dx.first_mut() {
                    *dx = pass.seed;
                }
            }
            Action::Forward { .. } | Action::Update | Action::UpdateRows { .. } => {}
        }
    }

    /// Runs a backward step of a fused program, which may be an update.
    pub(super) fn backward_fused<O: Optimizer<B>>(
        &self,
        pass: &Pass<'_, B>,
        coefficients: &O::Coefficients,
        memory: &mut Memory<'_, B::Elem>,
    ) -> Result<(), GradientNotFinite> {
        match self.action {
            Action::Update => {
                let param = self.place(pass.program.places, PARAM);
                let grads = self.place(pass.program.places, 0).of(memory.work);
                update::<B, O>(pass.program, coefficients, memory.params, memory.moments, param.offset(), grads)
            }
            Action::UpdateRows { run, rows } => self.update_rows::<O>(pass, coefficients, memory, run, rows.into()),
            _ => {
                self.backward(pass, memory);
                Ok(())
            }
        }
    }

    /// Computes the gradient of a parameter a few rows at a time, and updates these rows.
    fn update_rows<O: Optimizer<B>>(
        &self,
        pass: &Pass<'_, B>,
        coefficients: &O::Coefficients,
        memory: &mut Memory<'_, B::Elem>,
        run: Backward<B>,
        rows: usize,
    ) -> Result<(), GradientNotFinite> {
        let Pass { program, inputs, .. } = *pass;
        let (param, out) = (self.place(program.places, PARAM), self.place(program.places, OUT));
        let row_len = (out.len() / rows.max(1)).max(1);
        let mut done = 0;
        while done < param.len() {
            let len = out.len().min(param.len() - done);
            let mut call = backward_call(self, program, memory, inputs);
            call.dx = call.dx.get_mut(..len).unwrap_or_default();
            call.first_row = done / row_len;
            run(call);
            let grads = out.of(memory.work).get(..len).unwrap_or_default();
            update::<B, O>(program, coefficients, memory.params, memory.moments, param.offset() + done, grads)?;
            done += len.max(1);
        }
        Ok(())
    }
}

/// Updates parameters from the one at `first` on, unless a gradient is not finite.
#[cfg_attr(target_os = "none", inline(never))]
fn update<B: Backend, O: Optimizer<B>>(
    program: &Program<'_, B>,
    coefficients: &O::Coefficients,
    params: &mut [B::Elem],
    moments: &mut [B::Elem],
    first: usize,
    grads: &[B::Elem],
) -> Result<(), GradientNotFinite> {
    program.check_finite(grads)?;
    if let Some(group) = program.groups.iter().find(|group| group.range().contains(&first)) {
        let params_len = program.params_len();
        optim::update::<B, O>(coefficients, &group.settings(), params, grads, moments, params_len, first);
    }
    Ok(())
}

#[cfg_attr(target_os = "none", inline(never))]
pub(super) fn move_to<E: Real>(to: &mut [E], from: &[E], add: bool) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = if add { *to + from } else { from };
    }
}
