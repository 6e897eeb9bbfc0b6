//! `unknown-crawler`: an unknown name that is similar to a known one.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "unknown-crawler",
    severity: Severity::Warning,
    summary: "an unknown name that is similar to a known name",
    why: "A crawler looks for exactly its own name, so a group with a misspelled name does not apply to any crawler, \
          and the crawler that the author means obeys \"*\" instead. If a group has the name of a search engine or an \
          assistant (Bing instead of bingbot), or the name of an operator (Anthropic), it does not apply to any \
          crawler, either. Names that are not similar to a known name are not reported, because the registry does not \
          contain every crawler. A name of six to nine letters is reported if one letter is wrong, and a longer name \
          also if two letters are wrong. A name of five letters is reported only if its ending \"bot\" is misspelled.",
    bad: Example::new(b"User-agent: Googelbot\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: Googlebot\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let names = file.names();
    for (name, likely) in file.crawlers.misspelled(names) {
        sink.report(name.range(), format_args!("no known crawler is called {name}", name = Quoted(name.value())))
            .of_agent(name.value())
            .help(format_args!("did you mean {}?", any_of(&likely)));
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let token = ProductToken::from_name(file.text_of(finding))?;
    Some(vec![Edit::new(finding.span.clone(), file.crawlers.nearest(&token)?)])
}
