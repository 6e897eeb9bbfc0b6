//! The differences between two config files, setting by setting.
//!
//! Both are compared as `config show` prints them, defaults included. So every key that a config can have is here, and one
//! that is added later is, too. Tables that are repeated are distinguished by what names them: a site by its name, a listener
//! by its name or address, a mode by whom it is for.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use toml::{Spanned, Table, Value};
use tower_robots::live::VersionHash;

use super::site::{RawHeader, RawHook, RawRobots};
use super::{RawAdmin, RawConfig, Value as _, reader};
use crate::render::cut;
pub(crate) use crate::report::SettingChange;

/// Characters of a value that are shown: a robots.txt may stand in the config.
const SHOWN: usize = 200;

/// Keys that have effect only when the process starts.
pub(crate) const AT_START: [&str; 6] = ["workers", "state_dir", "admin", "fleet", "board", "log"];

/// Those of them that are opened at once, beside what is open.
const OPENED: [&str; 2] = ["admin.address", "admin.socket"];

/// The tables of `[admin]` that are repeated, which have effect at once: their keys, and how their settings begin.
const ADMIN_TABLES: [(&str, &str); 3] =
    [("listener", "admin.listener"), ("token", "admin.token"), ("user", "admin.user")];

/// The keys that have effect at once: on all listeners of `[admin]`, the names they go by and whether others may reach them; and what
/// only commands read.
const AT_ONCE: [&str; 3] = ["admin.hosts", "admin.reach", "fleet.replicas"];

/// The settings of one table, by key.
#[derive(Debug, Default)]
struct Settings {
    values: Vec<Setting>,
    /// The tables in it that are repeated, in their order.
    tables: Vec<RepeatedTable>,
}

#[derive(Debug)]
struct Setting {
    key: String,
    value: String,
    is_inherited: bool,
}

#[derive(Debug)]
struct RepeatedTable {
    kind: &'static str,
    name: String,
    settings: Settings,
}

/// The differences from one config to another, both as TOML; none where one of them cannot be read.
pub(crate) fn setting_changes(before: &str, after: &str) -> Option<Vec<SettingChange>> {
    if before == after {
        return Some(Vec::new());
    }
    let (before, after) = (Settings::of_config(before)?, Settings::of_config(after)?);
    let mut changes = Vec::new();
    before.compare(&after, None, "", &mut changes);
    Some(changes)
}

impl SettingChange {
    /// Whether it takes effect only when the process starts again.
    pub(crate) fn is_for_start(&self) -> bool {
        let table = self.setting.split('.').next().unwrap_or_default();
        let is_opened = OPENED.contains(&&*self.setting) && self.after.is_some();
        let is_now = is_opened || AT_ONCE.contains(&&*self.setting);
        let is_now = is_now || ADMIN_TABLES.iter().any(|(_, start)| self.setting.starts_with(start));
        self.site.is_none() && AT_START.contains(&table) && !is_now
    }

    /// Whether it is about the source of a site's robots.txt.
    pub(crate) fn is_of_source(&self) -> bool {
        self.site.is_some() && self.setting.starts_with("robots.")
    }

    /// Whether a site or a listener has come or gone, rather than changed.
    pub(crate) fn is_of_whole_table(&self) -> bool {
        let is_of_listener = ["listener[", "admin.listener["].iter().any(|start| self.setting.starts_with(start));
        self.setting == "site" || (is_of_listener && self.setting.ends_with(']'))
    }
}

/// In one line: `site "shop": enforcement.mode: refuse → tag`.
impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = &self.site {
            write!(f, "site {site:?}: ")?;
        }
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        match (&self.before, &self.after) {
            (None, Some(_)) if self.setting == "site" => f.write_str("new"),
            (Some(_), None) if self.setting == "site" => f.write_str("gone"),
            (before, after) => write!(f, "{}: {} → {}", self.setting, shown(before), shown(after)),
        }
    }
}

