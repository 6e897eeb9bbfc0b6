//! Writes a robots.txt that crawlers parse as intended.

use std::time::Duration;

use super::document::RobotsTxt;
use super::keyword::ValueError;
use super::line::{Directive, MAX_LINE, is_space};
use super::token::ProductToken;
use super::value::{delay, is_absolute_url};

/// Builds a robots.txt line by line, and rejects lines that crawlers would not parse as intended.
///
/// Consecutive user-agent lines share the following rules. A user-agent line after a rule begins
/// another group.
///
/// ```
/// use std::time::Duration;
/// use robots_core::rules::RobotsTxt;
///
/// let robots = RobotsTxt::builder()
///     .comment("No drafts in the index")
///     .user_agent("*")
///     .crawl_delay(Duration::from_secs(2))
///     .disallow("/drafts/")
///     .sitemap("https://example.com/sitemap.xml")
///     .build()?;
/// assert_eq!(robots.groups().len(), 1);
/// # Ok::<(), robots_core::rules::ValueError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RobotsTxtBuilder {
    file: Vec<u8>,
    last: Option<Directive>,
    unwritable: Option<ValueError>,
}

const INVALID_OCTET: &str = "contains a line break, a NUL or a \"#\": escape it, for example as \"%23\"";

const OUTER_BLANK: &str = "begins or ends with white space, which crawlers drop: escape it as \"%20\"";

const NO_CRAWLER: &str = "is not the name of a crawler: write its product token, or \"*\" for every crawler";

/// Error for a pattern that matches no path (RFC 9309, section 2.2.2).
const NO_PATH: &str = "matches no path: begin the pattern with \"/\" or \"*\"";

const NO_URL: &str = "is not an absolute URL: begin with \"https://\" and the host";

const INVALID_DELAY: &str = "is not a valid delay: give a number of seconds above zero and below 2^64";

/// Error for a line that is longer than [`MAX_LINE`].
const TOO_LONG: &str = "makes the line too long: crawlers ignore everything after its first 16,663 bytes";

const RULE_OUTSIDE_GROUP: &str = "does not belong to any group: add a user agent before it";

/// Error for an extension whose name is empty, contains a `:`, a `#` or bytes other than visible
/// ASCII, or belongs to lines with their own method in the builder.
const INVALID_NAME: &str = "is not a valid name of an extension: write letters and hyphens; rules, user agents, delays and \
    sitemaps have their own methods";

impl RobotsTxt {
    /// Creates a builder for a new file.
    pub fn builder() -> RobotsTxtBuilder {
        RobotsTxtBuilder::default()
    }
}

impl RobotsTxtBuilder {
    /// Adds a comment line.
    pub fn comment(mut self, text: &str) -> Self {
        let checked = check(text.as_bytes(), b"\r\n\0", 2);
        if self.accepts(checked, text.as_bytes()) {
            self.file.extend_from_slice(b"# ");
            self.file.extend_from_slice(text.trim_end().as_bytes());
            self.file.push(b'\n');
        }
        self
    }

    /// Adds a user-agent line. The rules after it apply to the crawler `name`. `*` means all
    /// crawlers that no group names.
    pub fn user_agent(mut self, name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref();
        if name != b"*" && ProductToken::from_name(name).is_none() {
            self.accepts(Err(NO_CRAWLER), name);
            return self;
        }
        if matches!(self.last, Some(Directive::Allow | Directive::Disallow)) {
            self.file.push(b'\n');
        }
        self.write(Directive::UserAgent, "User-agent", name)
    }

    /// Adds an allow rule. The pattern must begin with `/` or `*`, or be empty. An empty pattern
    /// has no effect.
    pub fn allow(self, pattern: impl AsRef<[u8]>) -> Self {
        self.rule(Directive::Allow, "Allow", pattern.as_ref())
    }

    /// Adds a disallow rule. The pattern must begin with `/` or `*`, or be empty. An empty pattern
    /// disallows nothing.
    pub fn disallow(self, pattern: impl AsRef<[u8]>) -> Self {
        self.rule(Directive::Disallow, "Disallow", pattern.as_ref())
    }

    /// Adds a crawl-delay line: the crawlers of the group must wait this long between two requests.
    /// The line contains the delay in seconds, with a fraction if necessary. Not every crawler
    /// obeys delays (see `Crawler::obeys_crawl_delay`).
    pub fn crawl_delay(mut self, interval: Duration) -> Self {
        let seconds = interval.as_secs_f64().to_string();
        let checked = match self.last {
            None => Err(RULE_OUTSIDE_GROUP),
            Some(_) if interval.is_zero() || delay(seconds.as_bytes()).is_none() => Err(INVALID_DELAY),
            Some(_) => Ok(()),
        };
        if self.accepts(checked, seconds.as_bytes()) {
            self.write(Directive::CrawlDelay, "Crawl-delay", seconds.as_bytes())
        } else {
            self
        }
    }

    /// Adds a sitemap. The address must be an absolute `http` or `https` URL. The line does not
    /// belong to any group.
    pub fn sitemap(mut self, address: impl AsRef<[u8]>) -> Self {
        let address = address.as_ref();
        if !is_absolute_url(address) {
            self.accepts(Err(NO_URL), address);
            return self;
        }
        self.write(Directive::Sitemap, "Sitemap", address)
    }

