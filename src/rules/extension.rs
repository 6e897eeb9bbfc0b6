//! The lines of a robots.txt that are neither rules nor sitemaps: what they mean, and to which group they belong.
//!
//! No reading of the rules depends on them. They are read when asked for, not when the file is parsed.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::document::{Group, RobotsTxt};
use super::line::{Directive, Field, LineKind, is_space};

/// A line that is neither a rule nor a sitemap: an extension of the standard, or a name nobody knows.
#[derive(Clone, Debug)]
pub struct Extension<'r> {
    line: usize,
    field: Field<'r>,
    group: Option<Group<'r>>,
}

/// What an [`Extension`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning<'r> {
    /// The main mirror of the site.
    Host(Host<'r>),
    /// How long a crawler shall wait between two requests.
    CrawlDelay(Duration),
    /// Query parameters that do not change a page.
    CleanParam(CleanParam<'r>),
    /// What content under a path may be used for, by the IETF's AI preferences.
    ContentUsage(Preferences<'r>),
    /// What content may be used for, by Cloudflare's content signals.
    ContentSignal(Preferences<'r>),
    /// Where the terms of a licence are.
    License(&'r [u8]),
    /// A path pattern for pages to be left out of an index.
    Noindex(&'r [u8]),
    /// A known name with a value that says nothing, such as a delay that is no number.
    Invalid,
    /// A name that is not known.
    Unknown,
}

/// The value of a host line: one host name, perhaps with scheme and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'r> {
    is_https: bool,
    name: &'r str,
    port: Option<u16>,
}

/// The value of a clean-param line: `sid&ref /shop/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanParam<'r> {
    parameters: &'r [u8],
    path: &'r [u8],
}

/// The value of a content-usage or content-signal line: `/path train-ai=n, search=y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences<'r> {
    path: &'r [u8],
    pairs: &'r [u8],
}

impl RobotsTxt {
    /// The lines that are neither rules nor sitemaps, those with unknown names included, in the order of the file.
    ///
    /// ```
    /// use tower_robots::rules::{Meaning, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(&b"User-agent: a\nCrawl-delay: 1.5\nDisallow:\n"[..]);
    /// let extension = robots.extensions().next().unwrap();
    /// assert_eq!(extension.meaning(), Meaning::CrawlDelay(std::time::Duration::from_millis(1500)));
    /// assert_eq!((extension.line(), extension.group().unwrap().line()), (2, 1));
    /// ```
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'_>> {
        let mut groups = self.groups().peekable();
        let mut current = None;
        self.lines().filter_map(move |line| {
            while let Some(group) = groups.next_if(|group| group.line() <= line.number()) {
                current = Some(group);
            }
            let LineKind::Field(field) = line.kind() else { return None };
            let group = match field.directive() {
                Directive::UserAgent | Directive::Allow | Directive::Disallow | Directive::Sitemap => return None,
                Directive::Host | Directive::CleanParam | Directive::License => None,
                _ => current,
            };
            Some(Extension { line: line.number(), field, group })
        })
    }

    /// The main mirror: the first valid host line (Yandex). [`RobotsTxt::notes`] has the others.
    #[must_use]
    pub fn host(&self) -> Option<Host<'_>> {
        self.extensions().find_map(|extension| match extension.meaning() {
            Meaning::Host(host) => Some(host),
            _ => None,
        })
    }
}

impl<'r> Extension<'r> {
    /// The line it stands on.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// What its name stands for.
    #[must_use]
    pub const fn directive(&self) -> Directive {
        self.field.directive()
    }

    /// The name as written.
    #[must_use]
    pub fn name(&self) -> &'r [u8] {
        self.field.name()
    }

    /// The value as written.
    #[must_use]
    pub fn value(&self) -> &'r [u8] {
        self.field.value()
    }

    /// Where the value stands in the file.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.field.value_range()
    }

    /// The group it stands in; `None` before the first group, and for what speaks of the whole site: host, clean-param
    /// and license.
    #[must_use]
    pub const fn group(&self) -> Option<Group<'r>> {
        self.group
    }

    /// What it says.
    #[must_use]
    pub fn meaning(&self) -> Meaning<'r> {
        let value = self.value();
        let valid = match self.directive() {
            Directive::Host => Host::parse(value).map(Meaning::Host),
            Directive::CrawlDelay => delay(value).map(Meaning::CrawlDelay),
            Directive::CleanParam => CleanParam::parse(value).map(Meaning::CleanParam),
            Directive::ContentUsage => Preferences::parse(value).map(Meaning::ContentUsage),
            Directive::ContentSignal => Preferences::parse(value).map(Meaning::ContentSignal),
            Directive::License => (!value.is_empty()).then_some(Meaning::License(value)),
            Directive::Noindex => (!value.is_empty()).then_some(Meaning::Noindex(value)),
            _ => Some(Meaning::Unknown),
        };
        valid.unwrap_or(Meaning::Invalid)
    }
}

