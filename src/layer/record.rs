//! The record of a decision, and the request field that tells an upstream the decision. A record
//! can outlive the snapshot that the decision was based on.
//!
//! **A record may have no rule.** For example, an impostor's request is refused even if no rule
//! matches. Such a refusal states only that the claim is false, and does not reveal how a genuine
//! crawler is recognised.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use crate::agent::{Agent, Identity};
use crate::live::{Content, VersionHash};
use crate::policy::{Action, Decision, HumanSigns, Policy, Reason, UnderRefuse};
use crate::rules::{Access, PathForm};

/// Maximum length of a claimed name, in characters; longer names are cut. The longest registered
/// name is about a third as long.
const MAX_NAME: usize = 128;

/// The decision about a crawler's request, for observers and for extensions. Unlike [`Decision`], a
/// record borrows nothing from the snapshot.
///
/// Here, a crawler is a registered agent, an agent that declares itself a crawler, or any other
/// agent that a group of the robots.txt names. Requests of other agents have no record. While no
/// robots.txt is known, or while enforcement is off, there are no records. [`Reason::is_reported`]
/// returns `true` for the requests that `on_disallowed` reports: requests that robots.txt
/// disallows, requests that come before the crawl delay has passed, and requests of impostors.
///
/// If the rules allow an impostor's request, `group`, `rule` and `line` describe the rule that
/// allows it. All three are `None` if no rule matches.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// The agent, with its class, category and product tokens.
    pub agent: Agent,
    /// The agent's first product token, used as its name; `None` if the agent has a registered or
    /// declared name.
    token: Option<String>,
    /// The result of checking who sent the request; `None` if senders are not checked.
    pub identity: Option<Identity>,
    /// The action taken. If the request was answered with 429, the action is `Refuse`, the reason
    /// is [`Reason::Limited`], and `would` is [`UnderRefuse::Limit`].
    pub action: Action,
    /// The reason for the action.
    pub reason: Reason,
    /// The action that the policy would take in the mode
    /// [`Mode::Refuse`](crate::policy::Mode::Refuse) after the end of any grace period, regardless
    /// of the current mode. This value shows the effect of `Refuse` before you enable this mode.
    pub would: UnderRefuse,
    /// The end of the grace period; the latest end if there are several grace periods. Until then,
    /// the request is only observed, because the previous version of the robots.txt did not
    /// disallow or limit it. `None` if no grace period applies, or if the request would pass
    /// without a grace period.
    pub grace_end: Option<SystemTime>,
    /// Number of rules that were in their grace period when the robots.txt went live. The number is
    /// set only once per version of the robots.txt, for the first request that passes because of a
    /// grace period.
    pub grace_rules: Option<usize>,
    /// Whether the rules allow the request. `None` if the rules were not evaluated, because no
    /// group applies or the request is exempt (for example, a request for `/robots.txt`).
    pub access: Option<Access>,
    /// The `User-agent` value, as written in the robots.txt, that makes the deciding rule's group
    /// apply to this agent.
    pub group: Option<String>,
    /// Number of `User-agent` names in the deciding rule's group; 0 if there is no group.
    pub group_size: usize,
    /// The path pattern of the deciding rule, as written. `None` if no rule matches the path; the
    /// path is then allowed.
    pub rule: Option<String>,
    /// The line number of the deciding rule.
    pub line: Option<usize>,
    /// The form of the path ([`PathForm`]) that matched the deciding rule, such as the path with
    /// `..` segments resolved.
    pub form: PathForm,
    /// The crawl delay if the request arrived before the delay had passed; otherwise `None`.
    pub limit: Option<Box<Limit>>,
    /// The signs that a person sent the request.
    pub signs: HumanSigns,
    /// Hash of the version of the robots.txt whose rules apply to the request.
    pub hash: VersionHash,
}

/// Serializes the fields for a log, but not the grace period, the crawl delay, `signs` or `hash`.
#[cfg(feature = "serde")]
impl serde::Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Record", 13)?;
        fields.serialize_field("agent", &self.claimed_name())?;
        fields.serialize_field("class", &self.agent.class())?;
        fields.serialize_field("category", &self.agent.category())?;
        fields.serialize_field("identity", &self.identity)?;
        fields.serialize_field("action", &self.action)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("would", &self.would)?;
        fields.serialize_field("access", &self.access)?;
        fields.serialize_field("group", &self.group)?;
        fields.serialize_field("group_size", &self.group_size)?;
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("line", &self.line)?;
        fields.serialize_field("form", &self.form)?;
        fields.end()
    }
}

