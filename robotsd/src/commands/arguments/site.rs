//! Selects the site whose settings a command uses: `--config FILE` and `--site NAME`.
//!
//! Without these options a command uses the built-in registry and the default policy. A robots.txt
//! on the command line (a file or URL) replaces the site's robots.txt; the settings of the site
//! still apply.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{io, slice};

use tower_robots::agent::{Network, Registry};
use tower_robots::check::{FileKind, Finding};
use tower_robots::internals::ListCopy;
use tower_robots::internals::Remembered;
use tower_robots::layer::Signals;
use tower_robots::live::{Enforcement, LiveRobots, StateDir, VersionHash, VersionHashPrefix};
use tower_robots::rules::{Reading, RobotsTxt};
use tower_robots::source::Directory;

use super::{SiteHosts, sites_of};
use crate::config::{self, CONFIG_VARIABLE, Config, RobotsSource, config_if_any, config_of_environment, owners};
use crate::date::rfc3339;
use crate::evaluator::{Evaluator, EvaluatorSettings, OTHER_FILE_LINTS, compile};
use crate::exit::complain;
use crate::fetch::{DocumentError, RetrievalRequest, RetrievalSettings, Retriever, is_url, robots_url, site_hint};
use crate::input::{self, ReadInput};
use crate::names::quoted_list;
use crate::render::{finding_line, printable, printable_path};
use crate::sites;
use crate::target_url::TargetUrl;

/// File that is read if the command line contains neither a file nor a config.
pub(in crate::commands) const DEFAULT_FILE: &str = "robots.txt";

/// Hint that follows the error message about a missing default file.
const MISSING_FILE_HINT: &str = "specify a file, a URL such as https://example.com, or a site with --config FILE";

/// Maximum size of a fetched robots.txt, in bytes. A file on this machine has the same limit.
const MAX_BYTES: usize = LiveRobots::MAX_FILE as usize;

#[derive(Debug, clap::Args)]
pub(in crate::commands) struct SiteArgs {
    /// Use the settings of a site in this config file, as serve does: registry_extra, policy,
    /// exemptions and checks
    ///
    /// Without this option, $ROBOTSD_CONFIG is used if it is set, with a note on stderr. The
    /// default file, /etc/robotsd/robotsd.toml, is used only if this option names the file, or
    /// --site names one of its sites.
    #[arg(long, short, value_name = "FILE")]
    pub(in crate::commands) config: Option<PathBuf>,

    /// The site of the config that has this name or host; NAME/HOST selects one file of a directory
    /// [default: the only site]
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    #[command(flatten)]
    retrieval: RetrievalSettings,
}

#[derive(Debug)]
pub(in crate::commands) struct SelectedSite {
    pub(in crate::commands) settings: EvaluatorSettings,
    pub(in crate::commands) evidence: EvidencePlaces,
    /// Whether the site's logs contain every fetch of robots.txt, according to the config.
    pub(in crate::commands) sees_all: bool,
    retrieval: RetrievalSettings,
    configured: Option<ConfiguredSite>,
    /// The state directory and the site's state in it, both read on first use.
    kept: OnceLock<(Option<StateDir>, Remembered)>,
}

/// Sources of evidence about the senders of requests. Without a config, all fields are empty.
#[derive(Debug, Default)]
pub(in crate::commands) struct EvidencePlaces {
    /// Folder where a running robotsd saves the lists that it fetches.
    saved: Option<PathBuf>,
    /// Paths of local copies of published lists, according to the config, by URL of the list.
    files: HashMap<String, PathBuf>,
    /// Resolvers for name look-ups. If the list is empty, the system's resolvers are used.
    pub(in crate::commands) resolvers: Vec<SocketAddr>,
    /// Trusted proxies, whose addresses are not addresses of clients.
    pub(in crate::commands) trusted_proxies: Vec<Network>,
}

#[derive(Debug)]
struct ConfiguredSite {
    site: config::SiteConfig,
    /// Host that `--site` selects, if the site has one file per host.
    host: Option<String>,
    hosts: SiteHosts,
    state_dir: Option<PathBuf>,
}