impl Settings {
    fn of_config(text: &str) -> Option<Self> {
        let mut raw: RawConfig = reader::read(text).ok()?;
        // Differences are logged.
        raw.site.iter_mut().for_each(|site| site.get_mut().robots.hide_secrets());
        hide_in_hooks(&mut raw.notify);
        raw.agents.registry_url.iter_mut().for_each(|url| hide_behind(url.get_mut(), QUERY));
        let tokens = raw.admin.iter_mut().flat_map(|admin| &mut admin.token);
        tokens.for_each(|token| *token.hash.get_mut() = mark(token.hash.get_ref()));
        // A table that comes or goes differs in what it sets: its other keys are what they are without it.
        raw.admin = raw.admin.or_else(RawAdmin::absent);
        // Fails for a path that is not UTF-8 only, and a text is.
        let mut config = Table::try_from(&raw).ok()?;
        let mode = config.get("mode").map(shown).unwrap_or_default();
        let (sites, listeners) = (take_tables(&mut config, "site"), take_tables(&mut config, "listener"));
        let mut of_admin = Vec::new();
        if let Some(Value::Table(admin)) = config.get_mut("admin") {
            for (key, kind) in ADMIN_TABLES {
                of_admin.extend(take_tables(admin, key).into_iter().map(|table| (kind, table)));
            }
        }
        // All of it comes and goes at once, and is one change then.
        let identity = config.remove("identity").and_then(|identity| identity.try_into().ok());
        let mut settings = Self::of_table(config);
        if let Some(identity) = identity {
            settings.add("identity", String::new(), Self::of_table(identity));
        }
        let listeners = listeners.into_iter().map(|listener| ("listener", listener));
        for (kind, table) in listeners.chain(of_admin) {
            let name = ["name", "address", "uid", "group"].into_iter().find_map(|key| table.get(key)).map(shown);
            settings.add(kind, name.unwrap_or_default(), Self::of_table(table));
        }
        for (mut site, raw) in sites.into_iter().zip(&raw.site) {
            let name = site.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            site.remove("modes");
            let mut of_site = Self::of_table(site);
            if !of_site.values.iter().any(|setting| setting.key == "enforcement.mode") {
                let (key, value) = ("enforcement.mode".to_owned(), mode.clone());
                of_site.values.push(Setting { key, value, is_inherited: true });
            }
            for exception in &raw.get_ref().modes.0 {
                let modes = Table::try_from(exception.modes.get_ref()).ok()?;
                of_site.add("modes", exception.key.get_ref().clone(), Self::of_table(modes));
            }
            settings.add("site", name, of_site);
        }
        Some(settings)
    }

    fn of_table(table: Table) -> Self {
        let mut settings = Self::default();
        settings.flatten("", table);
        settings
    }

    fn flatten(&mut self, prefix: &str, table: Table) {
        for (key, value) in table {
            let key = format!("{prefix}{key}");
            match value {
                // A date arrives as a table with this one key: `Table::try_from` keeps its wrapping.
                Value::Table(mut table) => match table.remove(DATE) {
                    Some(date) => self.values.push(Setting { key, value: shown(&date), is_inherited: false }),
                    None => self.flatten(&format!("{key}."), table),
                },
                value => self.values.push(Setting { key, value: shown(&value), is_inherited: false }),
            }
        }
    }

    /// Adds a table; the second of a name is `NAME #2`.
    fn add(&mut self, kind: &'static str, name: String, settings: Self) {
        let is_same =
            |other: &str| other.strip_prefix(&*name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" #"));
        let same = self.tables.iter().filter(|table| table.kind == kind && is_same(&table.name)).count();
        let name = if same == 0 { name } else { format!("{name} #{}", same + 1) };
        self.tables.push(RepeatedTable { kind, name, settings });
    }

    fn compare(&self, after: &Self, site: Option<&str>, prefix: &str, changes: &mut Vec<SettingChange>) {
        let change = |setting: String, site: Option<&str>, before: Option<String>, after: Option<String>| {
            SettingChange { site: site.map(str::to_owned), setting, before, after }
        };
        for (then, now) in pairs(&self.values, &after.values, |setting| &*setting.key) {
            let is_same =
                |(then, now): (&Setting, &Setting)| then.value == now.value || (then.is_inherited && now.is_inherited);
            if let Some(either) = now.or(then).filter(|_| !then.zip(now).is_some_and(is_same)) {
                let value = |setting: &Setting| setting.value.clone();
                changes.push(change(format!("{prefix}{}", either.key), site, then.map(value), now.map(value)));
            }
        }
        for (then, now) in pairs(&self.tables, &after.tables, RepeatedTable::identity) {
            let Some(either) = now.or(then) else { continue };
            let (of, setting, inside) = match either.kind {
                "site" => (Some(&*either.name), "site".to_owned(), String::new()),
                _ => (site, format!("{prefix}{}", either.title()), format!("{prefix}{}.", either.title())),
            };
            match then.zip(now) {
                Some((then, now)) => then.settings.compare(&now.settings, of, &inside, changes),
                // The table as a whole has come or gone.
                None => {
                    let summary = RepeatedTable::summary;
                    changes.push(change(setting, of, then.map(summary), now.map(summary)));
                }
            }
        }
        // The last exception that fits counts, so their order is a setting.
        let order = |before: &[RepeatedTable], after: &[RepeatedTable]| -> Vec<String> {
            let common =
                pairs(before, after, RepeatedTable::identity).into_iter().filter_map(|(then, now)| then.and(now));
            common.filter(|table| table.kind == "modes").map(|table| table.name.clone()).collect()
        };
        let (then, now) = (order(&after.tables, &self.tables), order(&self.tables, &after.tables));
        if then != now {
            let (then, now) = (Some(cut(&then.join(", "), SHOWN)), Some(cut(&now.join(", "), SHOWN)));
            changes.push(change(format!("{prefix}modes"), site, then, now));
        }
    }
}