    /// Adds a line of any other kind, such as `Host` or `Content-Signal`. Lines that have their own
    /// method in this builder, such as `Allow`, are rejected.
    pub fn extension(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let directive = Directive::of(name.as_bytes());
        let has_method = matches!(
            directive,
            Directive::UserAgent | Directive::Allow | Directive::Disallow | Directive::Sitemap | Directive::CrawlDelay
        );
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b':' | b'#'));
        if has_method || !is_plain || name.is_empty() {
            self.accepts(Err(INVALID_NAME), name.as_bytes());
            return self;
        }
        self.write(directive, name, value.as_ref())
    }

    /// Returns the file.
    ///
    /// # Errors
    ///
    /// Returns an error about the first line that crawlers would not parse as intended.
    pub fn build(self) -> Result<RobotsTxt, ValueError> {
        self.unwritable.map_or_else(|| Ok(RobotsTxt::parse(self.file)), Err)
    }

    fn rule(mut self, directive: Directive, name: &str, pattern: &[u8]) -> Self {
        let checked = match pattern {
            _ if self.last.is_none() => Err(RULE_OUTSIDE_GROUP),
            [] | [b'/' | b'*', ..] => Ok(()),
            // For a pattern with leading white space, [`OUTER_BLANK`] is a more specific error than
            // [`NO_PATH`].
            [first, ..] if is_space(*first) => Err(OUTER_BLANK),
            _ => Err(NO_PATH),
        };
        if self.accepts(checked, pattern) { self.write(directive, name, pattern) } else { self }
    }

    fn write(mut self, directive: Directive, name: &str, value: &[u8]) -> Self {
        let is_blank = |byte: Option<&u8>| byte.is_some_and(|byte| is_space(*byte));
        let checked = check(value, b"\r\n\0#", name.len() + 2)
            .and_then(|()| if is_blank(value.first()) || is_blank(value.last()) { Err(OUTER_BLANK) } else { Ok(()) });
        if self.accepts(checked, value) {
            for part in [name.as_bytes(), b": ", value] {
                self.file.extend_from_slice(part);
            }
            self.file.truncate(self.file.trim_ascii_end().len());
            self.file.push(b'\n');
            // Only user-agent lines and rules affect where groups begin.
            if matches!(directive, Directive::UserAgent | Directive::Allow | Directive::Disallow) {
                self.last = Some(directive);
            }
        }
        self
    }

    /// Reports whether `checked` is `Ok`. Stores the first error, which [`build`](Self::build)
    /// returns.
    fn accepts(&mut self, checked: Result<(), &'static str>, text: &[u8]) -> bool {
        if let Err(fault) = checked {
            self.unwritable.get_or_insert_with(|| ValueError::new(String::from_utf8_lossy(text), fault));
        }
        checked.is_ok()
    }
}

/// Checks that a value contains none of the `refused` bytes, and that its line is not too long.
/// `before` is the number of bytes in the line before the value.
fn check(text: &[u8], refused: &[u8], before: usize) -> Result<(), &'static str> {
    if text.iter().any(|byte| refused.contains(byte)) {
        return Err(INVALID_OCTET);
    }
    if before + text.len() > MAX_LINE { Err(TOO_LONG) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builder_writes_a_well_formed_file_without_notes() {
        let built = RobotsTxt::builder()
            .comment("Crawlers,")
            .user_agent("a")
            .user_agent("b")
            .crawl_delay(Duration::from_millis(2500))
            .disallow("/x")
            .allow("")
            .user_agent("*")
            .disallow("/")
            .sitemap("https://example.com/s")
            .build()
            .expect("all of it can be written");
        let want = "# Crawlers,\nUser-agent: a\nUser-agent: b\nCrawl-delay: 2.5\nDisallow: /x\nAllow:\n\n\
                    User-agent: *\nDisallow: /\nSitemap: https://example.com/s\n";
        assert_eq!(String::from_utf8_lossy(built.bytes()), want);
        assert_eq!(built.notes(), []);
    }

    #[test]
    fn the_builder_refuses_values_that_cannot_be_written() {
        let long = "a".repeat(MAX_LINE);
        for (builder, kind) in [
            (RobotsTxt::builder().comment("a\nb"), INVALID_OCTET),
            (RobotsTxt::builder().user_agent("a#b"), INVALID_OCTET),
            (RobotsTxt::builder().user_agent("a\0"), INVALID_OCTET),
            (RobotsTxt::builder().user_agent(" a"), OUTER_BLANK),
            (RobotsTxt::builder().user_agent(""), NO_CRAWLER),
            (RobotsTxt::builder().user_agent("/2.0"), NO_CRAWLER),
            (RobotsTxt::builder().allow("/"), RULE_OUTSIDE_GROUP),
            (RobotsTxt::builder().crawl_delay(Duration::from_secs(1)), RULE_OUTSIDE_GROUP),
            (RobotsTxt::builder().user_agent("*").crawl_delay(Duration::ZERO), INVALID_DELAY),
            (RobotsTxt::builder().user_agent("*").crawl_delay(Duration::MAX), INVALID_DELAY),
            (RobotsTxt::builder().user_agent("*").disallow("x"), NO_PATH),
            (RobotsTxt::builder().user_agent("*").allow(" /x"), OUTER_BLANK),
            (RobotsTxt::builder().sitemap("/sitemap.xml"), NO_URL),
            (RobotsTxt::builder().sitemap(format!("https://example.com/{long}")), TOO_LONG),
            (RobotsTxt::builder().extension("Crawl-delay", "2"), INVALID_NAME),
            (RobotsTxt::builder().extension("Allowed", "/"), INVALID_NAME),
            (RobotsTxt::builder().extension("a b", "/"), INVALID_NAME),
        ] {
            let refused = builder.user_agent("x\r").build().expect_err("not writable");
            assert_eq!(refused.to_string(), format!("{:?} {kind}", refused.text()));
        }
    }
}