#[derive(Debug)]
pub(in crate::commands) struct RobotsFile {
    pub(in crate::commands) name: String,
    pub(in crate::commands) bytes: Vec<u8>,
}

/// What to do with a file that is not a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum OtherFiles {
    Refuse,
    /// Accept the file, so that `diff` can compare it with its replacement, and `explain --batch`
    /// can show how parsers read it.
    Accept,
}

impl SiteArgs {
    /// Returns the path of the config. If the path does not come from the command line, it is also
    /// printed to stderr, because the user may not know that this config changes the results.
    fn config_path(&self) -> io::Result<Option<PathBuf>> {
        if let Some(path) = &self.config {
            return Ok(Some(path.clone()));
        }
        let (path, origin) = match (config_of_environment(), &self.site) {
            (Some(path), _) => (path, CONFIG_VARIABLE),
            (None, None) => return Ok(None),
            // `--site` without a config is an error, because the command would otherwise check or
            // edit a file that does not belong to the site.
            (None, Some(site)) => match config_if_any(None) {
                Some(path) => (path, "the default"),
                None => {
                    return Err(io::Error::other(format!(
                        "--site {site:?} needs a config, but none was found: specify one with --config FILE"
                    )));
                }
            },
        };
        complain(&format_args!("using the settings of {config} ({origin})", config = path.display()));
        Ok(Some(path))
    }

    pub(in crate::commands) fn has_config(&self) -> bool {
        self.config.is_some() || self.site.is_some() || config_of_environment().is_some()
    }

    pub(in crate::commands) fn select(&self) -> io::Result<SelectedSite> {
        self.select_for(&[], &[])
    }

    /// Selects the site that `--site` names. Without `--site`, selects the site that serves the
    /// host of all URLs in `files` and `urls`, or the only site of the config if no site serves
    /// this host.
    ///
    /// Returns an error if there is no such site. If only the environment names the config, and
    /// `files` is not empty, ignores the config instead.
    pub(in crate::commands) fn select_for(&self, files: &[&Path], urls: &[&str]) -> io::Result<SelectedSite> {
        let (retrieval, settings, evidence) = (self.retrieval.clone(), Default::default(), Default::default());
        let without =
            SelectedSite { settings, evidence, sees_all: true, retrieval, configured: None, kept: OnceLock::new() };
        let Some(path) = self.config_path()? else { return Ok(without) };
        let config = Config::load(&path).map_err(io::Error::other)?;
        let of_files = files.iter().filter_map(|file| file.to_str());
        let host = host_of(of_files.chain(urls.iter().copied()));
        let host = host.filter(|host| find(&config, &path, Some(&**host)).is_ok());
        let found = find(&config, &path, self.site.as_deref().or(host.as_deref()));
        if found.is_err() && self.config.is_none() && self.site.is_none() && !files.is_empty() {
            complain(
                &"the config is ignored, because it has several sites and none was chosen: choose one with \
                --site",
            );
            return Ok(without);
        }
        let configured = found.map_err(io::Error::other)?;
        let mut settings = EvaluatorSettings::of_site(&config, &configured.site).map_err(io::Error::other)?;
        let is_one = |host: &&String| !host.contains(['*', '/']);
        if let Some(host) = configured.host.iter().chain(&configured.site.hosts).find(is_one) {
            settings = settings.for_host(host);
        }
        let sees_all = config.board.is_some_and(|board| board.sees_all);
        let (evidence, configured) = (EvidencePlaces::of(&config), Some(configured));
        Ok(SelectedSite { settings, evidence, sees_all, configured, ..without })
    }

    /// Returns only the registry, which is the same for all sites of a config.
    pub(in crate::commands) fn registry(&self) -> io::Result<Option<std::sync::Arc<Registry>>> {
        let Some(path) = self.config_path()? else { return Ok(None) };
        let config = Config::load(&path).map_err(io::Error::other)?;
        config::load_registry(&config.registry).map(Some).map_err(io::Error::other)
    }
}

