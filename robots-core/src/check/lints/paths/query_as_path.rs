//! `query-as-path`: a query parameter that is written like a path.

use std::collections::HashSet;

use crate::check::lint::*;
use crate::check::path_text::{has_one_path, is_one_of, parameter_name};

pub(crate) const LINT: Lint = Lint {
    code: "query-as-path",
    severity: Severity::Warning,
    summary: "a query parameter that is written as a path",
    why: "Patterns are compared with the path from its first byte (RFC 9309, section 2.2.2), and the query comes \
          after the path. So \"/page=2\" matches only a page with this name, and \"/?sort=\" only the home page, but \
          \"/*?*sort=\" matches every page with this parameter. This lint does not report common parameters of home \
          pages (\"/?s=\", \"/?p=\"), parameters that select a page (\"/?tab=saved\"), or parameters that another \
          rule of the file covers with a \"*\".",
    bad: Example::new(b"User-agent: *\nDisallow: /sessionid=\nDisallow: /?sort=\n"),
    good: Example::new(b"User-agent: *\nDisallow: /*?*sessionid=\nDisallow: /*?*sort=\nDisallow: /?s=\n"),
    pass: Pass::File(run),
    fix: None,
};

/// Query parameters that common web applications use on the home page.
const HOME_PAGE_PARAMETERS: &str = "act action attachment_id author c cat controller do feed id m module option p page_id post post_type \
                             preview q query rest_route route s search task tag view wc-ajax";

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let rules = || file.fields().map(|(_, field)| field).filter(is_rule);
    let mut covered = HashSet::new();
    for pattern in rules().map(|rule| rule.value) {
        // If the file has a rule for all queries, nothing is reported, because this rule covers
        // every parameter.
        if matches!(pattern, b"/*?" | b"/*?*" | b"*?" | b"*?*") {
            return;
        }
        // A `*` at the end of the pattern has no effect, so it is ignored.
        let pattern = pattern.strip_suffix(b"*").unwrap_or(pattern);
        if memchr::memchr(b'*', pattern).is_some() {
            covered.extend(pattern.split(|byte| matches!(byte, b'*' | b'?' | b'&')).filter_map(parameter_name));
        }
    }
    for rule in rules().filter(has_one_path) {
        let Some((is_home, parameter)) = parameter(rule.value) else { continue };
        let name = parameter_name(parameter).unwrap_or_default();
        if covered.contains(name) || is_home && is_one_of(name, HOME_PAGE_PARAMETERS) {
            continue;
        }
        let place = if is_home { "the home page alone" } else { "paths that begin with it" };
        sink.report(
            rule.value_range,
            format_args!(
                "{pattern} matches only {place}, not the parameter on other pages",
                pattern = Quoted(rule.value)
            ),
        )
        .help(format_args!(
            "to match the parameter on every page, write {pattern}",
            pattern = Quoted(&[b"/*?*".as_slice(), parameter].concat())
        ));
    }
}

/// Returns whether a pattern is for the home page (`/?`), and the query parameter at the start of
/// the pattern. `None` if there is no query parameter.
fn parameter(pattern: &[u8]) -> Option<(bool, &[u8])> {
    let (is_home, text) = match pattern {
        [b'/', b'?', b'*' | b'&', text @ ..] | [b'/', b'?', text @ ..] => (true, text),
        [b'/', b'&', text @ ..] | [b'/', text @ ..] => (false, text),
        _ => return None,
    };
    // In a pattern for the home page, a `*` at the end is ignored. In other patterns, such a `*`
    // more likely represents parts of page names (`/list=*`).
    let text = text.strip_suffix(b"*").filter(|_| is_home).unwrap_or(text);
    let value = &text[parameter_name(text)?.len() + 1..];
    // Values other than short numbers and words such as `yes` are more likely part of a page name.
    let is_number = value.len() <= 2 && value.iter().all(u8::is_ascii_digit);
    (is_number || is_one_of(value, "false no off on true yes")).then_some((is_home, text))
}
