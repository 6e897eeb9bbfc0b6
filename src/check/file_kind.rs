//! What a file is: rules, or something that only bears the name robots.txt.

use std::ops::Range;

use super::directives::{first_word, is_known, is_spelled};
use crate::rules::{Directive, Field, LineKind, RobotsTxt};

/// What a file without a known field is.
pub(crate) const NO_ROBOTS_TXT: &str =
    "the file is no robots.txt: not one line is a field that crawlers know, such as \"User-agent: *\"";

/// How to write what an empty file or an error text in place of a robots.txt would amount to.
pub(crate) const NO_RESTRICTIONS: &str = "to restrict nothing, write \"User-agent: *\" with an empty \"Disallow:\"";

/// How web pages begin. Not every tag: rules wrapped in `<pre>` are still rules to a crawler.
const BEGINNINGS: [&[u8]; 9] =
    [b"<!doctype", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<script", b"<?xml", b"<!--"];

/// Octets that are looked at where no mark says it.
const SAMPLE: usize = 64;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Text in which rules may stand.
    Rules,
    /// A web page.
    Html,
    /// Text of two octets a character.
    Utf16,
}

impl FileKind {
    pub(super) fn of(file: &[u8]) -> Self {
        if utf_16_form(file).is_some() {
            Self::Utf16
        } else if first_tag(file).is_some() {
            Self::Html
        } else {
            Self::Rules
        }
    }
}

/// Where the first tag of a web page stands.
pub(super) fn first_tag(file: &[u8]) -> Option<Range<usize>> {
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let start = file.len() - text.trim_ascii_start().len();
    BEGINNINGS
        .iter()
        .map(|beginning| start..start + beginning.len())
        .zip(BEGINNINGS)
        .find(|(at, beginning)| file.get(at.clone()).is_some_and(|head| head.eq_ignore_ascii_case(beginning)))
        .map(|(at, _)| at)
}

/// Which UTF-16 a file is.
pub(super) fn utf_16_form(file: &[u8]) -> Option<&'static str> {
    const LITTLE: &str = "UTF-16 (little endian)";
    const BIG: &str = "UTF-16 (big endian)";
    match file {
        [0xFF, 0xFE, ..] => return Some(LITTLE),
        [0xFE, 0xFF, ..] => return Some(BIG),
        _ => {}
    }
    let sample = &file[..file.len().min(SAMPLE)];
    if sample.len() < 16 {
        return None;
    }
    let every = |first: usize, zero: bool| sample.iter().skip(first).step_by(2).all(|octet| (*octet == 0) == zero);
    if every(0, false) && every(1, true) {
        Some(LITTLE)
    } else if every(0, true) && every(1, false) {
        Some(BIG)
    } else {
        None
    }
}

/// Whether a file is a robots.txt: one of its lines is a field that crawlers know, or it holds nothing but comments and
/// blank lines. An error text, JSON, YAML or the pointer of a version control system has lines with a colon too, and in
/// place of a robots.txt each would open the site.
pub(crate) fn is_robots_txt(robots: &RobotsTxt) -> bool {
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
    if !field.has_colon() {
        return is_path(field.value()) || field.value().starts_with(b"http");
    }
    let name = field.name();
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
    let is_short = !matches!(field.directive(), Directive::Allow | Directive::Disallow) || word.len() <= 11;
    let rest = rest.trim_ascii();
    is_short && (rest.is_empty() || is_path(rest) || rest.starts_with(b"http"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
