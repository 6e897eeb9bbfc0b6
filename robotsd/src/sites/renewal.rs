//! Makes the sites of a config that takes another's place.
//!
//! Everything that is the same in both goes on: a robots.txt whose source is the same keeps its versions, its history
//! and the agents it has recognised, servers that are the same keep their health and their connections. Nothing that
//! is served changes until everything new works.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::live::{Enforcement, Gate, StateDir, VersionHashPrefix, WhenMissing};

use super::appended_parts::FollowedRegistry;
use super::gate_settings::GateSettings;
use super::log_events;
use super::robots_opener::{OpeningOccasion, RobotsOpener};
use super::sender_evidence::SenderEvidence;
use super::served_site::ServedSite;
use super::site_list::{Sites, hooks_of, renewed_rate_store};
use super::site_opener::SiteOpener;
use super::site_robots::{LiveSite, SiteRobots, SiteSettings};
use crate::config::{Config, SiteConfig, extended_registry, host_patterns};
use crate::log::{LogEvent, LogLevel};
use crate::publish_hook::SiteHooks;
use crate::render::shell_word;

/// Sources opened at once: those that are fetched take as long as their servers do.
const AT_ONCE: usize = 16;

/// The sites of another config, ready to take the place of those that are served.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) sites: Arc<Sites>,
    /// The registry that they were opened with.
    registry: Arc<Registry>,
    /// The versions of the published registry that are used whatever they change.
    accept: Vec<VersionHashPrefix>,
    /// The requests that are sent when a version goes live, by site.
    hooks: Vec<(String, SiteHooks)>,
    /// The settings of every robots.txt that was served before, or takes the place of one.
    settings: Vec<(Arc<SiteRobots>, SiteSettings)>,
    /// The sites that are new and those that are gone, for people.
    pub(crate) come_and_gone: Vec<String>,
    /// The sites that are in both and differ, for people.
    pub(crate) altered: Vec<String>,
    /// Sources that cannot be used; their sites keep the source before.
    pub(crate) unusable: Vec<UnusableSource>,
}

/// A source that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("site {site:?}: {why}; its source before stays")]
pub(crate) struct UnusableSource {
    pub(crate) site: String,
    why: String,
}

impl Sites {
    /// Makes the sites of another config. Blocks: it reads files, and waits for a fetch where a site has a robots.txt
    /// already.
    ///
    /// # Errors
    ///
    /// If the registry, a gate, a new site or a backend cannot be used; nothing has changed then.
    pub(crate) fn renew(&self, config: &Config) -> Result<Renewal, String> {
        let held = self.opener();
        let (registry, followed) = self.renew_sources(&held, config)?;
        self.renew_with(held.with(registry, followed, config.gate.clone()), config)
    }

    /// Makes the sites once more, from what another process has written since the state directory was handed over: its acceptances,
    /// rollbacks and switches hold. Blocks.
    ///
    /// # Errors
    ///
    /// If another process has the state directory open; nothing has changed then.
    pub(crate) fn take_back(&self, config: &Config) -> Result<Renewal, String> {
        let reopened = self.state.reopened().map_err(|error| error.to_string())?;
        let (Some(state), Some(directory)) = (reopened, self.state.directory.as_ref()) else {
            return self.renew(config);
        };
        state.log_troubles(&self.log);
        let held = self.opener();
        let (registry, followed) = (held.registry.clone(), held.followed.clone());
        let why = match self.renew_with(held.with(registry, followed, config.gate.clone()).taking_back(state), config) {
            Ok(renewal) => return Ok(renewal),
            Err(why) => why,
        };
        // Better the versions of before than no service; the switches are those that stand there.
        let message = format!("{why}: the versions from before the upgrade are served");
        self.log.say_at(LogLevel::Error, LogEvent::State, message);
        directory.take_back().map_err(|error| error.to_string())?;
        self.follow_switches(directory);
        self.renew(config)
    }