impl<'r> Host<'r> {
    /// Reads a host: a name of letters, digits, hyphens and dots, with `https://` or `http://` before it and a port
    /// behind it if need be. An address in numbers is none, and so is a URL with a path.
    #[must_use]
    pub fn parse(value: &'r [u8]) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        let scheme = |scheme: &str| {
            let (head, rest) = value.split_at_checked(scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        let (is_https, rest) = match (scheme("https://"), scheme("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (false, value),
        };
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (rest, None),
        };
        let port = match port {
            Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
                Some(port.parse().ok().filter(|port| *port > 0)?)
            }
            Some(_) => return None,
            None => None,
        };
        is_host_name(name).then_some(Self { is_https, name, port })
    }

    /// The name as written.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// The port, where one is written.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether the mirror is reached over HTTPS; only where the line says so.
    #[must_use]
    pub const fn is_https(&self) -> bool {
        self.is_https
    }
}

/// The origin: `http://example.com:8080`.
impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl<'r> CleanParam<'r> {
    fn parse(value: &'r [u8]) -> Option<Self> {
        let (parameters, path) = first_word(value);
        (!parameters.is_empty()).then_some(Self { parameters, path })
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'r [u8]> {
        self.parameters.split(|octet| *octet == b'&').filter(|name| !name.is_empty())
    }

    /// The path that the pages begin with; empty for all.
    #[must_use]
    pub const fn path(&self) -> &'r [u8] {
        self.path
    }
}

impl<'r> Preferences<'r> {
    fn parse(value: &'r [u8]) -> Option<Self> {
        let (path, pairs) = match value {
            [b'/', ..] => first_word(value),
            _ => (&value[..0], value),
        };
        (!pairs.is_empty()).then_some(Self { path, pairs })
    }

    /// The path they are about; empty for all.
    #[must_use]
    pub const fn path(&self) -> &'r [u8] {
        self.path
    }

    /// The preferences and what is said about each, such as `ai-train` and `no`; the second is empty where nothing is.
    pub fn pairs(&self) -> impl Iterator<Item = (&'r [u8], &'r [u8])> {
        self.pairs.split(|octet| *octet == b',').map(trim).filter(|pair| !pair.is_empty()).map(|pair| {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            (trim(&pair[..at]), trim(pair.get(at + 1..).unwrap_or_default()))
        })
    }
}

/// A number of seconds, perhaps with a fraction.
pub(super) fn delay(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(|octet| octet.is_ascii_digit() || *octet == b'.');
    let seconds = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A name as in a URL, ASCII only, not an address in numbers.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inside = label.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-');
        inside && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253 && name.split('.').all(is_label) && !last.bytes().all(|octet| octet.is_ascii_digit())
}

/// What stands before the first blank, and what behind.
fn first_word(value: &[u8]) -> (&[u8], &[u8]) {
    let (word, rest) = value.split_at(value.iter().position(|octet| is_space(*octet)).unwrap_or(value.len()));
    (word, trim(rest))
}

fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(file: &str) -> Vec<(usize, Option<usize>, String)> {
        let robots = RobotsTxt::parse(file.as_bytes());
        let told = |extension: Extension<'_>| {
            let meaning = match extension.meaning() {
                Meaning::Host(host) => host.to_string(),
                Meaning::CrawlDelay(delay) => format!("{delay:?}"),
                Meaning::CleanParam(clean) => {
                    let names: Vec<_> = clean.parameters().map(String::from_utf8_lossy).collect();
                    format!("{} {}", names.join("+"), String::from_utf8_lossy(clean.path()))
                }
                Meaning::ContentUsage(preferences) | Meaning::ContentSignal(preferences) => {
                    let pair = |(name, value): (&[u8], &[u8])| {
                        format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
                    };
                    let pairs: Vec<_> = preferences.pairs().map(pair).collect();
                    format!("{} {}", String::from_utf8_lossy(preferences.path()), pairs.join("+"))
                }
                other => format!("{other:?}"),
            };
            (extension.line(), extension.group().map(Group::line), meaning)
        };
        robots.extensions().map(told).collect()
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
        let want: Vec<_> = want.into_iter().map(|(line, group, told)| (line, group, told.to_owned())).collect();
        assert_eq!(meanings(file), want);
    }

    #[test]
    fn a_delay_is_a_plain_number() {
        for value in ["", "-1", "1e9", "inf", "NaN", "1s", "1 2", "."] {
            assert_eq!(delay(value.as_bytes()), None, "{value}");
        }
        assert_eq!(delay(b"10."), Some(Duration::from_secs(10)));
        assert_eq!(delay("9".repeat(400).as_bytes()), None);
    }

    #[test]
    fn a_host_is_a_name() {
        for value in
            ["", ":80", "a..b", "a.b:", "a.b:0", "a.b:65536", "a.b:+1", "1.2.3.4", "a.b/", "http://", "m\u{fc}.eu"]
        {
            assert_eq!(Host::parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(Host::parse(b"HTTPS://A.b:443").map(|host| host.to_string()).as_deref(), Some("https://A.b:443"));
    }
}
