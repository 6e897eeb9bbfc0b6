//! Rate limiting by the delays in robots.txt.

use std::num::NonZeroU32;
use std::time::Duration;

use super::facts::RequestFacts;
use super::overrides::{Mode, Override};
use crate::agent::{Agent, Class, Identity};
use crate::keyword_enum;
use crate::rules::{CrawlDelay, Selection, Verdict};

keyword_enum! {
    /// The action for an allowed request that exceeds the `Crawl-delay` of its crawler's groups;
    /// later variants are stricter. The [`Mode`] limits this action, but not the action of a rate
    /// override.
    #[derive(Default, PartialOrd, Ord)]
    RateMode, "a rate mode", {
        /// The request passes, and nothing is counted. The default.
        #[default]
        Off = "off",
        /// The request passes and is recorded.
        Observe = "observe",
        /// The request is answered with 429 if the mode refuses. The request is only recorded if
        /// the mode observes or tags.
        Refuse = "refuse",
    }
}

impl RateMode {
    /// Returns the rate mode within the limits of the policy's mode. Requests are refused only
    /// under [`Mode::Refuse`], and under [`Mode::Off`] the result is [`RateMode::Off`]. Under
    /// [`Mode::Tag`] requests are only recorded, because a tag is for disallowed requests and a
    /// request that exceeds its crawl delay is allowed.
    #[doc(hidden)]
    pub fn within(self, mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Observe | Mode::Tag => self.min(Self::Observe),
            Mode::Refuse => self,
        }
    }
}

/// The settings of a policy for rate limiting.
#[derive(Clone, Debug)]
pub(super) struct RateRules {
    pub(super) mode: RateMode,
    pub(super) burst: NonZeroU32,
    pub(super) overrides: Vec<Override<RateMode>>,
}

/// The crawl delay that applies to a request, and how it is enforced.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RateLimit<'r> {
    /// The delay, with its line.
    pub delay: CrawlDelay<'r>,
    /// Interval that is enforced: the delay's [`enforced_interval`](CrawlDelay::enforced_interval).
    /// During the grace period of an increased delay, this is the longest earlier interval instead.
    pub interval: Duration,
    /// Action for a request that exceeds the delay, within the limits of the site's mode; never
    /// [`RateMode::Off`].
    pub mode: RateMode,
    /// Action under [`Mode::Refuse`] after the grace period.
    pub(super) refusing: RateMode,
    /// Verdict on the request for the agent that the delay applies to.
    pub verdict: Verdict<'r>,
    /// Index of the agent that the delay applies to, among the agents given to
    /// [`Policy::decide`](super::Policy::decide). The decision itself may be about another agent.
    pub agent: usize,
    /// Whether the registry or the file knows the agent's name.
    pub is_known: bool,
}

impl RateRules {
    /// Returns the rate limit of an allowed request; `None` if its groups have no delay, or if the
    /// policy does not limit the request. `bound` returns the mode that applies to the agent.
    /// `is_believed` is true if the request has the privileges of the crawler that it names.
    pub(super) fn rate_limit<'r>(
        &self,
        bound: impl FnOnce() -> Mode,
        agent: &Agent,
        selection: Selection<'r>,
        verdict: Verdict<'r>,
        request: &RequestFacts<'_>,
        is_believed: bool,
    ) -> Option<RateLimit<'r>> {
        // Most policies have no rate limit, so this condition is checked first.
        if self.mode == RateMode::Off && self.overrides.is_empty() {
            return None;
        }
        // Requests are counted by the agent's name. Requests of agents without a name are counted
        // by their address, but only if they are automated.
        let is_counted = !agent.tokens().is_empty() || is_automation(agent);
        let delay = selection.crawl_delay().filter(|_| is_counted)?;
        // A search engine removes pages from its index if they are refused too often. So a search
        // engine is limited only if both the file and a rate override name this crawler itself.
        let is_spared = agent.is_index_engine() && !matches!(request.identity, Identity::Refuted(_));
        let spared = |mode: RateMode| if is_spared { mode.min(RateMode::Observe) } else { mode };
        // If the name is not believed, the strictest of its rate overrides decides. Otherwise, an
        // impostor could select the mildest override by its choice of a name.
        let mut claimed = RateMode::Off;
        let mut fitting = self.overrides.iter().rev().filter(|over| over.fits(agent, None) && over.holds(request));
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
    /// requests are not limited, because crawlers that render pages fetch all parts at once.
    ///
    /// The file extension of the path decides; the query is ignored. A path that servers may
    /// interpret in several ways is not an asset.
    pub fn is_for_asset(target: &[u8]) -> bool {
        // Most pages have no file extension, and no query with a dot.
        if memchr::memchr(b'.', target).is_none() {
            return false;
        }
        let path = &target[..memchr::memchr2(b'?', b'#', target).unwrap_or(target.len())];
        let Some((name, ending)) = memchr::memrchr(b'.', path).map(|at| path.split_at(at)) else { return false };
        let is_plain = |path: &[u8]| !path.contains(&b'%') && !path.contains(&b';') && !path.contains(&b'\\');
        let is_called = |asset: &&str| ending[1..].eq_ignore_ascii_case(asset.as_bytes());
        !name.ends_with(b"/") && ASSETS.iter().copied().flatten().any(is_called) && is_plain(path)
    }

    /// Returns `refusing`, which is the rate limit under [`Mode::Refuse`], but with the mode of
    /// this rate limit. If there are several agents, the two may belong to different agents. With
    /// the values of `refusing`, requests are already counted as they will be when the mode
    /// refuses.
    pub(super) fn with_refusing(self, refusing: Self) -> Self {
        if self.mode == RateMode::Refuse { self } else { Self { mode: self.mode, ..refusing } }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let rank = |of: &Self| (of.mode, of.is_known, of.interval);
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Reports whether the class of a nameless agent shows that no person made the request. Requests of
/// browsers, of apps and without a `User-Agent` may be made by people.
const fn is_automation(agent: &Agent) -> bool {
    matches!(agent.class(), Class::Declared | Class::Headless | Class::Library)
}

/// Extensions of files that are parts of pages; case is ignored.
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
        for target in ["/a.css", "/a/B.PNG?v=1", "/a.js#x", "/a.tar.woff2"] {
            assert!(RateLimit::is_for_asset(target.as_bytes()), "{target}");
        }
        for target in "/a.html /a.css/b /a?b=.css /a;b.css /a%2f.css /.css /a. /".split(' ').chain([""]) {
            assert!(!RateLimit::is_for_asset(target.as_bytes()), "{target}");
        }
    }
}
