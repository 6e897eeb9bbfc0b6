//! Creates the sites of a config that replaces another config.
//!
//! Everything that is equal in both configs keeps its state. A robots.txt keeps its versions,
//! history and cache of agents, and upstreams keep their health and connections. The served sites
//! do not change until the new sites have been opened without errors.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::live::{Gate, VersionHashPrefix, WhenMissing};

use super::appended_parts::FollowedRegistry;
use super::gate_settings::GateSettings;
use super::inheritance::Inheritance;
use super::robots_opener::RobotsOpener;
use super::sender_evidence::SenderEvidence;
use super::served_site::ServedSite;
use super::site_list::{Sites, hooks_of, renewed_rate_store};
use super::site_opener::{SiteBackends, SiteOpener};
use super::site_robots::{LiveSite, SiteRobots, SiteSettings};
use crate::config::{Config, SiteConfig, extended_registry};
use crate::webhooks::SiteHooks;

/// Maximum number of sources that are opened at the same time. Opening a URL takes as long as its
/// server needs to respond.
const MAX_CONCURRENT_OPENS: usize = 16;

#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) sites: Arc<Sites>,
    registry: Arc<Registry>,
    /// Versions of the published registry that are accepted even if they differ a lot from the
    /// current version.
    accept: Vec<VersionHashPrefix>,
    hooks: Vec<(String, SiteHooks)>,
    /// New settings of each robots.txt that is already served.
    settings: Vec<(Arc<SiteRobots>, SiteSettings)>,
    pub(crate) added_and_removed: Vec<String>,
    pub(crate) altered: Vec<String>,
    /// New sources that cannot be used: their sites keep the previous sources.
    pub(crate) unusable: Vec<UnusableSource>,
}

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("site {site:?}: {why}; the site keeps its previous source")]
pub(crate) struct UnusableSource {
    pub(crate) site: String,
    why: String,
}

struct PlannedSite<'a> {
    site: &'a SiteConfig,
    before: Option<&'a ServedSite>,
    settings: SiteSettings,
    gate_settings: GateSettings,
    backends: SiteBackends,
}

/// The robots.txt of a site. If the site's new source cannot be used, this is the previous
/// robots.txt, together with the reason.
type OpenedSource = Result<(Arc<SiteRobots>, Option<String>), String>;

impl Sites {
    /// Creates the sites of a new config. Blocks while it reads files. If a site already has a
    /// robots.txt and its new source is a URL, also blocks while it fetches that source.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the registry, a gate, a new site or a backend
    /// cannot be used.
    pub(crate) fn renew(&self, config: &Config) -> Result<Renewal, String> {
        let held = self.opener();
        let (registry, followed) = self.renew_sources(&held, config)?;
        let before: HashMap<&str, &ServedSite> = self.iter().map(|site| (&*site.name, site)).collect();
        let inherited = || {
            let find = |name: &str| before.get(name).map(|site| site.robots.former()).unwrap_or_default();
            Inheritance::new(config, &self.hosts(), find)
        };
        let inheritance = Arc::new(inherited());
        let opener = held.with(registry, followed, config.gate.clone()).inheriting(&inheritance);
        let evidence = SenderEvidence::renewed(self.evidence.as_ref(), config, &opener.registry, &self.log)?;
        let rate_store = renewed_rate_store(self.rate_store.as_ref(), config, &self.log)?;

        // Everything except the sources is checked before a source is opened, because opening takes
        // long.
        let sites = SiteOpener::new(config, evidence.as_ref(), &self.log, self.privacy);
        let mut planned = Vec::with_capacity(config.sites.len());
        for site in &config.sites {
            let same = before.get(&*site.name).copied();
            let predecessor = || before.get(inheritance.predecessor(&site.name)?).copied();
            let gate_before = same.or_else(predecessor).map(|before| &before.gate);
            let gate_settings = opener.gate_settings(site, gate_before);
            let gate = self.gate(&gate_settings, &opener, site, gate_before)?;
            let settings = opener.site_settings(site, gate);
            let backends = sites.backends(site, same)?;
            planned.push(PlannedSite { site, before: same, settings, gate_settings, backends });
        }
        let sources = self.open_sources(&opener, &planned);

        // The inheritance is determined again, because kill switches may have changed while the
        // sources were opened.
        let inheritance = inherited();
        let mut renewed = Vec::with_capacity(config.sites.len());
        let mut applied = Vec::new();
        let (mut added_and_removed, mut unusable) = (Vec::new(), Vec::new());
        let mut altered = self.evidence.as_ref().map(|before| before.changed_lists(config)).unwrap_or_default();
        for (PlannedSite { site, before, settings, gate_settings, backends }, source) in
            planned.into_iter().zip(sources)
        {
            let (robots, why) = source.map_err(|error| format!("site {:?}: {error}", site.name))?;
            if before.is_some() {
                applied.push((robots.clone(), settings));
            }
            let mut made = sites.assemble(site, (gate_settings, robots), backends, before);
            if let (Some(why), Some(before)) = (why, before) {
                unusable.push(UnusableSource { site: site.name.clone(), why });
                made.keep_source_of(before);
            }
            match before {
                Some(before) => altered.extend(change_message(before, &made)),
                None => {
                    inheritance.turn_off(&made.name, &made.robots);
                    added_and_removed.push(inheritance.new_site_message(&made));
                }
            }
            renewed.push(made);
        }
        let names: HashSet<&str> = config.sites.iter().map(|site| &*site.name).collect();
        added_and_removed.extend(self.iter().filter(|site| !names.contains(&*site.name)).map(removal_message));
        let registry = opener.registry.clone();
        let sites = Arc::new(Sites::new(renewed, config, opener, (evidence, rate_store), &self.log, self.privacy));
        Ok(Renewal {
            sites,
            hooks: hooks_of(config).collect(),
            registry,
            accept: config.registry_accept.clone(),
            settings: applied,
            added_and_removed,
            altered,
            unusable,
        })
    }

