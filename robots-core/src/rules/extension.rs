//! The meaning of the lines of a robots.txt that are neither rules nor sitemaps.
//!
//! Verdicts do not depend on these lines, so the document does not store most of them, and parses
//! them again on demand.
//!
//! Four kinds of lines are stored. `Content-Usage` and `License` lines are stored because servers
//! may repeat their values in responses ([`usage`](super::usage)), and `Content-Signal` lines
//! because a comparison of two files shows their changes. `Crawl-delay` lines are stored because
//! servers may enforce delays. [`RobotsTxt::compile`] finds the delay for each crawler in advance,
//! so [`Selection::crawl_delay`](super::Selection::crawl_delay) does not need to search for it.
//! `Request-rate` and `Visit-time` lines are parsed but never enforced, because hardly any crawler
//! obeys them.

use std::time::Duration;

use super::delays::{RequestRate, TimeWindow};
use super::document::{Group, RobotsTxt};
use super::line::{Directive, Field};
use super::path::RequestPath;
use super::value::{Host, clean_param, delay, preferences};

/// A line other than user-agent lines, rules and sitemaps. Its name belongs to an extension of the
/// standard, or is unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Extension<'r> {
    /// Line number.
    pub line: usize,
    /// Name and value of the line.
    pub field: Field<'r>,
    /// Group that contains the line. `None` for lines before the first group, and for host and
    /// clean-param lines, which are about the whole site.
    pub group: Option<Group<'r>>,
}

/// The meaning of an [`Extension`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning<'r> {
    /// The main mirror of the site.
    Host(Host<'r>),
    /// Time that a crawler must wait between two requests.
    CrawlDelay(Duration),
    /// Number of pages that a crawler may fetch per period.
    RequestRate(RequestRate),
    /// Time of day when a crawler may fetch pages.
    VisitTime(TimeWindow),
    /// Query parameters that do not change the content of the pages below a path.
    #[non_exhaustive]
    CleanParam {
        /// The names of the parameters.
        parameters: Vec<&'r [u8]>,
        /// Path prefix of the pages; empty for all pages.
        path: &'r [u8],
    },
    /// The permitted uses of content below a path (the IETF's AI preferences).
    #[non_exhaustive]
    ContentUsage {
        /// Path that the preferences apply to; empty for the whole site.
        path: &'r [u8],
        /// Preferences and their values, such as `train-ai` and `n`. A missing value is empty.
        pairs: Vec<(&'r [u8], &'r [u8])>,
    },
    /// The permitted uses of content below a path (Cloudflare's content signals).
    #[non_exhaustive]
    ContentSignal {
        /// Path that the signals apply to; empty for the whole site.
        path: &'r [u8],
        /// Signals and their values, as in [`Meaning::ContentUsage`].
        pairs: Vec<(&'r [u8], &'r [u8])>,
    },
    /// URL of the terms of a licence.
    License(&'r [u8]),
    /// Path pattern of pages that search engines should not index.
    Noindex(&'r [u8]),
    /// A known name with an invalid value, such as a delay that is not a number.
    Invalid,
    /// An unknown name.
    Unknown,
}

impl RobotsTxt {
    /// Returns all lines with a field, except user-agent lines, rules and sitemaps, in the order of
    /// the file. Includes fields with unknown names.
    ///
    /// ```
    /// use robots_core::rules::{Meaning, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(&b"User-agent: a\nCrawl-delay: 1.5\nDisallow:\n"[..]);
    /// let extension = robots.extensions().next().unwrap();
    /// let delay = std::time::Duration::from_millis(1500);
    /// assert_eq!(extension.meaning(), Meaning::CrawlDelay(delay));
    /// assert_eq!((extension.line, extension.group.unwrap().line()), (2, 1));
    /// ```
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'_>> {
        self.fields().filter_map(|(line, field, begun)| {
            let group = match field.directive {
                Directive::UserAgent | Directive::Allow | Directive::Disallow | Directive::Sitemap => return None,
                Directive::Host | Directive::CleanParam => None,
                _ => begun.checked_sub(1).map(|group| self.group(group)),
            };
            Some(Extension { line: line.number, field, group })
        })
    }

    /// Reports whether this path, in any of its forms, is the path of a sitemap or licence that the
    /// file names. Ignores the hosts of the URLs in the file. If the URL in the file has no query,
    /// also ignores the query of `path`.
    #[doc(hidden)]
    pub fn refers_to(&self, path: &RequestPath<'_>) -> bool {
        let referred_paths = self.referred_paths(|| {
            let licenses = self.extensions().filter_map(|extension| match extension.meaning() {
                Meaning::License(url) => Some(url),
                _ => None,
            });
            let urls = self.sitemaps().map(|sitemap| sitemap.value).filter(|url| !url.is_empty()).chain(licenses);
            let mut paths: Vec<_> = urls.map(|url| RequestPath::new(url).as_bytes().to_vec()).collect();
            paths.sort_unstable();
            paths
        });
        let is_named = |path: &[u8]| referred_paths.binary_search_by(|named| named.as_slice().cmp(path)).is_ok();
        path.forms().any(|(_, form)| {
            let end = form.iter().position(|byte| *byte == b'?').unwrap_or(form.len());
            is_named(form) || is_named(&form[..end])
        })
    }

    /// Returns the main mirror, which is the value of the first valid host line (Yandex).
    /// [`RobotsTxt::notes`] reports all other host lines.
    pub fn host(&self) -> Option<Host<'_>> {
        self.extensions().find_map(|extension| match extension.meaning() {
            Meaning::Host(host) => Some(host),
            _ => None,
        })
    }
}