/// The crawl delay of a request that arrived before the delay had passed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The crawl delay, as written in the robots.txt.
    pub interval: Duration,
    /// The interval that is enforced, which may be shorter than the crawl delay.
    pub enforced_interval: Duration,
    /// The line number of the `Crawl-delay` line.
    pub line: usize,
    /// The `User-agent` value, as written, that makes the crawl delay's group apply to this agent.
    pub group: String,
    /// Time that the client must wait before its next request.
    pub wait: Duration,
    /// Number of earlier requests to the site that were refused because of a rate limit.
    /// `Retry-After` is increased by a fraction that depends on this number, so that refused
    /// clients do not all retry at the same time.
    earlier_refusals: u32,
}

impl Record {
    /// The request field that tells an upstream the verdict: `Robots-Verdict:
    /// disallow;agent="GPTBot";rule="/private/";line=12`. The value is an item as defined in RFC
    /// 9651. Bytes that a string of RFC 9651 cannot contain are percent-encoded. Names and rules
    /// are cut at 256 bytes, because servers limit the size of a field.
    ///
    /// Further parameters:
    ///
    /// - `;form=resolved`: the rule matches this form of the path ([`PathForm`]). The parameter is
    ///   omitted if the rule matches the path as sent.
    /// - `;reason=search-engine`: the policy refuses disallowed requests, but this request is from
    ///   a search engine with a public index, so it is only tagged ([`Reason::SearchEngine`]).
    /// - `;reason=impostor`: the request is tagged because its sender is an impostor
    ///   ([`Reason::Impostor`]). The verdict of an impostor's request can be `allow`. `rule` and
    ///   `line` are omitted if no rule matches.
    /// - `;identity=verified`: the result of checking who sent the request, if senders are checked
    ///   ([`Identity::outcome`](crate::agent::Identity::outcome)).
    pub const FIELD: HeaderName = HeaderName::from_static("robots-verdict");

    /// Creates the record of a decision; `None` if none of the agents is a crawler.
    pub(super) fn new(
        content: &Content,
        policy: &Policy,
        agents: &[Agent],
        identity: Option<Identity>,
        decision: &Decision<'_>,
    ) -> Option<Box<Self>> {
        let verdict = decision.verdict;
        let agent = policy.subject(content.rules(), agents, decision)?;
        let rule = verdict.and_then(|verdict| verdict.rule());
        let group = rule.map(|rule| {
            let name = verdict.and_then(|verdict| verdict.name()).or_else(|| rule.group().names().next());
            text(name.map_or(&b"*"[..], |name| name.value())).into_owned()
        });
        let own_token = agent.tokens().first().filter(|_| agent.crawler().is_none());
        Some(Box::new(Self {
            agent: agent.clone(),
            token: own_token.map(|token| cut(&token.to_string()).to_owned()),
            identity,
            action: decision.action,
            reason: decision.reason,
            would: decision.would(),
            grace_end: decision
                .grace_end
                .filter(|_| decision.action != Action::Refuse && decision.would() > UnderRefuse::Pass),
            grace_rules: None,
            access: verdict.map(|verdict| verdict.access()),
            group,
            group_size: rule.map_or(0, |rule| rule.group().names().len()),
            rule: rule.map(|rule| text(rule.pattern()).into_owned()),
            line: rule.map(|rule| rule.line()),
            form: verdict.map_or(PathForm::Standard, |verdict| verdict.form()),
            limit: limit(decision),
            signs: decision.signs,
            hash: content.hash(),
        }))
    }

    /// Returns the crawler's name or, if it has none, the class of the agent. Escape the name,
    /// because it may come from the client.
    pub fn name(&self) -> &str {
        self.claimed_name().unwrap_or(self.agent.class().as_str())
    }

    /// Returns the name that the agent claims, if any: the registered name, the name of the product
    /// that declares itself a crawler, or the first of the agent's product tokens. Escape the name,
    /// because it may come from the client.
    pub fn claimed_name(&self) -> Option<&str> {
        self.agent.crawler().map(cut).or(self.token.as_deref())
    }

    /// Reports whether the rules disallow the request.
    pub fn is_disallowed(&self) -> bool {
        self.access == Some(Access::Disallow)
    }

    /// If the request is refused because of its crawl delay, stores the number that
    /// `earlier_refusals` returns in the record's [`Limit`].
    pub(super) fn set_earlier_refusals(&mut self, earlier_refusals: impl FnOnce() -> u32) {
        if let Some(limit) = self.limit.as_mut().filter(|_| self.reason == Reason::Limited) {
            limit.earlier_refusals = earlier_refusals();
        }
    }

