//! `cut-product-token`: a name that many crawlers shorten before they compare it with their token.

use crate::check::crawlers::CrawlersByToken;
use crate::check::invisible::without_invisible;
use crate::check::lint::*;
use crate::check::lints::names::browser_header_as_name::is_header;
use crate::check::quote::unquoted;

pub(crate) const LINT: Lint = Lint {
    code: "cut-product-token",
    severity: Severity::Warning,
    summary: "a name that crawlers cut",
    why: "A product token consists of letters, \"_\" and \"-\" (RFC 9309, section 2.2.1). Crawlers based on the \
          reference parser cut a name at the first character that is not one of these, so the group may be for a \
          different crawler or for none. Names of known crawlers, such as MJ12bot, are not reported, because these \
          crawlers compare their whole names. Other names with digits or dots are reported only as a note. Names that \
          end with a version or \"*\" are also reported only as a note, because crawlers cut only this ending. A name \
          with an invisible character, such as a no-break space, does not match any crawler.",
    bad: Example::new(b"User-agent: GPT Bot\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n"),
    pass: Pass::Name(run),
    fix: Some(LintFix::new(fix)),
};

/// Characters that people write between the names of several crawlers, in addition to commas and
/// semicolons.
const JOINS: &[u8] = b"|&+/";

/// Maximum number of names in one value. For a value with more names, the message does not suggest
/// one line per name.
const MAX_NAMES: usize = 16;

fn run(file: &CheckedFile<'_>, name: Name<'_>, sink: &mut Sink) {
    let value = name.value();
    let kept = &value[..ProductToken::cut(value).as_bytes().len()];
    if name.is_star() || kept.len() == value.len() || is_header(value) || is_registered(file, value) {
        return;
    }
    let as_meant = is_cut_as_meant(value, kept);
    let severity = if as_meant || is_one_word(value) { Severity::Note } else { Severity::Warning };
    let read = if kept.is_empty() { "nothing".to_owned() } else { Quoted(kept).to_string() };
    let draft = sink.report_at(
        severity,
        name.range(),
        format_args!(
            "{name} is not a product token: some crawlers cut the name at its first invalid character and read {read}",
            name = Quoted(value)
        ),
    );
    let draft = draft.of_agent(value);
    if as_meant {
        draft.help(format_args!("write {}", Quoted(kept)));
    } else if let Some(names) = several(value, &file.crawlers) {
        let lines: Vec<_> = names.iter().map(|name| Quoted(&line_of(name)).to_string()).collect();
        draft.help(format_args!("write a separate line for each name: {lines}", lines = lines.join(" and ")));
    } else if let Some(name) = unquoted(value) {
        draft.help(format_args!("write {}", Quoted(name)));
    } else if let Some(seen) = without_invisible(value) {
        draft.help(format_args!("write {name} without the invisible characters", name = Quoted(seen.as_bytes())));
    } else if value.starts_with(b"*") {
        draft.help("write \"*\" for every crawler, or the name of one crawler");
    } else {
        draft.help("use the name that the crawler documents; standard names consist of letters, \"_\" and \"-\"");
    }
}

/// Returns the names of crawlers in a value. `None` if the value does not seem to contain several
/// names. A value contains several names if there are commas or semicolons between the names, or if
/// all names are known.
fn several<'v>(value: &'v [u8], crawlers: &CrawlersByToken<'_>) -> Option<Vec<&'v [u8]>> {
    let is_separator = |byte: &u8| matches!(byte, b',' | b';') || JOINS.contains(byte) || byte.is_ascii_whitespace();
    let names: Vec<&[u8]> = value.split(is_separator).filter(|name| !name.is_empty()).collect();
    let has_comma = value.iter().any(|byte| matches!(byte, b',' | b';'));
    let is_known = |name: &&[u8]| crawlers.of_token(&ProductToken::new(name)).is_some();
    let is_name = |name: &&[u8]| is_one_word(name) && (has_comma || is_known(name));
    ((2..=MAX_NAMES).contains(&names.len()) && names.iter().all(is_name)).then_some(names)
}

