//! Finds the pages in a given list that search engines lose. A page is lost if the old file allows
//! it and the new file disallows it.

use std::collections::BTreeMap;
use std::fmt;

use super::change::Decider;
use super::compare::Pair;
use super::subject::{Subject, first_crawlers};
use crate::agent::{Obeys, Registry};
use crate::check::quote::Quoted;
use crate::rules::{Access, Reading, RequestPath, RobotsTxt};

/// A page of a site: its path and query as in a request. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(std::sync::Arc<[u8]>);

/// Pages that the old file allows and the new file disallows for the same search engines. All these
/// search engines obey the same groups.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PageLoss {
    /// Search engines that lose the pages; at least one. The engines that send the most visitors
    /// come first.
    pub crawlers: Vec<Subject>,
    /// Lost pages, in the order of the given pages.
    pub lost: Vec<LostPage>,
    /// Given pages that the old file allowed, including the lost pages.
    pub allowed: Vec<Page>,
}

/// A page that the old file allowed and the new file disallows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPage {
    /// Path and query of the page.
    pub page: Page,
    /// The rule of the new file that disallows the page; `None` if the verdict does not depend on a
    /// rule.
    pub rule: Option<Decider>,
}

impl Pair {
    fn loss(&self, crawlers: Vec<Subject>, pages: &[Page]) -> PageLoss {
        let mut loss = PageLoss { lost: Vec::new(), allowed: Vec::new(), crawlers };
        let Some([before, after]) = loss.crawlers.first().map(|subject| self.select(subject)) else { return loss };
        for page in pages {
            let request = RequestPath::new(page.target());
            // `/robots.txt` is left out, because every crawler may always fetch it.
            if request.is_robots_txt() || before.verdict(&request).access() == Access::Disallow {
                continue;
            }
            loss.allowed.push(page.clone());
            let verdict = after.verdict(&request);
            if verdict.access() == Access::Disallow {
                loss.lost.push(LostPage { page: page.clone(), rule: Decider::of(verdict) });
            }
        }
        loss
    }
}

impl Page {
    /// Creates a page from its path and query.
    pub fn new(target: impl AsRef<[u8]>) -> Self {
        Self(target.as_ref().into())
    }

    /// Returns the path and query.
    #[doc(hidden)]
    pub fn target(&self) -> &[u8] {
        &self.0
    }

    /// Reports whether this is the front page.
    #[doc(hidden)]
    pub fn is_front(&self) -> bool {
        *self.0 == *b"/"
    }
}

impl PageLoss {
    /// Finds the elements of `pages` that search engines may no longer fetch. Only the search
    /// engines that people use ([`Crawler::is_index_engine`]) are considered. Search engines that
    /// obey the same groups share one element of the result. The element with the most lost pages
    /// comes first. The result is empty if no page is lost.
    ///
    /// Pages that the old file already disallowed are not lost, and `/robots.txt` is not a page.
    /// Only the files are compared: modes and exemptions of a policy are ignored.
    ///
    /// ```
    /// use robots_core::agent::Registry;
    /// use robots_core::check::{Page, PageLoss};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let old = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\n"[..]);
    /// let new = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\nDisallow: /news/\n"[..]);
    /// let pages = ["/", "/news/1", "/news/2", "/cart", "/robots.txt"].map(Page::new);
    /// let losses = PageLoss::between(&old, &new, &pages, Registry::builtin());
    /// // The cart was disallowed before, and robots.txt does not count.
    /// assert_eq!((losses[0].lost.len(), losses[0].allowed.len()), (2, 3));
    /// assert_eq!(losses[0].lost[0].to_string(), "\"/news/1\" by line 3, \"/news/\"");
    /// ```
    ///
    /// [`Crawler::is_index_engine`]: crate::agent::Crawler::is_index_engine
    pub fn between(old: &RobotsTxt, new: &RobotsTxt, pages: &[Page], registry: &Registry) -> Vec<Self> {
        let pair = Pair::new(Reading::Standard, old, new, registry);
        let crawlers = registry.crawlers().filter(|crawler| crawler.is_index_engine && !crawler.is_control);
        let crawlers = crawlers.filter(|crawler| crawler.obeys_robots != Obeys::No);
        let classes = pair.classes(crawlers.map(|crawler| Subject::of(crawler, false)));
        let mut losses: Vec<_> = classes
            .into_iter()
            .map(|crawlers| pair.loss(crawlers, pages))
            .filter(|loss| !loss.lost.is_empty())
            .collect();
        losses
            .sort_by_cached_key(|loss| (std::cmp::Reverse(loss.lost.len()), loss.crawlers.first().map(Subject::rank)));
        losses
    }

    /// Returns at most `most` of the lost pages. Takes one page per rule in turn, so that the
    /// examples also include rules that disallow few pages.
    pub fn examples(&self, most: usize) -> impl Iterator<Item = &LostPage> {
        let mut by_rule: BTreeMap<Option<usize>, Vec<&LostPage>> = BTreeMap::new();
        for lost in &self.lost {
            by_rule.entry(lost.rule.as_ref().map(|decider| decider.line)).or_default().push(lost);
        }
        let longest = by_rule.values().map(Vec::len).max().unwrap_or(0).min(most);
        let turns: Vec<&LostPage> = (0..longest)
            .flat_map(|turn| by_rule.values().filter_map(move |pages| pages.get(turn).copied()))
            .take(most)
            .collect();
        turns.into_iter()
    }
}

/// Writes the loss, for example `"Googlebot", "bingbot" and 9 more lose 1204 of 9800 pages`.
impl fmt::Display for PageLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.crawlers.len() == 1 { "loses" } else { "lose" };
        let noun = if self.allowed.len() == 1 { "page" } else { "pages" };
        write!(f, "{} {verb} {} of {} {noun}", first_crawlers(f, &self.crawlers), self.lost.len(), self.allowed.len())
    }
}

/// Writes the page, for example `"/news/1" by line 3, "/news/"`.
impl fmt::Display for LostPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Quoted(self.page.target()))?;
        match &self.rule {
            Some(rule) => write!(f, " by line {}, {}", rule.line, Quoted(rule.pattern.as_bytes())),
            None => Ok(()),
        }
    }
}
