//! Findings about the status, the redirects and the header fields of a response.

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, CONTENT_TYPE};
use tower_robots::check::Severity;
use tower_robots::internals::Freshness;
use tower_robots::source::fetch::{FetchErrorKind, FetchUrl};

use super::lints;
use crate::fetch::{AnswerKind, ChainEnd, DocumentError, RetrievalChain, codings};
use crate::render::{AnswerLint, FoundProblem};

/// Minimum number of redirects in a chain that is reported as long. Crawlers follow at least five
/// redirects (RFC 9309, section 2.3.1.2), and three redirects are more than half of this number.
const MIN_LONG_CHAIN: usize = 3;

/// Describes how crawlers interpret the response, in a phrase that follows the subject of a
/// sentence.
pub(super) fn meaning(kind: AnswerKind) -> String {
    let reading = kind.reading();
    let others = reading.other_readings.map_or_else(String::new, |others| format!("; {others}"));
    format!("{reading}{others}")
}

/// Returns the finding about the final status. `None` if the status is 200, or if this machine
/// cannot reach the server.
pub(super) fn status_finding(chain: &RetrievalChain) -> Option<FoundProblem> {
    let kind = AnswerKind::of(chain);
    let (lint, help) = lint_of(kind)?;
    let detail = DocumentError::Answer(kind, chain.detail());
    let finding = FoundProblem::answer(lint, chain.url(), &format!("{detail}: {}", meaning(kind)));
    Some(if help.is_empty() { finding } else { finding.help(help) })
}

pub(super) const fn lint_of(kind: AnswerKind) -> Option<(&'static AnswerLint, &'static str)> {
    Some(match kind {
        AnswerKind::Success(status) if status.as_u16() == 200 => return None,
        AnswerKind::Success(_) => (&lints::NOT_200, "answer 200"),
        AnswerKind::RedirectLoop => (&lints::REDIRECT_LOOP, "serve the file at /robots.txt itself"),
        AnswerKind::TooManyRedirects => (&lints::REDIRECT_TOO_MANY, "redirect directly to the last URL"),
        AnswerKind::InvalidRedirect | AnswerKind::OtherRedirect(_) => (
            &lints::REDIRECT_NOWHERE,
            "serve the file at this URL, or redirect with status 301 to the http or https URL of the file",
        ),
        AnswerKind::NotModified | AnswerKind::UnknownStatus(_) => {
            (&lints::NOT_FINAL, "answer 200 with the rules, or 404 if there are none")
        }
        AnswerKind::Missing(_) => (&lints::MISSING, ""),
        AnswerKind::Restricted(_) => {
            (&lints::RESTRICTED, "serve /robots.txt to every client, without a password and without a bot check")
        }
        AnswerKind::TooManyRequests => (&lints::RATE_LIMITED, "exempt /robots.txt from the rate limit"),
        AnswerKind::ClientError(_) => (&lints::CLIENT_ERROR, "answer 200 with the rules, or 404 if there are none"),
        AnswerKind::ServerError(_) => (&lints::SERVER_ERROR, "answer 200 with the rules, or 404 if there are none"),
        AnswerKind::Failed(FetchErrorKind::Tls) => (
            &lints::TLS,
            "serve https there, with a certificate that is valid today and for this name, and send its intermediate \
             certificates",
        ),
        AnswerKind::Failed(FetchErrorKind::Timeout) => (&lints::TIMEOUT, ""),
        AnswerKind::Failed(FetchErrorKind::Name | FetchErrorKind::Connect | FetchErrorKind::RedirectAddress) => {
            (&lints::REDIRECT_UNREACHABLE, "redirect to a server that answers")
        }
        AnswerKind::Failed(_) => (&lints::BROKEN, ""),
        AnswerKind::Unreachable(_) => return None,
    })
}

pub(super) fn redirect_findings(chain: &RetrievalChain) -> Vec<FoundProblem> {
    let mut findings = Vec::new();
    let urls: Vec<&FetchUrl> = chain.hops().map(|hop| &hop.url).collect();
    let last = &chain.last.url;
    if let Some(elsewhere) = urls.iter().find(|url| name(url) != name(chain.url())) {
        let (host, from) = (chain.url().host(), last.host());
        let message = if name(last) == name(chain.url()) {
            format!("the redirects to the rules lead through another host, {host}", host = elsewhere.host())
        } else {
            let why = "crawlers follow the redirect, and apply these rules to";
            format!("the rules of {host} come from {from}: {why} {host}")
        };
        let help = format!(
            "serve the rules at {url} itself, unless the owner of {host} is meant to write them",
            url = chain.url(),
            host = elsewhere.host()
        );
        findings.push(FoundProblem::answer(&lints::REDIRECT_OTHER_HOST, chain.url(), &message).help(&help));
    }
    if let Some(pair) = urls.windows(2).find(|pair| pair[0].is_https() && !pair[1].is_https()) {
        let message = format!("{from} redirects to {to}, which does not use TLS", from = pair[0], to = pair[1]);
        findings.push(FoundProblem::answer(&lints::REDIRECT_TO_HTTP, chain.url(), &message));
    }
    if chain.redirects() >= MIN_LONG_CHAIN && chain.end == ChainEnd::Reached {
        let message = format!(
            "{redirects} redirects lead to {last}: crawlers need not follow more than five",
            redirects = chain.redirects()
        );
        findings.push(
            FoundProblem::answer(&lints::REDIRECT_LONG, chain.url(), &message)
                .help("redirect directly to the last URL"),
        );
    }
    findings
}

