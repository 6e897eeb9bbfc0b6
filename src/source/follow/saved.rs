//! Saved copies of fetched documents in a folder, and the error type for documents that are fetched
//! regularly.

use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fmt, fs};

use http::HeaderValue;
use serde_json::{Value, json};

use crate::live::state::disk::aside;
use crate::live::state::replacement::put;
use crate::live::{Durability, VersionHash};
use crate::source::fetch::{FetchUrl, Validators};

/// A folder with one file per document. The files are used at the next start if the network is not
/// available. The name of a file is the hash of the document's URL, including its query.
#[derive(Clone, Debug)]
pub(in crate::source) struct SavedDocuments(PathBuf);

#[derive(Debug)]
pub(in crate::source) struct SavedDocument {
    pub(in crate::source) bytes: Vec<u8>,
    pub(in crate::source) confirmed: SystemTime,
    etag: Option<String>,
    last_modified: Option<String>,
}

/// Maximum size of a file that is read, in bytes. The largest saved document and the largest file
/// of the module `claim_paths` are smaller.
const MAX_BYTES: u64 = 8 << 20;

impl SavedDocuments {
    pub(in crate::source) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(in crate::source) fn path(&self) -> &Path {
        &self.0
    }

    pub(in crate::source) fn save(
        &self,
        url: &FetchUrl,
        bytes: &[u8],
        confirmed: SystemTime,
        validators: &Validators,
    ) -> io::Result<()> {
        let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let since = confirmed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let body = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        let written = json!({
            "url": url.unredacted(),
            "confirmed": since.as_secs(),
            "etag": text(validators.etag.as_ref()),
            "last_modified": text(validators.last_modified.as_ref()),
            "body": body,
        });
        write_json(&self.path_of(url), &written.to_string())
    }

    /// Reads a document; `None` if the document was never saved.
    pub(in crate::source) fn read(&self, url: &FetchUrl) -> Result<Option<SavedDocument>, FollowError> {
        let path = self.path_of(url);
        let failed = |why: &str| FollowError::new(format!("{}: {why}", path.display()));
        let Some(value) = read_json(&path).map_err(FollowError::new)? else { return Ok(None) };
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if text("url") != Some(url.unredacted()) {
            return Err(failed("this copy was saved for another URL"));
        }
        let confirmed = value.get("confirmed").and_then(Value::as_u64);
        let confirmed = confirmed.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        match (text("body"), confirmed) {
            (Some(body), Some(confirmed)) => Ok(Some(SavedDocument {
                bytes: body.into_bytes(),
                confirmed,
                etag: text("etag"),
                last_modified: text("last_modified"),
            })),
            _ => Err(failed("the saved copy lacks `body` or `confirmed`")),
        }
    }

    fn path_of(&self, url: &FetchUrl) -> PathBuf {
        let hash = VersionHash::of(url.unredacted().as_bytes()).hex();
        self.0.join(format!("{}.json", &hash[..32]))
    }
}

impl SavedDocument {
    pub(super) fn validators(&self, url: &FetchUrl) -> Validators {
        let value = |text: &Option<String>| text.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
        Validators { etag: value(&self.etag), last_modified: value(&self.last_modified), of: Some(url.clone()) }
    }
}

/// Replaces a file atomically, so the previous file stays intact if the process or the machine
/// stops. Only the owner can read the file, because the URL in it may contain a secret.
pub(in crate::source) fn write_json(path: &Path, text: &str) -> io::Result<()> {
    put(path, &aside(path), text.as_bytes(), Durability::Machine)
}

pub(in crate::source) fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let failed = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let mut bytes = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| failed(&error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(&error))
}

/// The reason why a document cannot be kept up to date, or why its saved copy cannot be read.
#[derive(Clone, PartialEq, Eq)]
pub struct FollowError(String);

impl FollowError {
    pub(in crate::source) const fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

robots_core::debug_as_displayed!(FollowError);

impl Error for FollowError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_whose_urls_differ_only_in_the_query_have_separate_copies() {
        let folder = tempfile::tempdir().expect("a folder");
        let documents = SavedDocuments::new(folder.path().to_owned());
        let url = |query: &str| -> FetchUrl { format!("http://lists.test/list?site={query}").parse().expect("a URL") };
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        for query in ["a", "b"] {
            documents.save(&url(query), query.as_bytes(), confirmed, &Validators::default()).expect("saved");
        }
        for query in ["a", "b"] {
            let saved = documents.read(&url(query)).expect("a copy").expect("what was saved");
            assert_eq!(saved.bytes, query.as_bytes());
        }
        assert!(documents.read(&url("c")).expect("no copy").is_none());
    }

    #[test]
    fn several_threads_can_save_the_same_document_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.json");
        std::thread::scope(|scope| {
            let save = || (0..20).try_for_each(|_| write_json(&path, "{}"));
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(save)).collect();
            for thread in threads {
                thread.join().expect("a thread").expect("saved");
            }
        });
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