impl<'r> Extension<'r> {
    /// Returns the meaning of the line.
    pub fn meaning(&self) -> Meaning<'r> {
        let value = self.field.value;
        let valid = match self.field.directive {
            Directive::Host => Host::parse(value).map(Meaning::Host),
            Directive::CrawlDelay => delay(value).map(Meaning::CrawlDelay),
            Directive::RequestRate => RequestRate::parse(value).map(Meaning::RequestRate),
            Directive::VisitTime => TimeWindow::parse(value).map(Meaning::VisitTime),
            Directive::CleanParam => {
                clean_param(value).map(|(parameters, path)| Meaning::CleanParam { parameters, path })
            }
            Directive::ContentUsage => preferences(value).map(|(path, pairs)| Meaning::ContentUsage { path, pairs }),
            Directive::ContentSignal => preferences(value).map(|(path, pairs)| Meaning::ContentSignal { path, pairs }),
            Directive::License => (!value.is_empty()).then_some(Meaning::License(value)),
            Directive::Noindex => (!value.is_empty()).then_some(Meaning::Noindex(value)),
            _ => Some(Meaning::Unknown),
        };
        valid.unwrap_or(Meaning::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(file: &str) -> Vec<(usize, Option<usize>, String)> {
        let robots = RobotsTxt::parse(file.as_bytes());
        let text = |extension: Extension<'_>| {
            let meaning = match extension.meaning() {
                Meaning::Host(host) => host.to_string(),
                Meaning::CrawlDelay(delay) => format!("{delay:?}"),
                Meaning::CleanParam { parameters, path } => {
                    format!("{} {}", String::from_utf8_lossy(&parameters.join(&b'+')), String::from_utf8_lossy(path))
                }
                Meaning::ContentUsage { path, pairs } | Meaning::ContentSignal { path, pairs } => {
                    let pair = |(name, value): (&[u8], &[u8])| {
                        format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
                    };
                    let pairs: Vec<_> = pairs.into_iter().map(pair).collect();
                    format!("{} {}", String::from_utf8_lossy(path), pairs.join("+"))
                }
                other => format!("{other:?}"),
            };
            assert!(file.lines().nth(extension.line - 1).is_some_and(|line| {
                line.as_bytes().trim_ascii_start().starts_with(extension.field.name) && !extension.field.name.is_empty()
            }));
            (extension.line, extension.group.map(Group::line), meaning)
        };
        robots.extensions().map(text).collect()
    }

    #[test]
    fn extensions_are_read_with_line_and_group() {
        let file = "crawl-delay: 3\nuser-agent: a\nCrawl-Delay: 0.5 # s\nuser-agent: b\ndisallow: /\n\
                    Clean-param: sid&ref /shop/\nContent-Usage: /x train-ai=n, search=y\nuser-agent: c\n\
                    Content-Signal: ai-train=no,search\nhost: a.example\nfoo: bar\nnoindex:\ncrawl-delay: soon\nsitemap: /s";
        let want = [
            (1, None, "3s"),
            (3, Some(2), "500ms"),
            (6, None, "sid+ref /shop/"),
            (7, Some(2), "/x train-ai=n+search=y"),
            (9, Some(8), " ai-train=no+search="),
            (10, None, "http://a.example"),
            (11, Some(8), "Unknown"),
            (12, Some(8), "Invalid"),
            (13, Some(8), "Invalid"),
        ];
        let want: Vec<_> = want.into_iter().map(|(line, group, text)| (line, group, text.to_owned())).collect();
        assert_eq!(meanings(file), want);
    }
}
