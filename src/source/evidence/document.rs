//! What is fetched as evidence, lists of addresses and key sets, and their copies in a folder.

use std::error::Error;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fmt, fs};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::verified_claims::EvidenceVersion;
use crate::identity::{KeySet, RangeList, check_media_type};
use crate::source::fetch::{FetchMode, FetchUrl, Schedule, Validators};

/// A document that is followed.
pub(super) trait Document: Sized + Send + Sync + 'static {
    /// How redirects are followed.
    const MODE: FetchMode;
    /// The largest that is read, in octets.
    const MOST: u64;
    /// When it is fetched.
    const DEMAND: Demand;
    /// A request that misses something in it has it fetched again, but not sooner than this after the last time.
    const GAP: Duration;
    /// What reading one needs besides its octets.
    type Context: Send + Sync + 'static;

    /// How long it is used, and how failures are tried again.
    fn schedule() -> Schedule;

    /// Reads a new one, which may have to resemble the one that was fetched before.
    fn read(
        context: &Self::Context,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String>;

    /// Reads one that an earlier process saved.
    fn restore(context: &Self::Context, octets: &[u8]) -> Result<Self, String> {
        Self::read(context, octets, None, None)
    }

    /// Another one is at hand than before.
    fn replaced(_context: &Self::Context) {}

    /// An answer was taken, and saved where it is new: what is at hand now, and why it is not what was fetched.
    fn concluded(_context: &Self::Context, _held: Option<&Self>, _trouble: Option<&str>) {}
}

/// What a document is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// It is kept up to date from the start.
    Always,
    /// It is fetched once a request needs it.
    OnRequest,
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(60 * 60);

impl Document for RangeList {
    const MODE: FetchMode = FetchMode::Site;
    const MOST: u64 = 1 << 20;
    const DEMAND: Demand = Demand::Always;
    const GAP: Duration = HOUR;
    type Context = EvidenceVersion;

    /// About daily, and not more than hourly (draft-illyes-webbotauth-jafar).
    fn schedule() -> Schedule {
        Schedule::new().every(24 * HOUR).between(HOUR, 24 * HOUR).retry(MINUTE, HOUR)
    }

    fn read(
        _: &EvidenceVersion,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        check_media_type(content_type.unwrap_or_default()).map_err(|error| error.to_string())?;
        let list = Self::parse(octets).map_err(|error| error.to_string())?;
        if let Some(before) = before {
            list.check_after(&before.set).map_err(|error| error.to_string())?;
        }
        Ok(list)
    }

    fn replaced(version: &EvidenceVersion) {
        version.change();
    }
}

impl Document for KeySet {
    const MODE: FetchMode = FetchMode::Direct;
    const MOST: u64 = 64 * 1024;
    const DEMAND: Demand = Demand::OnRequest;
    const GAP: Duration = Duration::from_secs(5 * 60);
    type Context = ();

    fn schedule() -> Schedule {
        Schedule::new().every(HOUR).between(5 * MINUTE, 24 * HOUR).retry(MINUTE / 2, 5 * MINUTE)
    }

    fn read(_: &(), octets: &[u8], _content_type: Option<&str>, _before: Option<&Self>) -> Result<Self, String> {
        Self::parse(octets).map_err(|error| error.to_string())
    }
}

/// A folder with a file for each document, named by the hash of its URL: for the next start, which may have no network.
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

/// What is read of a file: more than the largest document, written as a string of JSON, and than all paths there can be.
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
        let failed = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let Some(value) = read_json(&path)? else { return Ok(None) };
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

/// Reads a file that was saved; `None` if there is none.
pub(super) fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let failed = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let mut octets = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(MOST).read_to_end(&mut octets).map_err(|error| failed(&error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    serde_json::from_slice(&octets).map(Some).map_err(|error| failed(&error))
}

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

/// Why a [`Verifier`](super::Verifier) cannot start, or cannot follow a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierError {
    message: String,
}

impl VerifierError {
    pub(super) fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

crate::debug_as_displayed!(VerifierError);

impl Error for VerifierError {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::CACHE_CONTROL;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::source::fetch::{Freshness, Validators};

    /// Until the next fetch, after an answer with this `Cache-Control`.
    fn interval<D: Document>(cache_control: &'static str) -> Duration {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        D::schedule().interval(Freshness::of(&headers))
    }

    #[test]
    fn a_list_is_fetched_daily_and_not_more_than_hourly_and_keys_hourly() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!(interval::<RangeList>(""), 24 * hour);
        assert_eq!(interval::<RangeList>("max-age=1"), hour);
        assert_eq!(RangeList::GAP, hour);
        assert_eq!(RangeList::schedule().pause(99, None, u32::MAX), hour);
        assert_eq!(interval::<KeySet>(""), hour);
        assert_eq!(interval::<KeySet>("max-age=1"), 5 * minute);
        assert_eq!(KeySet::GAP, 5 * minute);
        assert_eq!(KeySet::schedule().pause(99, None, u32::MAX), 5 * minute);
    }

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
        assert_eq!((saved.list.prefixes, saved.confirmed), (1, confirmed));
        save(b"<html>");
        let error = lists.read(URL).expect_err("no list").to_string();
        assert!(error.starts_with("the list that was saved of https://lists.test/one.json: "), "{error}");
        assert!(lists.read("ftp://lists.test/").is_err());
    }
}
