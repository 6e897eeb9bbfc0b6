//! `path-without-slash`: a pattern that no path can match.

use crate::check::Severity;
use crate::check::directives::lost_colon;
use crate::check::lint::{Example, Lint, Pass, Subject};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;
use crate::rules::{Directive, Field, RequestPath};

pub(super) const LINT: Lint = Lint {
    code: "path-without-slash",
    severity: Severity::Error,
    summary: "a path pattern that begins with neither \"/\" nor \"*\"",
    why: "Every path begins with \"/\" and patterns are compared from the first octet on (RFC 9309, section 2.2.2), so \
          a pattern that begins with anything but \"/\" or \"*\" matches no path. A few old crawlers add the slash; \
          the others ignore the rule.",
    bad: Example::new(b"User-agent: *\nDisallow: private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: *.pdf$\nDisallow:\n"),
    pass: Pass::Field(run),
};

fn run(_: &Subject<'_>, field: &Field<'_>, sink: &mut Sink) {
    let path = field.value();
    let is_rule = matches!(field.directive(), Directive::Allow | Directive::Disallow);
    if !is_rule || matches!(path, [] | [b'/' | b'*', ..]) || lost_colon(field).is_some() {
        return;
    }
    let draft = sink.report(
        field.value_range(),
        format_args!("{} begins with neither \"/\" nor \"*\": it matches no path", Quoted(path)),
    );
    if is_url(path) {
        draft.help(format_args!("write the path alone: {}", Quoted(RequestPath::verbatim(path).as_bytes())));
    } else {
        draft.help(format_args!("write {}", Quoted(&[b"/", path].concat())));
    }
}

fn is_url(value: &[u8]) -> bool {
    [&b"http://"[..], b"https://"]
        .iter()
        .any(|scheme| value.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)))
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::{found, helps};

    #[test]
    fn allow_and_disallow_are_held_to_it() {
        let file =
            b"User-agent: *\nAllow: a\nDisallow: /a\nDisallow: *a\nDisallow:\nDisallow: $\nSitemap: x\nAllow /a:b\n";
        assert_eq!(found("path-without-slash", file), ["2:8", "6:11"]);
    }

    #[test]
    fn the_help_has_the_slash_or_the_path_of_a_url() {
        assert_eq!(helps("path-without-slash", b"Allow: a/b"), ["write \"/a/b\""]);
        let url = b"Allow: HTTPS://example.com/a?b";
        assert_eq!(helps("path-without-slash", url), ["write the path alone: \"/a?b\""]);
    }
}