impl EvidencePlaces {
    fn of(config: &Config) -> Self {
        let trusted = config.listeners.iter().flat_map(|listener| listener.trusted.networks.iter().copied());
        let (files, resolvers) = match &config.identity {
            Some(identity) => {
                let files = identity.lists.iter().map(|list| (list.url.clone(), list.path.clone()));
                (files.collect(), identity.resolvers.clone())
            }
            None => Default::default(),
        };
        Self {
            saved: config.state_dir.as_ref().map(|folder| folder.join(sites::EVIDENCE_FOLDER)),
            files,
            resolvers,
            trusted_proxies: trusted.collect(),
        }
    }

    /// Returns the local copies of the list at a URL. At start, `serve` would use the first copy.
    /// For each copy that cannot be read, calls `note` with the reason.
    pub(in crate::commands) fn list_copies(&self, url: &str, mut note: impl FnMut(String)) -> Vec<ListCopy> {
        let copies = ListCopy::all(url, self.saved.as_deref(), self.files.get(url).map(PathBuf::as_path));
        copies.into_iter().filter_map(|copy| copy.map_err(|error| note(error.to_string())).ok()).collect()
    }

    pub(in crate::commands) fn configured_copy(&self, url: &str) -> Option<&Path> {
        self.files.get(url).map(PathBuf::as_path)
    }
}

impl SelectedSite {
    pub(in crate::commands) const fn is_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// Returns the name and the hosts of the site; `None` if there is no config. A site without
    /// hosts serves every host.
    pub(in crate::commands) fn hosts(&self) -> Option<(&str, &[String])> {
        self.configured.as_ref().map(|configured| {
            let hosts = configured.host.as_ref().map_or(configured.site.hosts.as_slice(), slice::from_ref);
            (&*configured.site.name, hosts)
        })
    }

    /// Reports whether the site serves a host. Without a config, the result is always `true`.
    pub(in crate::commands) fn serves(&self, is_https: bool, host: &[u8]) -> bool {
        let hosts = self.hosts().map_or(&[][..], |(_, hosts)| hosts);
        let map = owners(hosts.iter().map(|pattern| (pattern.as_str(), ())));
        hosts.is_empty() || map.get_for(if is_https { 443 } else { 80 }, host).is_some()
    }

    /// Reads the robots.txt in a file, at a URL, or on standard input (`-`).
    pub(in crate::commands) fn named(&self, name: &Path) -> io::Result<RobotsFile> {
        match name.to_str().filter(|word| is_url(word)) {
            Some(url) => RobotsFile::retrieve(url, &self.retriever()?),
            None => RobotsFile::read(name, input::read),
        }
    }

    /// Returns the hosts of the site according to its config; `None` if there is no config.
    pub(in crate::commands) fn own_hosts(&self) -> io::Result<Option<SiteHosts>> {
        let Some(configured) = &self.configured else { return Ok(None) };
        let hosts = configured.hosts.clone();
        match (&configured.site.robots, &configured.host) {
            (RobotsSource::Directory { path, fallback }, Some(host)) => {
                let files: Vec<_> = open_folder(path, fallback)?.hosts().into_iter().map(|(host, _)| host).collect();
                Ok(Some(hosts.restricted_to_file_of(host, &files)))
            }
            _ => Ok(Some(hosts)),
        }
    }

    /// Returns the header fields that the config adds to responses; `None` if there is no config.
    pub(in crate::commands) fn signals(&self) -> Option<&Signals> {
        self.configured.as_ref().map(|configured| &configured.site.signals)
    }

    pub(in crate::commands) fn retriever(&self) -> io::Result<Retriever> {
        Retriever::new(&self.retrieval)
    }

    /// Reads the robots.txt at `named`. If `named` is `None`, reads the site's robots.txt, or the
    /// default file if there is no config. Prints a note to stderr if the site's file is not the
    /// live version.
    pub(in crate::commands) fn robots(&self, named: Option<&Path>) -> io::Result<RobotsFile> {
        match (named, &self.configured) {
            (Some(name), _) => self.named(name),
            (None, Some(configured)) => {
                let file = configured.robots()?;
                let live = self.live_version_compared_with(&file);
                live.iter().for_each(|(about, _)| complain(&format_args!("{}: {about}", printable(&file.name))));
                Ok(file)
            }
            (None, None) => RobotsFile::read(Path::new(DEFAULT_FILE), input::read),
        }
    }

