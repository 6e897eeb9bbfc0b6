//! The part of a decision that outlives its snapshot, and whether an allowed request comes sooner than its crawler may
//! come.
//!
//! **A record may be without a rule.** An impostor is refused where the file allows its request, or says nothing; its
//! refusal says that the claim failed, and nothing of what would have held.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use super::original::Original;
use crate::agent::{Agent, Category, Class, Identity};
use crate::live::{Content, Snapshot, VersionHash};
use crate::policy::{Action, Decision, HumanSigns, RateMode, Reason, Would, is_asset};
use crate::rate::{Quota, RateKey, RateSender};
use crate::rules::{Access, PathForm, ProductToken};

/// Characters of a claimed name that are kept; the longest registered one has a third of that.
const MAX_NAME: usize = 128;

/// An owned record of a request that robots.txt disallows, that comes sooner than its delay lets it, or that an impostor
/// sends whom the policy tags or refuses, or would under another mode: for observers, and in the extensions of a tagged request and of a refusal, where a
/// borrowed [`Decision`] cannot stay.
///
/// The request of an impostor may be allowed, or be matched by no rule: then group, rule and line are those of the rule that
/// allows it, or `None`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Record {
    /// The name it claims, if it claims one. Partly from the client: escape it.
    #[cfg_attr(feature = "serde", serde(rename = "agent"))]
    pub name: Option<String>,
    /// The agent's class.
    pub class: Class,
    /// The crawler's category, where it is registered.
    pub category: Option<Category>,
    /// What became of the claim that the request makes about its sender; `None` where claims are not checked.
    pub identity: Option<Identity>,
    /// The action taken.
    pub action: Action,
    /// The reason for it.
    pub reason: Reason,
    /// What the mode [`Mode::Refuse`](crate::policy::Mode::Refuse) would do, whatever the mode is: what to look at before it is on.
    pub would: Would,
    /// The verdict of the rules; [`Access::Allow`] where no group is for the agent.
    pub access: Access,
    /// The name, as written, that makes the deciding rule's group one for this agent.
    pub group: Option<String>,
    /// How many names the group has; 0 where there is none.
    pub group_size: usize,
    /// The path pattern of the deciding rule, as written.
    pub rule: Option<String>,
    /// The line of the deciding rule.
    pub line: Option<usize>,
    /// The form of the path that decided.
    pub form: PathForm,
    /// The delay that the request came too soon for; `None` for any other request.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub limit: Option<Box<Limit>>,
    /// The signs that a person is behind the request.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub signs: HumanSigns,
    /// The version of the robots.txt.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub hash: VersionHash,
}

/// The delay that a request did not keep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The delay, as written in the robots.txt.
    pub interval: Duration,
    /// The interval that the sender is held to, which may be shorter than the delay as written.
    pub held_to: Duration,
    /// The line of the delay.
    pub line: usize,
    /// The name, as written, that makes the delay's group one for this agent.
    pub group: String,
    /// How long to wait before the next request.
    pub wait: Duration,
    /// Its place among the requests that were refused for their pace, which spreads their return.
    turn: u32,
}

impl Record {
    /// `None` where no agent is judged.
    pub(super) fn new(
        content: &Content,
        agents: &[Agent],
        identity: Option<Identity>,
        decision: &Decision<'_>,
    ) -> Option<Self> {
        let agent = agents.get(decision.agent)?;
        let verdict = decision.verdict;
        let rule = verdict.and_then(|verdict| verdict.rule());
        let group = rule.map(|rule| {
            let name = verdict.and_then(|verdict| verdict.name()).or_else(|| rule.group().names().next());
            text(name.map_or(&b"*"[..], |name| name.value()))
        });
        Some(Self {
            name: name(agent),
            class: agent.class(),
            category: agent.category(),
            identity,
            action: decision.action,
            reason: decision.reason,
            would: decision.would(),
            access: verdict.map_or(Access::Allow, |verdict| verdict.access()),
            group,
            group_size: rule.map_or(0, |rule| rule.group().names().len()),
            rule: rule.map(|rule| text(rule.pattern())),
            line: rule.map(|rule| rule.line()),
            form: verdict.map_or(PathForm::Standard, |verdict| verdict.form()),
            limit: limit(decision),
            signs: decision.signs,
            hash: content.hash(),
        })
    }

