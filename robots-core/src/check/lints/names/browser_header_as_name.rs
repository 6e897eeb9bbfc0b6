//! `browser-header-as-name`: a whole `User-Agent` header instead of a token.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "browser-header-as-name",
    severity: Severity::Error,
    summary: "a whole User-Agent header as a name",
    why: "The value of a user-agent line must be a product token, such as \"GPTBot\", not the User-Agent header of a \
          crawler's requests. Crawlers that cut the header at its first invalid character find the name \"Mozilla\", \
          which no crawler has.",
    bad: Example::new(
        b"User-agent: Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\nDisallow: /private/\n",
    ),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n"),
    pass: Pass::Name(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| file.crawlers.declared_by(value)))),
};

fn run(file: &CheckedFile<'_>, name: Name<'_>, sink: &mut Sink) {
    let value = name.value();
    if !is_header(value) {
        return;
    }
    let cut = &value[..ProductToken::cut(value).as_bytes().len()];
    let (whole, cut) = (Quoted(value), Quoted(cut));
    let message = format_args!(
        "{whole} is a whole header, not a product token: some crawlers cut the name at its first invalid character \
         and read {cut}"
    );
    sink.report(name.range(), message).help_with(|| {
        let token = file.crawlers.declared_by(value)?;
        Some(format!("write {}", Quoted(token.as_bytes())))
    });
}

/// Reports whether a value begins like the `User-Agent` header of a browser. The headers of many
/// crawlers begin in the same way.
pub(super) fn is_header(value: &[u8]) -> bool {
    [&b"mozilla/"[..], b"opera/"].iter().any(|start| starts_with(value, start))
}
