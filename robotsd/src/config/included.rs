//! The site files that a config includes: `include = ["sites.d/*.toml"]`.
//!
//! 1. An included file contains only `[[site]]` tables. All paths in the file, with symbolic links
//!    resolved, must be in the folder of the file or in one of `include_roots`. The author of the
//!    file therefore cannot use robotsd to read other people's secret files.
//! 2. A file is used or refused as a whole. If it is refused, the last good copy of the file is
//!    used instead. An invalid file therefore does not affect the sites of other files.
//! 3. If several files contain the same site name or host (regardless of the port), only one of
//!    them may use it. The file whose last good copy contains it has priority, followed by the
//!    config; the other files are refused. If neither a last good copy nor the config contains it,
//!    all of these files are refused.
//!
//! **The content of the included files is appended to the content of the config.** Every span in
//! the settings is therefore a position in the joined text.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, ErrorKind, Write as _};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, iter, mem};

use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;
use tower_robots::internals::Origin;

use super::fleet::RawFleet;
use super::joined_text::Parts;
use super::reader::ReadText;
use super::site::name_problem;
use super::{
    ConfigError, Document, Fault, Faults, Kind, Place, Placed, RawAdmin, RawSite, Reader, RobotsSource, SiteConfig,
    Value, matches_pattern, partial_parse, reader, tables,
};
use crate::audit;
use crate::files;

tables! {
    /// A file with sites.
    SitesFile {
        site: Vec<Spanned<RawSite>>,
    }
}

impl Document for SitesFile {
    const NAME: &'static str = "a file of sites";
}

/// Name of the file in the state directory that contains the last good copies.
const GOOD_COPIES_FILE: &str = "include.json";

/// Maximum size of an included file, in bytes: enough for hundreds of thousands of sites.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The last good copies. Each key is the path of a file, spelled as in `include`.
pub(crate) type GoodCopies = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(crate) struct Included {
    pub(crate) patterns: Vec<IncludePattern>,
    pub(crate) paths: Vec<PathBuf>,
    /// The content that is in use for each included file: the current content or the last good copy
    /// of the file.
    pub(crate) good: GoodCopies,
    pub(crate) refused: Vec<RefusedFile>,
}

/// An included file that is refused. `Display` writes one line for the log and the status.
#[derive(Clone, Debug, derive_more::Display)]
#[display("{}: {error}", self.outcome())]
pub(crate) struct RefusedFile {
    pub(crate) path: String,
    pub(crate) error: ConfigError,
    /// Whether the last good copy of the file is used. If `false`, the sites of the file are not
    /// served.
    pub(crate) is_kept: bool,
}