fn line_of(name: &[u8]) -> Vec<u8> {
    [b"User-agent: ", name].concat()
}

/// Reports whether a value is exactly the token of a registered crawler. Such a crawler compares
/// the whole value with its token.
fn is_registered(file: &CheckedFile<'_>, value: &[u8]) -> bool {
    let token = ProductToken::new(value);
    ProductToken::from_name(value).as_ref() == Some(&token) && file.crawlers.registry.knows(&token)
}

/// Reports whether crawlers cut off only a version or a `*`, as authors expect: `Googlebot/2.1`,
/// `Googlebot*`.
fn is_cut_as_meant(value: &[u8], kept: &[u8]) -> bool {
    let rest = &value[kept.len()..];
    let meant = match rest {
        // A word after the slash is not a version, and may be the name of another crawler.
        [b'/', b'A'..=b'Z' | b'a'..=b'u' | b'w'..=b'z', ..] => false,
        [b'/', version @ ..] => version.iter().all(|byte| is_word(*byte)),
        _ => rest.iter().all(|byte| *byte == b'*'),
    };
    meant && !kept.is_empty()
}

fn is_one_word(value: &[u8]) -> bool {
    value.iter().all(|byte| is_word(*byte))
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let value = file.text_of(finding);
    let kept = &value[..ProductToken::cut(value).as_bytes().len()];
    if is_cut_as_meant(value, kept) {
        return Some(vec![Edit::new(finding.span.clone(), kept)]);
    }
    if let Some(name) = unquoted(value) {
        return Some(vec![Edit::new(finding.span.clone(), name)]);
    }
    if let Some(seen) = without_invisible(value) {
        return Some(vec![Edit::new(finding.span.clone(), seen)]);
    }
    if let Some(names) = several(value, &file.crawlers) {
        let (first, others) = names.split_first()?;
        let others: Vec<_> = others.iter().map(|name| line_of(name)).collect();
        let lines = file.lines_after(file.line_of(finding), others.iter().map(Vec::as_slice));
        return Some(vec![Edit::new(finding.span.clone(), *first), lines]);
    }
    // If the value may contain several names, there is no fix, because the fix would keep only one
    // name.
    let meant = file.crawlers.declared_by(value).filter(|_| !value.iter().any(|byte| JOINS.contains(byte)))?;
    (meant.as_bytes() != value).then(|| vec![Edit::new(finding.span.clone(), meant)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::lints::tests::helps;

    #[test]
    fn a_line_with_several_crawler_names_gets_help_to_split_it() {
        let several = "write a separate line for each name: \"User-agent: GPTBot\" and \"User-agent: ccbot\"";
        for (value, is_several) in [
            ("GPTBot, ccbot", true),
            ("GPTBot;ccbot", true),
            ("GPTBot ccbot", true),
            ("GPTBot,ccbot,", true),
            ("GPTBot|ccbot", true),
            ("GPTBot/ccbot", true),
            ("GPTBot+ccbot", true),
            ("GPTBot or-so", false),
            ("Yahoo! Slurp", false),
        ] {
            let helps = helps("cut-product-token", format!("User-agent: {value}\nDisallow: /\n").as_bytes());
            assert_eq!(helps == [several], is_several, "{value}: {helps:?}");
        }
    }

    #[test]
    fn product_names_that_still_work_get_only_a_note() {
        let noted = |value: &[u8]| {
            let kept = ProductToken::cut(value);
            is_one_word(value) || is_cut_as_meant(value, &value[..kept.as_bytes().len()])
        };
        for value in ["MJ12bot", "archive.org_bot", "008", "Googlebot/2.1", "Googlebot*"] {
            assert!(noted(value.as_bytes()), "{value}");
        }
        for value in ["GPT Bot", "/2.1", "Mozilla/5.0 (x)", "*bot", "Yahoo! Slurp", "b\u{f6}t"] {
            assert!(!noted(value.as_bytes()), "{value}");
        }
    }
}
