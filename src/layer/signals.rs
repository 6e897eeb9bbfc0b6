//! The fields of responses that repeat what the robots.txt says about the use of the content, and
//! the fields that the operator adds by path.
//!
//! - `Content-Usage` is computed by the same matcher as verdicts. It is never added to a response
//!   that has the field already: a second line would merge with the first, and the last value of a
//!   label would win.
//! - A licence is a `Link` field, next to other links, and also on refusals.
//! - `X-Robots-Tag` is added next to the lines of the application. A crawler obeys the most
//!   restrictive of all lines. Any other field is left alone if the application has set it.
//!
//! Preferences and operator's fields are metadata of a representation, so only responses that have
//! or update one carry them: 200, 203, 206 and 304 for GET and HEAD.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::{Entry, HeaderMap, HeaderName, HeaderValue, LINK, VARY};
use http::{Method, StatusCode};
use robots_core::keywords;

use super::original::OriginalRequest;
use crate::agent::{Agent, Category};
use crate::live::{Content, LiveRobots};
use crate::policy::{Override, Policy};
use crate::rules::{PathPattern, RequestPath, RuleSet, Selection, ValueError};

const CONTENT_USAGE: HeaderName = HeaderName::from_static("content-usage");
const USER_AGENT_NAME: HeaderValue = HeaderValue::from_static("User-Agent");
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// Fields that cannot be added to a response: fields of the connection (RFC 9110, section 7.6.1),
/// framing, content coding, caches and cookies, and fields that the layer computes.
const RESERVED: [&str; 26] = [
    "age",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "content-usage",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "robots-verdict",
    "set-cookie",
    "surrogate-control",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
];

/// Which responses repeat the usage preferences of the robots.txt in a `Content-Usage` field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UsageField {
    /// None. This is the default.
    #[default]
    Off,
    /// Responses for a path, if all groups that may fetch the path have the same preferences.
    Unanimous,
    /// All responses, each with the preferences for its client. They get `Vary: User-Agent`, so a
    /// cache stores a copy for each `User-Agent`.
    ByAgent,
}

keywords!(UsageField, "a mode of Content-Usage", {
    Off = "off",
    Unanimous = "unanimous",
    ByAgent = "by-agent",
});

/// A field that is added to the responses for some paths, optionally only for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct FieldRule {
    pattern: PathPattern,
    name: HeaderName,
    value: HeaderValue,
    /// The crawlers that get the field; empty for all clients.
    crawlers: Vec<Override<()>>,
}

impl FieldRule {
    /// Creates a rule. The path is a pattern as in robots.txt, such as `/drafts/` or `/*.pdf$`.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the values is invalid, or if the field belongs to the connection,
    /// the content or caches, such as `Content-Length` or `Set-Cookie`.
    pub fn new(path: &str, name: &str, value: &str) -> Result<Self, ValueError> {
        let pattern = PathPattern::parse(path)?;
        let fault = "is not the name of a field that can be added to responses: write a name such as \"X-Robots-Tag\"";
        let known = HeaderName::from_bytes(name.as_bytes()).ok();
        // Some servers treat `_` as `-`.
        let is_reserved = |name: &HeaderName| {
            let name = name.as_str().replace('_', "-");
            RESERVED.contains(&&*name) || name.ends_with("-cache-control")
        };
        let allowed = known.filter(|name| !is_reserved(name));
        let name = allowed.ok_or_else(|| ValueError::new(name, fault))?;
        let value = value.trim();
        let is_printable = !value.is_empty() && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let fault = "is not a valid field value: write printable ASCII characters";
        let sent = HeaderValue::from_str(value).ok().filter(|_| is_printable);
        Ok(Self { pattern, name, value: sent.ok_or_else(|| ValueError::new(value, fault))?, crawlers: Vec::new() })
    }

    /// Restricts the rule to this crawler, and to others that are added.
    ///
    /// # Errors
    ///
    /// The same as for [`Override::agent`].
    pub fn for_agent(self, name: &str) -> Result<Self, ValueError> {
        Ok(self.with(Override::agent(name, ())?))
    }

    /// Restricts the rule to the registered crawlers of this category, and to others that are
    /// added.
    pub fn for_category(self, category: Category) -> Self {
        self.with(Override::category(category, ()))
    }