    /// Returns the live version, with a sentence that compares it with `file`. `None` if `file` is
    /// the live version, or if the state directory does not contain the live version.
    pub(in crate::commands) fn live_version_compared_with(&self, file: &RobotsFile) -> Option<(String, RobotsFile)> {
        let ((_, kept), own) = (self.kept(), VersionHash::of(&file.bytes));
        let (live, bytes) = kept.kept().find(|(hash, _)| Some(*hash) == kept.live() && *hash != own)?;
        let own = match kept.pending().filter(|pending| pending.hash() == own) {
            Some(pending) => format!("has been pending since {}", rfc3339(pending.since)),
            None => "is not live".to_owned(),
        };
        let name = live.short();
        Some((format!("this version {own}; the live version is {name}"), RobotsFile { name, bytes: bytes.to_vec() }))
    }

    /// Reads a version of the site's robots.txt from the state directory.
    pub(in crate::commands) fn version(&self, hash: &VersionHashPrefix) -> io::Result<RobotsFile> {
        let found = self.kept().1.kept().find(|(known, _)| hash.matches(known));
        let missing = "the state_dir of the config contains no version of the site (or none that this user can read) \
                       with the hash";
        let (hash, bytes) = found.ok_or_else(|| io::Error::other(format!("{missing} {hash:.16}")))?;
        Ok(RobotsFile { name: hash.short(), bytes: bytes.to_vec() })
    }

    /// Configures `evaluator` to decide as a running server would, according to the state
    /// directory. Rules of the live version may still be in their grace period, and enforcement may
    /// be switched off. If the kill switch cannot be read, prints a note to stderr.
    pub(in crate::commands) fn decide_as_served(&self, evaluator: &mut Evaluator) {
        let (Some(configured), (Some(state), kept)) = (&self.configured, self.kept()) else { return };
        if let Some(problem) = state.switch_problem() {
            return complain(&format_args!(
                "{problem}: a server that cannot read its kill switch enforces nothing; the answers below assume \
                 that enforcement is on, without grace periods"
            ));
        }
        evaluator.is_off = [state.enforcement(), kept.switch()].contains(&Enforcement::Off);
        if kept.live() == Some(VersionHash::of(evaluator.robots().bytes())) {
            let rules =
                |bytes: &[u8]| compile(&RobotsTxt::parse(bytes), evaluator.reading, &self.settings.registry).into();
            evaluator.grace = kept.grace(configured.site.grace, rules);
        }
    }

    fn kept(&self) -> &(Option<StateDir>, Remembered) {
        self.kept.get_or_init(|| {
            let state_dir = self.configured.as_ref().and_then(|configured| configured.state_dir.as_ref());
            let Some(state) = state_dir.map(StateDir::read_only) else { return Default::default() };
            let hosts = self.own_hosts().ok().flatten();
            let kept = hosts.map(|hosts| state.remembered(&hosts.logged)).unwrap_or_default();
            (Some(state), kept)
        })
    }

    pub(in crate::commands) fn expectations(&self) -> io::Result<PathBuf> {
        let site = self.configured.as_ref().map(|configured| &configured.site);
        let missing = || match site {
            Some(site) => {
                format!(
                    "the config names no expectations for the site {site:?}: give a file of expectations",
                    site = site.name
                )
            }
            None => {
                "no expectations were given: give a file of expectations, or use --config FILE with a site that has \
                 expectations"
                    .to_owned()
            }
        };
        site.and_then(|site| site.expectations.clone()).ok_or_else(|| io::Error::other(missing()))
    }
}

impl RobotsFile {
    /// Fetches a robots.txt. If the response is not a robots.txt, returns an error that explains
    /// how crawlers interpret the response.
    fn retrieve(url: &str, retriever: &Retriever) -> io::Result<Self> {
        let chain = retriever.retrieve(&RetrievalRequest::new(robots_url(url).map_err(io::Error::other)?));
        let unusable = |error: DocumentError| {
            let meaning = match &error {
                DocumentError::Answer(kind, _) => format!("; {}", kind.reading()),
                DocumentError::Coding(_) => String::new(),
            };
            io::Error::other(format!("{}: {}{meaning}", chain.url(), printable(error.to_string())))
        };
        let document = chain.document(MAX_BYTES).map_err(unusable)?;
        if document.is_cut {
            return Err(io::Error::other(format!(
                "{}: the response is larger than 8 MiB, so it cannot be a robots.txt",
                chain.url()
            )));
        }
        Ok(Self { name: chain.url().to_string(), bytes: document.bytes })
    }

