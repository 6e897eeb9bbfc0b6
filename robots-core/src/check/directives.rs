//! Recognises directives, misspelled directives, and lines with several directives.

use std::ops::Range;

use strsim::damerau_levenshtein;

use super::invisible::without_invisible;
use crate::rules::{Directive, Field, Line, LineKind, RobotsTxt, starts_with};

/// Maximum length of a name that is compared with directives, in bytes. Longer names are probably
/// sentences, not misspelled directives.
const MAX_GUESS_LENGTH: usize = 24;

/// Reports whether crawlers know the name of this field, including accepted misspellings.
pub(super) fn is_known(field: &Field<'_>) -> bool {
    field.directive != Directive::Other || is_directive_name(field.name)
}

pub(super) fn is_directive_name(name: &[u8]) -> bool {
    // The Automated Content Access Protocol defines many fields with the prefix `ACAP-`.
    starts_with(name, b"acap-")
        || Directive::SPELLINGS.iter().any(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// If the name of a field also contains part of the value, returns the directive at the start of
/// the name; otherwise `None`. A name contains part of the value if the colon after the directive
/// is missing and the value contains a colon, as in `Disallow /wiki/Special:Search`.
pub(super) fn directive_without_colon<'a>(field: &Field<'a>) -> Option<&'a [u8]> {
    let word = first_word(field.name);
    (field.has_colon && word.len() < field.name.len() && is_directive_name(word)).then_some(word)
}

/// Reports whether a field is an allow or disallow rule. Returns `false` if the name of the field
/// contains part of the path ([`directive_without_colon`]).
pub(super) fn is_rule(field: &Field<'_>) -> bool {
    matches!(field.directive, Directive::Allow | Directive::Disallow) && directive_without_colon(field).is_none()
}

/// Returns the lines that contain several directives, each with the range of the second directive's
/// name. Such lines occur if line ends were lost or replaced by other characters (spaces, `\n` as
/// two characters, `<br>`, U+2028). Crawlers read only the first directive of a line, and treat the
/// rest of the line as its value.
///
/// If the file has no rules, comments are also searched, because a file that lost its line ends is
/// a single comment if it begins with `#`.
pub(super) fn joined_lines(robots: &RobotsTxt) -> impl Iterator<Item = (Line<'_>, Range<usize>)> {
    let has_rules = robots.groups().any(|group| group.rules().len() > 0);
    robots.lines().filter_map(move |line| {
        let read = if has_rules { line.content() } else { line.range.clone() };
        second_directive(&line, read).map(|second| (line, second))
    })
}

fn second_directive(line: &Line<'_>, read: Range<usize>) -> Option<Range<usize>> {
    let text = &line.bytes()[read.start - line.range.start..read.end - line.range.start];
    let name_at = |colon: usize| {
        let name = name_before(text, colon)?;
        Some(read.start + name.start..read.start + name.end)
    };
    let mut names = memchr::memchr_iter(b':', text).filter_map(name_at);
    match line.kind() {
        LineKind::Field(field) if is_known(&field) => names.find(|name| name.start > field.name_range.start),
        _ => names.nth(1),
    }
}

/// Returns the range of a directive's name that ends right before a colon. A name that is also an
/// ordinary word, such as `host`, does not count after a letter or digit (except in `\n` or `\r` as
/// two characters), or after a byte that is common in URLs, such as `/`. After other punctuation
/// except `>`, the name counts only if white space follows the colon. So `ghost:`,
/// `/wiki/Host:Setup` and `/*host:` contain no directive.
fn name_before(text: &[u8], colon: usize) -> Option<Range<usize>> {
    let head = text[..colon].trim_ascii_end();
    let is_last = |name: &str| {
        head.len().checked_sub(name.len()).is_some_and(|start| head[start..].eq_ignore_ascii_case(name.as_bytes()))
    };
    let (name, directive) = Directive::names().filter(|(name, _)| is_last(name)).max_by_key(|(name, _)| name.len())?;
    let before = &head[..head.len() - name.len()];
    let is_word = matches!(
        directive,
        Directive::Allow | Directive::Sitemap | Directive::Host | Directive::Noindex | Directive::License
    );
    let is_apart = || match before {
        [.., b'\\', b'n' | b'r'] => true,
        [.., byte] if byte.is_ascii_alphanumeric() || b"_-./=&?%".contains(byte) => false,
        // A `>` is the end of an HTML tag, not part of a path.
        [.., byte] if byte.is_ascii_punctuation() && *byte != b'>' => {
            text.get(colon + 1).is_some_and(u8::is_ascii_whitespace)
        }
        _ => true,
    };
    (!is_word || is_apart()).then_some(before.len()..head.len())
}

