//! The sites of a config that takes another's place.
//!
//! What is the same in both goes on: a robots.txt whose source is the same keeps its versions, its history and the agents
//! it has recognised, servers that are the same keep their health and their connections. Nothing that is served is
//! touched until everything new is known to work.

use std::collections::HashMap;
use std::sync::Mutex;

use tower_robots::live::{Gate, WhenMissing};

use super::gate_settings::GateSettings;
use super::robots_opener::RobotsOpener;
use super::site_robots::SiteRobots;
use super::site_settings::SiteSettings;
use super::sites::{ServedSite, SiteOpener, Sites};
use crate::config::{self, Config, load_registry};
use crate::upstream::SharedResources;

/// Sources opened at once: those that are fetched take as long as their servers do.
const AT_ONCE: usize = 16;

/// The sites of another config, ready to take the place of those there are.
#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) sites: Sites,
    /// By what terms those go on that stay.
    terms: Vec<(SiteRobots, SiteSettings)>,
    /// What was live of sites that have another source, and what is to be.
    replaced: Vec<(SiteRobots, SiteRobots)>,
    /// What is different, for people; none where nothing is.
    pub(super) changes: Vec<String>,
    /// Sources that cannot be used, whose sites keep the one before.
    pub(super) unusable: Vec<String>,
}

/// What becomes of a site's robots.txt.
enum SourceChange {
    /// It goes on.
    Stays(SiteRobots),
    /// It is opened.
    New(SiteRobots),
    /// The source cannot be used, and why; what there was goes on.
    Unusable(SiteRobots, String),
}

impl Sites {
    /// Makes the sites of another config. Blocks: it reads files, and waits for what is fetched for a site that has a
    /// robots.txt already.
    pub(super) fn renew(&self, config: &Config) -> Result<Renewal, String> {
        let held = self.shared();
        let registry = if self.registry_extra == config.registry_extra {
            // Whether its rows are others is another question, and asked apart.
            held.registry.clone()
        } else {
            load_registry(config.registry_extra.as_deref()).map_err(|error| error.to_string())?
        };
        let shared = held.with(registry, config.gate.clone());
        let before: HashMap<&str, &ServedSite> = self.iter().map(|site| (&*site.name, site)).collect();
        let of = |site: &config::SiteConfig| before.get(&*site.name).copied();

        // All that can be wrong without opening anything first.
        let mut terms = Vec::with_capacity(config.sites.len());
        let mut demands = Vec::with_capacity(config.sites.len());
        for site in &config.sites {
            let demanded = shared.demands(site);
            let gate = self.gate(&demanded, &shared, site, of(site))?;
            terms.push(shared.terms(site, gate));
            demands.push(demanded);
        }
        let work: Vec<_> = config.sites.iter().zip(&terms).collect();
        let mut fates = Vec::with_capacity(work.len());
        for some in work.chunks(AT_ONCE) {
            let open = |(site, terms): &(&config::SiteConfig, &SiteSettings)| self.fate(&shared, site, terms, of(site));
            fates.extend(if some.iter().all(|(site, _)| of(site).is_some_and(|before| before.has_source_of(site))) {
                some.iter().map(open).collect::<Vec<_>>()
            } else {
                in_parallel(some, open)
            });
        }

        let (log, privacy) = (&self.log, self.privacy);
        let opening = SiteOpener { config, surroundings: SharedResources::system(), privacy, log };
        let mut renewal = Renewal {
            sites: Self {
                sites: Vec::new(),
                memory: shared.memory.clone(),
                registry_extra: config.registry_extra.clone(),
                shared: Mutex::new(shared.clone()),
                log: log.clone(),
                privacy,
            },
            terms: Vec::new(),
            replaced: Vec::new(),
            changes: Vec::new(),
            unusable: Vec::new(),
        };
        for (((site, terms), demands), fate) in config.sites.iter().zip(terms).zip(demands).zip(fates) {
            let before = of(site);
            let (robots, why) = match fate.map_err(|error| format!("site {:?}: {error}", site.name))? {
                SourceChange::Stays(robots) => (robots, None),
                SourceChange::New(robots) => {
                    renewal.replaced.extend(before.map(|before| (before.robots.clone(), robots.clone())));
                    (robots, None)
                }
                SourceChange::Unusable(robots, why) => (robots, Some(why)),
            };
            if before.is_some() {
                renewal.terms.push((robots.clone(), terms));
            }
            let mut made = opening.around(site, demands, robots, before)?;
            if let (Some(why), Some(before)) = (why, before) {
                renewal.unusable.push(format!("site {:?}: {why}; its source before stays", site.name));
                made.keep_source_of(before);
            }
            renewal.changes.extend(change(before, &made));
            renewal.sites.sites.push(made);
        }
        let stays = |name: &str| config.sites.iter().any(|site| site.name == name);
        for gone in self.iter().filter(|site| !stays(&site.name)) {
            renewal.changes.push(format!("site {:?} is gone", &*gone.name));
        }
        Ok(renewal)
    }

