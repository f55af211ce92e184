//! One planned step, and how it is run.

use super::{Memory, Program, RunError, Space};
use crate::backend::{Backend, Real};
use crate::ops::{Args, Backward, BackwardCall, Forward, ForwardCall, MAX_INPUTS, Over, OverGradient};
use crate::optim::{self, Optimizer};

/// Where an operand lies: a run of elements of one space, in two words, since programs lie in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
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
        Space::ALL[(self.start >> 29) as usize]
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

    const fn is_in(self, space: Space) -> bool {
        self.start >> 29 == space as u32
    }

    /// The run within the work space; empty for every other space.
    const fn in_work(self) -> core::ops::Range<usize> {
        if self.is_in(Space::Work) { self.range() } else { 0..0 }
    }
}

/// What a step does.
#[derive(Clone, Copy)]
pub(crate) enum Action<B: Backend> {
    /// Runs a forward kernel; `copy` says that input 0 has to be copied into the buffer which it overwrites.
    Forward { run: Forward<B>, over: Over, copy: bool },
    /// Runs a backward kernel; `copy` likewise.
    Backward { run: Backward<B>, over: OverGradient, copy: bool, add: bool },
    /// Copies `x[0]` to `out`, or adds it.
    Move { add: bool },
    /// Starts backward: `out` is the gradient of the loss with respect to itself.
    Seed,
    /// Updates the parameter at `param` with the gradient at `x[0]`.
    Update,
    /// Computes the gradient of the parameter at `param` `rows` rows at a time, in `out`, and updates these rows.
    UpdateRows { run: Backward<B>, rows: u32, row_len: u32 },
}

/// One planned step. Made by a plan, run by a program.
#[derive(Clone, Copy)]
pub struct Step<B: Backend> {
    pub(crate) action: Action<B>,
    /// Which of the program's arguments are the kernel's.
    pub(crate) args: u32,
    pub(crate) x: [Place; MAX_INPUTS],
    pub(crate) y: Place,
    pub(crate) dy: Place,
    pub(crate) out: Place,
    pub(crate) saved: Place,
    pub(crate) scratch: Place,
    /// Forward: the state. Updates: the parameter.
    pub(crate) param: Place,
}

impl<B: Backend> Step<B> {
    pub(crate) const EMPTY: Self = Self {
        action: Action::Seed,
        args: 0,
        x: [Place::NOWHERE; MAX_INPUTS],
        y: Place::NOWHERE,
        dy: Place::NOWHERE,
        out: Place::NOWHERE,
        saved: Place::NOWHERE,
        scratch: Place::NOWHERE,
        param: Place::NOWHERE,
    };
}

/// What is the same for all steps of a backward pass.
pub(super) struct Pass<'p, B: Backend, O: Optimizer<B>> {
    pub(super) program: &'p Program<'p, B>,
    pub(super) inputs: &'p [&'p [B::Elem]],
    pub(super) coefficients: &'p O::Coefficients,
    /// The gradient of the loss with respect to itself.
    pub(super) seed: B::Elem,
    /// Whether gradients of parameters are added to what their space holds.
    pub(super) accumulate: bool,
}

/// The operands of a step that lie in the work space, borrowed at once. The borrow checks that what is written overlaps
/// nothing else, so the runner needs no `unsafe` and trusts no plan.
struct Operands<'w, E> {
    x: [&'w [E]; MAX_INPUTS],
    y: &'w [E],
    dy: &'w [E],
    out: &'w mut [E],
    saved: &'w mut [E],
    scratch: &'w mut [E],
}

