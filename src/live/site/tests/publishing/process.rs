//! A process of the simulation: a real site and state directory, on a simulated disk and clock.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use super::model::{GRACE, Held, Model, ModelGate, ModelOutcome, SHUT, Seen, TEXTS, Text, Waiting};
use crate::agent::{Category, Crawler, Registry};
use crate::live::site::tests::{live, site};
use crate::live::state::{Access, Disk, StateWriter};
use crate::live::{
    Candidate, Clock, CompileCache, Completion, Enforcement, Gate, KillSwitch, LiveRobots, Loaded, Mutex, ProblemKind,
    Rejection, RejectionKind, Reload, ReloadOutcome, Site, SiteSettings, Source, StateDir, TestClock, Version,
    VersionHash, WhenMissing,
};
use crate::policy::{Mode, Policy};

/// A small registry, which makes comparisons of versions fast.
static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| {
    let rows = [Crawler::new("GPTBot", Category::AiTraining), Crawler::new("Googlebot", Category::Search)];
    Arc::new(Registry::default().extended_with(rows).expect("two crawlers"))
});

/// A cache with every robots.txt of the simulation, so that each is compiled only once. The cache
/// keeps only files that a site uses, so there is a site for each file.
static CACHE: LazyLock<(CompileCache, Vec<Arc<Site>>)> = LazyLock::new(|| {
    let cache = CompileCache::default();
    let settings =
        || SiteSettings { registry: REGISTRY.clone(), compile_cache: cache.clone(), ..SiteSettings::default() };
    let sites = (0..TEXTS).map(|text| {
        let site = site(settings());
        site.offer(crate::live::Cause::Poll, Candidate::Version(version(text)));
        site
    });
    let sites = sites.collect();
    (cache, sites)
});

static VERSIONS: LazyLock<Vec<Version>> = LazyLock::new(|| {
    let text = |number: Text| match number {
        SHUT.. => format!("User-agent: *\nDisallow: /\nDisallow: /{number}\n"),
        _ => format!("User-agent: *\nDisallow: /{number}\n"),
    };
    (0..TEXTS).map(|number| Version::new(text(number).into_bytes(), &"it".into(), None)).collect()
});

static NUMBERS: LazyLock<HashMap<VersionHash, Text>> =
    LazyLock::new(|| VERSIONS.iter().map(Version::hash).zip(0..).collect());

pub(super) fn version(text: Text) -> Version {
    VERSIONS[usize::from(text)].clone()
}

fn number(hash: VersionHash) -> Text {
    NUMBERS[&hash]
}

/// Contents that are not a valid robots.txt, and that the publisher must reject.
static BROKEN: LazyLock<[(RejectionKind, Version); 3]> = LazyLock::new(|| {
    let texts = [(RejectionKind::NoField, "User-ag"), (RejectionKind::Html, "<html>"), (RejectionKind::Empty, "")];
    texts.map(|(kind, text)| (kind, Version::new(text.as_bytes(), &"it".into(), None)))
});

/// Reports whether a source provides any bytes.
pub(super) fn is_read(held: Held) -> bool {
    match held {
        Held::Text(_) => true,
        Held::Broken(kind) => BROKEN.iter().any(|(broken, _)| *broken == kind),
        Held::Absent => false,
    }
}

fn loaded(held: Held) -> Loaded {
    match held {
        Held::Text(text) => Ok(version(text)),
        Held::Broken(kind) if is_read(held) => {
            Ok(BROKEN.iter().find(|(broken, _)| *broken == kind).expect("it is read").1.clone())
        }
        Held::Broken(kind) => Err(Rejection::new(kind, &"it".into())),
        // Only a source that fetches passes `Absent` to the site. Such a source cannot be loaded.
        Held::Absent => Err(Rejection::new(RejectionKind::NotFetched, &"it".into())),
    }
}

/// Returns the content that a caller gets by loading the source.
pub(super) const fn when_loaded(held: Held) -> Held {
    match held {
        Held::Absent => Held::Broken(RejectionKind::NotFetched),
        held => held,
    }
}

/// The robots.txt that all processes read.
#[derive(Clone, Debug)]
pub(super) struct SharedSource(pub(super) Arc<Mutex<Held>>);

impl Source for SharedSource {
    fn load(&self) -> Loaded {
        loaded(*self.0.lock())
    }

    fn reload(&self, _: Arc<Completion>) {}
}

/// The files that a disk error affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    All,
    Switches,
    State,
    Record,
    Bytes,
    History,
}

impl Files {
    fn have(self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match self {
            Self::All => true,
            Self::Switches => name == "enforcement",
            Self::State => name == "state.json",
            Self::Record => name == "live",
            Self::Bytes => name.ends_with(".txt"),
            Self::History => name == "history.jsonl",
        }
    }
}

/// A disk error: the files that it affects, and the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) errno: i32,
    pub(super) files: Files,
}

impl Fault {
    pub(super) const ERRORS: [i32; 5] = [libc::ENOSPC, libc::EDQUOT, libc::EIO, libc::EROFS, libc::EMFILE];

