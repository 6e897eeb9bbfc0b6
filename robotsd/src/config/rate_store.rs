//! The tables about rates: `[site.rate]`, and the store in which processes share what they count of crawlers that have a delay.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;
use tower_robots::policy::{Policy, RateMode};

use super::error::Fault;
use super::values::Span;
use crate::regular_file;
use crate::shared_rate::{SharedBucket, StoreNodes, StoreSettings, StoreUrl};

/// A password is a line, and no book.
const LONGEST_PASSWORD: usize = 4096;

/// The longest prefix of keys.
const LONGEST_PREFIX: usize = 64;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRate {
    pub(super) mode: Spanned<RateMode>,
    pub(super) burst: Spanned<NonZeroU32>,
}

impl Default for RawRate {
    fn default() -> Self {
        Self { mode: Spanned::new(0..0, RateMode::default()), burst: Spanned::new(0..0, Policy::DEFAULT_BURST) }
    }
}

impl RawRate {
    /// The burst, where it can be counted.
    pub(super) fn burst(&self) -> Result<NonZeroU32, Fault> {
        let burst = *self.burst.get_ref();
        if burst.get() > SharedBucket::MOST {
            let message = format!("a burst is from 1 to {}", SharedBucket::MOST);
            return Err(Fault::new(self.burst.span(), message));
        }
        Ok(burst)
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRateStore {
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Spanned<StoreText>>,
    cluster: bool,
    password_file: Option<Spanned<PathBuf>>,
    ca: Option<Spanned<PathBuf>>,
    prefix: Spanned<String>,
    wait: Spanned<Span>,
    batch: Spanned<u32>,
}

/// The URL, which may hold a password: what is printed of a config has none.
#[derive(Deserialize)]
#[serde(transparent)]
struct StoreText(String);

impl std::fmt::Debug for StoreText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StoreText")
    }
}

impl Serialize for StoreText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = |url: StoreUrl| if url.has_password() { url.without_password() } else { self.0.clone() };
        serializer.serialize_str(&StoreUrl::new(&self.0).map(shown).unwrap_or_default())
    }
}

impl RawRateStore {
    /// Where the store is named.
    pub(super) fn store(&self) -> Option<Range<usize>> {
        self.store.as_ref().map(Spanned::span)
    }
}

impl Default for RawRateStore {
    fn default() -> Self {
        Self {
            store: None,
            cluster: false,
            password_file: None,
            ca: None,
            prefix: Spanned::new(0..0, StoreSettings::PREFIX.to_owned()),
            wait: Spanned::new(0..0, Span(StoreSettings::DEADLINE)),
            batch: Spanned::new(0..0, StoreSettings::BATCH),
        }
    }
}

/// `None` where there is none: each process counts for itself.
pub(super) fn resolve(file: &RawRateStore, folder: &Path) -> Result<Option<StoreSettings>, Fault> {
    let Some(written) = &file.store else {
        let of_store = [("password_file", &file.password_file), ("ca", &file.ca)];
        return match of_store.into_iter().find_map(|(key, path)| Some((key, path.as_ref()?))) {
            None => Ok(None),
            Some((key, path)) => {
                let message = format!("{key} is for a store: name it with store = \"redis://127.0.0.1:6379\"");
                Err(Fault::new(path.span(), message))
            }
        };
    };
    let url = StoreUrl::new(&written.get_ref().0).map_err(|message| Fault::new(written.span(), message))?;
    if let Some(path) = file.password_file.as_ref().filter(|_| url.has_password()) {
        return Err(Fault::new(path.span(), "the URL of the store holds a password already: leave it in one place"));
    }
    if let Some(path) = file.ca.as_ref().filter(|_| !url.is_encrypted()) {
        return Err(Fault::new(path.span(), "ca goes with TLS: write the URL of the store with \"rediss://\""));
    }
    let prefix = file.prefix.get_ref();
    if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.bytes().all(|octet| octet.is_ascii_graphic()) {
        let message = format!(
            "a prefix of keys has 1 to {LONGEST_PREFIX} characters of ASCII without spaces: write one such as {:?}",
            StoreSettings::PREFIX
        );
        return Err(Fault::new(file.prefix.span(), message));
    }
    let wait = file.wait.get_ref().0;
    if wait.as_millis() < 1 || wait > StoreSettings::LONGEST_DEADLINE {
        return Err(Fault::new(
            file.wait.span(),
            "a request waits \"1ms\" to \"20ms\" for the store: \"12ms\" is right",
        ));
    }
    let batch = *file.batch.get_ref();
    if !(1..=StoreSettings::LARGEST_BATCH).contains(&batch) {
        let message = format!("batch is from 1, each request is asked, to {}", StoreSettings::LARGEST_BATCH);
        return Err(Fault::new(file.batch.span(), message));
    }
    let nodes = if file.cluster { StoreNodes::Cluster } else { StoreNodes::One };
    let settings = StoreSettings::new(url).nodes(nodes).prefix(prefix).deadline(wait).batch(batch);
    let password = file.password_file.as_ref().map(|path| password(path, folder)).transpose()?;
    let ca = file.ca.as_ref().map(|path| certificates(path, folder)).transpose()?;
    Ok(Some(settings.password(password).ca(ca)))
}

/// The first line of a file.
fn password(path: &Spanned<PathBuf>, folder: &Path) -> Result<String, Fault> {
    let (text, shown) = read(path, folder)?;
    let text = String::from_utf8(text).ok();
    let line = text
        .as_deref()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && line.len() <= LONGEST_PASSWORD && !line.contains(['\n', '\r']));
    let wrong = || Fault::new(path.span(), format!("{shown}: it is to hold the password of the store, in one line"));
    line.map(str::to_owned).ok_or_else(wrong)
}

fn certificates(path: &Spanned<PathBuf>, folder: &Path) -> Result<Vec<u8>, Fault> {
    let (pem, shown) = read(path, folder)?;
    if pem.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----") {
        return Ok(pem);
    }
    Err(Fault::new(path.span(), format!("{shown}: it holds no certificate in PEM, \"-----BEGIN CERTIFICATE-----\"")))
}

fn read(path: &Spanned<PathBuf>, folder: &Path) -> Result<(Vec<u8>, String), Fault> {
    let file = folder.join(path.get_ref());
    let shown = file.display().to_string();
    match regular_file::read(&file) {
        Ok(octets) => Ok((octets, shown)),
        Err(error) => Err(Fault::new(path.span(), format!("{shown}: {error}"))),
    }
}
