//! Compares the settings of two configs.
//!
//! All keys that `config show` prints are compared, including keys with their default values.
//! Repeated tables are matched by name: a site, a token and a user by their names, a listener by
//! its name or address, an exception in `[site.modes]` by its key. Lists of tables without a name
//! are compared as a whole.

use std::collections::BTreeMap;
use std::{fmt, mem};

use toml::{Spanned, Table, Value};
use tower_robots::live::VersionHash;

use super::site::RawHeader;
use super::{RawAdmin, RawConfig, Value as _, reader};
use crate::render::truncated;
pub(crate) use crate::report::SettingChange;

/// Maximum length of a displayed value, in characters. A value may be a whole robots.txt.
const MAX_SHOWN_LENGTH: usize = 200;

/// Keys that take effect only when the process starts.
const START_KEYS: [&str; 6] = ["workers", "state_dir", "admin", "fleet", "board", "log"];

/// Prefixes of settings that take effect immediately although their table is in [`START_KEYS`].
/// `fleet.replicas` is included, because only commands use it.
const IMMEDIATE_PREFIXES: [&str; 3] = ["admin.token[", "admin.user[", "fleet.replicas"];

/// Repeated tables that have names, except sites and exceptions. The name of a table is the value
/// of one of the keys in [`NAME_KEYS`].
const NAMED_TABLES: [&str; 3] = ["listener", "token", "user"];
const NAME_KEYS: [&str; 4] = ["name", "address", "uid", "group"];

/// The settings of a config, and the settings of each site by site name. A named table has a key
/// such as `listener[127.0.0.1:80]`.
type Settings = (Table, BTreeMap<String, Table>);

/// Returns the changes between two configs in TOML; `None` if one of the configs cannot be read.
pub(crate) fn setting_changes(before: &str, after: &str) -> Option<Vec<SettingChange>> {
    if before == after {
        return Some(Vec::new());
    }
    let ((before, sites_before), (after, sites_after)) = (settings(before)?, settings(after)?);
    let mut changes = compare("", &before, &after);
    let gone = sites_before.keys().filter(|name| !sites_after.contains_key(*name));
    for name in sites_after.keys().chain(gone) {
        let mut of_site = match (sites_before.get(name), sites_after.get(name)) {
            (Some(then), Some(now)) => compare("", then, now),
            (then, now) => vec![change("site".to_owned(), then.map(|_| name.clone()), now.map(|_| name.clone()))],
        };
        // A site without a mode uses the mode of the config, which is therefore shown as the old or
        // new mode of the site.
        if let Some(at) = of_site.iter().position(|change| change.setting == "enforcement.mode") {
            let mode = &mut of_site[at];
            mode.before = mode.before.take().or_else(|| before.get("mode").map(shown));
            mode.after = mode.after.take().or_else(|| after.get("mode").map(shown));
            if mode.before == mode.after {
                of_site.remove(at);
            }
        }
        changes.extend(of_site.into_iter().map(|change| SettingChange { site: Some(name.clone()), ..change }));
    }
    Some(changes)
}

fn compare(prefix: &str, before: &Table, after: &Table) -> Vec<SettingChange> {
    let mut changes = Vec::new();
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    for key in after.keys().chain(gone) {
        match (before.get(key), after.get(key)) {
            (then, now) if then == now => {}
            (Some(Value::Table(then)), Some(Value::Table(now))) => {
                changes.extend(compare(&format!("{prefix}{key}."), then, now));
            }
            (then, now) => changes.push(change(format!("{prefix}{key}"), then.map(shown), now.map(shown))),
        }
    }
    changes
}

fn change(setting: String, before: Option<String>, after: Option<String>) -> SettingChange {
    SettingChange { site: None, setting, before, after }
}

impl SettingChange {
    pub(crate) fn is_applied_at_start(&self) -> bool {
        let is_now = IMMEDIATE_PREFIXES.iter().any(|start| self.setting.starts_with(start));
        self.site.is_none() && START_KEYS.contains(&self.table()) && !is_now
    }

    /// Returns the top-level table of the setting, or the setting itself if it is at the top level.
    pub(crate) fn table(&self) -> &str {
        self.setting.split('.').next().unwrap_or_default()
    }

