//! The files that the arguments of `robotsd check` stand for.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::input::InputSource;

/// The files of an argument, and the directories that could not be read.
pub(super) fn expand(path: &Path) -> Vec<Result<InputSource, (PathBuf, io::Error)>> {
    if path == Path::new("-") {
        return vec![Ok(InputSource::Stdin)];
    }
    if !path.is_dir() {
        return vec![Ok(InputSource::File(path.to_owned()))];
    }
    let mut listing = Listing::default();
    listing.walk(path);
    let mut files = if listing.robots.is_empty() { listing.texts } else { listing.robots };
    files.sort();
    if files.is_empty() && listing.failed.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "the directory holds neither a robots.txt nor a .txt file");
        return vec![Err((path.to_owned(), error))];
    }
    files.into_iter().map(|file| Ok(InputSource::File(file))).chain(listing.failed.into_iter().map(Err)).collect()
}

/// The robots.txt files of a directory.
#[derive(Default)]
struct Listing {
    /// Every robots.txt, however deep.
    robots: Vec<PathBuf>,
    /// The .txt files of the directory itself.
    texts: Vec<PathBuf>,
    failed: Vec<(PathBuf, io::Error)>,
}

impl Listing {
    fn walk(&mut self, top: &Path) {
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    self.failed.push((directory, error));
                    continue;
                }
            };
            for entry in entries {
                match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                    // A link to a directory is not followed: it may lead back up. A link to a file is read.
                    Ok((kind, path)) if kind.is_dir() => waiting.push(path),
                    Ok((_, path)) if path.is_dir() => {}
                    Ok((_, path)) if path.file_name() == Some(OsStr::new("robots.txt")) => self.robots.push(path),
                    Ok((_, path)) if directory == top && path.extension() == Some(OsStr::new("txt")) => {
                        self.texts.push(path);
                    }
                    Ok(_) => {}
                    Err(error) => self.failed.push((directory.clone(), error)),
                }
            }
        }
    }
}