/// The entries of two configs with the same key: in the order of the second, and last those that it does not have.
fn pairs<'s, T, K: Eq + Hash>(
    before: &'s [T],
    after: &'s [T],
    key: fn(&'s T) -> K,
) -> Vec<(Option<&'s T>, Option<&'s T>)> {
    let by_key = |values: &'s [T]| values.iter().map(|value| (key(value), value)).collect::<HashMap<_, _>>();
    let (then, now) = (by_key(before), by_key(after));
    let there = after.iter().map(|value| (then.get(&key(value)).copied(), Some(value)));
    let gone = before.iter().filter(|value| !now.contains_key(&key(value))).map(|value| (Some(value), None));
    there.chain(gone).collect()
}

impl RepeatedTable {
    fn identity(&self) -> (&'static str, &str) {
        (self.kind, &self.name)
    }

    fn title(&self) -> String {
        if self.name.is_empty() { self.kind.to_owned() } else { format!("{}[{}]", self.kind, self.name) }
    }

    /// The value that stands for all of it.
    fn summary(&self) -> String {
        let key = match self.kind {
            "listener" | "admin.listener" => "address",
            "admin.token" | "admin.user" => "role",
            "modes" => "mode",
            "identity" => return "on".to_owned(),
            _ => "name",
        };
        let value = self.settings.values.iter().find(|setting| setting.key == key);
        value.map_or_else(|| self.name.clone(), |setting| setting.value.clone())
    }
}

/// The key in which `toml` wraps a date on its way through serde.
const DATE: &str = "$__toml_private_datetime";

/// Takes the tables of an array out of a table.
fn take_tables(table: &mut Table, key: &str) -> Vec<Table> {
    let Some(Value::Array(values)) = table.remove(key) else { return Vec::new() };
    values.into_iter().filter_map(|value| value.try_into().ok()).collect()
}

/// A text as it is, anything else as TOML has it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text, SHOWN),
        value => cut(value.to_string().trim(), SHOWN),
    }
}

impl RawRobots {
    /// Puts marks in place of what may be a secret: texts that differ have marks that do.
    fn hide_secrets(&mut self) {
        hide_in_hooks(&mut self.on_publish);
        let parts = self.append.iter_mut().filter_map(|part| part.get_mut().url.as_mut());
        parts.chain(&mut self.url).for_each(|url| hide_behind(url.get_mut(), QUERY));
    }
}

fn hide_in_hooks(hooks: &mut [Spanned<RawHook>]) {
    for hook in hooks.iter_mut().map(Spanned::get_mut) {
        hide_behind(hook.url.get_mut(), &['/', '?', '#']);
        hook.body.iter_mut().for_each(|body| *body.get_mut() = mark(body.get_ref()));
        for value in hook.headers.values_mut() {
            if let RawHeader::Text(text) = value.get_mut() {
                *text = mark(text);
            }
        }
    }
}

/// The start of the part of a URL that may hold a key.
const QUERY: &[char] = &['?', '#'];

/// Hides what follows the first of these characters behind the host of a URL, and a password before the host.
fn hide_behind(url: &mut String, from: &[char]) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let authority = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let host = url[start..authority].rfind('@').map_or(start, |at| start + at + 1);
    let end = url[authority..].find(from).map_or(url.len(), |at| authority + at + 1);
    let hidden = [&url[start..host], &url[end..]].concat();
    if !hidden.is_empty() {
        *url = format!("{}{}{}", &url[..start], &url[host..end], mark(&hidden));
    }
}