    pub(crate) fn changes_robots_source(&self) -> bool {
        self.site.is_some() && self.setting.starts_with("robots.")
    }

    pub(crate) fn affects_whole_table(&self) -> bool {
        let is_of_listener = ["listener[", "admin.listener["].iter().any(|start| self.setting.starts_with(start));
        self.setting == "site" || (is_of_listener && self.setting.ends_with(']'))
    }
}

/// Formats the change on one line, such as `site "shop": enforcement.mode: refuse → tag`.
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

fn settings(text: &str) -> Option<Settings> {
    let mut raw: RawConfig = reader::read(text).ok()?;
    hide_secrets(&mut raw);
    // If the config has no `[admin]`, the default settings are compared.
    raw.admin = raw.admin.or_else(RawAdmin::absent);
    let mut sites = BTreeMap::new();
    for mut site in mem::take(&mut raw.site).into_iter().map(Spanned::into_inner) {
        let (name, exceptions) = (site.name.get_ref().clone(), mem::take(&mut site.modes).0);
        // The conversion fails only if a path is not UTF-8. The config is UTF-8, so its paths are,
        // too.
        let mut of_site = by_name(Table::try_from(site).ok()?);
        for exception in &exceptions {
            let modes = Table::try_from(exception.modes.get_ref()).ok()?;
            insert(&mut of_site, "modes", exception.key.get_ref(), by_name(modes));
        }
        // If several exceptions match a request, the last one counts, so their order is also
        // compared.
        let keys: Vec<_> = exceptions.iter().map(|exception| exception.key.get_ref().as_str()).collect();
        of_site.insert("modes".to_owned(), keys.into());
        sites.insert(name, of_site);
    }
    Some((by_name(Table::try_from(raw).ok()?), sites))
}

/// Replaces each list of named tables with one key per table, such as `token[alice]`.
fn by_name(table: Table) -> Table {
    let mut named = Table::new();
    for (key, value) in table {
        match value {
            Value::Array(tables) if NAMED_TABLES.contains(&&*key) => {
                for table in tables.into_iter().filter_map(|table| table.try_into().ok()).map(by_name) {
                    let name = NAME_KEYS.iter().find_map(|key| table.get(*key)).map(shown);
                    insert(&mut named, &key, &name.unwrap_or_default(), table);
                }
            }
            Value::Table(table) => {
                let date = table.get(DATE_KEY).and_then(Value::as_str).and_then(|date| date.parse().ok());
                named.insert(key, date.map_or_else(|| by_name(table).into(), Value::Datetime));
            }
            value => drop(named.insert(key, value)),
        }
    }
    named
}

/// The key of the table that `Table::try_from` creates for a date.
const DATE_KEY: &str = "$__toml_private_datetime";

/// Inserts a named table. If the name already exists, the name of the new table becomes `NAME #2`.
fn insert(into: &mut Table, kind: &str, name: &str, table: Table) {
    let (mut key, mut number) = (format!("{kind}[{name}]"), 1);
    while into.contains_key(&key) {
        number += 1;
        key = format!("{kind}[{name} #{number}]");
    }
    into.insert(key, table.into());
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => truncated(text, MAX_SHOWN_LENGTH),
        value => truncated(value.to_string().trim(), MAX_SHOWN_LENGTH),
    }
}

/// Replaces possible secrets with short hashes, because changed values are logged. If a secret has
/// changed, the hashes differ.
fn hide_secrets(raw: &mut RawConfig) {
    let tokens = raw.admin.iter_mut().flat_map(|admin| &mut admin.token);
    tokens.for_each(|token| *token.hash.get_mut() = hash_label(token.hash.get_ref()));
    raw.agents.registry_url.iter_mut().for_each(|url| hide_url_secrets(url.get_mut(), QUERY_START));
    let mut hooks: Vec<_> = raw.notify.iter_mut().collect();
    for robots in raw.site.iter_mut().map(|site| &mut site.get_mut().robots) {
        let parts = robots.append.iter_mut().filter_map(|part| part.get_mut().url.as_mut());
        parts.chain(&mut robots.url).for_each(|url| hide_url_secrets(url.get_mut(), QUERY_START));
        hooks.extend(&mut robots.on_publish);
    }
    for hook in hooks.into_iter().map(Spanned::get_mut) {
        hide_url_secrets(hook.url.get_mut(), &['/', '?', '#']);
        hook.body.iter_mut().for_each(|body| *body.get_mut() = hash_label(body.get_ref()));
        for value in hook.headers.values_mut() {
            if let RawHeader::Text(text) = value.get_mut() {
                *text = hash_label(text);
            }
        }
    }
}