    /// Opens the sources of sites, at most [`MAX_CONCURRENT_OPENS`] at a time. No thread is started
    /// if no source has changed.
    fn open_sources(&self, opener: &RobotsOpener, planned: &[PlannedSite<'_>]) -> Vec<OpenedSource> {
        let open = |planned: &PlannedSite<'_>| self.source(opener, planned.site, &planned.settings, planned.before);
        let is_kept =
            |planned: &PlannedSite<'_>| planned.before.is_some_and(|before| before.has_source_of(planned.site));
        let mut sources = Vec::with_capacity(planned.len());
        for some in planned.chunks(MAX_CONCURRENT_OPENS) {
            if some.iter().all(is_kept) {
                sources.extend(some.iter().map(open));
            } else {
                sources.extend(in_parallel(some, open));
            }
        }
        sources
    }

    fn renew_sources(
        &self,
        held: &RobotsOpener,
        config: &Config,
    ) -> Result<(Arc<Registry>, Option<FollowedRegistry>), String> {
        let (were, are) = (&self.registry, &config.registry);
        let followed =
            if were.published == are.published { held.followed.clone() } else { held.follow_registry(config)? };
        if were == are {
            // The content of the sources is watched separately, so it is not read here.
            return Ok((held.registry.clone(), followed));
        }
        let base = followed.as_ref().map_or_else(|| Registry::builtin().clone(), FollowedRegistry::registry);
        let registry = extended_registry(&base, are.extra.as_deref()).map_err(|error| error.to_string())?;
        Ok((registry, followed))
    }

    /// Returns the gate of a site. If the expectations file can no longer be used and its path has
    /// not changed, returns the last usable gate, so that the config is still accepted.
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
        let held = same.and_then(|before| before.last_gate.lock().clone());
        let held = held.ok_or_else(|| format!("site {:?}: {error}", site.name))?;
        settings.reject_expectations(&error);
        *settings.last_gate.lock() = Some(held.clone());
        Ok(held)
    }

    fn source(
        &self,
        opener: &RobotsOpener,
        site: &SiteConfig,
        settings: &SiteSettings,
        before: Option<&ServedSite>,
    ) -> OpenedSource {
        if let Some(before) = before.filter(|before| before.has_source_of(site)) {
            return Ok((before.robots.clone(), None));
        }
        let is_live = |live: &LiveSite| live.robots.with(|snapshot| snapshot.content.is_some());
        // If the site has a live version and its new source is not usable immediately, the site
        // keeps its previous source.
        let live = before.filter(|before| before.live_sites().iter().any(is_live));
        let when_missing = match live {
            Some(_) => WhenMissing::Fail,
            None => site.when_missing,
        };
        match (opener.open(site, settings.clone(), when_missing), live) {
            (Ok(robots), _) => Ok((robots, None)),
            (Err(why), Some(before)) => Ok((before.robots.clone(), Some(why))),
            (Err(why), None) => Err(why),
        }
    }
}

