//! Findings about the fields of an answer that brings a file.

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, CONTENT_TYPE};
use tower_robots::check::Severity;
use tower_robots::source::fetch::Freshness;

use super::lints;
use crate::render::AnswerFinding;
use crate::retrieval::{RetrievalChain, codings};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// `Content-Type`, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct MediaType {
    name: String,
    charset: Option<String>,
}

/// Every finding about the fields of an answer with this body.
pub(super) fn of_fields(chain: &RetrievalChain, body: &[u8]) -> Vec<AnswerFinding> {
    let Some(headers) = chain.headers() else { return Vec::new() };
    let finding = |lint, message: &str| AnswerFinding::new(lint, chain.url(), message);
    let mut findings = Vec::new();
    match media_type(headers) {
        None => findings.push(
            finding(&lints::CONTENT_TYPE, "there is no Content-Type: RFC 9309 wants text/plain (section 2.3)")
                .severity_is(Severity::Note)
                .help("send \"Content-Type: text/plain; charset=utf-8\""),
        ),
        Some(MediaType { name, charset }) => {
            if name != "text/plain" {
                let message = format!("it comes as {name:?}: RFC 9309 wants text/plain (section 2.3)");
                findings.push(
                    finding(&lints::CONTENT_TYPE, &message).help("send \"Content-Type: text/plain; charset=utf-8\""),
                );
            }
            findings.extend(charset.and_then(|charset| of_charset(&charset, body)).map(|(severity, message)| {
                finding(&lints::CHARSET, &message).severity_is(severity).help("save the file as UTF-8, and say so")
            }));
        }
    }
    if let Some(fresh) = Freshness::of(headers).private().filter(|fresh| *fresh > DAY) {
        let message = format!("crawlers may keep it for {}, and see a change that much later", span(fresh));
        findings.push(finding(&lints::CACHED_LONG, &message).help("send \"Cache-Control: max-age=3600\""));
    }
    if let Some(age) = age(headers).filter(|age| *age > DAY) {
        let message = format!("it is a copy of a cache, {} old", span(age));
        findings.push(finding(&lints::STALE, &message).help("purge it from the cache when the file changes"));
    }
    findings
}

/// The finding about an answer to a request that accepts no coding.
pub(super) fn of_unasked_coding(plain: &RetrievalChain) -> Option<AnswerFinding> {
    let codings = codings(plain.headers()?);
    if codings.is_empty() {
        return None;
    }
    let coding = codings.join(", ");
    let message = format!("it comes as {coding:?} to a client that accepts no coding, and that finds no rule in it");
    let finding = AnswerFinding::new(&lints::CODING, plain.url(), &message);
    Some(finding.help("compress it only for requests with that coding in Accept-Encoding"))
}

/// A file of ASCII is the same in nearly every charset.
fn of_charset(charset: &str, body: &[u8]) -> Option<(Severity, String)> {
    let is_harmless = body.is_ascii() && !charset.starts_with("utf-16") && !charset.starts_with("utf-32");
    match charset {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => None,
        _ if is_harmless => Some((
            Severity::Note,
            format!(
                "it comes with the charset {charset:?}, and crawlers read it as UTF-8: no difference while it is ASCII"
            ),
        )),
        _ => Some((Severity::Warning, format!("it comes with the charset {charset:?}, and crawlers read it as UTF-8"))),
    }
}

fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let value = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes()).to_ascii_lowercase();
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?.chars().take(64).collect();
    let charset = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        (key.trim() == "charset").then(|| value.trim().trim_matches('"').chars().take(64).collect())
    });
    Some(MediaType { name, charset })
}

/// How old a copy is, by the caches that it came through.
fn age(headers: &HeaderMap) -> Option<Duration> {
    headers.get(AGE)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// In days where there are several.
fn span(time: Duration) -> String {
    match time.as_secs() / DAY.as_secs() {
        0 | 1 => format!("{} hours", time.as_secs() / 3600),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_read_with_its_charset() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().expect("a value"));
            media_type(&headers).map(|MediaType { name, charset }| (name, charset.unwrap_or_default()))
        };
        for (value, name, charset) in [
            ("text/plain", "text/plain", ""),
            ("Text/Plain; Charset=UTF-8", "text/plain", "utf-8"),
            ("text/plain;format=flowed ; charset=\"ISO-8859-1\"", "text/plain", "iso-8859-1"),
            ("text/plain; charset", "text/plain", ""),
        ] {
            assert_eq!(read(value), Some((name.to_owned(), charset.to_owned())), "{value}");
        }
        assert_eq!(read("; charset=utf-8"), None);
    }

    #[test]
    fn ascii_is_the_same_in_most_charsets() {
        let severity = |charset, body: &str| of_charset(charset, body.as_bytes()).map(|(severity, _)| severity);
        assert_eq!(severity("utf-8", "ä"), None);
        assert_eq!(severity("iso-8859-1", "a"), Some(Severity::Note));
        assert_eq!(severity("iso-8859-1", "ä"), Some(Severity::Warning));
        assert_eq!(severity("utf-16le", "a"), Some(Severity::Warning));
    }
}
