//! The response fields that repeat usage preferences and licences from the robots.txt, and the
//! fields that the operator adds for certain paths.
//!
//! - The usage preferences for a path are found with the same path matching as verdicts.
//!   `Content-Usage` is not added to a response that already has this field, because clients would
//!   merge the two lines, and only the last value of a repeated key would count.
//! - Each licence is added as a `Link` field, even to refusals. Other `Link` fields are kept.
//! - `X-Robots-Tag` is added even if the application sends the same field, because crawlers obey
//!   the most restrictive of all lines. Any other field is added only if the application has not
//!   set it.
//!
//! Usage preferences and the operator's fields describe a representation (RFC 9110, section 3.2).
//! So they are added only to responses to GET and HEAD that contain or update a representation:
//! 200, 203, 206 and 304.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::{Entry, HeaderMap, HeaderName, HeaderValue, LINK, VARY};
use http::{Method, StatusCode};
use robots_core::keyword_enum;

use super::fields::{USER_AGENT_NAME, is_of_caches, is_of_connection, is_of_content, plain_name, vary_by_agent};
use super::original::OriginalRequest;
use crate::agent::Agent;
#[cfg(feature = "tracing")]
use crate::live::Snapshot;
use crate::live::{Content, LiveRobots};
use crate::policy::{Crawlers, Policy};
#[cfg(feature = "tracing")]
use crate::rules::Directive;
use crate::rules::{PathPattern, RequestPath, RuleSet, Selection, ValueError};
#[cfg(feature = "tracing")]
use crate::source::Sites;

const CONTENT_USAGE: HeaderName = HeaderName::from_static("content-usage");
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// Fields that a [`FieldRule`] cannot add, because the layer computes them, or because their values
/// differ between pages or responses. The module `fields` lists further forbidden fields.
const RESERVED: [&str; 6] =
    ["content-usage", "etag", "last-modified", "location", "robots-verdict", "www-authenticate"];

keyword_enum! {
    /// Which responses repeat the usage preferences of the robots.txt in a `Content-Usage` field.
    #[derive(Default)]
    UsageField, "a mode of Content-Usage", {
        /// No response. The default.
        #[default]
        Off = "off",
        /// Responses for a path that has the same usage preferences for all crawlers that may fetch
        /// it.
        Unanimous = "unanimous",
        /// All responses, each with the preferences for its client. These responses get `Vary:
        /// User-Agent`, so a cache stores a copy for each `User-Agent`.
        ByAgent = "by-agent",
    }
}

/// A field that is added to the responses for some paths, optionally only for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct FieldRule {
    pattern: PathPattern,
    name: HeaderName,
    value: HeaderValue,
    /// The crawlers that get the field; `None` if all clients get it.
    crawlers: Option<Vec<Crawlers>>,
}

impl FieldRule {
    /// Creates a rule. The path is a pattern as in robots.txt, such as `/drafts/` or `/*.pdf$`.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the arguments is invalid, or if operators cannot set the field
    /// (for example, `Content-Length` or `Set-Cookie`).
    pub fn new(path: &str, name: &str, value: &str) -> Result<Self, ValueError> {
        let pattern = PathPattern::parse(path)?;
        let known = HeaderName::from_bytes(name.as_bytes()).ok().filter(can_be_added);
        let fault = "is not the name of a field that can be added to responses: write a name such as \"X-Robots-Tag\"";
        let name = known.ok_or_else(|| ValueError::new(name, fault))?;
        let value = value.trim();
        let sent = HeaderValue::from_str(value).ok().filter(|sent| !sent.is_empty());
        let fault = "is not a valid field value: write printable ASCII characters";
        Ok(Self { pattern, name, value: sent.ok_or_else(|| ValueError::new(value, fault))?, crawlers: None })
    }

    /// Restricts the rule to these crawlers. If the list is empty, no client gets the field. A
    /// second call adds crawlers. [`RobotsLayer::signals`](super::RobotsLayer::signals) logs a
    /// warning for an empty list, and for each name of a crawler or operator that has no effect on
    /// any site, for example because the name is misspelled.
    ///
    /// Iterators are not accepted, because a `Result` is also an iterator, and an `Err` would count
    /// as an empty list:
    ///
    /// ```compile_fail,E0277
    /// # use tower_robots::layer::FieldRule;
    /// # use tower_robots::policy::Crawlers;
    /// # let rule = FieldRule::new("/", "X-Robots-Tag", "noindex").unwrap();
    /// let rule = rule.for_crawlers(Crawlers::agent("GPT Bot"));
    /// ```
    pub fn for_crawlers(mut self, crawlers: impl AsRef<[Crawlers]>) -> Self {
        self.crawlers.get_or_insert_default().extend_from_slice(crawlers.as_ref());
        self
    }

