//! `needless-escape`: an escape such as `%61` for `a`.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "needless-escape",
    severity: Severity::Warning,
    summary: "an escaped letter, digit or mark that needs no escape",
    why: "According to RFC 9309, section 2.2.2, crawlers decode escapes of letters, digits, \"-\", \".\", \"_\" and \
          \"~\" before comparing. But the reference parser does not, so \"/%61bout\" matches \"/about\" for some \
          crawlers and not for others.",
    bad: Example::new(b"User-agent: *\nDisallow: /%7Euser/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /~user/\nDisallow: /a%2Fb\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| Some(decode(value))))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !is_rule(field) {
        return;
    }
    let Some(at) = memchr::memchr_iter(b'%', pattern).find(|at| needless(&pattern[*at..]).is_some()) else { return };
    let start = field.value_range.start + at;
    sink.report(
        start..start + 3,
        format_args!(
            "the escape {escape} is not needed, and not every crawler decodes it",
            escape = Quoted(&pattern[at..at + 3])
        ),
    )
    .help_with(|| Some(format!("write {}", Quoted(&decode(pattern)))));
}

fn decode(mut pattern: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len());
    while let [first, rest @ ..] = pattern {
        match needless(pattern) {
            Some(byte) => {
                out.push(byte);
                pattern = &pattern[3..];
            }
            None => {
                out.push(*first);
                pattern = rest;
            }
        }
    }
    out
}

/// Returns the unreserved byte (RFC 3986, section 2.3) that the escape at the start of `text`
/// represents.
fn needless(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')).then_some(byte)
}