    /// Turns every switch to where it stands in the state directory. Blocks.
    fn follow_switches(&self, directory: &StateDir) {
        let standing = StateDir::read_only(directory.path());
        // A turn that cannot be written down is a trouble of the directory, and is made all the same.
        if standing.enforcement() != self.state.switch() {
            let _ = self.state.turn(standing.enforcement());
        }
        for (site, live) in self.iter().flat_map(|site| site.lives().into_iter().map(move |live| (site, live))) {
            let stands = standing.enforcement_of(&live.name);
            if stands != live.robots.status().switch {
                let _ = self.state.turn_site(&site.name, &live.name, stands);
            }
        }
    }

    fn renew_with(&self, opener: RobotsOpener, config: &Config) -> Result<Renewal, String> {
        let before: HashMap<&str, &ServedSite> = self.iter().map(|site| (&*site.name, site)).collect();
        let of = |site: &SiteConfig| before.get(&*site.name).copied();
        let names: HashSet<&str> = config.sites.iter().map(|site| &*site.name).collect();
        let gone: Vec<_> = self.iter().filter(|site| !names.contains(&*site.name)).collect();
        let left: HashMap<_, _> =
            gone.iter().flat_map(|site| site.host_patterns().map(move |host| (host, *site))).collect();
        // A new site that has a host of one that is gone is the same under another name.
        let renamed = |site: &SiteConfig| {
            host_patterns(&site.hosts).find_map(|host| left.get(host).copied()).filter(|_| of(site).is_none())
        };

        let evidence = SenderEvidence::renewed(self.evidence.as_ref(), config, &opener.registry, &self.log)?;

        let rate_store = renewed_rate_store(self.rate_store.as_ref(), config, &self.log)?;

        // First everything that can be wrong without a source being opened.
        let sites = SiteOpener::new(config, evidence.as_ref(), &self.log, self.privacy);
        let plan = |site| -> Result<_, String> {
            let gate_before = of(site).or_else(|| renamed(site)).map(|before| &before.gate);
            let gate_settings = opener.gate_settings(site, gate_before);
            let gate = self.gate(&gate_settings, &opener, site, gate_before)?;
            Ok((site, opener.site_settings(site, gate), gate_settings, sites.backend(site, of(site))?))
        };
        let planned: Vec<_> = config.sites.iter().map(plan).collect::<Result<_, _>>()?;
        let mut changes = Vec::with_capacity(planned.len());
        for some in planned.chunks(AT_ONCE) {
            let open = |(site, settings, ..): &(&SiteConfig, SiteSettings, _, _)| {
                self.source(&opener, site, settings, (of(site), renamed(site)))
            };
            let is_kept = |site: &SiteConfig| of(site).is_some_and(|before| opener.keeps(before, site));
            changes.extend(if some.iter().all(|(site, ..)| is_kept(site)) {
                some.iter().map(open).collect::<Vec<_>>()
            } else {
                in_parallel(some, open)
            });
        }

        let mut renewed = Vec::with_capacity(config.sites.len());
        let mut applied = Vec::new();
        let (mut come_and_gone, mut altered, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for ((site, settings, gate, backend), change) in planned.into_iter().zip(changes) {
            let before = of(site);
            let (robots, why) = change.map_err(|error| format!("site {:?}: {error}", site.name))?;
            if before.is_some() {
                applied.push((robots.clone(), settings));
            }
            let mut made = sites.around(site, (gate, robots), backend, before);
            if let (Some(why), Some(before)) = (why, before) {
                unusable.push(UnusableSource { site: site.name.clone(), why });
                made.keep_source_of(before);
            }
            match before {
                Some(before) => altered.extend(difference(before, &made)),
                None => come_and_gone.push(arrival(&made, renamed(site))),
            }
            renewed.push(made);
        }
        come_and_gone.extend(gone.into_iter().map(departure));
        let registry = opener.registry.clone();
        let sites = Arc::new(Sites::new(renewed, config, opener, (evidence, rate_store), &self.log, self.privacy));
        Ok(Renewal {
            sites,
            hooks: hooks_of(config).collect(),
            registry,
            accept: config.registry_accept.clone(),
            settings: applied,
            come_and_gone,
            altered,
            unusable,
        })
    }

    /// The registry of another config, and the documents that are followed for it.
    fn renew_sources(
        &self,
        held: &RobotsOpener,
        config: &Config,
    ) -> Result<(Arc<Registry>, Option<FollowedRegistry>), String> {
        let (were, are) = (&self.registry, &config.registry);
        let followed =
            if were.published == are.published { held.followed.clone() } else { held.follow_registry(config)? };
        if were == are {
            // Its rows are followed apart from the config.
            return Ok((held.registry.clone(), followed));
        }
        let base = followed.as_ref().map_or_else(|| Registry::builtin().clone(), FollowedRegistry::registry);
        let registry = extended_registry(&base, are.extra.as_deref()).map_err(|error| error.to_string())?;
        Ok((registry, followed))
    }

    /// The gate of a site. Expectations with a fault do not refuse a config that names the same file as before.
    fn gate(
        &self,
        settings: &GateSettings,
        opener: &RobotsOpener,
        site: &SiteConfig,
        before: Option<&GateSettings>,
    ) -> Result<Gate, String> {
        let error = match settings.gate(&opener.registry) {
            Ok(gate) => return Ok(gate),
            Err(error) => error,
        };
        let same = before.filter(|before| before.expectations == site.expectations);
        let held = same.and_then(|before| before.last.lock().clone());
        let held = held.ok_or_else(|| format!("site {:?}: {error}", site.name))?;
        log_events::expectations_rejected(&self.log, &site.name, &error);
        *settings.last.lock() = Some(held.clone());
        Ok(held)
    }

    /// The robots.txt of a site: the one before where the source is the same, else one that is opened and has joined the
    /// switch of the site. If the new source cannot be used, it is the one before, with the reason. That of a site which was `renamed`
    /// goes on from its versions.
    fn source(
        &self,
        opener: &RobotsOpener,
        site: &SiteConfig,
        settings: &SiteSettings,
        (before, renamed): (Option<&ServedSite>, Option<&ServedSite>),
    ) -> Result<(Arc<SiteRobots>, Option<String>), String> {
        if let Some(before) = before.filter(|before| opener.keeps(before, site)) {
            return Ok((before.robots.clone(), None));
        }
        let is_taken_back = opener.occasion == OpeningOccasion::TakeBack;
        let is_live = |live: &LiveSite| live.robots.with(|snapshot| snapshot.content.is_some());
        // A site that has rules keeps them until there are others.
        let live = before.filter(|before| !is_taken_back && before.lives().iter().any(is_live));
        let when_missing = match live {
            _ if is_taken_back => WhenMissing::Unavailable,
            Some(_) => WhenMissing::Fail,
            None => site.when_missing,
        };
        let lives = renamed.into_iter().flat_map(|gone| gone.robots.lives(&site.name, &[]));
        let inherited = Arc::new(lives.map(|live| (live.name, live.robots)).collect());
        let robots = match (opener.inheriting(&inherited).open(site, settings.clone(), when_missing), live) {
            (Ok(robots), _) => robots,
            (Err(why), Some(before)) => return Ok((before.robots.clone(), Some(why))),
            (Err(why), None) => return Err(why),
        };
        opener.state.join(&site.name, &robots);
        Ok((robots, None))
    }
}

impl RobotsOpener {
    /// Whether the robots.txt of a site goes on as it is.
    fn keeps(&self, before: &ServedSite, site: &SiteConfig) -> bool {
        self.occasion != OpeningOccasion::TakeBack && before.has_source_of(site)
    }
}

impl Renewal {
    /// Applies the new settings to every robots.txt that is served already: from now on these sites take the place of those
    /// before. Blocks while rules are compiled, and for no file.
    pub(crate) fn apply_settings(&self, before: &Sites) {
        before.hand_over(&self.sites);
        if let Some(hooks) = self.sites.hooks() {
            hooks.set(self.hooks.iter().cloned());
        }
        self.sites.accept_registries(&self.accept);
        self.settings.iter().for_each(|(robots, settings)| robots.apply(settings));
        if let Some(evidence) = &self.sites.evidence {
            evidence.apply(&self.registry);
        }
        // A registry that was read again since they were opened has been overwritten here, or is about to be.
        let mut applied = self.registry.clone();
        loop {
            let current = self.sites.opener().registry;
            if Arc::ptr_eq(&current, &applied) {
                return;
            }
            self.sites.iter().for_each(|site| site.set_registry(&current));
            if let Some(evidence) = &self.sites.evidence {
                // The caller that read it again has checked it.
                let _ = evidence.follow(&current);
            }
            applied = current;
        }
    }
}

/// Says that a site is new. The kill switch of one that was `renamed` goes on as it was. Blocks: it writes to the state directory.
fn arrival(made: &ServedSite, renamed: Option<&ServedSite>) -> String {
    let name = &*made.name;
    let Some(before) = renamed else { return format!("site {name:?} is new") };
    let from = format!("site {name:?} is new, has hosts of {:?} and goes on from its versions", &*before.name);
    if !is_off(before) {
        return from;
    }
    made.robots.take_switches(&before.robots);
    format!("{from}, switched off as that was: `robotsd enforce on --site {}` turns it on", shell_word(name))
}

/// Says that a site is gone. Its kill switch stays in the state directory, where it turns off no other.
fn departure(gone: &ServedSite) -> String {
    let switch = if is_off(gone) { ", and its kill switch, which was off, with it" } else { "" };
    format!("site {:?} is gone{switch}", &*gone.name)
}

fn is_off(site: &ServedSite) -> bool {
    site.lives().iter().any(|live| live.robots.status().switch == Enforcement::Off)
}

/// The difference of a site, for people.
fn difference(before: &ServedSite, site: &ServedSite) -> Option<String> {
    let mut parts = Vec::new();
    let mut compare = |is_same: bool, what| parts.extend((!is_same).then_some(what));
    let (were, are) = (&before.settings, &site.settings);
    compare(were.hosts == are.hosts, "hosts");
    compare(before.has_source_of(are), "source");
    compare(were.terms == are.terms, "terms");
    compare(were.expectations == are.expectations, "expectations");
    compare(were.gate_basis == are.gate_basis, "baseline or list of URLs");
    compare(were.refusal == are.refusal, "refusal");
    compare(site.has_backend_of(before), "backend");
    (!parts.is_empty()).then(|| format!("site {:?} has another {}", &*site.name, parts.join(", another ")))
}

/// What a function makes of each of several things, on a thread each.
pub(crate) fn in_parallel<T: Sync, R: Send>(work: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = work.iter().map(|item| scope.spawn(move || each(item))).collect();
        // A panic goes on here as it would without threads.
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|cause| resume_unwind(cause))).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::log::Log;

    /// A config of a site `a` with this source.
    fn config(folder: &std::path::Path, state: &str, robots: &str) -> Config {
        let path = folder.join("robotsd.toml");
        let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
        let text = format!("{state}{listener}[[site]]\nname = \"a\"\nroot = \".\"\n{robots}\n");
        std::fs::write(&path, text).unwrap();
        Config::load(&path).unwrap()
    }

    fn switches(sites: &Sites) -> Vec<Enforcement> {
        sites.lives().map(|live| live.robots.status().switch).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_registry_that_is_read_again_while_sites_are_swapped_is_not_lost() {
        let robots = "robots.text = \"User-agent: *\"\n";
        let agents = "[agents]\nregistry_extra = \"crawlers.toml\"\n";
        let folder = tempfile::tempdir().unwrap();
        let rows = |name: &str| {
            let row = format!("[[crawler]]\nname = \"{name}\"\ncategory = \"search\"\n");
            std::fs::write(folder.path().join("crawlers.toml"), row).unwrap();
        };
        let of = |more: &str| config(folder.path(), "", &format!("{robots}{more}{agents}"));
        let new_site = "[[site]]\nname = \"b\"\nhosts = [\"b.test\"]\nroot = \".\"\nrobots.text = \"# b\"\n";
        let knows = |sites: &Sites, name: &str| {
            assert!(sites.opener().registry.crawler(name).is_some(), "{name}");
            for live in sites.lives() {
                let snapshot = live.robots.snapshot();
                let agents = snapshot.content.as_ref().unwrap().agents(name.as_bytes());
                assert!(agents.first().is_registered(), "{name} of {}", live.name);
            }
        };
        rows("FirstThing");
        let served = Arc::new(Sites::open(&of(""), false, &Log::nowhere()).unwrap());
        knows(&served, "FirstThing");

        // After the sites are open.
        let renewal = served.renew(&of(new_site)).unwrap();
        rows("SecondThing");
        assert_eq!(served.reload(None).await.unwrap().registry.unwrap().outcome, "published");
        renewal.apply_settings(&served);
        knows(&renewal.sites, "SecondThing");
        // After their settings are applied, and before they are swapped.
        rows("ThirdThing");
        served.reload(None).await.unwrap();
        knows(&renewal.sites, "ThirdThing");
        // Once more sites have taken their place.
        let next = renewal.sites.renew(&of("")).unwrap();
        next.apply_settings(&renewal.sites);
        rows("FourthThing");
        served.reload(None).await.unwrap();
        knows(&next.sites, "FourthThing");

        // A config with other rows goes its own way.
        let other = config(folder.path(), "", robots);
        let without = next.sites.renew(&other).unwrap();
        without.apply_settings(&next.sites);
        rows("FifthThing");
        next.sites.reload(None).await.unwrap();
        assert!(without.sites.opener().registry.crawler("FifthThing").is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_config_that_is_rejected_late_leaves_the_evidence_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let row =
            "[[crawler]]\nname = \"Playbot\"\ncategory = \"search\"\nranges = [\"http://127.0.0.1:9/list.json\"]\n";
        std::fs::write(folder.path().join("crawlers.toml"), row).unwrap();
        let of = |more: &str| {
            config(folder.path(), "[identity]\nrdns = false\n", &format!("robots.text = \"User-agent: *\"\n{more}"))
        };
        let is_followed = |sites: &Sites| {
            let lists = sites.evidence.as_ref().unwrap().report().lists;
            lists.iter().any(|list| list.url == "http://127.0.0.1:9/list.json")
        };
        let agents = "[agents]\nregistry_extra = \"crawlers.toml\"\n";
        let served = Sites::open(&of(""), false, &Log::nowhere()).unwrap();
        // A site whose file is missing is found out last.
        let missing = "[[site]]\nname = \"b\"\nhosts = [\"b.test\"]\nroot = \".\"\n\
                       robots = { path = \"missing.txt\", on_missing = \"fail\" }\n";
        served.renew(&of(&format!("{missing}{agents}"))).unwrap_err();
        assert!(!is_followed(&served));
        let renewal = served.renew(&of(agents)).unwrap();
        assert!(!is_followed(&served), "it may still be abandoned");
        renewal.apply_settings(&served);
        assert!(is_followed(&renewal.sites));
    }

    #[test]
    fn a_site_with_another_name_and_the_same_hosts_keeps_its_switch() {
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            let of = |name: &str, host: &str| {
                let config = config(folder.path(), state, "robots.text = \"# a\"");
                let named = format!("name = \"{name}\"\nhosts = [\"{host}\"]");
                let path = folder.path().join("robotsd.toml");
                std::fs::write(&path, config.text.replace("name = \"a\"", &named)).unwrap();
                Config::load(&path).unwrap()
            };
            let served = Sites::open(&of("shop", "shop.test"), false, &Log::nowhere()).unwrap();
            served.enforce(Some("shop"), Enforcement::Off).unwrap();
            let renamed = served.renew(&of("store", "shop.test")).unwrap();
            assert_eq!(switches(&renamed.sites), [Enforcement::Off]);
            let want = "site \"store\" is new, has hosts of \"shop\" and goes on from its versions, switched off as that was: `robotsd \
                        enforce on --site store` turns it on";
            assert_eq!(renamed.come_and_gone[0], want);
            let other = served.renew(&of("other", "other.test")).unwrap();
            assert_eq!(switches(&other.sites), [Enforcement::On]);
            let want = ["site \"other\" is new", "site \"shop\" is gone, and its kill switch, which was off, with it"];
            assert_eq!(other.come_and_gone, want);
        }
    }

    #[test]
    fn a_site_that_is_renamed_while_a_version_waits_keeps_what_is_live_what_waits_and_its_history() {
        const GOOD: &str = "User-agent: *\nDisallow: /cart/\n";
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("r.txt");
            std::fs::write(&file, GOOD).unwrap();
            let of = |name: &str, hosts: &str| {
                let config = config(folder.path(), &format!("{state}[gate]\n"), "robots.path = \"r.txt\"");
                let named = format!("name = \"{name}\"\nhosts = [{hosts}]");
                let path = folder.path().join("robotsd.toml");
                std::fs::write(&path, config.text.replace("name = \"a\"", &named)).unwrap();
                Config::load(&path).unwrap()
            };
            let only = |sites: &Sites| sites.lives().next().unwrap().robots;
            // On the disk entries are dated to the millisecond.
            let entries = |sites: &Sites| -> Vec<_> {
                let history = only(sites).history();
                history
                    .into_iter()
                    .map(|entry| (entry.when.duration_since(UNIX_EPOCH).unwrap().as_millis(), entry.detail))
                    .collect()
            };
            let is_as_before = |sites: &Sites, before: &[(u128, String)]| {
                let status = only(sites).status();
                let body = only(sites).snapshot().content.as_ref().map(|content| content.body().to_vec());
                assert_eq!(body.as_deref(), Some(GOOD.as_bytes()), "{status:?}");
                assert!(status.pending.is_some(), "{status:?}");
                let entries = entries(sites);
                assert!(
                    entries.starts_with(before) && entries.iter().collect::<HashSet<_>>().len() == entries.len(),
                    "{entries:#?}"
                );
                entries
            };
            let own = r#""shop.test", "www.shop.test""#;
            let mut served = Arc::new(Sites::open(&of("shop", own), false, &Log::nowhere()).unwrap());
            std::fs::write(&file, "User-agent: *\nDisallow: /\n").unwrap();
            let _ = only(&served).reload_blocking();
            let mut known = is_as_before(&served, &[]);
            // One host less, one more, and the name of before, under which the directory has its older state.
            let renamed = [("store", r#""shop.test""#), ("mall", r#""new.test", "shop.test""#), ("shop", own)];
            for (name, hosts) in renamed {
                let was = served.iter().next().unwrap().name.to_string();
                let renewal = served.renew(&of(name, hosts)).unwrap();
                let want = format!("site {name:?} is new, has hosts of {was:?} and goes on from its versions");
                assert_eq!(renewal.come_and_gone[0], want);
                known = is_as_before(&renewal.sites, &known);
                served = renewal.sites;
            }
            if !state.is_empty() {
                drop(served);
                let started = Sites::open(&of("shop", own), false, &Log::nowhere()).unwrap();
                known = is_as_before(&started, &known);
                drop(started);
                // At a start the directory knows names alone: its folder is called otherwise too.
                let sites = folder.path().join("state/sites");
                std::fs::rename(sites.join("shop"), sites.join("outlet")).unwrap();
                let started = Sites::open(&of("outlet", own), false, &Log::nowhere()).unwrap();
                is_as_before(&started, &known);
                served = Arc::new(started);
            }
            // Hosts of its own, or of a site that stays, are nobody's versions.
            let other = served.renew(&of("other", r#""other.test""#)).unwrap();
            assert!(only(&other.sites).snapshot().content.is_none());
            assert_eq!(other.come_and_gone[0], "site \"other\" is new");
        }
    }

    #[test]
    fn every_host_of_a_folder_that_is_renamed_keeps_its_versions() {
        let folder = tempfile::tempdir().unwrap();
        let each = folder.path().join("each");
        std::fs::create_dir(&each).unwrap();
        std::fs::write(each.join("one.test.txt"), "User-agent: *\nDisallow: /cart/\n").unwrap();
        let robots = "robots.source = \"directory\"\nrobots.path = \"each\"";
        let mut config = config(folder.path(), "state_dir = \"state\"\n[gate]\n", robots);
        let served = Sites::open(&config, false, &Log::nowhere()).unwrap();
        std::fs::write(each.join("one.test.txt"), "User-agent: *\nDisallow: /\n").unwrap();
        config.sites[0].name = "b".to_owned();
        let renewal = served.renew(&config).unwrap();
        let live = renewal.sites.lives().next().unwrap();
        let body = live.robots.snapshot().content.as_ref().map(|content| content.body().to_vec()).unwrap();
        assert_eq!((&*live.name, body.ends_with(b"/cart/\n")), ("b/one.test", true));
        assert!(live.robots.status().pending.is_some());
        // One that comes once the sites are swapped has nobody's.
        drop(served);
        std::fs::write(each.join("two.test.txt"), "User-agent: *\nDisallow: /x/\n").unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        // It is opened once it is not being written any more.
        while !renewal.sites.lives().any(|live| live.name == "b/two.test") {
            assert!(std::time::Instant::now() < end);
            renewal.sites.iter().for_each(|site| site.robots.rescan());
            std::thread::yield_now();
        }
    }

    #[test]
    fn sites_that_are_taken_back_stand_as_another_process_has_left_them() {
        let folder = tempfile::tempdir().unwrap();
        let (each, gone) = (folder.path().join("each"), folder.path().join("gone"));
        std::fs::create_dir(&each).unwrap();
        std::fs::write(each.join("one.test.txt"), "User-agent: *\n").unwrap();
        let robots = "robots.source = \"directory\"\nrobots.path = \"each\"";
        let config = config(folder.path(), "state_dir = \"state\"\n", robots);
        let mut served = Arc::new(Sites::open(&config, false, &Log::nowhere()).unwrap());
        for (to, can_be_read) in [(Enforcement::Off, true), (Enforcement::On, true), (Enforcement::Off, false)] {
            assert!(served.state.directory.as_ref().unwrap().hand_over(std::time::Duration::from_secs(20)));
            let other = Sites::open(&config, false, &Log::nowhere()).unwrap();
            assert!(served.take_back(&config).is_err(), "the other has the state directory open");
            other.enforce(None, to).unwrap();
            other.enforce(Some("a/one.test"), to).unwrap();
            drop(other);
            if !can_be_read {
                // The sites of before go on, with the switches of the other.
                std::fs::rename(&each, &gone).unwrap();
            }
            let renewal = served.take_back(&config).unwrap();
            renewal.apply_settings(&served);
            assert_eq!(renewal.sites.state.switch(), to);
            assert_eq!(switches(&renewal.sites), [to]);
            served = renewal.sites;
            // It writes again, and alone.
            assert!(Sites::open(&config, false, &Log::nowhere()).is_err());
            served.enforce(None, to).unwrap();
        }
    }

    #[test]
    fn a_switch_that_is_turned_while_sites_are_swapped_is_not_lost() {
        const FILE: &str = "robots.text = \"User-agent: *\"";
        const DIRECTORY: &str = "robots.source = \"directory\"\nrobots.path = \"each\"";
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("each")).unwrap();
            for host in ["one.test.txt", "two.test.txt"] {
                std::fs::write(folder.path().join("each").join(host), "User-agent: *\n").unwrap();
            }
            let served = Sites::open(&config(folder.path(), state, FILE), false, &Log::nowhere()).unwrap();
            served.enforce(Some("a"), Enforcement::Off).unwrap();
            // A source that takes the place of another is switched as that was.
            let other = format!("{FILE}\nrobots.max_age = \"7m\"");
            let renewal = served.renew(&config(folder.path(), state, &other)).unwrap();
            renewal.apply_settings(&served);
            assert_eq!(switches(&renewal.sites), [Enforcement::Off]);
            // The sites are open and not yet swapped.
            served.enforce(Some("a"), Enforcement::On).unwrap();
            assert_eq!(switches(&renewal.sites), [Enforcement::On]);
            // They are swapped, and a request that began before still holds the sites before.
            let swapped = renewal.sites;
            served.enforce(Some("a"), Enforcement::Off).unwrap();
            assert_eq!((switches(&served), switches(&swapped)), (vec![Enforcement::Off], vec![Enforcement::Off]));
            drop(served);
            // So is every host of a directory.
            let hosts = swapped.renew(&config(folder.path(), state, DIRECTORY)).unwrap().sites;
            assert_eq!(switches(&hosts), [Enforcement::Off; 2]);
            hosts.enforce(Some("a/one.test"), Enforcement::On).unwrap();
            assert_eq!(switches(&hosts), [Enforcement::On, Enforcement::Off]);
        }
    }
}