impl<B: Backend> Step<B> {
    fn operands<'w>(&self, work: &'w mut [B::Elem]) -> Result<Operands<'w, B::Elem>, RunError> {
        let [x0, x1, x2] = self.x;
        let ranges = [x0, x1, x2, self.y, self.dy, self.out, self.saved, self.scratch].map(Place::in_work);
        let [x0, x1, x2, y, dy, out, saved, scratch] =
            work.get_disjoint_mut(ranges).map_err(|_| RunError::BrokenPlan)?;
        Ok(Operands { x: [x0, x1, x2], y, dy, out, saved, scratch })
    }

    fn args<'t>(&self, table: &'t [Args]) -> &'t Args {
        const NONE: &Args = &Args::NONE;
        table.get(self.args as usize).unwrap_or(NONE)
    }

    // Neither this nor `backward` shares a frame with what calls it: the stack would be 300 bytes deeper.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn forward(
        &self,
        table: &[Args],
        memory: &mut Memory<'_, B::Elem>,
        inputs: &[&[B::Elem]],
    ) -> Result<(), RunError> {
        let Action::Forward { run, over, copy } = self.action else {
            return Err(RunError::BrokenPlan);
        };
        let operands = self.operands(memory.work)?;
        let leaves = Leaves { params: memory.params, frozen: memory.frozen, inputs };
        let x = leaves.resolve(self.x, operands.x);
        let (y, saved) = (operands.out, operands.saved);
        if copy {
            move_to(if matches!(over, Over::Saved) { &mut *saved } else { &mut *y }, x[0], false);
        }
        let state = memory.state.get(self.param.range()).unwrap_or_default();
        run(ForwardCall { args: self.args(table), x, y, saved, scratch: operands.scratch, state });
        Ok(())
    }

    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn backward<O: Optimizer<B>>(
        &self,
        pass: &Pass<'_, B, O>,
        memory: &mut Memory<'_, B::Elem>,
    ) -> Result<(), RunError> {
        let Pass { program, inputs, accumulate, .. } = *pass;
        let operands = self.operands(memory.work)?;
        let leaves = Leaves { params: memory.params, frozen: memory.frozen, inputs };
        let x = leaves.resolve(self.x, operands.x);
        let Operands { y, dy, out: work_out, saved, scratch, .. } = operands;
        let args = self.args(program.args);
        let (out, adds) = match self.out.space() {
            Space::Grads => (memory.grads.get_mut(self.out.range()).unwrap_or_default(), accumulate),
            Space::State => (memory.state.get_mut(self.out.range()).unwrap_or_default(), false),
            _ => (&mut *work_out, false),
        };
        match self.action {
            Action::Backward { run, over, copy, add } => {
                if copy {
                    move_to(out, if matches!(over, OverGradient::Saved) { &*saved } else { dy }, false);
                }
                run(BackwardCall { args, x, y, saved, dy, dx: out, add: add || adds, scratch, first_row: 0 });
            }
            Action::Move { add } => move_to(out, x[0], add || adds),
            Action::Seed => out.fill(pass.seed),
            Action::Update if O::UPDATES => self.update_range(pass, memory.params, memory.moments, 0, operands.x[0])?,
            Action::UpdateRows { run, rows, row_len } if O::UPDATES => {
                let (rows, row_len, count) = (rows as usize, row_len as usize, self.param.len());
                let mut done = 0;
                while done < count {
                    let len = (rows * row_len).min(count - done);
                    let dx = out.get_mut(..len).unwrap_or_default();
                    let leaves = Leaves { params: memory.params, frozen: memory.frozen, inputs };
                    let x = leaves.resolve(self.x, operands.x);
                    let first_row = done / row_len.max(1);
                    run(BackwardCall { args, x, y, saved, dy, dx, add: false, scratch, first_row });
                    let grads = out.get(..len).unwrap_or_default();
                    self.update_range(pass, memory.params, memory.moments, done, grads)?;
                    done += len.max(1);
                }
            }
            // A forward step, or an update where gradients are kept.
            _ => return Err(RunError::BrokenPlan),
        }
        Ok(())
    }

    /// Updates the parameter at `param` from its element `done` on, unless a gradient is not finite.
    fn update_range<O: Optimizer<B>>(
        &self,
        pass: &Pass<'_, B, O>,
        params: &mut [B::Elem],
        moments: &mut [B::Elem],
        done: usize,
        grads: &[B::Elem],
    ) -> Result<(), RunError> {
        pass.program.check_finite(grads)?;
        let first = self.param.offset() + done;
        let params_len = pass.program.params_len();
        if let Some(group) = pass.program.groups.iter().find(|group| group.range().contains(&first)) {
            optim::update::<B, O>(pass.coefficients, &group.settings(), params, grads, moments, params_len, first);
        }
        Ok(())
    }
}

/// The operands that lie outside the work space.
struct Leaves<'a, E> {
    params: &'a [E],
    frozen: &'a [E],
    inputs: &'a [&'a [E]],
}

impl<'a, E> Leaves<'a, E> {
    fn resolve(&self, [p0, p1, p2]: [Place; MAX_INPUTS], [x0, x1, x2]: [&'a [E]; MAX_INPUTS]) -> [&'a [E]; MAX_INPUTS] {
        let x0 = self.find(p0, x0, [x0, x0]);
        let x1 = self.find(p1, x1, [x0, x0]);
        let x2 = self.find(p2, x2, [x0, x1]);
        [x0, x1, x2]
    }

    /// The operand at `place`: `in_work` where it lies there, or one of the `earlier` ones.
    fn find(&self, place: Place, in_work: &'a [E], earlier: [&'a [E]; 2]) -> &'a [E] {
        match place.space() {
            Space::Params => self.params.get(place.range()).unwrap_or_default(),
            Space::Frozen => self.frozen.get(place.range()).unwrap_or_default(),
            Space::Input => self.inputs.get(place.offset()).copied().unwrap_or_default(),
            Space::SameAs => earlier.get(place.offset()).copied().unwrap_or_default(),
            _ => in_work,
        }
    }
}

fn move_to<E: Real>(to: &mut [E], from: &[E], add: bool) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = if add { *to + from } else { from };
    }
}
