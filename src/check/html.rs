//! Web pages and error pages under the name of robots.txt.

use std::ops::Range;

use super::known_field::is_robots_txt;
use crate::rules::RobotsTxt;

/// How web pages begin. Not every tag: rules wrapped in `<pre>` are still rules to a crawler.
const BEGINNINGS: [&[u8]; 9] =
    [b"<!doctype", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<script", b"<?xml", b"<!--"];

/// Where the first tag of a web page stands. A file is one if it begins as pages do, or with any tag while no line of it
/// is a field that crawlers know, as an error message in HTML does.
pub(super) fn first_tag(robots: &RobotsTxt) -> Option<Range<usize>> {
    let file = robots.bytes();
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file).trim_ascii_start();
    let start = file.len() - text.len();
    let begins =
        |beginning: &&[u8]| text.get(..beginning.len()).is_some_and(|head| head.eq_ignore_ascii_case(beginning));
    let length = match BEGINNINGS.iter().find(|beginning| begins(beginning)) {
        Some(beginning) => beginning.len(),
        None if is_tag(text) && !is_robots_txt(robots) => {
            2 + text[2..].iter().take_while(|octet| octet.is_ascii_alphanumeric()).count()
        }
        None => return None,
    };
    Some(start..start + length)
}

/// Whether a text begins with a tag of any kind.
const fn is_tag(text: &[u8]) -> bool {
    matches!(text, [b'<', b'!' | b'?' | b'/' | b'a'..=b'z' | b'A'..=b'Z', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_as_pages_do_or_with_any_tag_where_no_field_is_known() {
        for (file, want) in [
            ("<!DocType html>", Some("<!DocType")),
            ("\u{feff}\n <HTML lang=en>\nUser-agent: *", Some("<HTML")),
            ("<?xml version='1.0'?>", Some("<?xml")),
            ("<?php echo 1;", Some("<?php")),
            ("<br />\n<b>Warning</b>: include(): failed", Some("<br")),
            ("</div>", Some("</div")),
            ("<pre>User-agent: *", Some("<pre")),
            ("<pre>\nUser-agent: *\nDisallow: /x\n", None),
            ("# <html>\n", None),
            ("<3\n", None),
            ("<", None),
            ("", None),
        ] {
            let robots = RobotsTxt::parse(file.as_bytes());
            assert_eq!(first_tag(&robots).map(|at| &file[at]), want, "{file:?}");
        }
    }
}
