//! The directives that crawlers know, and the nearest one to an unknown name.

use std::ops::Range;

use strsim::damerau_levenshtein;

use super::invisible::without_invisible;
use crate::rules::{Directive, Field, Line, LineKind, RobotsTxt, starts_with};

/// Names longer than this are text, not misspellings.
const LONGEST_GUESS: usize = 24;

/// Whether some crawler knows a field by this name, perhaps under a misspelling.
pub(super) fn is_known(field: &Field<'_>) -> bool {
    field.directive != Directive::Other || is_spelled(field.name)
}

/// Whether a name is a directive in its right spelling.
pub(super) fn is_spelled(name: &[u8]) -> bool {
    // The Automated Content Access Protocol has a whole family of them.
    starts_with(name, b"acap-")
        || Directive::SPELLINGS.iter().any(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The directive at the start of a name that has swallowed part of the value, because the colon after it is missing
/// and the value holds one: `Disallow /wiki/Special:Search`.
pub(super) fn lost_colon<'a>(field: &Field<'a>) -> Option<&'a [u8]> {
    let word = first_word(field.name);
    (field.has_colon && word.len() < field.name.len() && is_spelled(word)).then_some(word)
}

/// Whether a field is a rule whose value is the path it shows.
pub(super) fn is_rule(field: &Field<'_>) -> bool {
    matches!(field.directive, Directive::Allow | Directive::Disallow) && lost_colon(field).is_none()
}

/// Returns the lines that hold several directives, each with the place of the second one. Their line ends were lost, whatever was
/// written instead (blanks, `\n` as two characters, `<br>`, U+2028, nothing). Crawlers read one directive per line, and everything
/// behind it as its value.
///
/// If the file has no rule, comments are searched too: a file that was joined behind a comment is one long comment.
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

/// Returns the place of a directive's name that ends right before a colon. A name that is also an ordinary word does not count in a
/// longer word or in a path, such as `/wiki/Host:Setup` or `/*host:`, in which no blank follows the colon.
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
        [.., octet] if octet.is_ascii_alphanumeric() || b"_-./=&?%".contains(octet) => false,
        // The end of a tag is no part of a path.
        [.., octet] if octet.is_ascii_punctuation() && *octet != b'>' => {
            text.get(colon + 1).is_some_and(u8::is_ascii_whitespace)
        }
        _ => true,
    };
    (!is_word || is_apart()).then_some(before.len()..head.len())
}

/// Returns the directive that a name would be without characters that nobody sees, such as a byte order mark inside a file; `None` if
/// the name has no such characters.
pub(super) fn visible_name(name: &[u8]) -> Option<&'static str> {
    let visible = without_invisible(name)?;
    let directive = Directive::names().find(|(known, _)| visible.eq_ignore_ascii_case(known))?.1;
    directive.spelling()
}

impl Field<'_> {
    /// Name and value.
    pub(super) fn range(&self) -> Range<usize> {
        self.name_range.start..self.value_range.end.max(self.name_range.end)
    }

    /// The value; the name where there is none.
    pub(super) fn value_or_name(&self) -> Range<usize> {
        if self.value.is_empty() { self.name_range.clone() } else { self.value_range.clone() }
    }
}

/// Whether a field bears this name, in its right spelling.
pub(super) fn is_named(field: &Field<'_>, name: &str) -> bool {
    field.has_colon && field.name.eq_ignore_ascii_case(name.as_bytes())
}

/// Whether a value begins as a whole URL does.
pub(super) fn is_url(value: &[u8]) -> bool {
    [&b"http://"[..], b"https://"].iter().any(|scheme| starts_with(value, scheme))
}

/// The text before the first blank.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr2(b' ', b'\t', text).unwrap_or(text.len())]
}

/// The known directive that a name was most likely meant to be.
pub(super) fn nearest(name: &[u8]) -> Option<&'static str> {
    let name: String = String::from_utf8_lossy(name).chars().filter(|char| char.is_ascii_graphic()).collect();
    if name.is_empty() || name.len() > LONGEST_GUESS {
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

/// Whether a file is a robots.txt: one of its lines is a field that crawlers know, or it holds nothing but comments and
/// blank lines. An error text, JSON, YAML or the pointer of a version control system has lines with a colon too, and in
/// place of a robots.txt each would open the site.
pub(super) fn is_robots_txt(robots: &RobotsTxt) -> bool {
    let mut is_text = false;
    for line in robots.lines() {
        match line.kind() {
            LineKind::Field(field) if is_meant(&field) => return true,
            LineKind::Field(_) | LineKind::Malformed => is_text = true,
            LineKind::Blank | LineKind::Comment => {}
        }
    }
    !is_text
}

/// Whether this is a field that the author of a robots.txt would write. Crawlers compare names as prefixes and accept white
/// space in place of a colon, which also makes fields of `DisallowedHost: …`, `User agent not allowed: …` and `Host
/// unreachable`: such a line is read like theirs, but makes no robots.txt of a file.
fn is_meant(field: &Field<'_>) -> bool {
    if !is_known(field) {
        return false;
    }
    let is_path = |text: &[u8]| matches!(text.first(), Some(b'/' | b'*'));
    if !field.has_colon {
        return is_path(field.value) || field.value.starts_with(b"http");
    }
    let name = field.name;
    if is_spelled(name) {
        return true;
    }
    let (word, rest) = match name.get(..10) {
        Some(head) if head.eq_ignore_ascii_case(b"user agent") => (head, &name[10..]),
        _ => {
            let word = first_word(name);
            (word, &name[word.len()..])
        }
    };
    // Up to "Disallowed", with one letter too many.
    let is_short = !matches!(field.directive, Directive::Allow | Directive::Disallow) || word.len() <= 11;
    let rest = rest.trim_ascii();
    is_short && (rest.is_empty() || is_path(rest) || rest.starts_with(b"http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_finds_its_directive() {
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
    fn a_known_field_or_nothing_but_comments_makes_a_robots_txt() {
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
