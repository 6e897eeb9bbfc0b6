//! The copies of a published list that are there without fetching it, and which of them counts.

use std::path::Path;
use std::time::SystemTime;

use crate::identity::{EmbeddedList, RangeList};
use crate::source::fetch::FetchUrl;
use crate::source::file;
use crate::source::follow::{DocumentOrigin, FollowError, SavedDocuments};

/// A copy of a published list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListCopy {
    /// The list.
    pub list: RangeList,
    /// Where the copy is from.
    pub origin: DocumentOrigin,
    /// When the list's server last said that it is right; `None` for a copy that was not fetched from it.
    pub confirmed: Option<SystemTime>,
    /// The day of an embedded copy, as `2026-09-02`.
    pub fetched: Option<&'static str>,
}

impl ListCopy {
    /// The copies of the list at a URL, the one that counts first: the one that a [`Verifier`](super::Verifier) saved, the
    /// operator's own file, the embedded one. A `Verifier` takes them in this order too, until it has fetched the list.
    ///
    /// A copy that cannot be read is an error in its place, and the next one counts.
    pub fn all(url: &str, saved: Option<&Path>, own: Option<&Path>) -> Vec<Result<Self, FollowError>> {
        let saved = saved.and_then(|folder| Self::saved(folder, url).transpose());
        [saved, own.map(Self::of_file), Self::embedded(url).map(Ok)].into_iter().flatten().collect()
    }

    /// The list that a [`Verifier`](super::Verifier) fetched from a URL and saved in a folder, read by another program: nothing is
    /// fetched or written. `None` if none was saved; the folder need not exist.
    fn saved(folder: &Path, url: &str) -> Result<Option<Self>, FollowError> {
        let url: FetchUrl = url.parse().map_err(|error| FollowError::new(format!("list {url:?}: {error}")))?;
        let Some(saved) = SavedDocuments::new(folder.to_owned()).read(&url.to_string())? else { return Ok(None) };
        let list = RangeList::parse(&saved.octets)
            .map_err(|error| FollowError::new(format!("the list that was saved of {url}: {error}")))?;
        let confirmed = Some(saved.confirmed);
        Ok(Some(Self { list, origin: DocumentOrigin::Saved, confirmed, fetched: None }))
    }

    /// The operator's own copy.
    pub(super) fn of_file(path: &Path) -> Result<Self, FollowError> {
        let wrong = |why: &dyn std::fmt::Display| FollowError::new(format!("{}: {why}", path.display()));
        let octets = file::read(path).map_err(|error| wrong(&error))?;
        let list = RangeList::parse(&octets).map_err(|error| match error.position {
            Some(_) => FollowError::new(format!("{}:{error}", path.display())),
            None => wrong(&error),
        })?;
        Ok(Self { list, origin: DocumentOrigin::File, confirmed: None, fetched: None })
    }

    pub(super) fn embedded(url: &str) -> Option<Self> {
        let list = EmbeddedList::all().iter().find(|list| list.url == url)?;
        let fetched = Some(list.fetched);
        Some(Self { list: RangeList::from(list), origin: DocumentOrigin::Embedded, confirmed: None, fetched })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::source::fetch::Validators;

    const GPTBOT: &str = "https://openai.com/gptbot.json";

    #[test]
    fn what_was_saved_counts_before_the_operators_copy_and_the_embedded_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let lists = folder.path();
        let own = folder.path().join("own.txt");
        let origins = |saved: Option<&Path>, own: Option<&Path>| -> Vec<_> {
            let copies = ListCopy::all(GPTBOT, saved, own).into_iter();
            copies.map(|copy| copy.map(|copy| copy.origin).map_err(|error| error.to_string())).collect()
        };
        let embedded = || Ok(DocumentOrigin::Embedded);
        assert_eq!(origins(None, None), [embedded()]);
        assert_eq!(origins(Some(lists), None), [embedded()]);
        let why = |error: &str| Err(format!("{}{error}", own.display()));
        assert_eq!(origins(None, Some(&own)), [why(": No such file or directory (os error 2)"), embedded()]);
        std::fs::write(&own, "8.8.8.0/24\n").expect("written");
        // However old it is: it is what the next start begins with.
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let documents = SavedDocuments::new(folder.path().to_owned());
        documents.save(GPTBOT, b"9.9.9.0/24\n", confirmed, &Validators::default()).expect("saved");
        let all = origins(Some(lists), Some(&own));
        assert_eq!(all, [Ok(DocumentOrigin::Saved), Ok(DocumentOrigin::File), embedded()]);
        let copies = ListCopy::all(GPTBOT, Some(lists), Some(&own));
        let confirmed_at: Vec<_> = copies.into_iter().map(|copy| copy.expect("a list").confirmed).collect();
        assert_eq!(confirmed_at, [Some(confirmed), None, None]);
    }

    const URL: &str = "https://lists.test/one.json";

    #[test]
    fn what_was_saved_is_read_with_its_date() {
        let folder = tempfile::tempdir().expect("a folder");
        let lists = folder.path().join("evidence");
        let documents = SavedDocuments::new(lists.clone());
        assert!(ListCopy::saved(&lists, URL).expect("no folder yet").is_none());
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let save = |octets: &[u8]| documents.save(URL, octets, confirmed, &Validators::default()).expect("saved");
        save(b"8.8.8.0/24\n");
        let saved = ListCopy::saved(&lists, URL).expect("a list").expect("saved");
        assert_eq!((saved.list.prefixes, saved.confirmed), (1, Some(confirmed)));
        save(b"<html>");
        let error = ListCopy::saved(&lists, URL).expect_err("no list").to_string();
        assert!(error.starts_with("the list that was saved of https://lists.test/one.json: "), "{error}");
        assert!(ListCopy::saved(&lists, "ftp://lists.test/").is_err());
    }
}