impl Renewal {
    /// Applies the new settings to every robots.txt that is already served, and makes the new sites
    /// the successors of `before`. Blocks while rules are compiled, but does not read files.
    pub(crate) fn apply_settings(&self, before: &Sites) {
        before.hand_over(&self.sites);
        if let Some(hooks) = self.sites.hooks() {
            hooks.set(self.hooks.iter().cloned());
        }
        self.sites.opener().followed.iter().for_each(|followed| followed.accept(&self.accept));
        self.settings.iter().for_each(|(robots, settings)| robots.apply(settings));
        if let Some(evidence) = &self.sites.evidence {
            evidence.apply(&self.registry);
        }
        // If the registry was read again in the meantime, the steps above may have replaced it with
        // an older registry. So this loop applies the current registry until it no longer changes.
        let mut applied = self.registry.clone();
        loop {
            let current = self.sites.opener().registry;
            if Arc::ptr_eq(&current, &applied) {
                return;
            }
            self.sites.iter().for_each(|site| site.set_registry(&current));
            if let Some(evidence) = &self.sites.evidence {
                // The registry was already checked when it was read.
                let _ = evidence.follow(&current);
            }
            applied = current;
        }
    }
}

/// Describes a removed site. If the site's enforcement was switched off, the switch stays in the
/// state directory, without effect.
fn removal_message(gone: &ServedSite) -> String {
    let switch = if gone.is_off() { "; its off switch no longer has any effect" } else { "" };
    format!("site {:?} is removed{switch}", &*gone.name)
}

fn change_message(before: &ServedSite, site: &ServedSite) -> Option<String> {
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
    (!parts.is_empty()).then(|| format!("site {:?} has changed: {}", &*site.name, parts.join(", ")))
}