    /// The claimed sender: a crawler's name, or else the agent's class. Partly from the client: escape it.
    pub fn agent(&self) -> &str {
        self.name.as_deref().unwrap_or(self.class.as_str())
    }

    /// The same record of a refusal that has this place among those of its site.
    pub(super) fn with_turn(mut self, turn: impl FnOnce() -> u32) -> Self {
        if let Some(limit) = &mut self.limit {
            limit.turn = turn();
        }
        self
    }

    /// When to come again: after the wait, or up to a tenth of it later.
    pub(super) fn retry_after(&self) -> Duration {
        let Some(limit) = &self.limit else { return Duration::ZERO };
        // Multiples of the golden ratio, modulo 1, are apart from each other, however many there are.
        let share = f64::from(limit.turn.wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
        limit.wait + limit.wait.mul_f64(share / 10.0)
    }
}

/// The explanation for a request that came too soon; `None` for any other.
fn limit(decision: &Decision<'_>) -> Option<Box<Limit>> {
    let pace = decision.pace?;
    let delay = pace.delay;
    let limit = || Limit {
        interval: delay.interval(),
        held_to: pace.interval,
        line: delay.line(),
        group: text(delay.name().value()),
        wait: decision.wait,
        turn: 0,
    };
    (!decision.wait.is_zero()).then(|| Box::new(limit()))
}

/// The name an agent claims: the registered one, or the product that declares itself, or the product token it obeys.
pub(super) fn name(agent: &Agent) -> Option<String> {
    agent.crawler().map(|name| cut(name).to_owned()).or_else(|| token_name(agent))
}

/// The product token it obeys: the name of an agent that has no other.
pub(super) fn token_name(agent: &Agent) -> Option<String> {
    agent.tokens().first().map(|token| cut(&token.to_string()).to_owned())
}

pub(super) fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// The part of a claimed name that is kept.
pub(super) fn cut(name: &str) -> &str {
    // A character has an octet at least.
    if name.len() <= MAX_NAME {
        return name;
    }
    name.char_indices().nth(MAX_NAME).map_or(name, |(at, _)| &name[..at])
}

/// Fetch Metadata Request Headers, section 2.1.
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The decision about a request that takes from a bucket: it may come too soon.
pub(super) fn kept<'r>(
    decision: Decision<'r>,
    snapshot: &Snapshot,
    (key, quota): &(RateKey<'_>, Quota),
) -> Decision<'r> {
    match snapshot.take(key, *quota) {
        Ok(()) => decision,
        Err(too_soon) => decision.too_soon(too_soon.wait),
    }
}

/// The decision about a request that was refused a moment ago, maybe because it came too soon: it does so still, though its time
/// may have come since. Nothing is taken.
pub(super) fn looked_at<'r>(
    decision: Decision<'r>,
    snapshot: &Snapshot,
    (key, quota): &(RateKey<'_>, Quota),
) -> Decision<'r> {
    let wait = snapshot.look(key, *quota).map_or_else(|too_soon| too_soon.wait, |()| Duration::from_nanos(1));
    decision.too_soon(wait)
}

/// The bucket that a request takes from; none where it is not limited. A request that has no pace costs nothing here.
///
/// The key of the bucket comes from the identity: a verified crawler has one of its own, so that no other client uses
/// it up by borrowing the name; see [`rate`](crate::rate).
pub(super) fn taken<'a>(
    decision: &Decision<'_>,
    snapshot: &Snapshot,
    request: &Original<'_>,
    agents: &'a [Agent],
    identity: Option<Identity>,
    address: impl FnOnce() -> Option<IpAddr>,
) -> Option<(RateKey<'a>, Quota)> {
    let pace = decision.pace?;
    if is_part_of_page(request) {
        return None;
    }
    let sender = RateSender::of(identity.unwrap_or_default(), address);
    let is_named = |token: &ProductToken| pace.is_known && snapshot.names(token);
    let key = RateKey::of(agents.get(pace.agent)?, sender, is_named)?;
    Some((key, Quota::new(pace.interval, snapshot.policy().rate_burst())))
}

