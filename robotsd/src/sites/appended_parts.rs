//! Reads the lists (parts) that are appended to a site's robots.txt, watches their files, and polls
//! their URLs. This module also polls the published registry, in the same way as these lists.
//!
//! If a part cannot be read or is not a valid list, its last good version stays in use.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tower_robots::agent::Registry;
use tower_robots::internals::Appendix;
use tower_robots::internals::Watched;
use tower_robots::internals::{DocumentEvent, FollowedDocument};
use tower_robots::live::{LiveRobots, VersionHash, VersionHashPrefix};
use tower_robots::rules::Fragment;
use tower_robots::source::Watcher;
use tower_robots::source::fetch::{Fetcher, FetcherBuilder};

use crate::authorities::Authorities;
use crate::config::{AppendSettings, AppendSource, DocumentSettings, read_published};
use crate::date::rfc3339;
use crate::files;
use crate::log::{Log, LogEvent, LogLevel};
use crate::render::plural;
use crate::report::{AppendReport, PublishedRegistryReport, WaitingRegistryReport};

/// Maximum total time that a start waits for the first fetches of all parts. While a part is
/// missing, crawlers may fetch pages that only this part disallows.
pub(super) const FIRST_FETCH: Duration = Duration::from_secs(3);

/// The appended parts of a site's robots.txt. The files of the parts are watched, and their URLs
/// are polled, until the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct AppendedParts {
    pub(super) appendix: Appendix,
    parts: Arc<[AppendedPart]>,
}

#[derive(Debug)]
struct AppendedPart {
    reader: PartReader,
    _watched: Option<Watched>,
    followed: Option<FollowedDocument<Fragment>>,
}

#[derive(Clone, Debug)]
struct PartReader {
    place: usize,
    site: Arc<str>,
    settings: AppendSettings,
    appendix: Appendix,
    state: Arc<Mutex<PartState>>,
    log: Log,
}

#[derive(Debug, Default)]
struct PartState {
    hash: Option<VersionHash>,
    left_out: Option<&'static str>,
    problem: Option<String>,
}

/// Returns a fetcher that trusts only the certificate authorities `ca`. Without `ca`, returns the
/// fetcher that all sites share.
pub(super) fn fetcher_trusting(
    ca: Option<&Authorities>,
    shared: impl FnOnce() -> std::io::Result<Fetcher>,
) -> std::io::Result<Fetcher> {
    ca.map_or_else(shared, |ca| Fetcher::builder().trust_only(&ca.pem).and_then(FetcherBuilder::start))
}

/// Returns the parts that are available without fetching, and a message for each part that is
/// missing or incomplete. Commands use this function, because they do not fetch.
pub(crate) fn available_parts(settings: &[AppendSettings]) -> (Vec<Fragment>, Vec<String>) {
    let (mut fragments, mut problems) = (Vec::new(), Vec::new());
    for part in settings {
        match available_part(part) {
            Ok(fragment) => {
                problems.extend(left_out(&fragment).map(|what| format!("{}: {what}", part.source)));
                fragments.push(fragment);
            }
            Err(why) => problems
                .push(format!("the list {part} cannot be appended to the robots.txt: {why}", part = part.source)),
        }
    }
    (fragments, problems)
}

/// Returns a message if the part has rules for `*`, which are not appended.
fn left_out(fragment: &Fragment) -> Option<&'static str> {
    let is_left = fragment.robots.groups().any(|group| group.is_global() && group.rules().len() > 0);
    is_left.then_some(
        "the rules for \"User-agent: *\" in this list are not appended: if you want these rules, add them to the \
         site's own robots.txt",
    )
}

fn available_part(part: &AppendSettings) -> Result<Fragment, String> {
    match &part.source {
        AppendSource::File(path) => read(path, &part.title).map(|(fragment, _)| fragment),
        AppendSource::Url(DocumentSettings { url, saved_in: Some(folder), .. }) => {
            let saved = FollowedDocument::<Fragment>::builder(url.clone(), &part.title).saved_in(folder).saved();
            saved
                .map_err(|error| error.to_string())?
                .ok_or_else(|| "no running robotsd has fetched the list yet".to_owned())
        }
        AppendSource::Url(_) => {
            Err("only a running robotsd fetches lists, and without a state_dir it saves no copy".to_owned())
        }
    }
}