/// Calls a function for each item, in one thread per item.
pub(crate) fn in_parallel<T: Sync, R: Send>(work: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = work.iter().map(|item| scope.spawn(move || each(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|cause| resume_unwind(cause))).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use tower_robots::internals::Attribution;
    use tower_robots::live::Enforcement;

    use super::super::dry_run::{DryRun, find_problems};
    use super::super::inheritance::save_hosts;
    use super::super::operator_changes::accept_unserved;
    use super::*;
    use crate::log::Log;

    fn config(folder: &std::path::Path, state: &str, robots: &str) -> Config {
        let path = folder.join("robotsd.toml");
        let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
        let text = format!("{state}{listener}[[site]]\nname = \"a\"\nroot = \".\"\n{robots}\n");
        std::fs::write(&path, text).unwrap();
        Config::load(&path).unwrap()
    }

    fn switches(sites: &Sites) -> Vec<Enforcement> {
        sites.live_sites().map(|live| live.robots.status().switch).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_registry_that_is_reloaded_while_sites_are_swapped_is_not_lost() {
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
            for live in sites.live_sites() {
                let snapshot = live.robots.snapshot();
                let agents = snapshot.content.as_ref().unwrap().agents(name.as_bytes());
                assert!(agents.first().is_registered(), "{name} of {}", live.name);
            }
        };
        rows("FirstThing");
        let served = Arc::new(Sites::open(&of(""), false, &Log::without_output()).unwrap());
        knows(&served, "FirstThing");

        let renewal = served.renew(&of(new_site)).unwrap();
        rows("SecondThing");
        assert_eq!(served.reload(None).await.unwrap().registry.unwrap().outcome, "published");
        renewal.apply_settings(&served);
        knows(&renewal.sites, "SecondThing");
        // The registry changes after the settings were applied, but before the sites are swapped.
        rows("ThirdThing");
        served.reload(None).await.unwrap();
        knows(&renewal.sites, "ThirdThing");
        let next = renewal.sites.renew(&of("")).unwrap();
        next.apply_settings(&renewal.sites);
        rows("FourthThing");
        served.reload(None).await.unwrap();
        knows(&next.sites, "FourthThing");

        // Sites whose config has other sources of the registry must not be affected.
        let other = config(folder.path(), "", robots);
        let without = next.sites.renew(&other).unwrap();
        without.apply_settings(&next.sites);
        rows("FifthThing");
        next.sites.reload(None).await.unwrap();
        assert!(without.sites.opener().registry.crawler("FifthThing").is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_config_that_is_rejected_late_does_not_change_which_address_lists_are_used() {
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
        let served = Sites::open(&of(""), false, &Log::without_output()).unwrap();
        let missing = "[[site]]\nname = \"b\"\nhosts = [\"b.test\"]\nroot = \".\"\n\
                       robots = { path = \"missing.txt\", on_missing = \"fail\" }\n";
        served.renew(&of(&format!("{missing}{agents}"))).unwrap_err();
        assert!(!is_followed(&served));
        let renewal = served.renew(&of(agents)).unwrap();
        assert!(!is_followed(&served), "the new config may still be rejected");
        renewal.apply_settings(&served);
        assert!(is_followed(&renewal.sites));
    }

    #[test]
    fn a_changed_grace_period_does_not_change_since_when_a_version_is_live() {
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            let of = |more: &str, rules: &str| {
                let robots = format!("robots.text = \"User-agent: *\\nDisallow: /a{rules}\"");
                config(folder.path(), &format!("{state}{more}"), &robots)
            };
            let since = |sites: &Sites| sites.live_sites().next().unwrap().robots.status().since;
            let served = Sites::open(&of("", ""), false, &Log::without_output()).unwrap();
            let graced = served.renew(&of("grace = \"1h\"\n", "")).unwrap();
            assert_eq!(since(&graced.sites), since(&served));
            let changed = graced.sites.renew(&of("grace = \"1h\"\n", "\\nDisallow: /b")).unwrap();
            assert!(since(&changed.sites) > since(&served));
        }
    }

    #[test]
    fn a_renamed_site_with_the_same_hosts_keeps_its_kill_switch() {
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            let of = |name: &str, host: &str| {
                let config = config(folder.path(), state, "robots.text = \"# a\"");
                let named = format!("name = \"{name}\"\nhosts = [\"{host}\"]");
                let path = folder.path().join("robotsd.toml");
                std::fs::write(&path, config.text.replace("name = \"a\"", &named)).unwrap();
                Config::load(&path).unwrap()
            };
            let served = Sites::open(&of("shop", "shop.test"), false, &Log::without_output()).unwrap();
            served.enforce(Some("shop"), Enforcement::Off).unwrap();
            let renamed = served.renew(&of("store", "shop.test")).unwrap();
            assert_eq!(switches(&renamed.sites), [Enforcement::Off]);
            let want = "site \"store\" is new. It has hosts of the site \"shop\", and continues with the versions of that site; enforcement is \
                        off, because it was switched off for these hosts before: to switch it on, run `robotsd enforce on --site store`";
            assert_eq!(renamed.added_and_removed[0], want);
            let other = served.renew(&of("other", "other.test")).unwrap();
            assert_eq!(switches(&other.sites), [Enforcement::On]);
            let want = ["site \"other\" is new", "site \"shop\" is removed; its off switch no longer has any effect"];
            assert_eq!(other.added_and_removed, want);
        }
    }

    #[test]
    fn a_renamed_site_keeps_its_live_version_pending_version_and_history() {
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
            let only = |sites: &Sites| sites.live_sites().next().unwrap().robots;
            // The disk stores times in milliseconds.
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
                assert!(entries.starts_with(before), "{entries:#?}");
                assert!(entries.iter().collect::<HashSet<_>>().len() == entries.len(), "{entries:#?}");
                entries
            };
            let own = r#""shop.test", "www.shop.test""#;
            let mut served = Arc::new(Sites::open(&of("shop", own), false, &Log::without_output()).unwrap());
            std::fs::write(&file, "User-agent: *\nDisallow: /\n").unwrap();
            let _ = only(&served).reload_blocking();
            let mut known = is_as_before(&served, &[]);
            // When the site gets its first name back, the state directory still contains older
            // state under that name.
            let renamed = [("store", r#""shop.test""#), ("mall", r#""new.test", "shop.test""#), ("shop", own)];
            for (name, hosts) in renamed {
                let was = served.iter().next().unwrap().name.to_string();
                let renewal = served.renew(&of(name, hosts)).unwrap();
                let want = format!(
                    "site {name:?} is new. It has hosts of the site {was:?}, and continues with the versions of that site"
                );
                assert_eq!(renewal.added_and_removed[0], want);
                known = is_as_before(&renewal.sites, &known);
                served = renewal.sites;
            }
            if !state.is_empty() {
                drop(served);
                let started = Sites::open(&of("shop", own), false, &Log::without_output()).unwrap();
                known = is_as_before(&started, &known);
                drop(started);
                // A start reads the state of the previous site, so its folder is renamed, too.
                let sites = folder.path().join("state/sites");
                std::fs::rename(sites.join("shop"), sites.join("outlet")).unwrap();
                let started = Sites::open(&of("outlet", own), false, &Log::without_output()).unwrap();
                is_as_before(&started, &known);
                served = Arc::new(started);
            }
            let other = served.renew(&of("other", r#""other.test""#)).unwrap();
            assert!(only(&other.sites).snapshot().content.is_none());
            assert_eq!(other.added_and_removed[0], "site \"other\" is new");
        }
    }

    #[test]
    fn a_host_moved_into_a_new_site_keeps_its_versions_and_so_does_the_previous_site() {
        const ONE: &str = "User-agent: *\nDisallow: /cart/\n";
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            for (file, text) in
                [("one", ONE), ("two", "User-agent: *\nDisallow: /x/\n"), ("shut", "User-agent: *\nDisallow: /\n")]
            {
                std::fs::write(folder.path().join(file), text).unwrap();
            }
            let of = |sites: &[(&str, &str, &str)]| {
                let site = |(name, hosts, file): &(&str, &str, &str)| {
                    let hosts: Vec<_> = hosts.split_whitespace().collect();
                    format!("[[site]]\nname = {name:?}\nhosts = {hosts:?}\nroot = \".\"\nrobots.path = {file:?}\n")
                };
                let sites: String = sites.iter().map(site).collect();
                let path = folder.path().join("robotsd.toml");
                let listener = "[gate]\n[[listener]]\naddress = \"127.0.0.1:0\"\n";
                std::fs::write(&path, format!("{state}{listener}{sites}")).unwrap();
                Config::load(&path).unwrap()
            };
            let stands = |sites: &Sites, name: &str| {
                let robots = sites.live(name).unwrap().1.robots;
                let (status, snapshot) = (robots.status(), robots.snapshot());
                let body = snapshot.content.as_ref().map(|content| String::from_utf8(content.body().to_vec()).unwrap());
                (body, status.pending.is_some(), status.switch)
            };
            let served = of(&[("one", "a.test b.test", "one"), ("two", "c.test d.test", "two")]);
            let served = Sites::open(&served, false, &Log::without_output()).unwrap();
            served.enforce(Some("two"), Enforcement::Off).unwrap();
            let history = served.live("one").unwrap().1.robots.history().len();
            let moved = of(&[
                ("one", "a.test", "one"),
                ("two", "d.test", "two"),
                ("mixed", "new.test b.test c.test", "shut"),
                ("third", "c2.test", "shut"),
            ]);
            let renewal = served.renew(&moved).unwrap();
            let want = [
                "site \"mixed\" is new. It has hosts of the site \"one\", and continues with the versions of that site; enforcement is off, \
                 because it was switched off for these hosts before: to switch it on, run `robotsd enforce on --site mixed`",
                "site \"third\" is new",
            ];
            assert_eq!(renewal.added_and_removed, want);
            let mixed = (Some(ONE.to_owned()), true, Enforcement::Off);
            assert_eq!(stands(&renewal.sites, "mixed"), mixed, "enforcement was off for one of its hosts");
            assert_eq!(stands(&renewal.sites, "one"), (Some(ONE.to_owned()), false, Enforcement::On));
            assert_eq!(served.live("one").unwrap().1.robots.history().len(), history);
            assert_eq!(stands(&renewal.sites, "third"), (None, true, Enforcement::On));
            if !state.is_empty() {
                drop((served, renewal));
                let started = Sites::open(&moved, false, &Log::without_output()).unwrap();
                assert_eq!(stands(&started, "mixed"), mixed);
            }
        }
    }

    #[test]
    fn a_host_split_from_a_pattern_keeps_its_versions_if_the_robots_txt_is_the_same() {
        const OPEN: &str = "User-agent: *\nDisallow: /cart/\n";
        for (state, wide) in [("", "hosts = [\"*.a.test\"]\n"), ("state_dir = \"state\"\n", "")] {
            let folder = tempfile::tempdir().unwrap();
            let of = |sites: &[(&str, &str, &str)]| {
                let site = |(name, hosts, file): &(&str, &str, &str)| {
                    format!("[[site]]\nname = {name:?}\nroot = \".\"\n{hosts}robots.path = {file:?}\n")
                };
                let sites: String = sites.iter().map(site).collect();
                let path = folder.path().join("robotsd.toml");
                std::fs::write(&path, format!("{state}[gate]\n[[listener]]\naddress = \"127.0.0.1:0\"\n{sites}"))
                    .unwrap();
                Config::load(&path).unwrap()
            };
            let stands = |sites: &Sites, name: &str| {
                let robots = sites.live(name).unwrap().1.robots;
                let body = robots.snapshot().content.as_ref().map(|content| content.body().to_vec());
                (body.map(|body| String::from_utf8(body).unwrap()), robots.status().pending.is_some())
            };
            std::fs::write(folder.path().join("one"), OPEN).unwrap();
            std::fs::write(folder.path().join("two"), "User-agent: *\nDisallow: /two/\n").unwrap();
            let served = Sites::open(&of(&[("wide", wide, "one")]), false, &Log::without_output()).unwrap();
            std::fs::write(folder.path().join("one"), "User-agent: *\nDisallow: /\n").unwrap();
            let _ = served.live_sites().next().unwrap().robots.reload_blocking();
            let (own, other) = ("hosts = [\"own.a.test\"]\n", "hosts = [\"other.a.test\"]\n");
            let parted = of(&[("wide", wide, "one"), ("own", own, "one"), ("other", other, "two")]);
            let renewal = served.renew(&parted).unwrap();
            let want = [
                "site \"own\" is new. It has hosts of the site \"wide\", and continues with the versions of that site",
                "site \"other\" is new",
            ];
            assert_eq!(renewal.added_and_removed, want);
            for name in ["wide", "own"] {
                assert_eq!(stands(&renewal.sites, name), (Some(OPEN.to_owned()), true), "{name}");
            }
            assert_eq!(stands(&renewal.sites, "other"), (Some("User-agent: *\nDisallow: /two/\n".to_owned()), false));
        }
    }

    #[test]
    fn a_site_renamed_between_two_processes_keeps_its_pending_version_and_kill_switch() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.txt");
        std::fs::write(&file, "User-agent: *\nDisallow: /cart/\n").unwrap();
        let mut config = config(folder.path(), "state_dir = \"state\"\n[gate]\n", "robots.path = \"r.txt\"");
        let served = Sites::open(&config, false, &Log::without_output()).unwrap();
        served.enforce(Some("a"), Enforcement::Off).unwrap();
        std::fs::write(&file, "User-agent: *\nDisallow: /\n").unwrap();
        let _ = served.live_sites().next().unwrap().robots.reload_blocking();
        save_hosts(served.state.directory.as_ref().unwrap(), &served.hosts());
        drop(served);
        let mut waiting = String::new();
        for name in ["b", "b", "c"] {
            // The second start must find the state that the first start has saved.
            config.sites[0].name = name.to_owned();
            let said = format!("{:?}", find_problems(&config, DryRun::AsServed));
            let want = format!("enforcement is switched off: to switch it on, run `robotsd enforce on --site {name}`");
            assert!(said.contains(&want), "{said}");
            let started = Sites::open(&config, false, &Log::without_output()).unwrap();
            let live = started.live_sites().next().unwrap();
            let (status, body) =
                (live.robots.status(), live.robots.snapshot().content.as_ref().map(|of| of.body().to_vec()));
            assert!(body.unwrap().ends_with(b"/cart/\n") && status.pending.is_some(), "{status:?}");
            assert_eq!((&*live.name, status.switch), (name, Enforcement::Off));
            waiting = status.pending.unwrap().hash().short().to_string();
            save_hosts(started.state.directory.as_ref().unwrap(), &started.hosts());
        }
        // A decision about a renamed site is made while no process serves. The decision must belong
        // to the new site, even if an earlier site had the same name.
        let hash = waiting.parse().unwrap();
        config.sites[0].name = "e".to_owned();
        let _ = accept_unserved(&config, "e", &hash, &Attribution::default()).unwrap();
        for name in ["e", "a"] {
            config.sites[0].name = name.to_owned();
            let started = Sites::open(&config, false, &Log::without_output()).unwrap();
            let live = started.live_sites().next().unwrap().robots;
            let body = live.snapshot().content.as_ref().map(|of| of.body().to_vec());
            assert!(body.unwrap().ends_with(b"Disallow: /\n") && live.status().pending.is_none(), "{name}");
            save_hosts(started.state.directory.as_ref().unwrap(), &started.hosts());
        }
        std::fs::remove_file(folder.path().join("state/hosts.json")).unwrap();
        config.sites[0].name = "d".to_owned();
        let said = format!("{:?}", find_problems(&config, DryRun::AsServed));
        assert!(said.contains("no site has this name"), "{said}");
    }

    #[test]
    fn the_hosts_of_a_renamed_directory_site_keep_their_versions() {
        let folder = tempfile::tempdir().unwrap();
        let each = folder.path().join("each");
        std::fs::create_dir(&each).unwrap();
        std::fs::write(each.join("one.test.txt"), "User-agent: *\nDisallow: /cart/\n").unwrap();
        let robots = "robots.source = \"directory\"\nrobots.path = \"each\"";
        let mut config = config(folder.path(), "state_dir = \"state\"\n[gate]\n", robots);
        let served = Sites::open(&config, false, &Log::without_output()).unwrap();
        std::fs::write(each.join("one.test.txt"), "User-agent: *\nDisallow: /\n").unwrap();
        config.sites[0].name = "b".to_owned();
        let renewal = served.renew(&config).unwrap();
        let live = renewal.sites.live_sites().next().unwrap();
        let body = live.robots.snapshot().content.as_ref().map(|content| content.body().to_vec()).unwrap();
        assert_eq!((&*live.name, body.ends_with(b"/cart/\n")), ("b/one.test", true));
        assert!(live.robots.status().pending.is_some());
        drop(served);
        std::fs::write(each.join("two.test.txt"), "User-agent: *\nDisallow: /x/\n").unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        // The directory opens a new file only when the file has stopped changing.
        while !renewal.sites.live_sites().any(|live| live.name == "b/two.test") {
            assert!(std::time::Instant::now() < end);
            renewal.sites.iter().for_each(|site| site.robots.rescan());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_kill_switch_set_while_sites_are_swapped_is_not_lost() {
        const FILE: &str = "robots.text = \"User-agent: *\"";
        const DIRECTORY: &str = "robots.source = \"directory\"\nrobots.path = \"each\"";
        for state in ["", "state_dir = \"state\"\n"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("each")).unwrap();
            for host in ["one.test.txt", "two.test.txt"] {
                std::fs::write(folder.path().join("each").join(host), "User-agent: *\n").unwrap();
            }
            let served = Sites::open(&config(folder.path(), state, FILE), false, &Log::without_output()).unwrap();
            served.enforce(Some("a"), Enforcement::Off).unwrap();
            let other = format!("{FILE}\nrobots.max_age = \"7m\"");
            let renewal = served.renew(&config(folder.path(), state, &other)).unwrap();
            renewal.apply_settings(&served);
            assert_eq!(switches(&renewal.sites), [Enforcement::Off]);
            // The switch changes while the new sites are open, but before they are swapped.
            served.enforce(Some("a"), Enforcement::On).unwrap();
            assert_eq!(switches(&renewal.sites), [Enforcement::On]);
            // An earlier request may still hold the previous sites and change the switch through
            // them.
            let swapped = renewal.sites;
            served.enforce(Some("a"), Enforcement::Off).unwrap();
            assert_eq!((switches(&served), switches(&swapped)), (vec![Enforcement::Off], vec![Enforcement::Off]));
            drop(served);
            let hosts = swapped.renew(&config(folder.path(), state, DIRECTORY)).unwrap().sites;
            assert_eq!(switches(&hosts), [Enforcement::Off; 2]);
            hosts.enforce(Some("a/one.test"), Enforcement::On).unwrap();
            assert_eq!(switches(&hosts), [Enforcement::On, Enforcement::Off]);
        }
    }
}