    fn is_for(&self, agents: &[Agent]) -> bool {
        let is_any =
            |crawlers: &Vec<Crawlers>| agents.iter().any(|agent| crawlers.iter().any(|one| one.contains(agent)));
        self.crawlers.as_ref().is_none_or(is_any)
    }
}

fn can_be_added(name: &HeaderName) -> bool {
    let name = plain_name(name);
    !is_of_connection(&name) && !is_of_content(&name) && !is_of_caches(&name) && !RESERVED.contains(&&*name)
}

/// The settings for the fields that a layer adds to responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Signals {
    usage: UsageField,
    has_links: bool,
    fields: Vec<FieldRule>,
}

impl Signals {
    /// Sets which responses get a `Content-Usage` field. Default: [`UsageField::Off`]. If the
    /// robots.txt states preferences only in `Content-Signal` lines, no response gets the field,
    /// and [`RobotsLayer::signals`](super::RobotsLayer::signals) logs a warning.
    pub const fn usage(mut self, usage: UsageField) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a `Link` field for each licence in the robots.txt that applies to the client. By
    /// default, no links are added.
    pub const fn license_links(mut self) -> Self {
        self.has_links = true;
        self
    }

    /// Adds a field to the responses for some paths. Default: no fields.
    pub fn field(mut self, rule: FieldRule) -> Self {
        self.fields.push(rule);
        self
    }

    /// Logs a warning for each setting that has no effect on any site.
    #[cfg(feature = "tracing")]
    pub(super) fn trace_problems(&self, sites: &Sites) {
        let snapshots: Vec<_> = sites.load().all().into_iter().map(LiveRobots::snapshot).collect();
        self.trace_unknown_crawlers(&snapshots);
        self.trace_missing_usage(&snapshots);
    }

    /// Logs a warning for each rule with an empty list of crawlers, and for each listed name that
    /// has no effect on any site.
    #[cfg(feature = "tracing")]
    fn trace_unknown_crawlers(&self, snapshots: &[Arc<Snapshot>]) {
        for rule in &self.fields {
            if rule.crawlers.as_ref().is_some_and(Vec::is_empty) {
                tracing::warn!(
                    target: "tower_robots::layer",
                    "the rule for the field {} has no effect, because its list of crawlers is empty: for all clients, \
                     leave out FieldRule::for_crawlers",
                    rule.name
                );
            }
            for crawlers in rule.crawlers.iter().flatten() {
                let problem = |snapshot: &Arc<Snapshot>| snapshot.content.as_ref()?.problem_with(crawlers);
                let problems: Option<Vec<_>> = snapshots.iter().map(problem).collect();
                if let Some(problem) = problems.unwrap_or_default().first() {
                    tracing::warn!(target: "tower_robots::layer", "the rule for the field {} for {problem}", rule.name);
                }
            }
        }
    }

    /// Logs a warning if `Content-Usage` is enabled, but the sites state preferences only in
    /// `Content-Signal` lines.
    #[cfg(feature = "tracing")]
    fn trace_missing_usage(&self, snapshots: &[Arc<Snapshot>]) {
        let contents = || snapshots.iter().filter_map(|snapshot| snapshot.content.as_deref());
        let has_signals = |content: &Content| {
            content.robots().extensions().any(|line| line.field.directive == Directive::ContentSignal)
        };
        let has_usage = || contents().any(|content| content.rules().has_usage());
        if self.usage != UsageField::Off && contents().any(has_signals) && !has_usage() {
            tracing::warn!(
                target: "tower_robots::layer",
                "Signals::usage has no effect, because the robots.txt has Content-Signal lines, but no Content-Usage \
                 lines: also write the preferences in Content-Usage lines"
            );
        }
    }

