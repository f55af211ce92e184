//! Images of a tape's parameters and state.

use super::header::Fingerprint;
use super::target::{copy_into, load, part_within};
use super::{Block, Element, Encoder, Header, Image, ImageError, SaveError, Target};
use crate::backend::Backend;
use crate::graph::Name;
use crate::optim;
use crate::program::Space;
use crate::tape::{Storage, Tape};

/// A tape and its moments, as what an image is loaded into.
pub struct TapeTarget<'t, S: Storage> {
    tape: &'t mut Tape<S>,
    moments: &'t mut [Elem<S>],
}

type Elem<S> = <<S as Storage>::Backend as Backend>::Elem;

impl<S: Storage> Target for TapeTarget<'_, S> {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        header.check::<Elem<S>>(self.tape.fingerprint())?;
        header.check_len(Block::Params, self.tape.params().len())?;
        header.check_len(Block::State, self.tape.state_pieces().map(<[_]>::len).sum())?;
        if self.moments.is_empty() { Ok(()) } else { header.check_len(Block::Moments, self.moments.len()) }
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        match block {
            Block::Params => copy_into(self.tape.params_mut(), start, bytes),
            Block::Moments => copy_into(self.moments, start, bytes),
            Block::State => {
                let mut end = 0;
                self.tape.each_state_mut(|state| {
                    let range = end..end + size_of_val(state);
                    end = range.end;
                    let (start, bytes) = part_within(range, start, bytes);
                    copy_into(state, start, bytes);
                });
            }
            Block::Frozen | Block::User => {}
        }
    }
}

/// Checkpoints of the parameters and the state that are on the tape, and of moments; see [`crate::checkpoint`]. On a lazy tape
/// too: parameters and state are there from the start, and values that are still to be computed are computed from what was loaded.
impl<S: Storage> Tape<S> {
    /// A number that tells layouts apart, as [`Program::fingerprint`](crate::program::Program::fingerprint) does, but nothing
    /// here has a name.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut fingerprint = Fingerprint::new();
        self.leaves(|space, shape| fingerprint.tensor(space, Name::new("", ""), shape));
        fingerprint.finish()
    }

    /// An image of parameters, state, moments (none where the slice is empty) and bytes of the caller's own, to be written
    /// piece by piece.
    ///
    /// # Errors
    /// When something is longer than the format can say.
    // The type says which lifetimes the pieces have.
    #[allow(clippy::type_complexity)]
    pub fn image<'a>(
        &'a self,
        moments: &'a [Elem<S>],
        user: &'a [u8],
    ) -> Result<
        Encoder<'a, Elem<S>, impl Iterator<Item = &'a [Elem<S>]> + Clone + use<'a, S>>,
        SaveError<core::convert::Infallible>,
    > {
        let state = self.state_pieces();
        let state_len = state.clone().map(<[_]>::len).sum();
        let lengths = super::lengths([0, self.params().len(), state_len, moments.len()], user.len())?;
        let steps = optim::steps_done(moments) as u64;
        let header = Header::new(Element::of::<Elem<S>>(), self.fingerprint(), steps, lengths);
        let pieces = core::iter::once(self.params()).chain(state).chain(core::iter::once(moments));
        Ok(Encoder::new(header, pieces, user))
    }

    /// Loads an image: into the moments too, unless their slice is empty. Do so where it was made, after the parameters and
    /// the state were registered and before anything is computed from them.
    ///
    /// # Errors
    /// When the image is not one of these parameters or has not all that is needed; everything is as it was then.
    pub fn load(&mut self, moments: &mut [Elem<S>], image: &Image<'_>) -> Result<(), ImageError> {
        load(image, &mut TapeTarget { tape: self, moments })
    }

    /// What [`Tape::load`] loads into, for images that come from elsewhere than a slice.
    pub fn target<'t>(&'t mut self, moments: &'t mut [Elem<S>]) -> TapeTarget<'t, S> {
        TapeTarget { tape: self, moments }
    }

    /// The spaces and shapes of parameters and state, in their order.
    fn leaves(&self, mut each: impl FnMut(Space, crate::shape::Shape)) {
        for node in self.nodes() {
            if node.is_parameter() {
                each(Space::Params, node.spec.shape);
            } else if node.is_state() {
                each(Space::State, node.spec.shape);
            }
        }
    }

    fn state_pieces(&self) -> impl Iterator<Item = &[Elem<S>]> + Clone + use<'_, S> {
        let spaces = self.storage.spaces();
        let states = spaces.nodes.iter().filter(|node| node.is_state());
        states.map(move |node| spaces.work.get(node.value_range()).unwrap_or_default())
    }

    fn each_state_mut(&mut self, mut each: impl FnMut(&mut [Elem<S>])) {
        let spaces = self.storage.spaces_mut();
        for node in spaces.nodes.iter().filter(|node| node.is_state()) {
            each(spaces.work.get_mut(node.value_range()).unwrap_or_default());
        }
    }
}
