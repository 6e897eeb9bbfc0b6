//! The settings of `[rate]`, the rate store. Several processes use it to count the requests of
//! crawlers together and to enforce crawl delays.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use super::published::authorities;
use super::values::StoreText;
use super::{Fault, Placed, Span, bound, tables, unplaced};
use crate::files;
use crate::store::{StoreNodes, StoreSettings, StoreUrl};

tables! {
    RawRateStore {
        store: Option<Spanned<StoreText>>,
        cluster: Spanned<bool> = unplaced(false),
        password_file: Option<Spanned<PathBuf>>,
        ca: Option<Spanned<PathBuf>>,
        prefix: Spanned<String> = unplaced(StoreSettings::PREFIX.to_owned()),
        wait: Spanned<Span> = unplaced(Span(StoreSettings::DEADLINE)) => bound(
            Span(Duration::from_millis(1))..=Span(StoreSettings::MAX_DEADLINE),
            "\"wait\" is {}: write a duration from \"1ms\" to \"20ms\"",
        ),
    }
}

/// Maximum length of `prefix`, the prefix of all keys in the store, in characters.
const MAX_PREFIX_LENGTH: usize = 64;

pub(super) struct StoreKeys<'a> {
    pub(super) store: &'a Option<Spanned<StoreText>>,
    pub(super) cluster: &'a Spanned<bool>,
    pub(super) password_file: &'a Option<Spanned<PathBuf>>,
    pub(super) ca: &'a Option<Spanned<PathBuf>>,
}

impl StoreKeys<'_> {
    pub(super) fn resolve(&self, folder: &Path) -> Result<Option<StoreSettings>, Fault> {
        let Some(written) = self.store else {
            let path_of = |path: &Option<Spanned<PathBuf>>| path.as_ref().map(Spanned::span);
            let cluster = self.cluster.get_ref().then(|| self.cluster.span());
            return refuse_unused_keys([
                ("password_file", path_of(self.password_file)),
                ("ca", path_of(self.ca)),
                ("cluster", cluster),
            ]);
        };
        let url = StoreUrl::new(&written.get_ref().0).map_err(|message| written.fault(message))?;
        if let Some(path) = self.password_file.as_ref().filter(|_| url.has_password()) {
            return Err(path.fault(
                "the password is both in this file and in the URL of the store: write the password in one place only",
            ));
        }
        if let Some(path) = self.ca.as_ref().filter(|_| !url.is_encrypted()) {
            return Err(path.fault("\"ca\" has an effect only with TLS: write the URL of the store with \"rediss://\""));
        }
        let nodes = if *self.cluster.get_ref() { StoreNodes::Cluster } else { StoreNodes::One };
        let password = self.password_file.as_ref().map(|path| password(path, folder)).transpose()?;
        let ca = self.ca.as_ref().map(|ca| authorities(ca, folder)).transpose()?.map(|ca| ca.pem.to_vec());
        Ok(Some(StoreSettings { password, ca, nodes, ..StoreSettings::new(url) }))
    }
}

/// Returns an error for the first key that is set, because these keys have no effect without a
/// store. If a key is set, `keys` contains the position of its value.
fn refuse_unused_keys<const N: usize>(keys: [(&str, Option<Range<usize>>); N]) -> Result<Option<StoreSettings>, Fault> {
    let Some((key, span)) = keys.into_iter().find_map(|(key, span)| Some((key, span?))) else { return Ok(None) };
    Err(Fault::new(span, format!("{key:?} requires a store: write store = \"redis://127.0.0.1:6379\"")))
}

/// Resolves `[rate]`. Returns `None` if there is no store, so that each process counts separately.
pub(super) fn resolve(file: &RawRateStore, folder: &Path) -> Result<Option<StoreSettings>, Fault> {
    let RawRateStore { store, cluster, password_file, ca, prefix: placed, wait } = file;
    let (prefix, deadline) = (placed.get_ref(), wait.get_ref().0);
    let Some(store) = StoreKeys { store, cluster, password_file, ca }.resolve(folder)? else {
        // Defaults are allowed, because the shipped config contains them.
        let prefix = (prefix != StoreSettings::PREFIX).then(|| placed.span());
        let wait = (deadline != StoreSettings::DEADLINE).then(|| wait.span());
        return refuse_unused_keys([("prefix", prefix), ("wait", wait)]);
    };
    if prefix.is_empty() || prefix.len() > MAX_PREFIX_LENGTH || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!(
            "this is not a valid prefix: write 1 to {MAX_PREFIX_LENGTH} ASCII characters without spaces, such as {:?}",
            StoreSettings::PREFIX
        );
        return Err(placed.fault(message));
    }
    Ok(Some(StoreSettings { prefix: prefix.clone(), deadline, ..store }))
}

fn password(path: &Spanned<PathBuf>, folder: &Path) -> Result<String, Fault> {
    let file = folder.join(path.get_ref());
    let line = files::read_line(&file).map_err(|why| path.fault(why))?;
    String::from_utf8(line).map_err(|_| path.fault(format!("{}: the password is not UTF-8", file.display())))
}