impl AppendedParts {
    /// Loads the parts that are available without fetching, for sites that are opened but not
    /// served.
    pub(super) fn available(site: &str, settings: &[AppendSettings]) -> Self {
        let appendix = Appendix::new(settings.iter().map(|part| part.title.as_str()));
        let parts = settings.iter().enumerate().map(|(place, settings)| {
            let reader = PartReader::new(place, site, settings, &appendix, &Log::without_output());
            reader.take(available_part(settings).map(|fragment| (fragment, None)));
            AppendedPart { reader, _watched: None, followed: None }
        });
        let parts = parts.collect();
        Self { appendix, parts }
    }

    /// Reads the parts of a site, and watches or polls their sources from then on. Blocks while it
    /// reads files. If a part was never fetched, also waits for its first fetch, at most until
    /// `until`.
    pub(super) fn open(
        site: &str,
        settings: &[AppendSettings],
        watcher: &Watcher,
        fetcher: impl Fn() -> std::io::Result<Fetcher>,
        until: Instant,
        log: &Log,
    ) -> Result<Self, String> {
        let appendix = Appendix::new(settings.iter().map(|part| part.title.as_str()));
        let mut parts = Vec::with_capacity(settings.len());
        for (place, settings) in settings.iter().enumerate() {
            parts.push(PartReader::new(place, site, settings, &appendix, log).follow(watcher, &fetcher)?);
        }
        // A fetched part is appended a moment after its fetch has ended, so this function waits
        // until the part is no longer missing.
        let waits = |part: &AppendedPart| {
            let has_no_problem = part.followed.is_some() && part.reader.state.lock().problem.is_none();
            has_no_problem && appendix.missing().contains(&part.reader.settings.title)
        };
        while parts.iter().any(waits) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_unread = |state: &PartState| state.hash.is_none() && state.problem.is_none();
        for part in parts.iter().filter(|part| is_unread(&part.reader.state.lock())) {
            part.reader.say(LogLevel::Error, UNAVAILABLE_MESSAGE);
        }
        Ok(Self { appendix, parts: parts.into() })
    }

    /// Reads all parts again, from files and URLs. Must run on a blocking thread of the runtime.
    pub(super) fn read_again(&self) {
        self.parts.iter().for_each(|part| part.reader.read_file());
        let fetching = self.parts.iter().filter_map(|part| part.followed.as_ref()).map(FollowedDocument::fetch_again);
        Handle::current().block_on(join_all(fetching));
    }

    pub(super) fn report(&self) -> Vec<AppendReport> {
        self.parts.iter().map(|part| part.reader.report()).collect()
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let problems = self.parts.iter().flat_map(|part| {
            let unsaved = part.followed.as_ref().and_then(|followed| unsaved(followed.status().save_problem));
            [part.reader.report().problem, unsaved].map(|problem| (&part.reader.settings.source, problem))
        });
        problems.filter_map(|(source, problem)| Some(format!("{source}: {}", problem?))).collect()
    }

    pub(super) fn left_out(&self) -> Vec<String> {
        let message = |part: AppendReport| Some(format!("{}: {}", part.source, part.left_out?));
        self.report().into_iter().filter_map(message).collect()
    }
}

impl PartReader {
    fn new(place: usize, site: &str, settings: &AppendSettings, appendix: &Appendix, log: &Log) -> Self {
        let (settings, appendix, log) = (settings.clone(), appendix.clone(), log.clone());
        Self { place, site: site.into(), settings, appendix, state: Arc::default(), log }
    }

    fn follow(self, watcher: &Watcher, fetcher: impl Fn() -> std::io::Result<Fetcher>) -> Result<AppendedPart, String> {
        match self.settings.source.clone() {
            AppendSource::File(path) => {
                // The file must be watched before it is read, so that no change is missed.
                let reader = self.clone();
                let watched = watcher.file(path, move || reader.read_file());
                self.read_file();
                Ok(AppendedPart { reader: self, _watched: Some(watched), followed: None })
            }
            AppendSource::Url(DocumentSettings { url, ca, saved_in }) => {
                let failed = |error: &dyn Display| format!("{url}: the list to append cannot be fetched: {error}");
                let reader = self.clone();
                let builder = FollowedDocument::<Fragment>::builder(url.clone(), &self.settings.title)
                    .fetcher(&fetcher_trusting(ca.as_ref(), fetcher).map_err(|error| failed(&error))?)
                    .on_event(move |event| match event {
                        DocumentEvent::Changed(fragment, _) => reader.take(Ok((Fragment::clone(fragment), None))),
                        DocumentEvent::Failed(why) => reader.take(Err(why.to_string())),
                        _ => reader.recovered(),
                    });
                let builder = saved_in.into_iter().fold(builder, |builder, folder| builder.saved_in(folder));
                // The saved copy must be applied before the first fetch ends: if that fetch fails,
                // applying the copy later would hide the problem.
                if let Ok(fragment) = available_part(&self.settings) {
                    self.take(Ok((fragment, None)));
                }
                let (followed, problem) = builder.start().map_err(|error| failed(&error))?;
                if let Some(problem) = problem {
                    self.say(LogLevel::Warn, &format!("the saved copy cannot be used: {problem}"));
                }
                Ok(AppendedPart { reader: self, _watched: None, followed: Some(followed) })
            }
        }
    }