/// Returns the host of the URL without `www.`, because a host with `www.` and the same host without
/// it almost always belong to the same site.
fn name(url: &FetchUrl) -> &str {
    let host = url.host().trim_end_matches('.');
    host.strip_prefix("www.").unwrap_or(host)
}

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn field_findings(chain: &RetrievalChain, body: &[u8]) -> Vec<FoundProblem> {
    let Some(headers) = chain.headers() else { return Vec::new() };
    let finding = |lint, message: &str| FoundProblem::answer(lint, chain.url(), message);
    let mut findings = Vec::new();
    let send_plain = "send \"Content-Type: text/plain; charset=utf-8\"";
    match media_type(headers) {
        None => {
            let missing = "the response has no Content-Type: RFC 9309 requires text/plain (section 2.3)";
            findings.push(finding(&lints::CONTENT_TYPE, missing).severity_is(Severity::Note).help(send_plain));
        }
        Some((name, charset)) => {
            if name != "text/plain" {
                let message = format!("the Content-Type is {name:?}: RFC 9309 requires text/plain (section 2.3)");
                findings.push(finding(&lints::CONTENT_TYPE, &message).help(send_plain));
            }
            findings.extend(charset.and_then(|charset| charset_fault(&charset, body)).map(|(severity, message)| {
                finding(&lints::CHARSET, &message)
                    .severity_is(severity)
                    .help("save the file as UTF-8, and send charset=utf-8")
            }));
        }
    }
    if let Some(fresh) = Freshness::of(headers).private().filter(|fresh| *fresh > DAY) {
        let message = format!(
            "caches may keep the file for {time}, so crawlers may see a change only after that time",
            time = duration_text(fresh)
        );
        findings.push(finding(&lints::CACHED_LONG, &message).help("send \"Cache-Control: max-age=3600\""));
    }
    if let Some(age) = age(headers).filter(|age| *age > DAY) {
        let message = format!("the response is a cached copy that is {age} old", age = duration_text(age));
        findings.push(finding(&lints::STALE, &message).help("purge the copy from the cache whenever the file changes"));
    }
    findings
}

/// Returns a finding if the response is encoded although the client did not accept any content
/// coding.
pub(super) fn unrequested_coding_finding(plain: &RetrievalChain) -> Option<FoundProblem> {
    let codings = codings(plain.headers()?);
    if codings.is_empty() {
        return None;
    }
    let coding = codings.join(", ");
    let message = format!(
        "the file is sent with the content coding {coding:?} even to a client that accepts no coding, so this client finds no rules"
    );
    let finding = FoundProblem::answer(&lints::CODING, plain.url(), &message);
    Some(finding.help("compress the file only if Accept-Encoding of the request contains that coding"))
}

/// Returns the severity and the message of the finding about a charset; `None` if the charset is
/// right. In a file that contains only ASCII characters, a wrong charset is harmless, because
/// nearly all charsets encode these characters identically.
fn charset_fault(charset: &str, body: &[u8]) -> Option<(Severity, String)> {
    let is_harmless = body.is_ascii() && !charset.starts_with("utf-16") && !charset.starts_with("utf-32");
    let message = format!("the Content-Type has the charset {charset:?}, but crawlers read the file as UTF-8");
    match charset {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => None,
        _ if is_harmless => {
            Some((Severity::Note, message + ", which makes no difference as long as the file is ASCII"))
        }
        _ => Some((Severity::Warning, message)),
    }
}

fn media_type(headers: &HeaderMap) -> Option<(String, Option<String>)> {
    let value = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes()).to_ascii_lowercase();
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?.chars().take(64).collect();
    let charset = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        (key.trim() == "charset").then(|| value.trim().trim_matches('"').chars().take(64).collect())
    });
    Some((name, charset))
}

/// Returns the age of a response from a cache, according to the field `Age`.
fn age(headers: &HeaderMap) -> Option<Duration> {
    headers.get(AGE)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Formats a duration, in hours if it is shorter than two days, otherwise in days.
fn duration_text(time: Duration) -> String {
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
            media_type(&headers).map(|(name, charset)| (name, charset.unwrap_or_default()))
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
    fn an_ascii_body_in_an_ascii_compatible_charset_is_only_a_note() {
        let severity = |charset, body: &str| charset_fault(charset, body.as_bytes()).map(|(severity, _)| severity);
        assert_eq!(severity("utf-8", "ä"), None);
        assert_eq!(severity("iso-8859-1", "a"), Some(Severity::Note));
        assert_eq!(severity("iso-8859-1", "ä"), Some(Severity::Warning));
        assert_eq!(severity("utf-16le", "a"), Some(Severity::Warning));
    }
}