    /// Returns the settings in an `Arc`; `None` if no response gets a field.
    pub(super) fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }

    /// Returns the fields to add to the response to a request; `None` if there are no such fields.
    /// `agents` must be the agents in the request's own `User-Agent`, not in a forwarded field,
    /// because caches use `User-Agent` to select a stored response.
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

    /// Returns the same fields as [`Signals::response_fields`], but not linked to a site. So if the
    /// response already has one of the fields, no
    /// [`Status::kept_fields`](crate::live::Status::kept_fields) counts it.
    #[doc(hidden)]
    pub fn fields_of(
        &self,
        (rules, policy): (&RuleSet, &Policy),
        path: &RequestPath<'_>,
        method: &Method,
        agents: &[Agent],
    ) -> Option<ResponseFields> {
        let mut found = ResponseFields::default();
        let select = |agent: &Agent| policy.selection_for_use(rules, agent);
        if *method == Method::GET || *method == Method::HEAD {
            if self.usage != UsageField::Off && rules.has_usage() {
                let preferences = match self.usage {
                    UsageField::ByAgent => {
                        found.content_varies = true;
                        common(agents, |agent| Some(select(agent).usage(path)?.preferences))
                    }
                    _ => rules.unanimous_usage(path),
                };
                found.usage = preferences.and_then(|preferences| HeaderValue::from_str(preferences.as_str()).ok());
            }
            self.add_fields(path, agents, &mut found);
        }
        if self.has_links {
            found.links_vary = rules.licenses_differ();
            let licenses = agents.first().map(select).map_or(&[][..], Selection::licenses);
            found.links = licenses.iter().filter_map(|url| Some((LINK, link(url)?))).collect();
        }
        let has_fields = found.usage.is_some() || !found.links.is_empty() || !found.fields.is_empty();
        (has_fields || found.content_varies || found.links_vary).then_some(found)
    }

    /// Adds the fields of the rules whose pattern matches any form of the path. If several rules
    /// set the same field, adds only the value of the rule with the longest pattern. For
    /// `X-Robots-Tag`, adds the values of all these rules.
    fn add_fields(&self, path: &RequestPath<'_>, agents: &[Agent], found: &mut ResponseFields) {
        let mut longest: Vec<&FieldRule> = Vec::new();
        let matches = |rule: &&FieldRule| path.forms().any(|(_, form)| rule.pattern.matches(form));
        for rule in self.fields.iter().filter(matches) {
            found.content_varies |= rule.crawlers.is_some();
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

fn common<T: PartialEq>(agents: &[Agent], value: impl Fn(&Agent) -> Option<T>) -> Option<T> {
    let (first, others) = agents.split_first()?;
    let first = value(first)?;
    others.iter().all(|agent| value(agent).as_ref() == Some(&first)).then_some(first)
}

fn link(url: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(["<", url, ">; rel=\"license\"; type=\"application/rsl+xml\""].concat()).ok()
}

/// The fields to add to the response to one request.
#[derive(Debug, Default)]
#[must_use]
pub struct ResponseFields {
    /// The site whose status counts the fields that were not added because the response already had
    /// them.
    live: Option<LiveRobots>,
    usage: Option<HeaderValue>,
    /// Links to licences. Unlike usage preferences and the operator's fields, links are also added
    /// to refusals and errors.
    links: Vec<(HeaderName, HeaderValue)>,
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Whether the usage preferences or the operator's fields for this path depend on the client.
    /// If so, caches must distinguish clients.
    content_varies: bool,
    /// Whether the links to licences depend on the client.
    links_vary: bool,
}

impl ResponseFields {
    /// Adds the fields to the response of the inner service or the upstream. If the response
    /// already has `Link` or `X-Robots-Tag` with another value, adds a second line. If the response
    /// already has one of the other fields with another value, does not add this field, and
    /// increments [`Status::kept_fields`](crate::live::Status::kept_fields).
    pub fn add_to(mut self, status: StatusCode, headers: &mut HeaderMap) {
        if status.is_informational() {
            return;
        }
        if !matches!(status.as_u16(), 200 | 203 | 206 | 304) {
            (self.usage, self.fields, self.content_varies) = (None, Vec::new(), false);
        }
        if self.content_varies || self.links_vary {
            vary_by_agent(headers);
        }
        let live = self.live.take();
        for field in self.into_fields() {
            if let (false, Some(live)) = (add(headers, field), &live) {
                live.site.counts.kept_fields.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts the fields as lost, because the application did not add them to its response.
    pub(super) fn count_as_lost(self) {
        if let Some(live) = self.live {
            live.site.counts.count_lost_fields();
        }
    }

    pub(super) fn add_to_refusal(self, headers: &mut HeaderMap) {
        for link in self.links {
            add(headers, link);
        }
    }

    /// Returns the fields as a list, for a proxy that adds them to the response itself.
    #[doc(hidden)]
    pub fn for_proxy(self) -> Vec<(HeaderName, HeaderValue)> {
        let vary = (self.content_varies || self.links_vary).then_some((VARY, USER_AGENT_NAME));
        self.into_fields().chain(vary).collect()
    }

    fn into_fields(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let usage = self.usage.map(|value| (CONTENT_USAGE, value));
        usage.into_iter().chain(self.links).chain(self.fields)
    }
}

/// Adds a field. If the response already has the field with another value, and the field may have
/// only one line, returns `false` and adds nothing.
fn add(headers: &mut HeaderMap, (name, value): (HeaderName, HeaderValue)) -> bool {
    let is_additive = name == X_ROBOTS_TAG || name == LINK;
    // If the response has too many fields, the field is not added.
    match headers.try_entry(name) {
        Ok(Entry::Vacant(place)) => drop(place.try_insert(value)),
        // The response already has this value, probably from an inner layer.
        Ok(Entry::Occupied(known)) if known.iter().any(|known| *known == value) => {}
        Ok(Entry::Occupied(mut known)) if is_additive => known.append(value),
        Ok(Entry::Occupied(_)) => return false,
        Err(_) => {}
    }
    true
}
