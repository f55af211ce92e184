//! Images in files, replaced as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::vec::Vec;

use super::{Contents, Encoder, Image, ImageError, Io, SaveError};
use crate::backend::{Backend, Real};
use crate::program::{Memory, Program};

/// Why a file was not read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system's error.
    Io(io::Error),
    /// The file is no image that fits. Nothing was changed.
    Image(ImageError),
    /// The memory is not one of the program, or too long for an image. Nothing was written.
    Save(SaveError<core::convert::Infallible>),
}

impl core::fmt::Display for FileError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Io(error) => core::fmt::Display::fmt(error, f),
            Self::Image(error) => core::fmt::Display::fmt(error, f),
            Self::Save(error) => core::fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ImageError> for FileError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

impl From<SaveError<core::convert::Infallible>> for FileError {
    fn from(error: SaveError<core::convert::Infallible>) -> Self {
        Self::Save(error)
    }
}

/// Writes an image to a file. The file is the old one or the new one at any moment, also when the power fails: the image goes to a
/// file beside it (`NAME.tmp`), which takes its place when it is on the disk. Two writers at a time are one too many.
///
/// # Errors
/// Those of the operating system; the old file is still there then.
pub fn write_file<'a, E: Real, I: Iterator<Item = &'a [E]>>(
    path: impl AsRef<Path>,
    mut image: Encoder<'a, E, I>,
) -> io::Result<()> {
    replace(path.as_ref(), |file| {
        let mut buffered = BufWriter::new(file);
        image.write_to(Io(&mut buffered)).map_err(|error| match error {
            SaveError::Sink(error) => error,
            error => io::Error::other(std::format!("{}", error.map_sink(|_| ""))),
        })?;
        buffered.flush()
    })
}

pub(super) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().map(OsString::from).ok_or(io::ErrorKind::InvalidFilename)?;
    name.push(".tmp");
    let beside = path.with_file_name(name);
    let written = File::create(&beside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // It may not even be there; the error that matters is the first.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
}

/// The name is on the disk when the folder is. Other systems than Unix do not open folders, and need not.
fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Files.
impl<B: Backend> Program<'_, B> {
    /// Saves an image of the memory as a file, which is replaced as a whole or not at all.
    ///
    /// # Errors
    /// When a space of `memory` is too short, and those of the operating system; an older file is still there then.
    pub fn save_file(
        &self,
        memory: &Memory<'_, B::Elem>,
        contents: Contents<'_>,
        path: impl AsRef<Path>,
    ) -> Result<(), FileError> {
        Ok(write_file(path, self.image(memory, contents)?)?)
    }

    /// Loads an image from a file as [`Program::load`] does, and returns the caller's own bytes in it.
    ///
    /// # Errors
    /// When the file cannot be read or is no image of this network; the memory is as it was then.
    pub fn load_file(&self, memory: &mut Memory<'_, B::Elem>, path: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
        let bytes = fs::read(path)?;
        let image = Image::parse(&bytes)?;
        self.load(memory, &image)?;
        Ok(image.user().to_vec())
    }
}