    /// What a version of a site must not do. Expectations that have a fault are no reason to refuse a config that names
    /// the same file as before.
    fn gate(
        &self,
        demands: &GateSettings,
        shared: &RobotsOpener,
        site: &config::SiteConfig,
        before: Option<&ServedSite>,
    ) -> Result<Gate, String> {
        let error = match demands.gate(&shared.registry) {
            Ok(gate) => return Ok(gate),
            Err(error) => error,
        };
        let same = before.filter(|before| before.demands.expectations == site.expectations);
        let held = same.and_then(|before| before.demands.last());
        let held = held.ok_or_else(|| format!("site {:?}: {error}", site.name))?;
        self.log.say("gate", format!("{}: {error}; the demands before stay", site.name));
        demands.keep(&held);
        Ok(held)
    }

    fn fate(
        &self,
        shared: &RobotsOpener,
        site: &config::SiteConfig,
        terms: &SiteSettings,
        before: Option<&ServedSite>,
    ) -> Result<SourceChange, String> {
        let Some(before) = before else {
            return shared.open(site, terms.clone(), site.when_missing, &self.log).map(SourceChange::New);
        };
        if before.has_source_of(site) {
            return Ok(SourceChange::Stays(before.robots.clone()));
        }
        let lives = before.lives();
        let is_live = lives.iter().any(|live| live.robots.with(|snapshot| snapshot.content().is_some()));
        // A site that has rules goes on with them until there are others.
        let when_missing = if is_live { WhenMissing::Fail } else { site.when_missing };
        let robots = match shared.open(site, terms.clone(), when_missing, &self.log) {
            Ok(robots) => robots,
            Err(why) if is_live => return Ok(SourceChange::Unusable(before.robots.clone(), why)),
            Err(why) => return Err(why),
        };
        Ok(SourceChange::New(robots))
    }
}

impl Renewal {
    /// Has what stays go on by the new terms. Blocks.
    pub(super) fn settle(&self) {
        self.terms.iter().for_each(|(robots, terms)| robots.take_by(terms));
        // Here it may write; at the swap hardly anything is left to do.
        self.take_switches();
    }

    /// Has the kill switches of sites stand as they do now: they may be turned until the sites are swapped.
    pub(super) fn take_switches(&self) {
        self.replaced.iter().for_each(|(before, robots)| robots.take_switches(before));
    }
}

/// What is different about a site, for people.
fn change(before: Option<&ServedSite>, site: &ServedSite) -> Option<String> {
    let Some(before) = before else { return Some(format!("site {:?} is new", &*site.name)) };
    let mut parts = Vec::new();
    let mut say = |is_same: bool, what| parts.extend((!is_same).then_some(what));
    let (were, are) = (before.settings(), site.settings());
    say(were.hosts == are.hosts, "hosts");
    say(before.has_source_of(are), "source");
    say(were.terms == are.terms, "terms");
    say(were.expectations == are.expectations, "expectations");
    say(site.is_served_as(before), "backend");
    (!parts.is_empty()).then(|| format!("site {:?} has another {}", &*site.name, parts.join(", another ")))
}

fn in_parallel<T: Sync, R: Send>(work: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = work.iter().map(|item| scope.spawn(move || each(item))).collect();
        // A panic goes on here as it would without threads.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
            .collect()
    })
}