    fn read(path: &Path, read: ReadInput) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::other(format!("{error}{}", missing_file_hint(path, &error)));
        Ok(Self { name: path.display().to_string(), bytes: read(path).map_err(named)? })
    }

    /// Compiles the file. Findings about rules that crawlers do not read are printed to stderr.
    ///
    /// A file that is not text is an error, because it has no rules and would look like a file that
    /// allows everything. An HTML page or an error message that was saved as robots.txt also has no
    /// rules, and is an error if `pages` is `Refuse`. With [`Reading::Reference`], any file is
    /// accepted, because the user wants to know how the reference parser reads it.
    pub(in crate::commands) fn evaluator(
        self,
        reading: Reading,
        settings: &EvaluatorSettings,
        pages: OtherFiles,
    ) -> io::Result<Evaluator> {
        let name = if self.name == "-" { "<stdin>".to_owned() } else { self.name };
        let evaluator = Evaluator::new(self.bytes, reading, settings);
        if reading == Reading::Reference {
            return Ok(evaluator);
        }
        let unread = evaluator.file_findings();
        let is_refused = |finding: &&&Finding| pages == OtherFiles::Refuse && OTHER_FILE_LINTS.contains(&finding.code);
        if let Some(finding) = unread.iter().find(is_refused) {
            return Err(io::Error::other(finding_line(&name, finding)));
        }
        if let Some(unreadable) = FileKind::unreadable(evaluator.robots()) {
            return Err(io::Error::other(format!("{}: {unreadable}", printable(&name))));
        }
        unread.iter().for_each(|finding| complain(&finding_line(&name, finding)));
        Ok(evaluator)
    }
}

/// Returns a hint for the error: the file that the user may have meant. The hint is empty if the
/// error is not about a missing file.
pub(in crate::commands) fn missing_file_hint(path: &Path, error: &io::Error) -> String {
    let usual = || (path == Path::new(DEFAULT_FILE)).then(|| MISSING_FILE_HINT.to_owned());
    let of_git = || {
        let (version, file) = path.to_str()?.split_once(':').filter(|(_, file)| !file.is_empty())?;
        let read =
            format!("run `git show {version}:{file}`, pipe its output into this command, and write \"-\" as the file");
        Some(format!("to read a version in git, {read}"))
    };
    let hint = path.to_str().and_then(site_hint).or_else(usual).or_else(of_git);
    let hint = hint.filter(|_| error.kind() == io::ErrorKind::NotFound);
    hint.map_or_else(String::new, |hint| format!(": {hint}"))
}

impl ConfiguredSite {
    /// Returns the robots.txt as `serve` would serve it, but leaves out appended lists that would
    /// have to be fetched.
    fn robots(&self) -> io::Result<RobotsFile> {
        let RobotsFile { name, bytes } = self.own_robots()?;
        let (fragments, problems) = sites::available_parts(&self.site.append);
        problems.iter().for_each(|problem| complain(problem));
        // `serve` appends nothing to a file that is not a robots.txt.
        let robots = RobotsTxt::parse(bytes);
        if fragments.is_empty() || FileKind::unreadable(&robots).is_some() || robots.bytes().trim_ascii().is_empty() {
            return Ok(RobotsFile { name, bytes: robots.bytes().to_vec() });
        }
        let (appended, places) = robots.append(&fragments);
        let first = robots.lines().map(|line| line.number).find(|line| !places.is_own(*line));
        let first = first.unwrap_or_else(|| robots.lines().count() + 1);
        let titles = quoted_list(fragments.iter().map(|fragment| &*fragment.title));
        complain(&format_args!(
            "{file}: the lines from line {first} on come from the appended lists: {titles}",
            file = printable(&name)
        ));
        Ok(RobotsFile { name, bytes: appended.to_vec() })
    }

