//! Findings about the status of an answer and the redirects to it.

use tower_robots::source::fetch::{FetchErrorKind, FetchUrl};

use super::lints;
use crate::render::{AnswerFinding, AnswerLint};
use crate::retrieval::{AnswerKind, ChainEnd, RetrievalChain};

/// As many redirects are a long way: more than half of what crawlers follow.
const LONG: usize = 3;

/// What crawlers make of an answer, as a sentence without its subject.
pub(super) fn meaning(kind: AnswerKind) -> String {
    let access = kind.access();
    let others = kind.other_readings().map_or_else(String::new, |others| format!("; {others}"));
    format!("crawlers {access} (RFC 9309, section {}){others}", kind.section())
}

/// The finding about what came at the end; none for 200, and for a server that cannot be reached from here.
pub(super) fn of_status(chain: &RetrievalChain) -> Option<AnswerFinding> {
    let kind = AnswerKind::of(chain);
    let (lint, help) = lint_of(kind)?;
    let detail = match (kind, chain.detail()) {
        (AnswerKind::Failed(_), Some(detail)) => detail,
        (_, Some(detail)) => format!("{kind}: {detail}"),
        (_, None) => kind.to_string(),
    };
    let finding = AnswerFinding::new(lint, chain.url(), &format!("{detail}: {}", meaning(kind)));
    Some(if help.is_empty() { finding } else { finding.help(help) })
}

const fn lint_of(kind: AnswerKind) -> Option<(&'static AnswerLint, &'static str)> {
    Some(match kind {
        AnswerKind::Success(status) if status.as_u16() == 200 => return None,
        AnswerKind::Success(_) => (&lints::NOT_200, "answer 200"),
        AnswerKind::RedirectLoop => (&lints::REDIRECT_LOOP, "serve the file at /robots.txt itself"),
        AnswerKind::TooManyRedirects => (&lints::REDIRECT_TOO_MANY, "redirect to the last URL at once"),
        AnswerKind::LeadsNowhere | AnswerKind::NoRedirect(_) => {
            (&lints::REDIRECT_NOWHERE, "serve the file here, or redirect with 301 to its http or https URL")
        }
        AnswerKind::NotModified | AnswerKind::NoStatus(_) => {
            (&lints::NOT_FINAL, "answer 200 with the rules, or 404 where there are none")
        }
        AnswerKind::Missing(_) => (&lints::MISSING, ""),
        AnswerKind::Restricted(_) => {
            (&lints::RESTRICTED, "serve /robots.txt to every client, without a password and without a bot check")
        }
        AnswerKind::TooManyRequests => (&lints::RATE_LIMITED, "leave /robots.txt out of the limit"),
        AnswerKind::ClientError(_) => (&lints::CLIENT_ERROR, "answer 200 with the rules, or 404 where there are none"),
        AnswerKind::ServerError(_) => (&lints::SERVER_ERROR, "answer 200 with the rules, or 404 where there are none"),
        AnswerKind::Failed(FetchErrorKind::Tls) => (
            &lints::TLS,
            "serve https there, with a certificate that is in force, has this name, and comes with its intermediate certificates",
        ),
        AnswerKind::Failed(FetchErrorKind::Timeout) => (&lints::TIMEOUT, ""),
        AnswerKind::Failed(FetchErrorKind::Name | FetchErrorKind::Connect | FetchErrorKind::RedirectAddress) => {
            (&lints::REDIRECT_UNREACHABLE, "redirect to a server that answers")
        }
        AnswerKind::Failed(_) => (&lints::BROKEN, ""),
        AnswerKind::Unreachable(_) => return None,
    })
}

/// The findings about the way to the answer.
pub(super) fn of_redirects(chain: &RetrievalChain) -> Vec<AnswerFinding> {
    let mut findings = Vec::new();
    let urls: Vec<&FetchUrl> = chain.hops().map(|hop| &hop.url).collect();
    let last = &chain.last().url;
    if let Some(elsewhere) = urls.iter().find(|url| name(url) != name(chain.url())) {
        let message = format!(
            "the rules of {} come from {}: crawlers follow the redirect, and what they find there holds for {}",
            chain.url().host(),
            last.host(),
            chain.url().host()
        );
        let message = if name(last) == name(chain.url()) {
            format!("the way to the rules leads over another host, {}", elsewhere.host())
        } else {
            message
        };
        let help =
            format!("serve the rules at {} itself, unless {} may decide about them", chain.url(), elsewhere.host());
        findings.push(AnswerFinding::new(&lints::REDIRECT_OTHER_HOST, chain.url(), &message).help(&help));
    }
    if let Some(pair) = urls.windows(2).find(|pair| pair[0].is_https() && !pair[1].is_https()) {
        let message = format!("{} redirects to {}, without TLS", pair[0], pair[1]);
        findings.push(AnswerFinding::new(&lints::REDIRECT_TO_HTTP, chain.url(), &message));
    }
    if chain.redirects() >= LONG && *chain.end() == ChainEnd::Reached {
        let message = format!("{} redirects to {last}: crawlers need not follow more than five", chain.redirects());
        findings.push(AnswerFinding::new(&lints::REDIRECT_LONG, chain.url(), &message).help("redirect there at once"));
    }
    findings
}

/// The host without `www.`, which is nearly always the same site.
fn name(url: &FetchUrl) -> &str {
    let host = url.host().trim_end_matches('.');
    host.strip_prefix("www.").unwrap_or(host)
}
