//! Creates the gate of a site from the config, and from the files with expectations, URLs and the
//! baseline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::live::{Gate, LiveRobots, RejectionKind, WhenMissing};
use tower_robots::rules::RobotsTxt;
use tower_robots::source::Watcher;

use super::site_pages::{NoteAbout, SitePages};
use crate::config::{GateBasis, SiteConfig};
use crate::expectations::ExpectationsFile;
use crate::fleet::Fleet;
use crate::input;
use crate::pages::read_urls;

#[derive(Clone, Debug)]
pub(super) struct GateSettings {
    gate: Option<Gate>,
    pub(super) site: String,
    fleet: Option<Arc<Fleet>>,
    pub(super) expectations: Option<PathBuf>,
    basis: GateBasis,
    hosts: Vec<String>,
    pub(super) pages: Arc<SitePages>,
    watcher: Watcher,
    /// The last gate whose expectations were usable.
    pub(super) last_gate: Arc<Mutex<Option<Gate>>>,
    /// The last baseline that could be read, with its path.
    baseline: Arc<Mutex<Option<(PathBuf, RobotsTxt)>>>,
}

impl GateSettings {
    pub(super) fn new(
        gate: Option<Gate>,
        site: &SiteConfig,
        pages: Arc<SitePages>,
        before: Option<&Self>,
        watcher: &Watcher,
        fleet: Option<&Arc<Fleet>>,
    ) -> Self {
        Self {
            gate,
            site: site.name.clone(),
            fleet: fleet.cloned(),
            expectations: site.expectations.clone(),
            basis: site.gate_basis.clone(),
            hosts: site.hosts.clone(),
            pages,
            watcher: watcher.clone(),
            last_gate: Arc::default(),
            baseline: Arc::new(Mutex::new(before.and_then(|before| before.baseline.lock().clone()))),
        }
    }

    /// Reads the gate's files and returns the gate. Only unusable expectations are an error: if a
    /// list of pages or a baseline cannot be read, the gate works without it, and a note reports
    /// the problem. Blocks.
    pub(super) fn gate(&self, registry: &Arc<Registry>) -> Result<Gate, String> {
        let Some(gate) = &self.gate else { return Ok(Gate::open()) };
        self.read_urls();
        let gate = gate.clone().pages(&self.pages.watched);
        let gate = self.fleet.iter().fold(gate, |gate, fleet| fleet.gate(&self.site, gate));
        let gate = self.baseline().into_iter().fold(gate, Gate::baseline);
        let expected = self.expectations.as_ref().map(|path| expectations(path, registry)).transpose()?;
        self.pages.note(NoteAbout::Expectations, None);
        let gate = expected.into_iter().fold(gate, Gate::expectations);
        *self.last_gate.lock() = Some(gate.clone());
        Ok(gate)
    }

    pub(super) fn reject_expectations(&self, why: &str) {
        self.pages.note(NoteAbout::Expectations, Some(format!("{why}; the gate still uses the previous expectations")));
    }

    /// Returns the files among `changed` that the gate reads.
    pub(super) fn changed_files(&self, changed: &BTreeSet<PathBuf>) -> Vec<&Path> {
        let files = self.expectations.iter().map(|path| &**path).chain(self.basis.paths());
        files.filter(|path| self.gate.is_some() && changed.contains(*path)).collect()
    }

    pub(super) const fn reads_sitemaps(&self) -> bool {
        self.basis.sitemaps && self.gate.is_some()
    }

    pub(super) const fn is_on(&self) -> bool {
        self.gate.is_some()
    }

    pub(super) fn baseline_path(&self) -> Option<&Path> {
        self.basis.baseline.as_ref().filter(|_| self.is_on()).map(|file| &**file.get_ref())
    }

    pub(super) fn has_read(&self, path: &Path) -> bool {
        let is = |file: &Option<Spanned<PathBuf>>| file.as_ref().is_some_and(|file| file.get_ref() == path);
        let is_noted = |about| self.pages.note_about(about).is_some();
        !(is(&self.basis.baseline) && is_noted(NoteAbout::Baseline)
            || is(&self.basis.urls) && is_noted(NoteAbout::Urls))
    }

    fn read_urls(&self) {
        let Some(file) = &self.basis.urls else { return self.pages.drop_urls() };
        match read_urls(file.get_ref(), input::read_configured, &self.hosts) {
            Ok(pages) => {
                let name = file.get_ref().file_name().unwrap_or(file.get_ref().as_os_str());
                self.pages.set_urls(&name.to_string_lossy(), pages);
                self.pages.note(NoteAbout::Urls, None);
            }
            Err(why) => self.pages.note(NoteAbout::Urls, Some(format!("the list of URLs cannot be read: {why}"))),
        }
    }

    /// Reads the baseline from its file. If the file cannot be read, returns the last readable
    /// baseline.
    fn baseline(&self) -> Option<RobotsTxt> {
        let mut held = self.baseline.lock();
        let Some(file) = &self.basis.baseline else {
            *held = None;
            self.pages.note(NoteAbout::Baseline, None);
            return None;
        };
        if held.as_ref().is_some_and(|(path, _)| path != file.get_ref()) {
            *held = None;
        }
        match read_baseline(file.get_ref(), &self.watcher) {
            Ok(robots) => {
                *held = Some((file.get_ref().clone(), robots));
                self.pages.note(NoteAbout::Baseline, None);
            }
            Err(why) => {
                let instead = if held.is_some() {
                    "the last baseline that could be read"
                } else {
                    "the version that was accepted last"
                };
                let note = format!("the baseline cannot be read: {why}; the gate compares new versions with {instead}");
                self.pages.note(NoteAbout::Baseline, Some(note));
            }
        }
        held.as_ref().map(|(_, robots)| robots.clone())
    }
}

/// Reads a baseline. Rejects a file that would be rejected as a site's robots.txt.
fn read_baseline(path: &Path, watcher: &Watcher) -> Result<RobotsTxt, String> {
    let opened = LiveRobots::file(path).watcher(watcher).when_missing(WhenMissing::Fail).open();
    let live = opened.map_err(|rejection| match rejection.kind {
        RejectionKind::Missing => format!("the file {path} does not exist", path = path.display()),
        _ => rejection.to_string(),
    })?;
    let content = live.with(|snapshot| snapshot.content.as_ref().map(|content| content.robots().clone()));
    content.ok_or_else(|| format!("{} cannot be read", path.display()))
}

fn expectations(path: &Path, registry: &Arc<Registry>) -> Result<check::Expectations, String> {
    ExpectationsFile::read(path, input::read_configured, registry)
        .map(|file| file.expectations)
        .map_err(|error| error.to_string())
}
