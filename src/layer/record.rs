//! The part of a decision that outlives its snapshot, and the field that carries it to an upstream.
//!
//! **A record may be without a rule.** An impostor is refused where the file allows its request, or says nothing; its
//! refusal says that the claim failed, and nothing of what would have held.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use crate::agent::{Agent, Identity};
use crate::live::{Content, VersionHash};
use crate::policy::{Action, Decision, HumanSigns, Policy, Reason, UnderRefuse};
use crate::rules::{Access, PathForm};

/// Characters of a claimed name that are kept; the longest registered one has a third of that.
const MAX_NAME: usize = 128;

/// A crawler's request and the decision about it, for observers, and in extensions, where a borrowed [`Decision`] cannot
/// stay.
///
/// A crawler is an agent that is registered or declares itself one, and any other that a group of the robots.txt applies
/// to. Requests of other agents have no record, nor has any while nothing is known of the robots.txt or its enforcement is
/// off. [`Reason::is_reported`] tells the requests that robots.txt disallows, that come too soon, or that an impostor sends whom
/// the policy tags or refuses, from those that pass as any other.
///
/// The request of an impostor may be allowed, or be matched by no rule: then group, rule and line are those of the rule that
/// allows it, or `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// The agent, with its class, category and product tokens.
    pub agent: Agent,
    /// The name of an agent that is known by its product token alone.
    token: Option<String>,
    /// The result of checking the claim that the request makes about its sender; `None` if claims are not checked.
    pub identity: Option<Identity>,
    /// The action taken. A request that gets 429 is refused for [`Reason::Limited`]; `would` has a word of its own for it.
    pub action: Action,
    /// The reason for it.
    pub reason: Reason,
    /// The action of the mode [`Mode::Refuse`](crate::policy::Mode::Refuse) once no grace holds, whatever the mode is: look at it before
    /// that mode is on.
    pub would: UnderRefuse,
    /// Until when, at the latest, the request would only be observed, because the file did not disallow it, or not limit it, before;
    /// `None` where no grace holds, or nothing would be done about the request.
    pub grace_end: Option<SystemTime>,
    /// Number of rules that only observe until then. The first request that the grace of a version lets pass has it, and `None` all others.
    pub grace_rules: Option<usize>,
    /// The verdict of the rules; `None` where they were not evaluated: no group applies, or the request is exempt, as one for
    /// `/robots.txt` is.
    pub access: Option<Access>,
    /// The name, as written, that makes the deciding rule's group one for this agent.
    pub group: Option<String>,
    /// How many names the group has; 0 where there is none.
    pub group_size: usize,
    /// The path pattern of the deciding rule, as written; a path that no rule matches is allowed.
    pub rule: Option<String>,
    /// The line of the deciding rule.
    pub line: Option<usize>,
    /// The form of the path that decided.
    pub form: PathForm,
    /// The delay that the request came too soon for; `None` for any other request.
    pub limit: Option<Box<Limit>>,
    /// The signs that a person is behind the request.
    pub signs: HumanSigns,
    /// The version of the robots.txt.
    pub hash: VersionHash,
}

/// The fields for a log: neither the signs of a person nor the version.
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

/// The delay that a request did not keep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The delay, as written in the robots.txt.
    pub interval: Duration,
    /// The interval that is enforced, which may be shorter than the delay as written.
    pub enforced_interval: Duration,
    /// The line of the delay.
    pub line: usize,
    /// The name, as written, that makes the delay's group one for this agent.
    pub group: String,
    /// How long to wait before the next request.
    pub wait: Duration,
    /// Its place among the requests that were refused for their rate, which spreads their return.
    turn: u32,
}

impl Record {
    /// The field that carries the verdict to an upstream: `Robots-Verdict: disallow;agent="GPTBot";rule="/private/";line=12`, an item
    /// of RFC 9651 in ASCII, with octets that a string may not hold percent-encoded and a rule cut at 256 octets: servers bound what
    /// a field may hold. If the path as sent does not match the rule, `;form=resolved` names the form that does ([`PathForm`]).
    /// `;reason=search-engine` says that the mode refuses others, and only tags the crawlers of search engines that people use
    /// ([`Reason::SearchEngine`]), and `;reason=impostor` that the request is tagged for its sender ([`Reason::Impostor`]): then the
    /// verdict may be `allow`, and rule and line are left out where no rule decided. If senders are checked, `;identity=verified` is
    /// the result of checking the claim ([`Identity::outcome`](crate::agent::Identity::outcome)).
    pub const FIELD: HeaderName = HeaderName::from_static("robots-verdict");

