//! The table `[[site]]` and those in it, with those of a policy, key by key, with every default.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::value::Datetime;
use tower_robots::agent::Category;
use tower_robots::live::{DEFAULT_MAX_AGE, VersionHash};
use tower_robots::policy::{EmptyAgent, Mode, Policy, RateMode, StarExceptions, StarScope, SuspectHuman};
use tower_robots::rules::PathForm;

use super::rate_store::RawRate;
use super::values::Span;
use crate::publish_hook;
use crate::upstream;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSite {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) hosts: Vec<Spanned<String>>,
    pub(super) upstreams: Option<Vec<Spanned<String>>>,
    pub(super) root: Option<Spanned<PathBuf>>,
    pub(super) dotfiles: Option<Spanned<Dotfiles>>,
    #[serde(default)]
    pub(super) upstream: RawUpstream,
    #[serde(default)]
    pub(super) robots: RawRobots,
    #[serde(default)]
    pub(super) enforcement: RawEnforcement,
    #[serde(default)]
    pub(super) rate: RawRate,
    #[serde(default, rename = "override")]
    pub(super) overrides: Vec<Spanned<RawOverride>>,
    #[serde(default)]
    pub(super) refusal: RawRefusal,
}

/// The response to refused requests.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRefusal {
    pub(super) file: Option<Spanned<PathBuf>>,
    pub(super) status: Option<Spanned<u16>>,
    pub(super) language: Option<Spanned<String>>,
    pub(super) contact: Option<Spanned<String>>,
}

/// Files and folders of a root whose name begins with a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dotfiles {
    /// 404, except below `/.well-known/`.
    #[default]
    Hide,
    Serve,
}

/// Settings of all upstreams of a site.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawUpstream {
    pub(super) max_fails: u32,
    pub(super) fail_window: Span,
    pub(super) eject: Spanned<Span>,
    pub(super) eject_max: Span,
    pub(super) http2: Option<Spanned<bool>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) server_name: Option<Spanned<String>>,
}

impl Default for RawUpstream {
    fn default() -> Self {
        let health = upstream::HealthPolicy::default();
        Self {
            max_fails: health.max_fails,
            fail_window: Span(health.fail_window),
            eject: Spanned::new(0..0, Span(health.eject)),
            eject_max: Span(health.eject_max),
            http2: None,
            ca: None,
            server_name: None,
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRobots {
    pub(super) source: Option<Spanned<SourceKind>>,
    pub(super) path: Option<Spanned<PathBuf>>,
    pub(super) fallback: Option<Spanned<String>>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) host: Option<Spanned<String>>,
    pub(super) refresh: Option<Spanned<Span>>,
    pub(super) hold: Option<Spanned<Span>>,
    pub(super) max_age: Spanned<Span>,
    pub(super) on_missing: OnMissing,
    pub(super) expectations: Option<Spanned<PathBuf>>,
    /// The version in version control that new ones are compared with.
    pub(super) baseline: Option<Spanned<PathBuf>>,
    /// In place of that of the gate.
    pub(super) urls: Option<Spanned<PathBuf>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) append: Vec<Spanned<RawAppend>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) on_publish: Vec<Spanned<RawPublishHook>>,
}

/// A part that is appended to the robots.txt.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAppend {
    pub(super) path: Option<Spanned<PathBuf>>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
}

/// A request that is sent when a version goes live.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPublishHook {
    pub(super) url: Spanned<String>,
    pub(super) method: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, Spanned<RawHeader>>,
    pub(super) body: Option<Spanned<String>>,
    #[serde(default = "hook_timeout")]
    pub(super) timeout: Spanned<Span>,
    pub(super) ca: Option<Spanned<PathBuf>>,
}

fn hook_timeout() -> Spanned<Span> {
    Spanned::new(0..0, Span(publish_hook::DEFAULT_TIMEOUT))
}