    /// Returns the value for `Retry-After`: the time to wait, increased by up to a tenth.
    pub(super) fn retry_after(&self) -> Duration {
        let Some(limit) = &self.limit else { return Duration::ZERO };
        // Multiples of the golden ratio, modulo 1, are distributed evenly between 0 and 1.
        let share = f64::from(limit.earlier_refusals.wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
        limit.wait + limit.wait.mul_f64(share / 10.0)
    }

    /// Returns the value of the field [`Record::FIELD`], in ASCII.
    pub fn to_field(&self) -> HeaderValue {
        let mut out = format!("{};agent=\"", self.access.unwrap_or(Access::Allow));
        push_string(&mut out, self.name());
        out.push('"');
        if let (Some(rule), Some(line)) = (&self.rule, self.line) {
            out.push_str(";rule=\"");
            push_string(&mut out, rule);
            out.push_str("\";line=");
            out.push_str(&line.to_string());
        }
        if self.form != PathForm::Standard {
            out.push_str(";form=");
            out.push_str(self.form.as_str());
        }
        if let Reason::SearchEngine | Reason::Impostor = self.reason {
            out.push_str(";reason=");
            out.push_str(self.reason.as_str());
        }
        if let Some(identity) = self.identity {
            out.push_str(";identity=");
            out.push_str(identity.outcome());
        }
        // `out` is a valid field value, because all bytes except visible ASCII and spaces were
        // escaped.
        HeaderValue::try_from(out).unwrap_or(HeaderValue::from_static("disallow"))
    }
}

/// Reports whether a request may be from a crawler. This check is cheaper than creating a record.
pub(super) fn may_be_of_crawler(agents: &[Agent], decision: &Decision<'_>) -> bool {
    // If no group applies, only agents that are registered or declare themselves crawlers count as
    // crawlers.
    decision.reason != Reason::NoGroup || agents.iter().any(is_crawler)
}

/// Reports whether an agent is registered as a crawler or declares itself a crawler.
pub(super) const fn is_crawler(agent: &Agent) -> bool {
    agent.class().is_crawler()
}

/// Returns the crawl delay if the request arrived before the delay had passed.
fn limit(decision: &Decision<'_>) -> Option<Box<Limit>> {
    let rate_limit = decision.rate_limit?;
    let delay = rate_limit.delay;
    let limit = || Limit {
        interval: delay.interval(),
        enforced_interval: rate_limit.interval,
        line: delay.line(),
        group: text(delay.name().value()).into_owned(),
        wait: decision.wait,
        earlier_refusals: 0,
    };
    (!decision.wait.is_zero()).then(|| Box::new(limit()))
}

/// Converts bytes to a string, lossily if they are not valid UTF-8. Nearly all input is valid
/// UTF-8, and the check is faster than a lossy conversion.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn cut(name: &str) -> &str {
    // A name of at most `MAX_NAME` bytes has at most `MAX_NAME` characters.
    if name.len() <= MAX_NAME {
        return name;
    }
    name.char_indices().nth(MAX_NAME).map_or(name, |(at, _)| &name[..at])
}

/// The name of the verdict field with an underscore instead of the hyphen. CGI and similar
/// interfaces do not distinguish the two names.
const WITH_UNDERSCORE: HeaderName = HeaderName::from_static("robots_verdict");

/// Maximum size of a name or rule in the verdict field, in bytes.
const MAX_RULE: usize = 256;

/// Reports whether a request has a verdict field, with a hyphen or an underscore. Comparing the
/// names of all fields is faster than two lookups, because requests have few fields, and most of
/// their names differ in length from the verdict field's name.
pub(super) fn is_present(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| *name == Record::FIELD || *name == WITH_UNDERSCORE)
}

pub(super) fn strip(headers: &mut HeaderMap) {
    if is_present(headers) {
        headers.remove(Record::FIELD);
        headers.remove(WITH_UNDERSCORE);
    }
}

/// Removes the verdict fields that a client sent, and adds the field of this record. Also removes
/// the field's name from the client's `Connection` fields, so that the next proxy does not remove
/// the verdict as a hop-by-hop field.
pub fn mark(headers: &mut HeaderMap, record: Option<&Record>) {
    strip(headers);
    let Some(record) = record else { return };
    headers.insert(Record::FIELD, record.to_field());
    let is_ours = |option: &&[u8]| option.eq_ignore_ascii_case(b"robots-verdict");
    if headers.get_all(CONNECTION).into_iter().any(|value| options(value).any(|option| is_ours(&option))) {
        let others = headers.get_all(CONNECTION).into_iter().flat_map(options);
        let others = others.filter(|option| !option.is_empty() && !is_ours(option));
        let others = others.collect::<Vec<_>>().join(&b", "[..]);
        headers.remove(CONNECTION);
        if !others.is_empty() {
            headers.extend(HeaderValue::from_bytes(&others).map(|value| (CONNECTION, value)));
        }
    }
}

fn options(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn push_string(out: &mut String, text: &str) {
    for byte in text.bytes().take(MAX_RULE) {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\') => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
            }
        }
    }
}