    /// Restricts the rule to the crawlers of search engines that people use, and to others that are
    /// added.
    pub fn for_index_engines(self) -> Self {
        self.with(Override::index_engines(()))
    }

    fn with(mut self, crawlers: Override<()>) -> Self {
        self.crawlers.push(crawlers);
        self
    }

    /// Returns the path pattern.
    #[doc(hidden)]
    pub const fn pattern(&self) -> &PathPattern {
        &self.pattern
    }

    /// Returns the name and the value of the field.
    #[doc(hidden)]
    pub const fn field(&self) -> (&HeaderName, &HeaderValue) {
        (&self.name, &self.value)
    }

    /// Reports whether one of these agents gets the field.
    #[doc(hidden)]
    pub fn is_for(&self, agents: &[Agent]) -> bool {
        self.crawlers.is_empty() || agents.iter().any(|agent| self.crawlers.iter().any(|one| one.fits(agent, None)))
    }
}

/// The settings of a layer for the fields of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Signals {
    usage: UsageField,
    links: LicenseLinks,
    fields: Vec<FieldRule>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LicenseLinks {
    #[default]
    Omit,
    Add,
}

impl Signals {
    /// Sets which responses get a `Content-Usage` field. Default: [`UsageField::Off`].
    pub const fn usage(mut self, usage: UsageField) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a `Link` to each licence that the robots.txt names for the client. Default: no link.
    pub const fn license_links(mut self) -> Self {
        self.links = LicenseLinks::Add;
        self
    }

    /// Adds a field by path. Default: none.
    pub fn field(mut self, rule: FieldRule) -> Self {
        self.fields.push(rule);
        self
    }

    /// Reports whether no response gets any field.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the fields of the response to a request; `None` if the response gets none. `agents`
    /// are the agents that the `User-Agent` names, because caches select by this field.
    pub(super) fn response_fields(
        &self,
        live: &LiveRobots,
        (content, policy): (&Content, &Policy),
        request: &OriginalRequest<'_>,
        agents: &[Agent],
    ) -> Option<Box<ResponseFields>> {
        let path = policy.path(request.target());
        let mut found = self.fields_of((content.rules(), policy), &path, request.method, agents)?;
        found.live = Some(live.clone());
        Some(Box::new(found))
    }

    /// Returns the fields like [`Signals::response_fields`], without counting.
    #[doc(hidden)]
    pub fn fields_of(
        &self,
        (rules, policy): (&RuleSet, &Policy),
        path: &RequestPath<'_>,
        method: &Method,
        agents: &[Agent],
    ) -> Option<ResponseFields> {
        let has_representation = *method == Method::GET || *method == Method::HEAD;
        let mut found = ResponseFields::default();
        let select = |agent: &Agent| policy.selection_for_use(rules, agent);
        if has_representation && self.usage != UsageField::Off && rules.has_usage() {
            found.varies = self.usage == UsageField::ByAgent;
            let preferences = match self.usage {
                UsageField::ByAgent => common(agents, |agent| Some(select(agent).usage(path)?.preferences)),
                _ => rules.unanimous_usage(path),
            };
            found.usage = preferences.and_then(|preferences| HeaderValue::from_str(preferences.as_str()).ok());
        }
        if has_representation {
            self.add_fields(path, agents, &mut found);
        }
        if self.links == LicenseLinks::Add && rules.has_licenses() {
            found.varies |= rules.has_group_licenses();
            let licenses = agents.first().map(select).map_or(&[][..], Selection::licenses);
            found.links = licenses.iter().filter_map(|url| link(url)).collect();
        }
        let is_empty = found.usage.is_none() && found.links.is_empty() && found.fields.is_empty() && !found.varies;
        (!is_empty).then_some(found)
    }

    /// Adds the fields whose path matches in any form: every `X-Robots-Tag`, and of any other field only the
    /// value with the longest path.
    fn add_fields(&self, path: &RequestPath<'_>, agents: &[Agent], found: &mut ResponseFields) {
        let mut longest: Vec<&FieldRule> = Vec::new();
        let matches = |rule: &&FieldRule| path.forms().any(|(_, form)| rule.pattern.matches(form));
        for rule in self.fields.iter().filter(matches) {
            found.varies |= !rule.crawlers.is_empty();
            if !rule.is_for(agents) {
                continue;
            }
            match longest.iter_mut().find(|known| known.name == rule.name && rule.name != X_ROBOTS_TAG) {
                Some(known) if known.pattern.priority() < rule.pattern.priority() => *known = rule,
                Some(_) => {}
                None => longest.push(rule),
            }
        }
        found.fields = longest.into_iter().map(|rule| (rule.name.clone(), rule.value.clone())).collect();
    }
}