impl RefusedFile {
    pub(crate) fn outcome(&self) -> String {
        let served = if self.is_kept {
            "the last good copy of this file is used instead"
        } else {
            "the sites in this file are not served"
        };
        format!("{file}: the included file is rejected, and {served}", file = self.path)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncludePattern {
    /// The pattern as written in the config.
    written: PathBuf,
    pub(crate) folder: PathBuf,
    name: String,
}

impl IncludePattern {
    fn of(written: &Spanned<PathBuf>, config: &Path) -> Result<Self, Fault> {
        let wrong = || {
            written.fault(
                "this is not a valid pattern for files: write folder and file name, with \"*\" only in the file \
                 name, such as \"sites.d/*.toml\"",
            )
        };
        let path = written.get_ref();
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.to_string_lossy().contains('*') {
            return Err(wrong());
        }
        let folder = config.parent().unwrap_or(Path::new("")).join(parent);
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        Ok(Self { written: path.clone(), folder, name: name.to_owned() })
    }

    /// Returns the path of the pattern, including its `*`.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Reports whether a file with this name matches the pattern. Names that begin with a dot never
    /// match, because editors use them for temporary files.
    pub(crate) fn matches_pattern(&self, name: &str) -> bool {
        !name.starts_with('.') && matches_pattern(&self.name, name)
    }

    fn name_of(&self, name: &str) -> String {
        self.written.with_file_name(name).to_string_lossy().into_owned()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names: io::Result<Vec<_>> = names.collect();
        Ok(names?.into_iter().filter(|name| self.matches_pattern(name)).collect())
    }
}

pub(super) fn patterns(include: &[Spanned<PathBuf>], config: &Path, faults: &mut Faults) -> Vec<IncludePattern> {
    include.iter().filter_map(|written| faults.keep(IncludePattern::of(written, config))).collect()
}

/// Returns the folders that paths in included files may point into, in addition to each file's own
/// folder.
pub(super) fn roots(written: &[Spanned<PathBuf>], config: &Path) -> Arc<[PathBuf]> {
    let folder = config.parent().unwrap_or(Path::new(""));
    written.iter().map(|root| folder.join(root.get_ref())).collect()
}

/// An included file: its current content or the reason why it cannot be read, and its last good
/// copy.
#[derive(Debug)]
pub(super) struct IncludedFile {
    /// Path spelled as in `include`.
    name: String,
    path: PathBuf,
    /// The folders that paths in the file may point into, in addition to the file's own folder.
    roots: Arc<[PathBuf]>,
    current: Result<String, ConfigError>,
    kept: Option<String>,
}

/// Returns the files that a config includes, sorted by name, with their last good copies. The last
/// good copies come from `served` or, if `served` is `None`, from the state directory. If a folder
/// cannot be listed, each of its files with a last good copy is returned as an unreadable file. If
/// no file of the folder has a last good copy, the pattern itself is returned as an unreadable
/// file.
pub(super) fn find(config: &Path, text: &str, served: Option<&GoodCopies>) -> Vec<IncludedFile> {
    tables! {
        Part {
            state_dir: Option<PathBuf>,
            include: Vec<Spanned<PathBuf>>,
            include_roots: Vec<Spanned<PathBuf>>,
        }
    }
    let Ok((Part { state_dir, include, include_roots }, _)) = partial_parse::read::<Part>(text) else {
        return Vec::new();
    };
    let patterns = patterns(&include, config, &mut Faults::default());
    if patterns.is_empty() {
        return Vec::new();
    }
    let roots = roots(&include_roots, config);
    let from_state = || {
        let folder = config.parent().unwrap_or(Path::new("")).join(state_dir?);
        serde_json::from_slice(&files::read_at_most(&folder.join(GOOD_COPIES_FILE), MAX_BYTES).ok()?.0).ok()
    };
    let mut kept: GoodCopies = served.cloned().or_else(from_state).unwrap_or_default();
    let mut found = BTreeMap::new();
    for pattern in patterns {
        let (names, error) = match pattern.names() {
            Ok(names) => (names, None),
            Err(error) => {
                let error = without_place(
                    config,
                    format!("{folder}: the folder cannot be listed: {error}", folder = pattern.folder.display()),
                );
                let files = kept.keys().filter_map(|name| Path::new(name).file_name()?.to_str());
                let of_pattern =
                    |file: &&str| pattern.matches_pattern(file) && kept.contains_key(&pattern.name_of(file));
                let mut names: Vec<_> = files.filter(of_pattern).map(str::to_owned).collect();
                if names.is_empty() {
                    names.push(pattern.name.clone());
                }
                (names, Some(error))
            }
        };
        for file in names {
            let (name, path) = (pattern.name_of(&file), pattern.folder.join(&file));
            // If a pattern matches the config itself, the config is skipped.
            if !is_same_file(&path, config) && !found.contains_key(&name) {
                let current = error.clone().map_or_else(|| read(&pattern.folder, &path, config), Err);
                found.insert(name, (path, current));
            }
        }
    }
    let file = |(name, (path, current))| IncludedFile {
        kept: kept.remove(&name),
        name,
        path,
        roots: Arc::clone(&roots),
        current,
    };
    found.into_iter().map(file).collect()
}

/// Reports whether two paths have the same file name and lead to the same folder.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| fs::canonicalize(files::folder_of(path)).ok();
    one.file_name() == other.file_name() && folder(one).is_some_and(|of_one| folder(other) == Some(of_one))
}

/// The settings that are needed to use the kill switch. No other settings are read, because the
/// kill switch must work even if other settings have errors.
#[derive(Debug)]
pub(crate) struct StateSettings {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) audit: Option<PathBuf>,
    /// Name of this replica in the audit log.
    pub(crate) replica: String,
    pub(crate) sites: Vec<String>,
}

