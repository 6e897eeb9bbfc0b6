//! Whether the delay in the robots.txt is enforced.

use std::num::NonZeroU32;
use std::time::Duration;

use super::facts::RequestFacts;
use super::overrides::{Mode, Override};
use crate::agent::{Agent, Class, Identity};
use crate::keyword_enum;
use crate::rules::{CrawlDelay, Selection, Verdict};

keyword_enum! {
    /// The action for an allowed request that comes sooner than the `Crawl-delay` of its crawler's groups; the later ones are
    /// stricter. The [`Mode`] bounds it, unless an override says it.
    #[derive(Default, PartialOrd, Ord)]
    RateMode, "a mode of limiting", {
        /// It passes, and nothing is counted. The default.
        #[default]
        Off = "off",
        /// It passes and is recorded.
        Observe = "observe",
        /// It is answered with 429 where the mode refuses, and recorded where it only observes or tags.
        Refuse = "refuse",
    }
}

impl RateMode {
    /// The mode as far as another one lets it: it refuses only if the mode refuses, and counts nothing if the mode is off.
    /// Under [`Mode::Tag`] it records: a tag says what the file disallows, and this request is allowed.
    #[doc(hidden)]
    pub fn within(self, mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Observe | Mode::Tag => self.min(Self::Observe),
            Mode::Refuse => self,
        }
    }
}

/// How requests are limited.
#[derive(Clone, Debug)]
pub(super) struct RateRules {
    pub(super) mode: RateMode,
    pub(super) burst: NonZeroU32,
    pub(super) overrides: Vec<Override<RateMode>>,
}

/// The delay that applies to a request, and how.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RateLimit<'r> {
    /// The delay, with its line.
    pub delay: CrawlDelay<'r>,
    /// The interval that is enforced: the [enforced](CrawlDelay::enforced_interval) one of the delay or, while a delay
    /// that was made longer is in grace, the longest one before it.
    pub interval: Duration,
    /// The action for a request that comes sooner, as far as the mode of the site lets it; never [`RateMode::Off`].
    pub mode: RateMode,
    /// The same where the mode of the site is [`Mode::Refuse`] and no grace holds.
    pub(super) refusing: RateMode,
    /// Of the agent to which it applies.
    pub verdict: Verdict<'r>,
    /// The agent to which it applies, as an index into those given to [`Policy::decide`](super::Policy::decide). The
    /// decision itself may be about another one.
    pub agent: usize,
    /// Whether the registry or the file knows the agent's name.
    pub is_known: bool,
}

impl RateRules {
    /// Returns the rate limit of an allowed request; `None` where its groups have no delay, or nothing is done about it. `bound` is the mode that
    /// holds for the agent. `is_believed`: whether what is granted to the name of a crawler is granted to the request.
    pub(super) fn rate_limit<'r>(
        &self,
        bound: impl FnOnce() -> Mode,
        agent: &Agent,
        selection: Selection<'r>,
        verdict: Verdict<'r>,
        request: &RequestFacts<'_>,
        is_believed: bool,
    ) -> Option<RateLimit<'r>> {
        // Before all else: nearly every policy and every file.
        if self.mode == RateMode::Off && self.overrides.is_empty() {
            return None;
        }
        // Requests count by a name, or by the address of what runs without a person.
        let is_counted = !agent.tokens().is_empty() || is_automation(agent);
        let delay = selection.crawl_delay().filter(|_| is_counted)?;
        // A page that a search engine is refused too often leaves its index: it is named one by one, in the file and here.
        let is_spared = agent.is_index_engine() && !matches!(request.identity, Identity::Refuted(_));
        let spared = |mode: RateMode| if is_spared { mode.min(RateMode::Observe) } else { mode };
        // As in the overrides of the mode: an impostor must not choose a mild one.
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
    /// Whether a request target is for a part of a page, such as a style sheet, a script, an image or a font. Such requests are not
    /// limited: a crawler that renders a page fetches them all at once.
    ///
    /// The ending of the path decides, up to the query. A path that servers may read in several ways is none.
    pub fn is_for_asset(target: &[u8]) -> bool {
        // Most pages have no ending, and no query with a dot.
        if memchr::memchr(b'.', target).is_none() {
            return false;
        }
        let path = &target[..memchr::memchr2(b'?', b'#', target).unwrap_or(target.len())];
        let Some((name, ending)) = memchr::memrchr(b'.', path).map(|at| path.split_at(at)) else { return false };
        let is_plain = |path: &[u8]| !path.contains(&b'%') && !path.contains(&b';') && !path.contains(&b'\\');
        let is_called = |asset: &&str| ending[1..].eq_ignore_ascii_case(asset.as_bytes());
        !name.ends_with(b"/") && ASSETS.iter().copied().flatten().any(is_called) && is_plain(path)
    }

    /// The same, where this is what the policy would hold the sender to with the mode [`Mode::Refuse`]. Of several agents it may be
    /// another one's: requests are counted before the mode refuses as they are counted then.
    pub(super) fn with_refusing(self, refusing: Self) -> Self {
        if self.mode == RateMode::Refuse { self } else { Self { mode: self.mode, ..refusing } }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let rank = |of: &Self| (of.mode, of.is_known, of.interval);
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Whether a header that names nobody says that there is no person behind the request. Browsers, applications and whatever has no
/// `User-Agent` may have one.
const fn is_automation(agent: &Agent) -> bool {
    matches!(agent.class(), Class::Declared | Class::Headless | Class::Library)
}

/// Endings of files that a page is made of, without case.
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
        for (target, want) in [
            ("/a.css", true),
            ("/a/B.PNG?v=1", true),
            ("/a.js#x", true),
            ("/a.tar.woff2", true),
            ("/a.html", false),
            ("/a.css/b", false),
            ("/a?b=.css", false),
            ("/a;b.css", false),
            ("/a%2f.css", false),
            ("/.css", false),
            ("/a.", false),
            ("/", false),
            ("", false),
        ] {
            assert_eq!(RateLimit::is_for_asset(target.as_bytes()), want, "{target}");
        }
    }
}