    fn own_robots(&self) -> io::Result<RobotsFile> {
        let name = &self.site.name;
        match &self.site.robots {
            RobotsSource::File(path) => RobotsFile::read(path, input::read_configured),
            RobotsSource::Inline(text) => {
                Ok(RobotsFile { name: "<inline>".to_owned(), bytes: text.clone().into_bytes() })
            }
            RobotsSource::Directory { path, fallback } => self.robots_of_host(path, fallback),
            RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => Err(io::Error::other(format!(
                "the site {name:?} has no local robots.txt, because `robotsd serve` fetches it: give a copy of the \
                 file, or its URL"
            ))),
        }
    }

    /// Reads the file for a host. Opens the folder as `serve` does, so that each file name
    /// represents the same host as on the server.
    fn robots_of_host(&self, path: &Path, fallback: &str) -> io::Result<RobotsFile> {
        let name = &self.site.name;
        let directory = open_folder(path, fallback)?;
        let list = || quoted_list(directory.hosts().into_iter().map(|(host, _)| format!("{name}/{host}")));
        let Some(host) = &self.host else {
            let message = format!(
                "the site {name:?} has one robots.txt per host: choose a host with --site, one of {sites}",
                sites = list()
            );
            return Err(io::Error::other(message));
        };
        let sites = directory.sites().load();
        let live = sites.get(host).ok_or_else(|| {
            io::Error::other(format!(
                "the site {name:?} has no robots.txt for the host {host:?}: choose one of {hosts}",
                hosts = list()
            ))
        })?;
        let status = live.status();
        let reload = &status.last_reload;
        match &live.snapshot().content {
            Some(content) => Ok(RobotsFile { name: reload.origin.to_string(), bytes: content.body().to_vec() }),
            None => Err(io::Error::other(reload.to_string())),
        }
    }
}

fn open_folder(path: &Path, fallback: &str) -> io::Result<Directory> {
    let opened = Directory::new(path).fallback(fallback).open();
    opened.map_err(|error| io::Error::other(format!("{}: {error}", printable_path(path))))
}

/// Returns the host of the URLs; `None` if there is no URL, or if the URLs have different hosts.
fn host_of<'u>(words: impl Iterator<Item = &'u str>) -> Option<String> {
    let mut hosts = words.filter_map(|word| TargetUrl::parse(word.as_bytes()).ok()?.host());
    let host = hosts.next()?;
    hosts.all(|other| other == host).then(|| String::from_utf8_lossy(host).into_owned())
}

/// Finds a site by its name, by `NAME/HOST`, or by a host that the site serves.
fn find(config: &Config, path: &Path, wanted: Option<&str>) -> Result<ConfiguredSite, String> {
    let names = || quoted_list(config.sites.iter().map(|site| &site.name));
    let found = |site: &config::SiteConfig, host: Option<&str>| ConfiguredSite {
        site: site.clone(),
        host: host.map(Into::into),
        hosts: SiteHosts::of(config, site),
        state_dir: config.state_dir.clone(),
    };
    let Some(wanted) = wanted else {
        return match &*config.sites {
            [site] => Ok(found(site, None)),
            sites => Err(format!(
                "{config}: the config has {count} sites, so choose one with --site: {names}",
                config = path.display(),
                count = sites.len(),
                names = names()
            )),
        };
    };
    if let Some(site) = config.sites.iter().find(|site| site.name == wanted) {
        return Ok(found(site, None));
    }
    for site in config.sites.iter().filter(|site| matches!(site.robots, RobotsSource::Directory { .. })) {
        if let Some(host) = wanted.strip_prefix(&*site.name).and_then(|rest| rest.strip_prefix('/')) {
            return Ok(found(site, Some(host)));
        }
    }
    let hosts = sites_of(config);
    // A value without a dot or colon is probably a misspelled site name. It must not be looked up
    // as a host, because a site for all hosts would match it.
    match hosts.get(wanted).filter(|_| wanted.contains(['.', ':'])) {
        Some(site) => Ok(found(site, Some(wanted))),
        None => Err(sites::unknown(wanted, config.sites.iter().map(|site| &site.name))),
    }
}