/// The value of a field, or the file that holds it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "the value of a header is a text, or names the file that holds it: { file = \"…\" }")]
pub(super) enum RawHeader {
    Text(String),
    Secret(RawSecret),
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSecret {
    pub(super) file: PathBuf,
}

impl RawRobots {
    /// Puts marks in place of what may be a secret: texts that differ have marks that do.
    pub(super) fn hide_secrets(&mut self) {
        for hook in self.on_publish.iter_mut().map(Spanned::get_mut) {
            hide_behind(hook.url.get_mut(), '/');
            hook.body.iter_mut().for_each(|body| *body.get_mut() = mark(body.get_ref()));
            for value in hook.headers.values_mut() {
                if let RawHeader::Text(text) = value.get_mut() {
                    *text = mark(text);
                }
            }
        }
        for url in self.append.iter_mut().filter_map(|part| part.get_mut().url.as_mut()) {
            hide_behind(url.get_mut(), '?');
        }
    }
}

/// Hides what follows the host and this character of a URL, and a password before the host.
fn hide_behind(url: &mut String, from: char) {
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

impl Default for RawRobots {
    fn default() -> Self {
        Self {
            source: None,
            path: None,
            fallback: None,
            text: None,
            url: None,
            ca: None,
            host: None,
            refresh: None,
            hold: None,
            max_age: Spanned::new(0..0, Span(DEFAULT_MAX_AGE)),
            on_missing: OnMissing::default(),
            expectations: None,
            baseline: None,
            urls: None,
            append: Vec::new(),
            on_publish: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceKind {
    #[default]
    File,
    Directory,
    Inline,
    Upstream,
    Url,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OnMissing {
    #[default]
    LastGood,
    Upstream,
    Fail,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEnforcement {
    pub(super) mode: Option<Mode>,
    pub(super) grace: Span,
    pub(super) forms: Vec<Spanned<PathForm>>,
}

impl Default for RawEnforcement {
    fn default() -> Self {
        let forms = PathForm::OPTIONAL.into_iter().map(|form| Spanned::new(0..0, form)).collect();
        Self { mode: None, grace: Span::seconds(0), forms }
    }
}

/// Requests of some crawlers, or for some rule, that are treated in another way.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOverride {
    pub(super) category: Option<Category>,
    pub(super) agent: Option<Spanned<String>>,
    pub(super) pattern: Option<Spanned<String>>,
    pub(super) index: Option<bool>,
    /// Of disallowed requests; this, `rate` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<Mode>,
    /// Of requests that come too soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Spanned<RateMode>>,
    pub(super) until: Option<Spanned<Datetime>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawAgents {
    pub(super) star_scope: StarScope,
    pub(super) star_methods: Vec<Spanned<String>>,
    pub(super) star_exempt: Vec<Category>,
    pub(super) star_exceptions: StarExceptions,
    pub(super) star_empty: EmptyAgent,
    pub(super) family: Family,
    pub(super) ignore: Vec<Spanned<String>>,
    pub(super) registry_extra: Option<Spanned<PathBuf>>,
    pub(super) registry_url: Option<Spanned<String>>,
    pub(super) registry_ca: Option<Spanned<PathBuf>>,
    pub(super) registry_accept: Vec<Spanned<String>>,
    pub(super) session_cookies: Vec<Spanned<String>>,
    pub(super) suspect_human: SuspectHuman,
}

impl Default for RawAgents {
    fn default() -> Self {
        Self {
            star_scope: StarScope::default(),
            star_methods: unplaced(Policy::DEFAULT_STAR_METHODS),
            star_exempt: Policy::DEFAULT_STAR_EXEMPT.into(),
            star_exceptions: StarExceptions::default(),
            star_empty: EmptyAgent::default(),
            family: Family::default(),
            ignore: Vec::new(),
            registry_extra: None,
            registry_url: None,
            registry_ca: None,
            registry_accept: Vec::new(),
            session_cookies: Vec::new(),
            suspect_human: SuspectHuman::default(),
        }
    }
}

/// Whether a crawler that no group names obeys the groups of its family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Family {
    #[default]
    Follow,
    Ignore,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExempt {
    pub(super) paths: Vec<Spanned<String>>,
    pub(super) cidrs: Vec<Spanned<String>>,
    pub(super) cookies: Vec<Spanned<String>>,
}

impl Default for RawExempt {
    fn default() -> Self {
        Self { paths: unplaced(Policy::DEFAULT_EXEMPT_PATHS), cidrs: Vec::new(), cookies: Vec::new() }
    }
}

/// A default has no place in the file.
fn unplaced<const N: usize>(texts: [&str; N]) -> Vec<Spanned<String>> {
    texts.into_iter().map(|text| Spanned::new(0..0, text.to_owned())).collect()
}

/// Lints by code: findings that are errors, and lints that are off.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCheck {
    pub(super) deny: Vec<Spanned<String>>,
    pub(super) allow: Vec<Spanned<String>>,
}

/// Conditions for a version to go live by itself.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGate {
    pub(super) mode: GateMode,
    pub(super) refuse_findings: RefuseFindings,
    /// Whether the pages of a site's own sitemaps count.
    pub(super) sitemaps: bool,
    /// A list of pages that count, of every site.
    pub(super) urls: Option<Spanned<PathBuf>>,
    pub(super) must_allow: Vec<RawMustAllow>,
    pub(super) accept: Vec<Spanned<String>>,
}

impl Default for RawGate {
    fn default() -> Self {
        Self {
            mode: GateMode::default(),
            refuse_findings: RefuseFindings::default(),
            sitemaps: true,
            urls: None,
            must_allow: Vec::new(),
            accept: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GateMode {
    #[default]
    On,
    Off,
}

/// The lowest severity of findings that hold a version back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RefuseFindings {
    #[default]
    None,
    Error,
    Warning,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMustAllow {
    pub(super) agents: Spanned<Vec<String>>,
    pub(super) paths: Spanned<Vec<String>>,
}
