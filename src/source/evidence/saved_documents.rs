//! Documents that were fetched, in a folder: for the next start, which may have no network.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::source::fetch::Validators;

/// A folder with a file for each document, named by the hash of its URL.
#[derive(Clone, Debug)]
pub(super) struct SavedDocuments(PathBuf);

/// A document that was saved.
#[derive(Debug)]
pub(super) struct SavedDocument {
    pub(super) octets: Vec<u8>,
    pub(super) confirmed: SystemTime,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

/// What is read of a file: more than the largest document, written as a string of JSON.
const MOST: u64 = 8 << 20;

impl SavedDocuments {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Writes a document, in one step: a process that ends meanwhile leaves the one before.
    pub(super) fn save(
        &self,
        url: &str,
        octets: &[u8],
        confirmed: SystemTime,
        validators: &Validators,
    ) -> io::Result<()> {
        let text = |value: Option<&http::HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let since = confirmed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let body = std::str::from_utf8(octets).map_err(io::Error::other)?;
        let written = json!({
            "url": url,
            "confirmed": since.as_secs(),
            "etag": text(validators.etag()),
            "last_modified": text(validators.last_modified()),
            "body": body,
        });
        let (mut folders, mut options) = (fs::DirBuilder::new(), fs::OpenOptions::new());
        // A URL may hold what only its owner knows.
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
            folders.mode(0o700);
            options.mode(0o600);
        }
        folders.recursive(true).create(&self.0)?;
        let path = self.path(url);
        let draft = path.with_extension("tmp");
        // One that a process left may be open to others.
        let _ = fs::remove_file(&draft);
        options.write(true).create_new(true).open(&draft)?.write_all(written.to_string().as_bytes())?;
        fs::rename(&draft, &path)
    }

    /// Reads a document; `None` if it was never saved.
    pub(super) fn read(&self, url: &str) -> Result<Option<SavedDocument>, String> {
        let path = self.path(url);
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut octets = Vec::new();
        match fs::File::open(&path) {
            Ok(file) => file.take(MOST).read_to_end(&mut octets).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let value: Value = serde_json::from_slice(&octets).map_err(|error| failed(&error))?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if text("url").as_deref() != Some(url) {
            return Err(failed(&format_args!("it was saved for another URL")));
        }
        let confirmed = value.get("confirmed").and_then(Value::as_u64);
        let confirmed = confirmed.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        match (text("body"), confirmed) {
            (Some(body), Some(confirmed)) => Ok(Some(SavedDocument {
                octets: body.into_bytes(),
                confirmed,
                etag: text("etag"),
                last_modified: text("last_modified"),
            })),
            _ => Err(failed(&format_args!("`body` or `confirmed` is missing"))),
        }
    }

    fn path(&self, url: &str) -> PathBuf {
        let hash = Sha256::digest(url.as_bytes());
        let name: String = hash.iter().take(16).map(|octet| format!("{octet:02x}")).collect();
        Path::new(&self.0).join(format!("{name}.json"))
    }
}
