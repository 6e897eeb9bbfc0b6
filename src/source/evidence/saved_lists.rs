//! The lists that a [`Verifier`](super::Verifier) saved, for a program that only reads them.

use std::path::PathBuf;
use std::time::SystemTime;

use super::saved_documents::SavedDocuments;
use super::verifier_error::VerifierError;
use crate::identity::RangeList;
use crate::source::fetch::FetchUrl;

/// The folder of [`VerifierBuilder::saved_in`](super::VerifierBuilder::saved_in), read by another program: nothing is fetched
/// or written.
#[derive(Clone, Debug)]
pub struct SavedLists(SavedDocuments);

/// A list as it was saved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedList {
    /// The list.
    pub list: RangeList,
    /// When its server last said that it is right.
    pub confirmed: SystemTime,
}

impl SavedLists {
    /// The lists in a folder, which need not exist.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self(SavedDocuments::new(folder.into()))
    }

    /// The list that was fetched from a URL; `None` if none was saved.
    ///
    /// # Errors
    ///
    /// If the URL is none that is fetched, or the file cannot be read or holds no list.
    pub fn read(&self, url: &str) -> Result<Option<SavedList>, VerifierError> {
        let url: FetchUrl = url.parse().map_err(|error| VerifierError::new(format!("list {url:?}: {error}")))?;
        let Some(saved) = self.0.read(&url.to_string()).map_err(VerifierError::new)? else { return Ok(None) };
        let list = RangeList::parse(&saved.octets)
            .map_err(|error| VerifierError::new(format!("the list that was saved of {url}: {error}")))?;
        Ok(Some(SavedList { list, confirmed: saved.confirmed }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::source::fetch::Validators;

    const URL: &str = "https://lists.test/one.json";

    #[test]
    fn what_was_saved_is_read_with_its_date() {
        let folder = tempfile::tempdir().expect("a folder");
        let lists = SavedLists::in_folder(folder.path().join("evidence"));
        assert!(lists.read(URL).expect("no folder yet").is_none());
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let save = |octets: &[u8]| lists.0.save(URL, octets, confirmed, &Validators::default()).expect("saved");
        save(b"8.8.8.0/24\n");
        let saved = lists.read(URL).expect("a list").expect("saved");
        assert_eq!((saved.list.prefixes(), saved.confirmed), (1, confirmed));
        save(b"<html>");
        let error = lists.read(URL).expect_err("no list").to_string();
        assert!(error.starts_with("the list that was saved of https://lists.test/one.json: "), "{error}");
        assert!(lists.read("ftp://lists.test/").is_err());
    }
}