    /// Reports whether files can be read. A process without free file descriptors cannot read any.
    pub(super) const fn is_readable(self) -> bool {
        self.errno != libc::EMFILE
    }

    fn fails(self, access: Access, path: &Path) -> bool {
        let fails = match access {
            Access::Look => !self.is_readable(),
            Access::Write => true,
            // On a full disk, existing files can still be overwritten in place or removed.
            Access::Overwrite => !matches!(self.errno, libc::ENOSPC | libc::EDQUOT),
            Access::Remove => matches!(self.errno, libc::EIO | libc::EROFS),
        };
        fails && self.files.have(path)
    }
}

/// The current disk error of a simulated machine, if any.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) fault: Mutex<Option<Fault>>,
}

/// Number of disk operations after which the process is killed.
pub(super) struct Life(AtomicI64);

impl Default for Life {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }
}

impl Life {
    pub(super) fn ends_soon(&self) -> bool {
        self.0.load(Ordering::Relaxed) < i64::MAX / 2
    }

    pub(super) fn end_after(&self, operations: i64) {
        self.0.store(operations, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= 0
    }
}

fn disk(faults: &Arc<Faults>, life: &Arc<Life>, clock: &TestClock) -> Disk {
    let (faults, life) = (faults.clone(), life.clone());
    let before = move |access, path: &Path| {
        if life.0.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(io::Error::other("killed"));
        }
        match *faults.fault.lock() {
            Some(fault) if fault.fails(access, path) => Err(io::Error::from_raw_os_error(fault.errno)),
            _ => Ok(()),
        }
    };
    Disk { before: Some(Arc::new(before)), clock: Clock::new(clock.read()), ..Disk::default() }
}

/// The parts of a simulated machine that outlive its processes.
pub(super) struct Machine {
    pub(super) folder: tempfile::TempDir,
    pub(super) clock: TestClock,
    pub(super) source: SharedSource,
    pub(super) faults: Arc<Faults>,
}

pub(super) struct Process {
    site: Arc<Site>,
    pub(super) state: Option<StateDir>,
    pub(super) switch: KillSwitch,
    pub(super) life: Arc<Life>,
    news: Arc<AtomicU64>,
    pub(super) is_locked: bool,
    /// The possible states of the site: several if the content of the disk was uncertain.
    pub(super) models: Vec<Model>,
}

impl Machine {
    pub(super) fn state_folder(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn open_state(&self, life: &Arc<Life>) -> Option<StateDir> {
        StateDir::open_on(disk(&self.faults, life, &self.clock), StateWriter::stepped(), self.state_folder()).ok()
    }

    fn open_site(
        &self,
        state: Option<&StateDir>,
        switch: &KillSwitch,
        gate: ModelGate,
        has_grace: bool,
    ) -> (Arc<Site>, Arc<AtomicU64>) {
        let news = Arc::new(AtomicU64::new(0));
        let count = news.clone();
        let listener = move |_: &Reload, _: &crate::live::Snapshot| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let settings = SiteSettings {
            policy: Policy::builder().mode(Mode::Refuse).build(),
            registry: REGISTRY.clone(),
            compile_cache: CACHE.0.clone(),
            gate: real_gate(gate),
            grace: if has_grace { GRACE } else { std::time::Duration::ZERO },
            when_missing: WhenMissing::Unavailable,
            state: state.map(|state| (state.clone(), "shop".to_owned())),
            switch: Some(switch.clone()),
            clock: self.clock.steady(),
            listeners: vec![Box::new(listener)],
            ..SiteSettings::default()
        };
        let source = self.source.clone();
        let site = Site::new(settings, &"it".into(), |_| Arc::new(source));
        site.start().expect("a site may start without a file");
        (site, news)
    }

    /// Starts a process. The caller sets its models.
    pub(super) fn start(&self, has_state: bool, gate: ModelGate, has_grace: bool) -> Option<Process> {
        let life = Arc::<Life>::default();
        let state = if has_state { Some(self.open_state(&life)?) } else { None };
        let switch = KillSwitch::default();
        let (site, news) = self.open_site(state.as_ref(), &switch, gate, has_grace);
        let is_locked = self.faults.fault.lock().is_none();
        Some(Process { site, state, switch, life, news, is_locked, models: Vec::new() })
    }

    /// Opens the site again, and then drops the old site.
    pub(super) fn reopen(&self, process: &mut Process, gate: ModelGate, has_grace: bool) {
        let (site, news) = self.open_site(process.state.as_ref(), &process.switch, gate, has_grace);
        (process.site, process.news) = (site, news);
    }
}

pub(super) fn real_gate(gate: ModelGate) -> Gate {
    match gate {
        ModelGate::Open => Gate::open(),
        ModelGate::Comparing => Gate::new(),
        ModelGate::Accepting(text) => Gate::new().accept([version(text).hash()]),
    }
}

impl Process {
    pub(super) fn handle(&self) -> LiveRobots {
        live(&self.site)
    }