impl StateSettings {
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        tables! {
            Part {
                state_dir: Option<PathBuf>,
                admin: Option<RawAdmin>,
                fleet: Option<RawFleet>,
                site: Vec<SiteName>,
            }
        }
        let text = reader::read_text(path)?;
        let (Part { state_dir, admin, fleet, site }, faults) =
            partial_parse::read::<Part>(&text).map_err(|fault| fault.at(path, &text))?;
        let of_config = path.parent().unwrap_or(Path::new(""));
        let folder = state_dir.map(|state_dir| of_config.join(state_dir));
        // If `state_dir` was not found, the unreadable part of the file may contain this key.
        if let (None, Some(fault)) = (&folder, faults.into_iter().next()) {
            return Err(fault.at(path, &text));
        }
        let (socket, audit) = admin.map_or((None, None), |admin| (admin.socket, admin.audit));
        let in_config = |path: Spanned<PathBuf>| of_config.join(path.get_ref());
        let (socket, audit) = (socket.map(in_config), audit.map(in_config));
        let audit = audit::audit_path(audit, folder.as_deref());
        let replica = fleet.and_then(|fleet| fleet.replica).map_or_else(audit::host_name, Spanned::into_inner);
        let files = find(path, &text, None);
        // Sites in refused files are included: their names come from the last good copies and from
        // the readable parts of the current files.
        let texts = files.iter().flat_map(|file| file.current.iter().chain(&file.kept));
        let included = texts.filter_map(|text| partial_parse::read::<Part>(text).ok()).flat_map(|(part, _)| part.site);
        let names = site.into_iter().chain(included).map(|site| site.0);
        Ok(Self { folder, socket, audit, replica, sites: names.filter(|name| name_problem(name).is_none()).collect() })
    }
}

/// The name of a site. The other keys of its table are ignored.
#[derive(Debug, Serialize)]
struct SiteName(String);

impl Value for SiteName {
    fn kind() -> Kind {
        Kind::Named(Box::new(Kind::Text))
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        match value.get_ref().get("name") {
            Some(name) => String::read(reader, Place { table: &place.path(), key: "name" }, name).map(Self),
            None => reader.fault(value, "this [[site]] lacks the key \"name\""),
        }
    }
}

fn without_place(config: &Path, message: String) -> ConfigError {
    ConfigError { path: config.to_string_lossy().into_owned(), ..ConfigError::without_place(message) }
}

fn read(folder: &Path, path: &Path, config: &Path) -> Result<String, ConfigError> {
    let shown = path.display();
    let failed = |error: io::Error| without_place(config, format!("{shown}: the file cannot be read: {error}"));
    if !is_inside(folder, path) {
        let message = format!(
            "{shown}: this link leads out of {folder}: put the file itself into that folder",
            folder = folder.display()
        );
        return Err(without_place(config, message));
    }
    let (bytes, _) = files::read_at_most(path, MAX_BYTES).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(without_place(
            config,
            format!("{shown}: the file is larger than {limit} MiB", limit = MAX_BYTES >> 20),
        ));
    }
    let text = reader::as_utf8(path, bytes)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Reports whether a path is inside a folder, after symbolic links are resolved. If the path does