/// Returns the directive in a name that also contains invisible characters, such as a byte order
/// mark inside the file.
pub(super) fn visible_name(name: &[u8]) -> Option<&'static str> {
    let visible = without_invisible(name)?;
    let directive = Directive::names().find(|(known, _)| visible.eq_ignore_ascii_case(known))?.1;
    directive.spelling()
}

impl Field<'_> {
    pub(super) fn range(&self) -> Range<usize> {
        self.name_range.start..self.value_range.end.max(self.name_range.end)
    }

    pub(super) fn value_or_name(&self) -> Range<usize> {
        if self.value.is_empty() { self.name_range.clone() } else { self.value_range.clone() }
    }
}

pub(super) fn is_named(field: &Field<'_>, name: &str) -> bool {
    field.has_colon && field.name.eq_ignore_ascii_case(name.as_bytes())
}

pub(super) fn is_url(value: &[u8]) -> bool {
    [&b"http://"[..], b"https://"].iter().any(|scheme| starts_with(value, scheme))
}

pub(super) fn first_word(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr2(b' ', b'\t', text).unwrap_or(text.len())]
}

pub(super) fn nearest(name: &[u8]) -> Option<&'static str> {
    let name: String = String::from_utf8_lossy(name).chars().filter(|char| char.is_ascii_graphic()).collect();
    if name.is_empty() || name.len() > MAX_GUESS_LENGTH {
        return None;
    }
    let name = name.to_ascii_lowercase();
    Directive::SPELLINGS
        .iter()
        .map(|(known, _)| (damerau_levenshtein(&name, &known.to_ascii_lowercase()), *known))
        .filter(|(distance, known)| *distance <= (known.len().min(name.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Reports whether a file is a robots.txt: it has a field that crawlers know, or contains only
/// comments and blank lines. A line with a colon is not enough, because error messages, JSON, YAML
/// and Git LFS pointers contain such lines. As a robots.txt, such a file would allow every crawler
/// to fetch everything.
pub(super) fn is_robots_txt(robots: &RobotsTxt) -> bool {
    let mut is_text = false;
    for line in robots.lines() {
        match line.kind() {
            LineKind::Field(field) if is_plausible(&field) => return true,
            LineKind::Field(_) | LineKind::Malformed => is_text = true,
            LineKind::Blank | LineKind::Comment => {}
        }
    }
    !is_text
}

/// Reports whether an author of a robots.txt would write this field. Crawlers compare only the
/// beginning of a field name, and accept white space instead of a colon. So they also find fields
/// in error messages such as `DisallowedHost: …`, `User agent not allowed: …` and
/// `Host unreachable`.
fn is_plausible(field: &Field<'_>) -> bool {
    if !is_known(field) {
        return false;
    }
    let is_path = |text: &[u8]| matches!(text.first(), Some(b'/' | b'*'));
    if !field.has_colon {
        return is_path(field.value) || field.value.starts_with(b"http");
    }
    let name = field.name;
    if is_directive_name(name) {
        return true;
    }
    let (word, rest) = match name.get(..10) {
        Some(head) if head.eq_ignore_ascii_case(b"user agent") => (head, &name[10..]),
        _ => {
            let word = first_word(name);
            (word, &name[word.len()..])
        }
    };
    // Eleven letters are enough for "Disallowed" with one superfluous letter.
    let is_short = !matches!(field.directive, Directive::Allow | Directive::Disallow) || word.len() <= 11;
    let rest = rest.trim_ascii();
    is_short && (rest.is_empty() || is_path(rest) || rest.starts_with(b"http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_leads_to_the_nearest_directive() {
        for (name, want) in [
            ("alow", Some("Allow")),
            ("Disalllow", Some("Disallow")),
            ("Dis allow", Some("Disallow")),
            ("user_agent", Some("User-agent")),
            ("User-agnet", Some("User-agent")),
            ("Agent", None),
            ("siteamp", Some("Sitemap")),
            ("Crawl delay", Some("Crawl-delay")),
            ("crawldelay", Some("Crawl-delay")),
            ("\u{feff}user-agent", Some("User-agent")),
            ("content-signals", Some("Content-Signal")),
            ("foo", None),
            ("http", None),
            ("", None),
            ("a very long line of text with disallow in it", None),
        ] {
            assert_eq!(nearest(name.as_bytes()), want, "{name}");
        }
    }

    #[test]
    fn a_file_with_a_known_field_or_only_comments_counts_as_robots_txt() {
        for file in [
            "User-agent: *\nDisallow:\n",
            "Sitemap: https://example.com/sitemap.xml\n",
            "\u{feff}Sitemap: https://example.com/sitemap.xml\n",
            "\u{feff}User-agent: *",
            "foo: bar\nX-Robots: yes\nUser-agent: *\n",
            "User-agent: *\rDisallow: /x\r",
            "disalow: /x\n",
            "dissallow : /x",
            "useragent: a",
            "user agent: a",
            "USER-AGENTS: a",
            "Allowed: /",
            "disallow /x",
            "Sitemap https://example.com/sitemap.xml",
            "Disallow /wiki/Special:Search\n",
            "Crawl-delay: 10",
            "Host: example.com",
            "Clean-param: sid /shop/",
            "Request-rate: 1/5",
            "Content-Signal: ai-train=no",
            "Error: not found\nUser-agent: *\nDisallow: /x\n",
            "X-Robots-Version: 3\nnoindex-of: x\nUser-agent: *\nDisallow: /cart\n",
            "useragent: *\ndissallow: /cart\n",
            "user-agent *\ndisallow /cart\n",
            "# nothing is restricted\n",
            "# a\n\n# b",
            "",
        ] {
            assert!(is_robots_txt(&RobotsTxt::parse(file.as_bytes())), "{file:?}");
        }
        for file in [
            "Error: cannot connect to database",
            "404: Not Found",
            "{\"error\": \"not found\"}",
            "{\n  \"user-agent\": \"*\",\n  \"disallow\": \"/\"\n}\n",
            "<br />\n<b>Warning</b>:  include(): Failed opening 'x.php' in <b>/srv/x.php</b> on line <b>3</b><br />\n",
            "PHP Warning:  include(): Failed opening 'x.php' in /srv/x.php on line 3\n",
            "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted in /srv/x.php on line 3\n",
            "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 1\n",
            "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            "error code: 1020",
            "nginx: 502 Bad Gateway\nRequest ID: 8f2a",
            "nginx error: upstream timed out\nrequest: GET /robots.txt HTTP/1.1\n",
            "services:\n  web:\n    image: nginx\n    ports:\n      - \"80:80\"\n",
            "# compose file\nservices:\n  web:\n    image: nginx\n",
            "#!/bin/sh\necho hello\n",
            "Host unreachable",
            "Host not found: example.com",
            "User agent not allowed: curl",
            "DisallowedHost: Invalid HTTP_HOST header: 'example.com'",
            "Allow denied",
            "Not Found",
            "\0",
        ] {
            assert!(!is_robots_txt(&RobotsTxt::parse(file.as_bytes())), "{file:?}");
        }
    }
}