/// Characters that begin the query or the fragment of a URL. A query or a fragment may contain an
/// API key.
const QUERY_START: &[char] = &['?', '#'];

/// Hides the credentials in a URL. If a character in `from` occurs after the host, also hides the
/// text after that character.
fn hide_url_secrets(url: &mut String, from: &[char]) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let authority = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let host = url[start..authority].rfind('@').map_or(start, |at| start + at + 1);
    let end = url[authority..].find(from).map_or(url.len(), |at| authority + at + 1);
    let hidden = [&url[start..host], &url[end..]].concat();
    if !hidden.is_empty() {
        *url = format!("{}{}{}", &url[..start], &url[host..end], hash_label(&hidden));
    }
}

fn hash_label(text: &str) -> String {
    let hash = VersionHash::of(text.as_bytes()).to_string();
    format!("…{}", &hash[hash.len() - 4..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_cases::check_cases;

    const HEAD: &str = "[[listener]]\naddress = \"127.0.0.1:80\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

    fn changes(before: &str, after: &str) -> Vec<String> {
        let changes = setting_changes(before, after).expect("two configs");
        changes.iter().map(ToString::to_string).collect()
    }

    fn with(top: &str, of_site: &str) -> String {
        format!("{top}{HEAD}{of_site}")
    }

    /// A case has two configs with `+++` between them, and the changes. In a config, `...` stands
    /// for one `[[listener]]` and one `[[site]]`.
    #[test]
    fn changed_settings_are_listed_with_how_they_take_effect() {
        check_cases("setting_changes.txt", |configs| {
            let whole = |text: &str| if text.contains("...\n") { text.replace("...\n", HEAD) } else { with("", text) };
            let (before, after) = configs.split_once("+++\n").expect("two configs");
            let flag = |is_set: bool, name: &'static str| if is_set { name } else { "" };
            let line = |change: &SettingChange| {
                let source = flag(change.changes_robots_source(), " (source)");
                let whole = flag(change.affects_whole_table(), " (whole table)");
                format!("{change}{}{source}{whole}\n", flag(change.is_applied_at_start(), " (start)"))
            };
            setting_changes(&whole(before), &whole(after)).expect("two configs").iter().map(line).collect()
        });
    }

    #[test]
    fn a_changed_secret_is_reported_without_its_value() {
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
        let token = with("", "[[admin.token]]\nname = \"ann\"\nhash = \"SECRET\"\nuntil = 2099-01-31\n");
        let all = changes(&with("", ""), &token).join("\n");
        assert!(all.starts_with("admin.token[ann]: not set → { hash = \"…") && !all.contains("SECRET"), "{all}");
        assert!(all.ends_with(", name = \"ann\", role = \"read\", sites = [], until = 2099-01-31 }"), "{all}");
    }

    #[test]
    fn a_long_value_is_cut_and_an_invalid_config_has_no_changes() {
        let long = |end: &str| with("", &format!("robots.text = \"# {}{end}\"\n", "é".repeat(1000)));
        assert_eq!(changes(&long("a"), &long("b")).len(), 1);
        let change = &changes(&with("", ""), &long(""))[0];
        assert!(change.starts_with("site \"a\": robots.text: not set → # éé") && change.ends_with('…'), "{change}");
        assert_eq!(change.chars().filter(|char| *char == 'é').count(), MAX_SHOWN_LENGTH - 2);
        assert_eq!(setting_changes(&with("", ""), "mode = 1"), None);
        let trusting = with("", "").replace(":80\"\n", ":80\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n");
        let want = ["listener[127.0.0.1:80].trusted_proxies: [] → [\"10.0.0.0/8\"]"];
        assert_eq!(changes(&with("", ""), &trusting), want);
    }
}