    pub(super) fn offer(&self, held: Held) -> ModelOutcome {
        let candidate = match held {
            Held::Absent => Candidate::Absent { status: 404 },
            held => loaded(held).into(),
        };
        outcome(&self.site.offer(crate::live::Cause::Poll, candidate))
    }

    pub(super) fn reload(&self, is_settled: bool) -> ModelOutcome {
        outcome(&self.site.reload(|_| is_settled))
    }

    pub(super) fn set_all(&self, enforcement: Enforcement) -> bool {
        match &self.state {
            Some(state) => state.set_enforcement(enforcement).is_ok(),
            None => {
                self.switch.set_enforcement(enforcement);
                true
            }
        }
    }

    /// Returns the positions of the switch of all sites and of the site's own switch.
    pub(super) fn switches(&self) -> [Enforcement; 2] {
        let switches = self.site.current.load().switches;
        let all = if switches.shared_off == 0 { Enforcement::On } else { Enforcement::Off };
        [all, switches.site]
    }

    pub(super) fn waiting(&self) -> Option<VersionHash> {
        self.site.record.lock().pending.as_ref().map(crate::live::Pending::hash)
    }

    /// Returns the problems with writing to the directory.
    pub(super) fn problems(&self) -> Vec<String> {
        let of_writing = [ProblemKind::Save, ProblemKind::Switch, ProblemKind::History, ProblemKind::Unwritable];
        let of_site = self.site.state.iter().flat_map(|state| state.problems());
        let of_site = of_site.filter(|problem| of_writing.contains(&problem.kind)).map(|problem| problem.text);
        let of_all = self.state.iter().filter(|state| !state.is_writable()).flat_map(StateDir::problems);
        of_site.chain(of_all).collect()
    }

    pub(super) fn damaged(&self) -> Option<String> {
        let mut problems = self.site.state.iter().flat_map(|state| state.problems());
        problems.find(|problem| problem.kind == ProblemKind::Damaged).map(|problem| problem.text)
    }

    /// Simulates a bug that allows rolled-back versions to go live again.
    pub(super) fn forget_rolled_back(&self) {
        self.site.publisher.lock().versions.supersede();
    }

    /// Returns the status and notifications of the site after a step with this outcome.
    pub(super) fn seen(&self, outcome: ModelOutcome) -> Result<Seen, String> {
        let snapshot = self.site.current.load();
        let record = self.site.record.lock();
        let text = |hash: VersionHash| number(hash);
        let live = snapshot.content.as_ref().map(|content| text(content.hash()));
        if let (Some(live), Some(content)) = (live, &snapshot.content)
            && content.body()[..] != version(live).bytes()[..]
        {
            return Err(format!("what is served is not text {live}"));
        }
        let waiting = record
            .pending
            .as_ref()
            .map(|pending| Waiting { text: text(pending.hash()), is_rolled_back: pending.is_rolled_back() });
        let is_behind = self
            .site
            .state
            .iter()
            .any(|state| state.problems().iter().any(|problem| problem.kind == ProblemKind::Behind));
        Ok(Seen {
            outcome,
            is_news: self.news.swap(0, Ordering::Relaxed) > 0,
            live,
            waiting,
            before: record.before.map(text),
            grace_end: snapshot.grace_end(),
            is_behind,
        })
    }

    /// Reports whether the live version disallows a page. Some pages are not mentioned in any
    /// version.
    pub(super) fn refuses(&self, page: Text) -> bool {
        let path = format!("/{page}");
        let path = crate::rules::RequestPath::new(path.as_bytes());
        let snapshot = self.site.current.load();
        let Some(content) = &snapshot.content else { return false };
        let agents = content.agents(b"GPTBot/1.0");
        let facts = crate::policy::RequestFacts::new("GET", &path);
        snapshot.decide(&agents, facts).action == crate::policy::Action::Refuse
    }

    /// Returns the outcome and time of the newest history entry.
    pub(super) fn newest(&self) -> Option<(crate::live::ReloadOutcomeKind, SystemTime)> {
        self.site.record.lock().history.iter().next_back().map(|entry| (entry.outcome, entry.when))
    }
}

pub(super) fn outcome(reload: &Reload) -> ModelOutcome {
    match &reload.outcome {
        ReloadOutcome::Published { hash, .. } => ModelOutcome::Published(number(*hash)),
        ReloadOutcome::Unchanged { hash, .. } => ModelOutcome::Unchanged(number(*hash)),
        ReloadOutcome::Absent { .. } => ModelOutcome::Absent,
        ReloadOutcome::Kept { rejection, .. } => ModelOutcome::Kept(rejection.kind),
        ReloadOutcome::Gated { pending, .. } => {
            ModelOutcome::Gated(Waiting { text: number(pending.hash()), is_rolled_back: pending.is_rolled_back() })
        }
    }
}

impl Process {
    /// Returns the outcome of the reload that opened the site.
    pub(super) fn opened(&self) -> ModelOutcome {
        outcome(&self.site.record.lock().last)
    }
}
