//! Whether a file has a field that crawlers know, or is some other text under the name of robots.txt.

use super::directives::{first_word, is_known, is_spelled};
use crate::rules::{Directive, Field, LineKind, RobotsTxt};

/// What a file without a known field is.
pub(crate) const NO_ROBOTS_TXT: &str =
    "the file is no robots.txt: not one line is a field that crawlers know, such as \"User-agent: *\"";

/// How to write what an empty file or an error text in place of a robots.txt would amount to.
pub(crate) const NO_RESTRICTIONS: &str = "to restrict nothing, write \"User-agent: *\" with an empty \"Disallow:\"";

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
