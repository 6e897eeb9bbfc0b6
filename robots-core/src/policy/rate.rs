//! Rate limiting by the `Crawl-delay` lines of robots.txt.

use std::num::NonZeroU32;
use std::time::Duration;

use super::facts::RequestFacts;
use super::overrides::{Mode, Override};
use crate::agent::{Agent, Class, Identity};
use crate::keyword_enum;
use crate::rules::{CrawlDelay, Selection, Verdict};

keyword_enum! {
    /// The action for an allowed request that comes too soon: before the crawl delay has passed.
    /// Later variants are stricter. The [`Mode`] limits the policy's rate mode, but not the rate
    /// mode of an override.
    #[derive(Default, PartialOrd, Ord)]
    RateMode, "a rate mode", {
        /// The request passes and is not counted. The default.
        #[default]
        Off = "off",
        /// The request passes and is recorded.
        Observe = "observe",
        /// Under [`Mode::Refuse`], the request is refused with status 429. Under [`Mode::Observe`]
        /// and [`Mode::Tag`], it is only recorded.
        Refuse = "refuse",
    }
}

impl RateMode {
    /// Returns the rate mode as limited by the policy's mode. Only allowed requests are
    /// rate-limited, and they are never tagged, so [`Mode::Tag`] has the same effect as
    /// [`Mode::Observe`].
    #[doc(hidden)]
    pub fn within(self, mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Observe | Mode::Tag => self.min(Self::Observe),
            Mode::Refuse => self,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct RateRules {
    pub(super) mode: RateMode,
    pub(super) burst: NonZeroU32,
    pub(super) overrides: Vec<Override<RateMode>>,
}

/// The crawl delay for a request, and how it is enforced.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RateLimit<'r> {
    /// The `Crawl-delay` line and its value.
    pub delay: CrawlDelay<'r>,
    /// Interval that is enforced: usually the delay's
    /// [`enforced_interval`](CrawlDelay::enforced_interval). If a new version of the file has
    /// increased the delay, the shorter interval of an earlier version is enforced until the grace
    /// period of the new version ends.
    pub interval: Duration,
    /// Action for a request that comes before the delay has passed, as limited by the site's mode.
    /// Never [`RateMode::Off`].
    pub mode: RateMode,
    /// The value that the field `mode` would have under [`Mode::Refuse`] after the grace period.
    pub(super) refusing: RateMode,
    /// Verdict on the request, for the agent that has this delay.
    pub verdict: Verdict<'r>,
    /// Index of the agent that has this delay, among the agents given to
    /// [`Policy::decide`](super::Policy::decide). The returned [`Decision`](super::Decision) may be
    /// about another agent.
    pub agent: usize,
    /// Whether the agent's name is in the registry or in the file.
    pub is_known: bool,
}

impl RateRules {
    /// Returns the rate limit of an allowed request; `None` if the groups have no delay or the
    /// policy does not limit the agent's rate. `bound` returns the [`Mode`] for this agent, which
    /// limits the policy's rate mode. `is_believed` tells whether the policy accepts the client's
    /// claim to be this agent.
    pub(super) fn rate_limit<'r>(
        &self,
        bound: impl FnOnce() -> Mode,
        agent: &Agent,
        selection: Selection<'r>,
        verdict: Verdict<'r>,
        request: &RequestFacts<'_>,
        is_believed: bool,
    ) -> Option<RateLimit<'r>> {
        if self.mode == RateMode::Off && self.overrides.is_empty() {
            return None;
        }
        // Requests are counted by the agent's name. An agent without a name is counted by the
        // client's network, but only if its class shows that it is not a person.
        let is_counted = !agent.tokens().is_empty() || is_automation(agent);
        let delay = selection.crawl_delay().filter(|_| is_counted)?;
        // A search engine removes pages from its index if requests for them are refused too often.
        // So the rate of its crawler is limited only if the crawler is named both in a group of the
        // file and in a rate override.
        let is_spared = agent.is_index_engine() && !matches!(request.identity, Identity::Refuted(_));
        let spared = |mode: RateMode| if is_spared { mode.min(RateMode::Observe) } else { mode };
        // If the policy does not accept the client's claim, the policy's rate mode applies, or a
        // stricter rate override for the claimed agent. So an impostor has no advantage from a name
        // with a mild override.
        let mut claimed = RateMode::Off;
        let mut fitting =
            self.overrides.iter().rev().filter(|over| over.fits(agent, None) && over.has_not_ended(request));
        let granted = fitting.find_map(|over| {
            let is_one_by_one = over.agent_name().is_some() && !selection.is_star();
            let mode = if is_one_by_one { over.mode } else { spared(over.mode) };
            claimed = claimed.max(mode);
            is_believed.then_some(mode)
        });
        let mode = granted.unwrap_or_else(|| spared(self.mode.within(bound())).max(claimed));
        let is_known = agent.is_registered() || !selection.is_star();
        (mode != RateMode::Off).then_some(RateLimit {
            delay,
            interval: delay.enforced_interval(),
            mode,
            refusing: mode,
            verdict,
            agent: 0,
            is_known,
        })
    }
}

impl RateLimit<'_> {
    /// Reports whether a request is for a style sheet, an image or another part of a page. Such
    /// requests are not limited, because crawlers that render a page fetch all of its parts at
    /// once.
    ///
    /// Only the file extension of the path is checked; the query is ignored. Paths with `%`, `;`,
    /// `\` or `#` are not treated as assets, because different servers interpret these bytes in
    /// different ways.
    pub fn is_for_asset(target: &[u8]) -> bool {
        if memchr::memchr(b'.', target).is_none() {
            return false;
        }
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let Some((name, ending)) = memchr::memrchr(b'.', path).map(|at| path.split_at(at)) else { return false };
        let is_plain = |path: &[u8]| !path.iter().any(|byte| matches!(byte, b'%' | b';' | b'\\' | b'#'));
        let is_called = |asset: &&str| ending[1..].eq_ignore_ascii_case(asset.as_bytes());
        !name.ends_with(b"/") && ASSETS.iter().copied().flatten().any(is_called) && is_plain(path)
    }

    /// If this limit does not refuse requests, takes all fields except `mode` from `refusing`, the
    /// rate limit of the same request under [`Mode::Refuse`]. So the counts of requests are the
    /// same as under [`Mode::Refuse`]. `self` and `refusing` may be limits of different agents.
    pub(super) fn with_refusing(self, refusing: Self) -> Self {
        if self.mode == RateMode::Refuse { self } else { Self { mode: self.mode, ..refusing } }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let rank = |of: &Self| (of.mode, of.is_known, of.interval);
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Reports whether an agent's class shows that the request is automated. Requests from browsers or
/// apps, and requests without a `User-Agent`, may be made by people.
const fn is_automation(agent: &Agent) -> bool {
    matches!(agent.class(), Class::Declared | Class::Headless | Class::Library)
}

const ASSETS: [&[&str]; 3] = [
    &["css", "js", "mjs", "map", "wasm", "webmanifest"],
    &["png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "ico", "bmp", "apng", "jxl"],
    &["woff", "woff2", "ttf", "otf", "eot"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_recognised_by_the_end_of_its_path() {
        for target in ["/a.css", "/a/B.PNG?v=1", "/a.tar.woff2"] {
            assert!(RateLimit::is_for_asset(target.as_bytes()), "{target}");
        }
        for target in
            "/a.html /a.css/b /a?b=.css /a;b.css /a%2f.css /.css /a. / /a.css#/b /a#.css".split(' ').chain([""])
        {
            assert!(!RateLimit::is_for_asset(target.as_bytes()), "{target}");
        }
    }
}