    fn read_file(&self) {
        if let AppendSource::File(path) = &self.settings.source {
            self.take(read(path, &self.settings.title));
        }
    }

    /// Applies a part that was read, or logs why it cannot be used. A reason is not logged twice in
    /// a row.
    fn take(&self, read: Result<(Fragment, Option<SystemTime>), String>) {
        match read {
            Ok((fragment, modified)) => {
                let (hash, left_out) = (VersionHash::of(fragment.robots.bytes()), left_out(&fragment));
                let (before, was_wrong) = {
                    let mut state = self.state.lock();
                    state.left_out = left_out;
                    (state.hash.replace(hash), state.problem.take().is_some())
                };
                if before != Some(hash) {
                    let names = fragment.robots.groups().flat_map(|group| group.names());
                    let names = plural(names.filter(|name| !name.is_star()).count(), "crawler name");
                    let level = left_out.map_or(LogLevel::Info, |_| LogLevel::Warn);
                    let what = left_out.map(|what| format!("; {what}")).unwrap_or_default();
                    self.say(
                        level,
                        &format!(
                            "version {version} of the list, which contains {names}, is now appended{what}",
                            version = hash.short()
                        ),
                    );
                    self.appendix.set(self.place, fragment, modified);
                } else if was_wrong {
                    self.say(LogLevel::Info, "the list can be read again; its content has not changed");
                }
            }
            Err(why) => {
                let (is_new, has_one) = {
                    let mut state = self.state.lock();
                    (state.problem.replace(why.clone()).as_ref() != Some(&why), state.hash.is_some())
                };
                let stays =
                    if has_one { "the last good version of the list stays in use" } else { UNAVAILABLE_MESSAGE };
                if is_new {
                    self.say(LogLevel::Error, &format!("{why}; {stays}"));
                }
            }
        }
    }

    fn recovered(&self) {
        if self.state.lock().problem.take().is_some() {
            self.say(LogLevel::Info, "the list can be fetched again; its content has not changed");
        }
    }

    fn say(&self, level: LogLevel, message: &str) {
        self.log.write_site_message(
            &self.site,
            level,
            LogEvent::Append,
            format!("{}: {message}", self.settings.source),
        );
    }

    fn report(&self) -> AppendReport {
        let state = self.state.lock();
        let (word, stays) = match (&state.hash, &state.problem) {
            (None, _) => ("missing", Some(UNAVAILABLE_MESSAGE)),
            (Some(_), Some(_)) => ("last-good", Some("the last good version of the list is appended")),
            (Some(_), None) => ("appended", None),
        };
        let why = state.problem.iter().map(|why| format!("{why}; ")).collect::<String>();
        AppendReport {
            name: self.settings.title.clone(),
            source: self.settings.source.to_string(),
            state: word.to_owned(),
            hash: state.hash.map(|hash| hash.to_string()),
            problem: stays.map(|stays| why + stays),
            left_out: state.left_out.map(str::to_owned),
        }
    }
}

const UNAVAILABLE_MESSAGE: &str = "this list is not available, so it is not appended: crawlers that only this list disallows \
    are allowed, unless the live version still contains the list";

fn read(path: &Path, title: &str) -> Result<(Fragment, Option<SystemTime>), String> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        std::io::ErrorKind::InvalidInput => error.to_string(),
        _ => format!("the file cannot be read: {error}"),
    };
    let (bytes, found) = files::read_at_most(path, LiveRobots::MAX_FILE).map_err(failed)?;
    if bytes.len() as u64 > LiveRobots::MAX_FILE {
        return Err(format!("the file is larger than {limit} MiB", limit = LiveRobots::MAX_FILE >> 20));
    }
    let fragment = Fragment::parse(title, bytes).map_err(|error| error.to_string())?;
    Ok((fragment, found.modified().ok()))
}