/// not exist, links in its existing ancestors are resolved.
pub(super) fn is_inside(folder: &Path, path: &Path) -> bool {
    let Ok(folder) = fs::canonicalize(folder) else { return false };
    let there = path.ancestors().find(|part| fs::symlink_metadata(part).is_ok() || part.as_os_str().is_empty());
    let there = there.filter(|there| !there.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rest = path.strip_prefix(there).unwrap_or(path);
    let is_below = rest.components().all(|part| part != Component::ParentDir);
    is_below && fs::canonicalize(there).is_ok_and(|there| there.starts_with(&folder))
}

fn faults_of(path: &Path, text: &str, roots: &[PathBuf]) -> Vec<Fault> {
    let ReadText { document, mut faults, mut paths, .. } = reader::read_with_faults::<SitesFile>(text);
    let Some(SitesFile { site }) = document.filter(|_| faults.is_empty()) else { return faults };
    for site in &site {
        if !text[site.span().start..].starts_with('[') {
            faults.push(site.fault(
                "this site is written as an inline table: write [[site]] on a line of its own, \
                 and the keys of the site below it",
            ));
        }
        for upstream in site.get_ref().upstreams.iter().flatten() {
            let socket = upstream.get_ref().strip_prefix("unix:");
            paths.extend(socket.map(|socket| Spanned::new(upstream.span(), socket.into())));
        }
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let outside = paths
        .iter()
        .filter_map(|written| outside_folder_error(folder, roots, written.span(), &folder.join(written.get_ref())));
    faults.extend(outside);
    faults
}

/// Returns an error if `path` is neither in `folder` nor in one of the `roots`. `folder` is the
/// folder of the file that contains the path.
fn outside_folder_error(folder: &Path, roots: &[PathBuf], span: Range<usize>, path: &Path) -> Option<Fault> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if is_inside(folder, path) || roots.iter().any(|root| is_inside(root, path)) {
        return None;
    }
    let (shown, here) = (path.display(), folder.display());
    let message = format!(
        "{shown} is outside {here}: an included file may only use files in its own folder and in \"include_roots\" \
         (after links are followed)"
    );
    Some(Fault::new(span, message))
}

/// Returns an error if the robots.txt of an included site is outside the allowed folders. This
/// check is needed for the default path (`robots.txt` in the root folder of the site), because
/// `faults_of` checks only paths that are written in the file.
pub(super) fn outside_robots_error(site: &SiteConfig, at: usize, parts: &Parts, roots: &[PathBuf]) -> Option<Fault> {
    match &site.robots {
        RobotsSource::File(path) | RobotsSource::Directory { path, .. } if parts.of(at) > 0 => {
            outside_folder_error(parts.folder(at), roots, site.robots_span.clone(), path)
        }
        _ => None,
    }
}

/// The content that was chosen for an included file. If this is not the file's current content,
/// `refused` is the error in the current content.
pub(super) struct ChosenText<'f> {
    file: &'f IncludedFile,
    text: Option<&'f str>,
    refused: Option<ConfigError>,
    is_examined: bool,
}

impl<'f> ChosenText<'f> {
    pub(super) fn of(file: &'f IncludedFile) -> Self {
        match &file.current {
            Ok(text) => Self { file, text: Some(text), refused: None, is_examined: false },
            Err(error) => Self { file, text: file.kept.as_deref(), refused: Some(error.clone()), is_examined: false },
        }
    }

    /// Refuses the content that is chosen for the file, and chooses the last good copy instead. If
    /// the refused content is the last good copy, no content is chosen.
    pub(super) fn refuse(&mut self, config: &Path, error: ConfigError) {
        let before = self.text.take();
        let error = ConfigError { path: config.to_string_lossy().into_owned(), ..error };
        if self.refused.is_none() {
            self.refused = Some(error);
            self.text = self.file.kept.as_deref().filter(|kept| before != Some(kept));
        }
        self.is_examined = false;
    }

    /// Refuses the chosen content if it has problems that do not depend on other files.
    pub(super) fn examine(&mut self, config: &Path) {
        while let Some(text) = self.text.filter(|_| !mem::replace(&mut self.is_examined, true)) {
            let faults = faults_of(&self.file.path, text, &self.file.roots);
            if !faults.is_empty() {
                self.refuse(config, ConfigError::at(&self.file.path, text, faults));
            }
        }
    }
}

