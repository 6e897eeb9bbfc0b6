//! The directives that crawlers know, and the nearest one to an unknown name.

use crate::rules::{Directive, Field};

/// Every directive some crawler reads or a draft defines, in its usual spelling.
///
/// The first four are RFC 9309's and the sitemap protocol's. The rest are extensions: Yandex (`Host`, `Clean-param`),
/// Bing and others (`Crawl-delay`), the robots exclusion draft of 1996 and its relatives (`Request-rate`,
/// `Visit-time`), `Noindex` (read by Google until 2019), the IETF's AI preferences (`Content-Usage`), Cloudflare's
/// content signals, and RSL (`License`).
const KNOWN: [&str; 13] = [
    "User-agent",
    "Allow",
    "Disallow",
    "Sitemap",
    "Host",
    "Crawl-delay",
    "Clean-param",
    "Request-rate",
    "Visit-time",
    "Noindex",
    "Content-Usage",
    "Content-Signal",
    "License",
];

/// Names longer than this are text, not misspellings.
const LONGEST_GUESS: usize = 24;

/// Whether some crawler knows a field by this name, perhaps under a misspelling.
pub(super) fn is_known(field: &Field<'_>) -> bool {
    field.directive() != Directive::Other || is_spelled(field.name())
}

/// Whether a name is a directive in its right spelling.
pub(super) fn is_spelled(name: &[u8]) -> bool {
    // The Automated Content Access Protocol has a whole family of them.
    let acap = name.get(..5).is_some_and(|head| head.eq_ignore_ascii_case(b"acap-"));
    acap || KNOWN.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The directive at the start of a name that has swallowed part of the value, because the colon after it is missing
/// and the value holds one: `Disallow /wiki/Special:Search`.
pub(super) fn lost_colon<'a>(field: &Field<'a>) -> Option<&'a [u8]> {
    let word = first_word(field.name());
    (field.has_colon() && word.len() < field.name().len() && is_spelled(word)).then_some(word)
}

/// Whether a field is a rule whose value is the path it shows.
pub(super) fn is_rule(field: &Field<'_>) -> bool {
    matches!(field.directive(), Directive::Allow | Directive::Disallow) && lost_colon(field).is_none()
}

/// Whether a field bears this name, in its right spelling.
pub(super) fn is_named(field: &Field<'_>, name: &str) -> bool {
    field.has_colon() && field.name().eq_ignore_ascii_case(name.as_bytes())
}

/// What stands before the first blank.
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
    KNOWN
        .iter()
        .map(|known| (distance(name.as_bytes(), known.to_ascii_lowercase().as_bytes()), *known))
        .filter(|(distance, known)| *distance <= (known.len().min(name.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Edit distance where two neighbours that changed places count once. By hand: a crate for twenty lines is one more to
/// review, and the inputs are short names.
pub(super) fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
    fn neighbours_that_changed_places_count_once() {
        for (a, b, want) in [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), want, "{a} {b}");
        }
    }
}