/// A crawler registry that is polled from a URL until the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct FollowedRegistry(FollowedDocument<Registry>);

impl FollowedRegistry {
    /// Starts to poll a registry. Notifies `changed` whenever a new version is in use, and logs
    /// problems.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start a thread.
    pub(super) fn start(
        settings: &DocumentSettings,
        accept: &[VersionHashPrefix],
        fetcher: impl FnOnce() -> std::io::Result<Fetcher>,
        changed: Arc<Notify>,
        log: &Log,
    ) -> Result<Self, String> {
        let failed =
            |error: &dyn Display| format!("{url}: the registry cannot be fetched: {error}", url = settings.url);
        let (of, to) = (settings.url.clone(), log.clone());
        let reading = settings.url.clone();
        let builder =
            FollowedDocument::<Registry>::builder(settings.url.clone(), move |text| read_published(&reading, text))
                .fetcher(&fetcher_trusting(settings.ca.as_ref(), fetcher).map_err(|error| failed(&error))?)
                .accept(accept.iter().cloned())
                .on_event(move |event| match event {
                    DocumentEvent::Changed(..) => changed.notify_one(),
                    DocumentEvent::Waiting { hash, .. } => {
                        to.write_message(LogEvent::RegistryGated, format!("{of}: {event}; {}", how_to_accept(hash)));
                    }
                    DocumentEvent::Failed(_) => to.write_message(LogEvent::RegistryRejected, format!("{of}: {event}")),
                    _ => to.write_message(LogEvent::Registry, format!("{of}: {event}")),
                });
        let builder = settings.saved_in.iter().fold(builder, |builder, folder| builder.saved_in(folder));
        let (registry, problem) = builder.start().map_err(|error| failed(&error))?;
        if let Some(problem) = problem {
            log.write_message(
                LogEvent::RegistryRejected,
                format!("{url}: the saved copy cannot be used: {problem}", url = settings.url),
            );
        }
        Ok(Self(registry))
    }

    /// Returns the current registry, or the built-in registry if no registry has been fetched yet.
    pub(super) fn registry(&self) -> Arc<Registry> {
        self.0.current().unwrap_or_else(|| Registry::builtin().clone())
    }

    /// Fetches the registry again, and returns the new [`problem`](Self::problem), if any.
    pub(super) async fn fetch_again(&self) -> Option<String> {
        self.0.fetch_again().await;
        self.problem()
    }

    /// Returns the reason why the fetched version is not used; `None` if that version is used.
    pub(super) fn problem(&self) -> Option<String> {
        let PublishedRegistryReport { waiting, problem, .. } = self.report();
        waiting.map(|waiting| waiting.why).or(problem)
    }

    /// Returns a message if the current version could not be saved.
    pub(super) fn unsaved(&self) -> Option<String> {
        unsaved(self.0.status().save_problem)
    }

    /// Sets the versions that are accepted even if they differ a lot from the current version.
    pub(super) fn accept(&self, hashes: &[VersionHashPrefix]) {
        self.0.accept(hashes.iter().cloned());
    }

    pub(super) fn report(&self) -> PublishedRegistryReport {
        let status = self.0.status();
        PublishedRegistryReport {
            url: status.url,
            origin: status.origin.map(str::to_owned),
            hash: status.hash.map(|hash| hash.to_string()),
            confirmed: status.confirmed.map(rfc3339),
            waiting: status.waiting.map(|(hash, changes)| WaitingRegistryReport {
                hash: hash.to_string(),
                why: format!(
                    "version {version} is held until accepted: {changes}; {remedy}",
                    version = hash.short(),
                    remedy = how_to_accept(&hash)
                ),
            }),
            problem: status.problem.map(|problem| problem.as_ref().to_owned()),
        }
    }
}

fn unsaved(problem: Option<Arc<str>>) -> Option<String> {
    Some(format!("could not be saved for the next start: {}", problem?))
}

fn how_to_accept(hash: &VersionHash) -> String {
    format!("to use this version, write registry_accept = [\"{version}\"] in [agents]", version = hash.short())
}
