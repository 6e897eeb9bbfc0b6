//! `browser-header-as-name`: a whole `User-Agent` header where a token belongs.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "browser-header-as-name",
    severity: Severity::Error,
    summary: "a whole User-Agent header as a name",
    why: "A user-agent line holds a product token, such as \"GPTBot\", not the header that the crawler sends with its \
          requests. Crawlers that cut the header read \"Mozilla\", which no crawler is called.",
    bad: Example::new(
        b"User-agent: Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\nDisallow: /private/\n",
    ),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| file.crawlers.declared_by(value)))),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    for name in file.names().filter(|name| is_header(name.value())) {
        let cut = ProductToken::cut(name.value()).as_bytes().len();
        let draft = sink.report(
            name.range(),
            format_args!(
                "{} is a whole header, not a product token: crawlers that cut it read {}",
                Quoted(name.value()),
                Quoted(&name.value()[..cut])
            ),
        );
        draft.help_with(|| {
            let token = file.crawlers.declared_by(name.value())?;
            Some(format!("write {}", Quoted(token.as_bytes())))
        });
    }
}

/// How browsers begin, whatever a crawler made of it.
pub(super) fn is_header(value: &[u8]) -> bool {
    [&b"mozilla/"[..], b"opera/"]
        .iter()
        .any(|start| value.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)))
}