fn mark(text: &str) -> String {
    let hash = VersionHash::of(text.as_bytes()).to_string();
    format!("…{}", &hash[hash.len() - 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[[listener]]\naddress = \"127.0.0.1:80\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

    fn changes(before: &str, after: &str) -> Vec<String> {
        let changes = setting_changes(before, after).expect("two configs");
        changes.iter().map(ToString::to_string).collect()
    }

    fn with(top: &str, of_site: &str) -> String {
        format!("{top}{HEAD}{of_site}")
    }

    #[test]
    fn a_setting_is_compared_with_its_default() {
        let none = with("", "");
        assert!(changes(&none, &with("mode = \"observe\"\n", "")).is_empty());
        assert_eq!(changes(&none, &with("mode = \"refuse\"\n", "")), ["mode: observe → refuse"]);
        assert_eq!(changes(&none, &with("", "[limits]\ndrain = \"5s\"\n")), ["limits.drain: 30s → 5s"]);
        assert_eq!(changes(&with("workers = 2\n", ""), &none), ["workers: 2 → not set"]);
        let want = ["exempt.paths: [] → [\"/a/\"]"];
        assert_eq!(changes(&none, &with("", "[exempt]\npaths = [\"/a/\"]\n")), want);
    }

    #[test]
    fn what_may_be_a_secret_differs_and_is_not_shown() {
        let hook = |path: &str, header: &str, body: &str| {
            with(
                "",
                &format!(
                    "[[site.robots.on_publish]]\nurl = \"https://u:PASSWORD@api.example.net/{path}\"\n\
                     headers = {{ X-Zone = \"{header}\", Authorization = {{ file = \"token\" }} }}\nbody = \"{body}\"\n\
                     [[site.robots.append]]\nurl = \"https://example.net/ai.txt?key=SECRET1\"\n"
                ),
            )
        };
        let first = hook("zones/SECRET2/purge?key=SECRET3", "SECRET4", "SECRET5");
        let all = changes(&with("", ""), &first).join("\n");
        assert!(!all.contains("SECRET") && !all.contains("PASSWORD"), "{all}");
        for shown in ["https://api.example.net/…", "https://example.net/ai.txt?…", "X-Zone = \"…", "file = \"token\""]
        {
            assert!(all.contains(shown), "{shown}: {all}");
        }
        for other in [
            hook("zones/SECRET2/purge?key=SECRETX", "SECRET4", "SECRET5"),
            hook("zones/SECRET2/purge?key=SECRET3", "SECRETX", "SECRET5"),
            hook("zones/SECRET2/purge?key=SECRET3", "SECRET4", "SECRETX"),
        ] {
            let all = changes(&first, &other);
            assert!(all.len() == 1 && !all[0].contains("SECRET"), "{all:?}");
        }
        assert!(changes(&first, &first).is_empty());
        for keyed in [
            with("", "[[site.robots.on_publish]]\nurl = \"https://api.example.net?key=SECRET/x\"\n"),
            with("", "robots = { source = \"url\", url = \"https://cms.test/robots?token=SECRET\" }\n"),
            with("agents.registry_url = \"https://cms.test/registry?token=SECRET\"\n", ""),
        ] {
            let all = changes(&with("", ""), &keyed).join("\n");
            assert!(all.contains(".test/") != all.contains("api.example.net?…") && !all.contains("SECRET"), "{all}");
        }
    }

    #[test]
    fn a_date_is_a_setting_of_its_own_name() {
        let until =
            |date: &str| with("", &format!("[site.modes]\n\"agent:A\" = {{ mode = \"off\", until = {date} }}\n"));
        let want = ["site \"a\": modes[agent:A].until: 2099-01-31 → 2099-02-28"];
        assert_eq!(changes(&until("2099-01-31"), &until("2099-02-28")), want);
        let plain = with("", "[site.modes]\n\"agent:A\" = \"off\"\n");
        assert_eq!(changes(&plain, &until("2099-01-31")), ["site \"a\": modes[agent:A].until: not set → 2099-01-31"]);
    }

    #[test]
    fn the_mode_of_a_site_is_the_one_that_holds() {
        let refuse = "mode = \"refuse\"\n";
        let tags = "enforcement.mode = \"tag\"\n";
        // The event of the config's own mode says it for every site that has no other.
        assert_eq!(changes(&with("", ""), &with(refuse, "")), ["mode: observe → refuse"]);
        assert_eq!(changes(&with(refuse, ""), &with(refuse, tags)), ["site \"a\": enforcement.mode: refuse → tag"]);
        assert_eq!(changes(&with(refuse, tags), &with(refuse, "")), ["site \"a\": enforcement.mode: tag → refuse"]);
        assert!(changes(&with("mode = \"tag\"\n", ""), &with("mode = \"tag\"\n", tags)).is_empty());
    }

    #[test]
    fn sites_listeners_and_overrides_are_identified_by_what_names_them() {
        let over = |scope: &str, mode: &str| format!("modes.\"{scope}\" = \"{mode}\"\n");
        let (gpt, search) = ("agent:GPTBot", "category:search");
        let both = with("", &(over(gpt, "refuse") + &over(search, "tag")));
        let site = |what: &str| format!("site \"a\": modes{what}");
        let second =
            "[[listener]]\naddress = \"127.0.0.1:81\"\n[[site]]\nname = \"b\"\nhosts = [\"b.test\"]\nroot = \".\"\n";
        let trusting = with("", "").replace(":80\"\n", ":80\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n");
        let order = ": agent:GPTBot, category:search → category:search, agent:GPTBot";
        let third = over(search, "tag") + "modes.\"agent:GPTBot\" = [\"refuse\", \"off\"]\n";
        for (before, after, want) in [
            (&both, &with("", &over(search, "tag")), site("[agent:GPTBot]: refuse → not set")),
            (&both, &with("", &(over(gpt, "tag") + &over(search, "tag"))), site("[agent:GPTBot].mode: refuse → tag")),
            (&both, &with("", &(over(search, "tag") + &over(gpt, "refuse"))), site(order)),
            (
                &with("", &(over(search, "tag") + &over(gpt, "refuse"))),
                &with("", &third),
                site("[agent:GPTBot #2]: not set → off"),
            ),
            (&with("", ""), &trusting, "listener[127.0.0.1:80].trusted_proxies: [] → [\"10.0.0.0/8\"]".to_owned()),
        ] {
            assert_eq!(changes(before, after), [want]);
        }
        let (none, listener) = (with("", ""), "listener[127.0.0.1:81]: ");
        let expected = [&*format!("{listener}not set → 127.0.0.1:81"), "site \"b\": new"];
        assert_eq!(changes(&none, &with("", second)), expected);
        assert_eq!(
            changes(&with("", second), &none),
            [&*format!("{listener}127.0.0.1:81 → not set"), "site \"b\": gone"]
        );
    }

    #[test]
    fn a_long_value_is_cut_and_text_that_is_no_config_has_no_changes() {
        let long = with("", &format!("robots.text = \"# {}\"\n", "é".repeat(1000)));
        let change = &changes(&with("", ""), &long)[0];
        assert!(change.starts_with("site \"a\": robots.text: not set → # éé") && change.ends_with('…'), "{change}");
        assert_eq!(change.chars().filter(|char| *char == 'é').count(), SHOWN - 2);
        assert_eq!(setting_changes(&with("", ""), "mode = 1"), None);
    }

    #[test]
    fn what_a_change_takes_effect_with() {
        let all = |before: &str, after: &str| setting_changes(before, after).expect("two configs").remove(0);
        let none = with("", "");
        for (other, is_for_start, is_of_source) in [
            (with("workers = 3\n", ""), true, false),
            (with("", "[log]\nformat = \"text\"\n"), true, false),
            (with("", "[admin]\nhosts = [\"a\"]\n"), false, false),
            (with("", "[admin]\nreach = \"network\"\n"), false, false),
            (with("", "[admin]\naddress = \"127.0.0.1:82\"\n"), false, false),
            (with("", "[admin]\nenabled = false\n"), true, false),
            (with("", "[limits]\ndrain = \"5s\"\n"), false, false),
            (with("", "robots.path = \"x\"\n"), false, true),
            (with("grace = \"1h\"\n", ""), false, false),
            (with("", "enforcement.mode = \"tag\"\n"), false, false),
        ] {
            let change = all(&none, &other);
            assert_eq!((change.is_for_start(), change.is_of_source()), (is_for_start, is_of_source), "{change}");
        }
        let admin = "[admin]\nsocket = \"a\"\n";
        assert_eq!(changes(&none, &with("", admin)), ["admin.socket: not set → a"]);
        assert_eq!(changes(&with("", admin), &none), ["admin.socket: a → not set"]);
        assert!(changes(&none, &with("", "[admin]\n")).is_empty());
        let change =
            all(&with("", admin), &with("", &format!("{admin}[[admin.listener]]\naddress = \"127.0.0.1:82\"\n")));
        assert_eq!(change.to_string(), "admin.listener[127.0.0.1:82]: not set → 127.0.0.1:82");
        assert!(change.is_of_whole_table() && !change.is_for_start());
    }
}