pub(super) fn join(path: &Path, text: &Arc<str>, chosen: &[ChosenText<'_>]) -> (Arc<str>, Parts) {
    Parts::join(path, text, chosen.iter().map(|chosen| (&*chosen.file.path, chosen.text)))
}

pub(super) fn join_copies(path: &Path, text: &Arc<str>, files: &[IncludedFile]) -> Arc<str> {
    Parts::join(path, text, files.iter().map(|file| (&*file.path, file.kept.as_deref()))).0
}

impl Included {
    pub(super) fn of(patterns: Vec<IncludePattern>, chosen: Vec<ChosenText<'_>>) -> Self {
        let mut included = Self { patterns, ..Self::default() };
        for ChosenText { file, text, refused, .. } in chosen {
            included.paths.push(file.path.clone());
            let (path, is_kept) = (file.path.display().to_string(), text.is_some());
            included.refused.extend(refused.map(|error| RefusedFile { path, error, is_kept }));
            included.good.extend(text.map(|text| (file.name.clone(), text.to_owned())));
        }
        included
    }

    /// Saves the content that is in use for each included file. After a restart, the saved content
    /// replaces a file that has become unusable. `state` is the state directory. Blocks.
    pub(crate) fn save(&self, state: &Path) -> io::Result<()> {
        let path = state.join(GOOD_COPIES_FILE);
        if self.patterns.is_empty() {
            let removed = fs::remove_file(path);
            return removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) });
        }
        let text = serde_json::to_vec(&self.good)?;
        if files::read(&path).is_ok_and(|kept| kept == text) {
            return Ok(());
        }
        files::replace_by(&path, |file| {
            file.write_all(&text)?;
            file.flush()?;
            file.get_ref().sync_all()
        })
    }
}

/// A site name or host in an included file. Only one file may use it.
#[derive(Clone, Copy)]
struct Claim<'s> {
    kind: &'static str,
    text: &'s str,
    at: &'s Spanned<String>,
    part: usize,
}

impl<'s> Claim<'s> {
    /// Returns the value that only one file may contain: a site name as written, or a host without
    /// its port, normalized like the hosts of requests. `None` if the host is invalid; another
    /// check reports the invalid host.
    fn exclusive_value(&self) -> Option<(&'static str, Cow<'s, str>)> {
        if self.kind == "name" || self.text == "*" {
            return Some((self.kind, self.text.into()));
        }
        let (wildcard, host) = self.text.strip_prefix("*.").map_or(("", self.text), |below| ("*.", below));
        let origin = Origin::of(&format!("http://{host}/"))?;
        Some((self.kind, format!("{wildcard}{}", origin.host).into()))
    }
}

#[derive(Default)]
pub(super) struct Disputes {
    /// Positions of the names and hosts that an earlier file also contains.
    pub(super) places: HashSet<Range<usize>>,
    /// Errors about names and hosts that are refused, with their positions.
    pub(super) faults: Vec<Fault>,
}

/// Finds names and hosts that an earlier file also contains. Reports at most one conflict per file,
/// because the caller refuses the file after one conflict, and then checks the file's last good
/// copy for conflicts.
pub(super) fn disputes(sites: &[Spanned<RawSite>], parts: &Parts, files: &[IncludedFile]) -> Disputes {
    let mut disputes = Disputes::default();
    if files.is_empty() {
        return disputes;
    }
    let mut open = Vec::new();
    for (first, second) in disputed_claims(sites, parts, &mut disputes.places) {
        match (first.is_in_last_good_copy(files), second.is_in_last_good_copy(files)) {
            (_, true) => disputes.faults.push(first.owned_elsewhere_error(second, parts)),
            (false, false) if first.part != 0 => {
                open.extend([first.ambiguous_owner_error(second, parts), second.ambiguous_owner_error(first, parts)]);
            }
            _ => disputes.faults.push(second.owned_elsewhere_error(first, parts)),
        }
    }
    // `open` contains the conflicts about names and hosts that are in no last good copy. They are
    // reported only if there are no other conflicts, because refusing a file for another conflict
    // may also resolve the conflicts in `open`.
    if disputes.faults.is_empty() {
        disputes.faults = open;
    }
    disputes
}