/// The bucket of a site that a request takes from, for a store that several processes share: see
/// [`RobotsLayer::paced`](super::RobotsLayer::paced).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacedRequest {
    /// Where the robots.txt comes from whose delay this is: a path, `inline`, or a URL. Where a layer has several, each has its own
    /// buckets.
    pub origin: String,
    /// What tells the bucket from others of the robots.txt, the same in every process: the crawler's product token in lower case, or
    /// `*` for all names that may be made up; what is known of the sender; and its network, for one that only claims to be the
    /// crawler.
    pub key: String,
    /// Whether the bucket is that of one network: clients with many addresses have many of them.
    pub has_network: bool,
    /// One request passes in this time.
    pub interval: Duration,
    /// So many pass at once after a pause.
    pub burst: NonZeroU32,
    /// What becomes of the request if it comes too soon. Where that is only recorded, it has nothing to wait for.
    pub mode: RateMode,
}

impl PacedRequest {
    pub(super) fn new(origin: &str, key: &RateKey<'_>, quota: Quota, mode: RateMode) -> Self {
        let token = key.token.map_or("*".into(), ToString::to_string);
        let has_network = matches!(key.sender, RateSender::Claimed(Some(_)));
        let key = match key.sender {
            RateSender::Verified => format!("{token} verified"),
            RateSender::Refuted => format!("{token} refuted"),
            RateSender::Claimed(None) => format!("{token} claimed"),
            RateSender::Claimed(Some(address)) => match address.to_canonical() {
                IpAddr::V4(address) => format!("{token} claimed {address}"),
                IpAddr::V6(address) => {
                    format!("{token} claimed {}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
                }
            },
        };
        Self { origin: origin.to_owned(), key, has_network, interval: quota.interval(), burst: quota.burst(), mode }
    }
}

/// What a crawler that renders a page fetches for it, all at once.
fn is_part_of_page(request: &Original<'_>) -> bool {
    let is_part = |dest: &[u8]| [&b"style"[..], b"script", b"image", b"font"].contains(&dest);
    // Few crawlers send the field, and comparing the names of all fields costs less than a hash of its own.
    let has_dest = || request.headers.keys().any(|name| *name == SEC_FETCH_DEST);
    let dest = || request.headers.get(SEC_FETCH_DEST);
    is_asset(request.target()) || has_dest() && dest().is_some_and(|dest| is_part(dest.as_bytes()))
}

/// The field that carries the verdict to an upstream:
/// `Robots-Verdict: disallow;agent="GPTBot";rule="/private/";line=12`, an item of RFC 9651 in ASCII, what a string may
/// not hold percent-encoded and a rule cut at 256 octets: servers bound what a field may hold. Where the path as sent does
/// not match the rule, `;form=resolved` names the form that does ([`PathForm`]). `;reason=search-engine` says that the
/// mode refuses others, and only tags the crawlers of search engines that people use ([`Reason::SearchEngine`]), and
/// `;reason=impostor` that the request is tagged for its sender ([`Reason::Impostor`]): then the verdict may be `allow`, and rule
/// and line are left out where no rule decided. Where senders are checked, `;identity=verified` is what became of the
/// claim ([`IdentityOutcome`](crate::agent::IdentityOutcome)).
pub const ROBOTS_VERDICT: HeaderName = HeaderName::from_static("robots-verdict");

/// CGI and its successors read both spellings as one name.
const WITH_UNDERSCORE: HeaderName = HeaderName::from_static("robots_verdict");

/// Octets of a rule that a field holds.
const MAX_RULE: usize = 256;

/// Whether there is such a field, ours or a client's. Requests have few fields and hardly any with a name as long
/// as this one: looking at each is cheaper than looking up two names that nearly never are there.
pub(super) fn is_present(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| *name == ROBOTS_VERDICT || *name == WITH_UNDERSCORE)
}

/// Removes a client's own field.
pub(super) fn strip(headers: &mut HeaderMap) {
    if is_present(headers) {
        headers.remove(ROBOTS_VERDICT);
        headers.remove(WITH_UNDERSCORE);
    }
}

/// Sets ours. It is taken out of the client's `Connection`, or a proxy behind would drop it.
pub(super) fn mark(headers: &mut HeaderMap, record: &Record) {
    headers.insert(ROBOTS_VERDICT, record.to_field());
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

impl Record {
    /// The value of the field [`ROBOTS_VERDICT`], in ASCII.
    pub fn to_field(&self) -> HeaderValue {
        let mut out = format!("{};agent=\"", self.access);
        push_string(&mut out, self.agent());
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
            out.push_str(identity.outcome().as_str());
        }
        // Everything but visible ASCII and blanks was escaped, so this is a field value.
        HeaderValue::try_from(out).unwrap_or(HeaderValue::from_static("disallow"))
    }
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
