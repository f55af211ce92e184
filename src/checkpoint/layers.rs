//! Images of a model of layers.

use core::convert::Infallible;

use super::header::Fingerprint;
use super::target::{copy_into, load};
use super::{Block, Contents, Element, Encoder, Header, Image, ImageError, SaveError, Sink, Target};
use crate::backend::Backend;
use crate::graph::Name;
use crate::layer::{Model, Role};
use crate::optim::{HEADER_LEN, MAX_SLOTS, steps_done};
use crate::program::Space;
use crate::tape::Storage;

/// A model of layers, as what an image is loaded into.
pub struct ModelTarget<'m, B: Backend>(&'m mut Model<B>);

impl<B: Backend> Target for ModelTarget<'_, B> {
    fn check(&self, header: &Header) -> Result<(), ImageError> {
        let model = &*self.0;
        header.check::<B::Elem>(model.fingerprint())?;
        let [frozen, params, state] = model.spaces().map(<[_]>::len);
        if header.len(Block::Frozen) > 0 {
            header.check_len(Block::Frozen, frozen)?;
        }
        header.check_len(Block::Params, params)?;
        header.check_len(Block::State, state)?;
        let found = header.len(Block::Moments);
        let fits = found == 0 || (0..=MAX_SLOTS).any(|slots| found == HEADER_LEN + slots * params);
        if fits { Ok(()) } else { header.check_len(Block::Moments, model.moments.len()) }
    }

    fn place(&mut self, block: Block, start: usize, bytes: &[u8]) {
        let [frozen, _, state] = self.0.spaces().map(<[_]>::len);
        let tape = &mut self.0.tape;
        match block {
            Block::Frozen | Block::State => {
                let range = if block == Block::Frozen { 0..frozen } else { frozen..frozen + state };
                copy_into(tape.storage.spaces_mut().work.get_mut(range).unwrap_or_default(), start, bytes);
            }
            Block::Params => copy_into(tape.params_mut(), start, bytes),
            // It comes piece by piece, and grows; an image without moments leaves those that there are.
            Block::Moments if start + bytes.len() > 0 => {
                let end = (start + bytes.len()).div_ceil(size_of::<B::Elem>());
                self.0.moments.resize(end, B::Elem::default());
                copy_into(&mut self.0.moments, start, bytes);
            }
            Block::Moments | Block::User => {}
        }
    }
}

/// Checkpoints; see [`crate::checkpoint`]. They are those of a static graph of the same network.
impl<B: Backend> Model<B> {
    /// A number that tells layouts apart, as [`Program::fingerprint`](crate::program::Program::fingerprint) does.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut fingerprint = Fingerprint::new();
        for entry in &self.entries {
            let space = match entry.role {
                Role::Frozen => Space::Frozen,
                Role::Trained => Space::Params,
                Role::State => Space::State,
            };
            let (scope, leaf) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
            fingerprint.tensor(space, Name::new(scope, leaf), entry.shape);
        }
        fingerprint.finish()
    }

    /// An image of the model, to be written piece by piece. Moments are there from the first training step on.
    ///
    /// # Errors
    /// When something is longer than the format can say.
    pub fn image<'m>(&'m self, contents: Contents<'m>) -> Result<Encoder<'m, B::Elem>, SaveError<Infallible>> {
        let [frozen, params, state] = self.spaces();
        let frozen = if contents.frozen { frozen } else { &[] };
        let moments = if contents.moments { &self.moments[..] } else { &[] };
        let blocks = [frozen, params, state, moments];
        let lengths = super::lengths(blocks.map(<[_]>::len), contents.user.len())?;
        let steps = steps_done(&self.moments) as u64;
        let header = Header::new(Element::of::<B::Elem>(), self.fingerprint(), steps, lengths);
        Ok(Encoder::new(header, blocks.into_iter(), contents.user))
    }

    /// Writes an image of the model to a sink, and returns its length.
    ///
    /// ```
    /// use slabgrad::checkpoint::{Contents, Image};
    /// use slabgrad::layer::{Model, Sequential};
    ///
    /// let net = || Sequential::new().linear("fc1", 4, 8).relu().linear("fc2", 8, 2);
    /// let (trained, mut other): (Model, Model) = (Model::new(net(), [4], 1)?, Model::new(net(), [4], 2)?);
    /// let mut bytes = Vec::new();
    /// trained.save(Contents::training(), &mut bytes)?;
    /// other.load(&Image::parse(&bytes)?)?;
    /// assert_eq!(other.tensor("fc1.weight").unwrap().data, trained.tensor("fc1.weight").unwrap().data);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When something is longer than the format can say, and those of the sink.
    pub fn save<S: Sink>(&self, contents: Contents<'_>, sink: S) -> Result<usize, SaveError<S::Error>> {
        let mut image = self.image(contents).map_err(|error| error.map_sink(|never| match never {}))?;
        image.write_to(sink)
    }

    /// Loads an image: parameters and state, and the frozen parameters and the moments where it has them. Without moments, those
    /// of the model stay. What was recorded on the tape is dropped.
    ///
    /// # Errors
    /// When the image is not one of this network; the model is as it was then.
    pub fn load(&mut self, image: &Image<'_>) -> Result<(), ImageError> {
        load(image, &mut self.target())?;
        self.zero_grad();
        Ok(())
    }

    /// What [`Model::load`] loads into, for images that come from elsewhere than a slice.
    pub const fn target(&mut self) -> ModelTarget<'_, B> {
        ModelTarget(self)
    }

    /// Frozen parameters, trained ones and state, as they lie on the tape.
    fn spaces(&self) -> [&[B::Elem]; 3] {
        let len = |role| self.entries.iter().filter(|entry| entry.role == role).map(|entry| entry.shape.len()).sum();
        let (frozen, state): (usize, usize) = (len(Role::Frozen), len(Role::State));
        let work = self.tape.storage.spaces().work;
        let (frozen, rest) = work.split_at_checked(frozen).unwrap_or_default();
        [frozen, self.tape.params(), rest.get(..state).unwrap_or_default()]
    }
}