    /// `None` if the decision is about none of the agents, because none is a crawler.
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
            // The product token it obeys is the name of an agent that has no other.
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

    /// The claimed sender: a crawler's name, or else the agent's class. Partly from the client: escape it.
    pub fn name(&self) -> &str {
        self.claimed_name().unwrap_or(self.agent.class().as_str())
    }

    /// The name it claims, if it claims one: the registered one, or the product that declares itself, or the product token it
    /// obeys. Partly from the client: escape it.
    pub fn claimed_name(&self) -> Option<&str> {
        self.agent.crawler().map(cut).or(self.token.as_deref())
    }

    /// Whether the rules disallow the request.
    pub fn is_disallowed(&self) -> bool {
        self.access == Some(Access::Disallow)
    }

    /// Gives a refusal for its rate its place among those of its site.
    pub(super) fn set_turn(&mut self, turn: impl FnOnce() -> u32) {
        if let Some(limit) = self.limit.as_mut().filter(|_| self.reason == Reason::Limited) {
            limit.turn = turn();
        }
    }

    /// When to come again: after the wait, or up to a tenth of it later.
    pub(super) fn retry_after(&self) -> Duration {
        let Some(limit) = &self.limit else { return Duration::ZERO };
        // Multiples of the golden ratio, modulo 1, are apart from each other, however many there are.
        let share = f64::from(limit.turn.wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
        limit.wait + limit.wait.mul_f64(share / 10.0)
    }

    /// The value of the field [`Record::FIELD`], in ASCII.
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
        // Everything but visible ASCII and blanks was escaped, so this is a field value.
        HeaderValue::try_from(out).unwrap_or(HeaderValue::from_static("disallow"))
    }
}

/// Whether a request may be a crawler's. Most are not, and are known by this.
pub(super) fn may_be_of_crawler(agents: &[Agent], decision: &Decision<'_>) -> bool {
    // Of what no group is for, the agents alone decide.
    decision.reason != Reason::NoGroup || agents.iter().any(is_crawler)
}

/// Whether an agent is a crawler, regardless of the robots.txt.
pub(super) const fn is_crawler(agent: &Agent) -> bool {
    agent.class().is_crawler()
}

/// The explanation for a request that came too soon; `None` for any other.
fn limit(decision: &Decision<'_>) -> Option<Box<Limit>> {
    let rate_limit = decision.rate_limit?;
    let delay = rate_limit.delay;
    let limit = || Limit {
        interval: delay.interval(),
        enforced_interval: rate_limit.interval,
        line: delay.line(),
        group: text(delay.name().value()).into_owned(),
        wait: decision.wait,
        turn: 0,
    };
    (!decision.wait.is_zero()).then(|| Box::new(limit()))
}

/// Octets as text. Nearly all are, which is seen at a glance; looking for those that are none costs more.
pub fn text(octets: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(octets).map_or_else(|_| String::from_utf8_lossy(octets), Cow::Borrowed)
}

/// The part of a claimed name that is kept.
fn cut(name: &str) -> &str {
    // A character has an octet at least.
    if name.len() <= MAX_NAME {
        return name;
    }
    name.char_indices().nth(MAX_NAME).map_or(name, |(at, _)| &name[..at])
}

/// CGI and its successors read both spellings as one name.
const WITH_UNDERSCORE: HeaderName = HeaderName::from_static("robots_verdict");

/// Octets of a rule that a field holds.
const MAX_RULE: usize = 256;

/// Whether there is such a field, ours or a client's. Requests have few fields and hardly any with a name as long
/// as this one: looking at each is cheaper than looking up two names that nearly never are there.
pub(super) fn is_present(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| *name == Record::FIELD || *name == WITH_UNDERSCORE)
}

/// Removes a client's own field.
pub(super) fn strip(headers: &mut HeaderMap) {
    if is_present(headers) {
        headers.remove(Record::FIELD);
        headers.remove(WITH_UNDERSCORE);
    }
}

/// Sets ours. It is taken out of the client's `Connection`, or a proxy behind would drop it.
pub(super) fn mark(headers: &mut HeaderMap, record: &Record) {
    headers.insert(Record::FIELD, record.to_field());
    let names_ours = |value: &HeaderValue| options(value).any(|option| option.eq_ignore_ascii_case(b"robots-verdict"));
    if headers.get_all(CONNECTION).into_iter().any(names_ours) {
        let kept: Vec<_> =
            headers.get_all(CONNECTION).into_iter().filter(|value| !names_ours(value)).cloned().collect();
        headers.remove(CONNECTION);
        for value in kept {
            headers.append(CONNECTION, value);
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