/// Returns the value that is the same for all agents; `None` if it differs.
fn common<T: PartialEq>(agents: &[Agent], value: impl Fn(&Agent) -> Option<T>) -> Option<T> {
    let (first, others) = agents.split_first()?;
    let first = value(first)?;
    others.iter().all(|agent| value(agent).as_ref() == Some(&first)).then_some(first)
}

fn link(url: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(["<", url, ">; rel=\"license\"; type=\"application/rsl+xml\""].concat()).ok()
}

/// The fields that the response to one request gets.
#[derive(Debug, Default)]
#[must_use]
pub struct ResponseFields {
    /// The site that counts responses which have a field of their own.
    live: Option<LiveRobots>,
    usage: Option<HeaderValue>,
    links: Vec<HeaderValue>,
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Whether the fields depend on the client, so that caches must distinguish clients.
    varies: bool,
}

impl ResponseFields {
    /// Adds the fields to the response of the inner service or the upstream. Fields that the
    /// response has already are left alone and counted
    /// ([`Status::kept_fields`](crate::live::Status::kept_fields)).
    pub fn add_to(self, status: StatusCode, headers: &mut HeaderMap) {
        if status.is_informational() {
            return;
        }
        let has_representation = matches!(status.as_u16(), 200 | 203 | 206 | 304);
        if self.varies && (has_representation || !self.links.is_empty()) {
            vary_by_agent(headers);
        }
        let Self { live, usage, links, fields, .. } = self;
        add_links(links, headers);
        if !has_representation {
            return;
        }
        for (name, value) in usage.map(|value| (CONTENT_USAGE, value)).into_iter().chain(fields) {
            let is_additive = name == X_ROBOTS_TAG || name == LINK;
            // Errors mean that the response has too many fields.
            match headers.try_entry(name) {
                Ok(Entry::Vacant(place)) => drop(place.try_insert(value)),
                // An inner layer has added the same field. It is not counted.
                Ok(Entry::Occupied(known)) if known.iter().any(|known| *known == value) => {}
                Ok(Entry::Occupied(mut known)) if is_additive => known.append(value),
                Ok(Entry::Occupied(_)) => {
                    if let Some(live) = &live {
                        live.site.counts.kept_fields.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Adds the links to the layer's own refusal.
    pub(super) fn add_to_refusal(self, headers: &mut HeaderMap) {
        add_links(self.links, headers);
    }

    /// Returns the fields for the answer to a proxy that asks about a request and adds the fields
    /// itself.
    #[doc(hidden)]
    pub fn for_proxy(self) -> Vec<(HeaderName, HeaderValue)> {
        let Self { usage, links, fields, varies, .. } = self;
        let usage = usage.map(|value| (CONTENT_USAGE, value));
        let links = links.into_iter().map(|link| (LINK, link));
        let vary = varies.then_some((VARY, USER_AGENT_NAME));
        usage.into_iter().chain(links).chain(fields).chain(vary).collect()
    }
}

fn add_links(links: Vec<HeaderValue>, headers: &mut HeaderMap) {
    for link in links {
        if !headers.get_all(LINK).iter().any(|known| *known == link) {
            let _ = headers.try_append(LINK, link);
        }
    }
}

/// Adds `User-Agent` to the `Vary` field. The names stay in one line, because some caches read only
/// one.
fn vary_by_agent(headers: &mut HeaderMap) {
    let varies = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"user-agent"))
    };
    if headers.get_all(VARY).iter().any(varies) {
        return;
    }
    let lines: Vec<_> =
        headers.get_all(VARY).iter().map(HeaderValue::as_bytes).filter(|line| !line.is_empty()).collect();
    let joined = lines.into_iter().chain([&b"User-Agent"[..]]).collect::<Vec<_>>().join(&b", "[..]);
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(VARY, value);
    }
}

/// Shared settings; `None` if all are off, so that requests do not look at them.
pub(super) fn shared(signals: Signals) -> Option<Arc<Signals>> {
    (!signals.is_off()).then(|| Arc::new(signals))
}
