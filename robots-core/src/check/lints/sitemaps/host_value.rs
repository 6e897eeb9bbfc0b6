//! `host-value`: a Host line whose value is not a host.

use crate::check::lint::*;
use crate::rules::{Authority, Port};

pub(crate) const LINT: Lint = Lint {
    code: "host-value",
    severity: Severity::Warning,
    summary: "a Host line whose value is not a host",
    why: "Host is the main mirror of a site. Yandex stopped using it in 2018, but a few other crawlers still do. The \
          value is a host name, optionally with a port, and with \"https://\" before it if the mirror uses https. \
          Crawlers ignore any other value.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nHost: example.com/home\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nHost: https://example.com\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let value = field.value;
    if field.directive != Directive::Host || !field.has_colon {
        return;
    }
    if !is_host(value) {
        let span = field.value_or_name();
        sink.report(span, format_args!("{} is not a host", Quoted(value)))
            .help("write only the name, such as \"example.com\" or \"https://example.com\"");
        return;
    }
    if !is_url(value) && file.hosts_with_tls().contains(&value.to_ascii_lowercase()) {
        sink.report_at(
            Severity::Note,
            field.value_range.clone(),
            format_args!(
                "{host} has no scheme, so it means http, but a sitemap on this host uses https",
                host = Quoted(value)
            ),
        )
        .help(format_args!("write {}", Quoted(&[b"https://", value].concat())));
    }
}

fn is_host(value: &[u8]) -> bool {
    let name = if is_url(value) { &value[memchr::memmem::find(value, b"//").map_or(0, |at| at + 2)..] } else { value };
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let authority = Authority::of_host_field(name);
    let label = |label: &[u8]| {
        !label.is_empty() && label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte >= 0x80)
    };
    authority.host.split(|byte| *byte == b'.').all(label) && matches!(authority.port, Port::Absent | Port::Number(_))
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let value = field.value;
    if is_host(value) {
        return Some(vec![Edit::insert(field.value_range.start, "https://")]);
    }
    let name = if is_url(value) { memchr::memmem::find(value, b"//")? + 2 } else { 0 };
    let end = name + memchr::memchr3(b'/', b'?', b' ', &value[name..])?;
    is_host(&value[..end]).then(|| vec![Edit::remove(field.value_range.start + end..field.value_range.end)])
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn hosts_are_distinguished_from_other_values() {
        for host in ["example.com", "https://example.com", "http://example.com:8080/", "b\u{fc}cher.example", "a"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in ["", "example.com/x", "exa mple", "https://", "a:b", "a:", "a:99999", "u@a", "a..b", "ftp://x"] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