/// Returns at most one conflict per file, as a pair: the claim in an earlier file, and the same
/// claim in this file. Adds the position of every claim that conflicts with an earlier claim to
/// `places`.
fn disputed_claims<'s>(
    sites: &'s [Spanned<RawSite>],
    parts: &Parts,
    places: &mut HashSet<Range<usize>>,
) -> impl Iterator<Item = (Claim<'s>, Claim<'s>)> {
    let (mut owners, mut pairs) = (HashMap::new(), BTreeMap::new());
    for site in sites {
        let part = parts.of(site.span().start);
        for claim in claims(site.get_ref(), part) {
            let Some(exclusive_value) = claim.exclusive_value() else { continue };
            let first: Claim<'_> = *owners.entry(exclusive_value).or_insert(claim);
            if first.part != part {
                places.insert(claim.at.span());
                pairs.entry(part).or_insert((first, claim));
            }
        }
    }
    pairs.into_values()
}

impl Claim<'_> {
    /// Reports whether the last good copy of the file already contains this site name or host.
    fn is_in_last_good_copy(self, files: &[IncludedFile]) -> bool {
        let Some(kept) = self.part.checked_sub(1).and_then(|file| files[file].kept.as_deref()) else { return false };
        let Ok(kept) = reader::read::<SitesFile>(kept) else { return false };
        let exclusive_value = self.exclusive_value();
        kept.site.iter().flat_map(|site| claims(site.get_ref(), 0)).any(|own| own.exclusive_value() == exclusive_value)
    }

    fn owned_elsewhere_error(self, other: Claim<'_>, parts: &Parts) -> Fault {
        self.fault("belongs to", other, ", which contained it first", parts)
    }

    fn ambiguous_owner_error(self, other: Claim<'_>, parts: &Parts) -> Fault {
        self.fault(
            "is in",
            other,
            ", too; it is not known which file contained it first, so both files are rejected",
            parts,
        )
        .help("remove it from one of the two files".to_owned())
    }

    fn fault(self, is: &str, other: Claim<'_>, why: &str, parts: &Parts) -> Fault {
        let path = parts.path(other.part).display();
        let (spelling, help) = if self.text == other.text {
            (String::new(), None)
        } else {
            (
                format!(" as {:?}", other.text),
                Some("a host can be in one included file only, whatever its port".to_owned()),
            )
        };
        self.at.fault(format!("the {} {:?} {is} {path}{spelling}{why}", self.kind, self.text)).help(help)
    }
}

fn claims(site: &RawSite, part: usize) -> impl Iterator<Item = Claim<'_>> {
    let name = Claim { kind: "name", text: site.name.get_ref(), at: &site.name, part };
    let hosts = site.hosts.iter().map(move |at| Claim { kind: "host", text: at.get_ref(), at, part });
    let every = site.hosts.is_empty().then_some(Claim { kind: "host", text: "*", ..name });
    iter::once(name).chain(hosts).chain(every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_the_path_of_a_config_are_the_same_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("conf");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("conf", parent.path().join("link")).unwrap();
        let config = folder.join("robotsd.toml");
        for spelling in ["conf/./robotsd.toml", "conf/../conf/robotsd.toml", "link/robotsd.toml"] {
            assert!(is_same_file(&parent.path().join(spelling), &config), "{spelling}");
        }
        for other in ["conf/sites.toml", "robotsd.toml", "gone/robotsd.toml"] {
            assert!(!is_same_file(&parent.path().join(other), &config), "{other}");
        }
        assert!(is_same_file(Path::new("./robotsd.toml"), Path::new("robotsd.toml")));
    }
}
