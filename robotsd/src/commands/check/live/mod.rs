//! `robotsd check https://example.com`: checks what crawlers get when they fetch the robots.txt of
//! a site.
//!
//! The robots.txt is fetched as crawlers fetch it, for each host name and scheme of the site
//! ([`names_of_site`]). [`answers`] and [`sitemaps`] find problems in the responses, and [`lints`]
//! is the table of the lints for these problems. The file is then checked like any other file, and
//! [`FrontPage`] shows which crawlers may fetch `/`.
//!
//! The check fetches no pages and follows no links. Sitemaps are fetched only if the user requests
//! it.

mod answers;
mod lints;
mod output;
mod report;
mod sitemaps;

use std::net::IpAddr;

use tower_robots::check::Severity;
use tower_robots::live::LiveRobots;
use tower_robots::rules::{Reading, ValueError};
use tower_robots::source::fetch::FetchUrl;

use self::report::{AnswerSummary, LiveReport, SameFile};
use crate::commands::check::front_page::FrontPage;
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::fetch::{
    AnswerKind, AnswerReading, DocumentError, RetrievalChain, RetrievalRequest, Retriever, codings, robots_url, site_of,
};
use crate::render::FoundProblem;

pub(super) use self::lints::{answer_lint, answer_lints};

/// Maximum size of a decoded robots.txt, in bytes.
const MAX_BYTES: usize = LiveRobots::MAX_FILE as usize;

#[derive(Debug)]
pub(super) struct LiveCheck<'a> {
    pub(super) retriever: Retriever,
    pub(super) settings: &'a EvaluatorSettings,
    /// Whether to fetch the sitemaps that a robots.txt lists.
    pub(super) fetches_sitemaps: bool,
}

impl LiveCheck<'_> {
    /// Checks the robots.txt of a host.
    ///
    /// # Errors
    ///
    /// Returns an error if `word` is not the URL of a site or robots.txt that can be fetched.
    fn check(&self, word: &str) -> Result<LiveReport, String> {
        let (named, others) = names_of_site(word)?;
        let chain = self.retriever.retrieve(&RetrievalRequest::new(named));
        let kind = AnswerKind::of(&chain);
        let mut findings: Vec<_> =
            answers::status_finding(&chain).into_iter().chain(answers::redirect_findings(&chain)).collect();
        let document = chain.document(MAX_BYTES);
        if let Err(DocumentError::Coding(error)) = &document {
            let message = format!("{error}: crawlers find no rules in the body, or count the answer as a failure");
            let help =
                "encode the body as the field Content-Encoding says, and only for clients that accept this coding";
            findings.push(FoundProblem::answer(&lints::UNDECODABLE, chain.url(), &message).help(help));
        }
        let body = document.ok();
        if let Some(body) = &body {
            findings.extend(answers::field_findings(&chain, &body.bytes));
            findings.extend(self.check_unrequested_coding(&chain));
        }
        let mut answers = vec![AnswerSummary::new(&chain, body.as_ref(), SameFile::Named)];
        for url in others {
            let other = self.retriever.retrieve(&RetrievalRequest::new(url));
            let other_body = other.document(MAX_BYTES).ok();
            let same = SameFile::of((&other, other_body.as_ref()), (&chain, body.as_ref()));
            if !matches!(kind, AnswerKind::Unreachable(_)) {
                findings.extend(other_rules(&other, same, &chain));
            }
            answers.push(AnswerSummary::new(&other, other_body.as_ref(), same));
        }
        let settings = self.settings.for_host(&chain.url().authority());
        let evaluator = body.map(|body| Evaluator::new(body.bytes, Reading::Standard, &settings));
        if evaluator.as_ref().is_some_and(Evaluator::is_other_file) {
            // Another finding already reports that the file is not a robots.txt.
            findings.retain(|finding| finding.code != Some(lints::CONTENT_TYPE.code));
        }
        let origin = if chain.last.url.target().as_str() == "/robots.txt" { &chain.last.url } else { chain.url() };
        findings.extend(evaluator.iter().flat_map(|evaluator| sitemaps::location_findings(evaluator.robots(), origin)));
        let sitemaps = match &evaluator {
            Some(evaluator) if self.fetches_sitemaps => {
                let (sitemaps, found) = sitemaps::check(&self.retriever, evaluator.robots(), origin);
                findings.extend(found);
                sitemaps
            }
            _ => Vec::new(),
        };
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let front_page = match (&evaluator, kind) {
            (Some(evaluator), _) => FrontPage::by_rules(evaluator, self.settings),
            (None, AnswerKind::Unreachable(_)) => FrontPage::default(),
            (None, kind) => FrontPage::without_rules(self.settings, kind.access()),
        };
        let unreached = matches!(kind, AnswerKind::Unreachable(_)).then(|| {
            let detail = chain.detail().unwrap_or_default();
            let AnswerReading { crawlers, section, .. } = kind.reading();
            let then = format!("crawlers that also cannot reach the site {crawlers} (RFC 9309, section {section})");
            format!("{}: {detail}; {then}", chain.url())
        });
        Ok(LiveReport { name: chain.url().to_string(), answers, findings, evaluator, sitemaps, front_page, unreached })
    }

    /// If the response in `chain` is encoded, repeats the request without accepting any content
    /// coding. Returns a finding if the second response is encoded, too.
    fn check_unrequested_coding(&self, chain: &RetrievalChain) -> Option<FoundProblem> {
        if codings(chain.headers()?).is_empty() {
            return None;
        }
        let request = RetrievalRequest::new(chain.url().clone());
        answers::unrequested_coding_finding(
            &self.retriever.retrieve(&RetrievalRequest { accepts_codings: false, ..request }),
        )
    }
}

/// Returns a finding if crawlers get different rules at another URL of the site. `None` if the
/// rules are the same, or if the other host has no address.
fn other_rules(other: &RetrievalChain, same: SameFile, named: &RetrievalChain) -> Option<FoundProblem> {
    let SameFile::Differs = same else { return None };
    let (kind, named_kind) = (AnswerKind::of(other), AnswerKind::of(named));
    let message = match kind {
        AnswerKind::Success(_) => format!("this file differs from the file at {url}", url = named.url()),
        _ => {
            let detail = DocumentError::Answer(kind, other.detail());
            format!(
                "{detail}: crawlers {access} here, and {named_access} at {url}",
                access = kind.access(),
                named_access = named_kind.access(),
                url = named.url()
            )
        }
    };
    let finding = FoundProblem::answer(&lints::OTHER_RULES, other.url(), &message);
    // If the other URL is unreachable, the finding is only a note: many sites serve only HTTP or
    // only HTTPS, which does not affect crawlers.
    let severity = if matches!(kind, AnswerKind::Unreachable(_)) { Severity::Note } else { Severity::Warning };
    let help = match (other.url().is_https(), named.url().is_https()) {
        // A site should not redirect from TLS to plain HTTP.
        (true, false) => format!("serve the same file at both URLs, or redirect {url} to this one", url = named.url()),
        _ => format!("redirect this URL to {url}, or serve the same file at both", url = named.url()),
    };
    Some(finding.severity_is(severity).help(&help))
}

/// Returns the robots.txt URL of the argument, and the robots.txt URLs of the site's other host
/// names and schemes.
///
/// # Errors
///
/// Returns an error if the argument is not a URL that can be fetched, or not the URL of a
/// robots.txt.
fn names_of_site(word: &str) -> Result<(FetchUrl, Vec<FetchUrl>), String> {
    let named = robots_url(word).map_err(|error: ValueError| error.to_string())?;
    let scheme = if named.is_https() { "https" } else { "http" };
    if named.target().as_str() != "/robots.txt" {
        return Err(format!(
            "{named}: crawlers read robots.txt only at the root of a host (RFC 9309, section 2.3); write {right}",
            right = site_of(&named)
        ));
    }
    let others = if named.authority().ends_with(&format!(":{}", named.port())) {
        // If the URL contains a port, the ports of the other URLs are unknown.
        Vec::new()
    } else {
        let hosts: Vec<_> = [Some(named.host().to_owned()), counterpart(named.host())].into_iter().flatten().collect();
        let schemes = [scheme, if named.is_https() { "http" } else { "https" }];
        let brackets = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let urls = hosts.iter().flat_map(|host| schemes.map(|scheme| format!("{scheme}://{}", brackets(host))));
        urls.filter_map(|url| robots_url(&url).ok()).filter(|url| *url != named).collect()
    };
    Ok((named, others))
}

fn counterpart(host: &str) -> Option<String> {
    if host.parse::<IpAddr>().is_ok() || !host.trim_end_matches('.').contains('.') {
        return None;
    }
    match host.strip_prefix("www.") {
        Some(rest) => rest.trim_end_matches('.').contains('.').then(|| rest.to_owned()),
        None => Some(format!("www.{host}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_checked_under_at_most_four_urls() {
        for (word, want) in [
            ("https://example.com", "http://example.com https://www.example.com http://www.example.com"),
            ("http://www.example.com/robots.txt", "https://www.example.com http://example.com https://example.com"),
            ("https://example.com:443/", "http://example.com https://www.example.com http://www.example.com"),
            ("https://example.com:8443", ""),
            ("https://192.0.2.7", "http://192.0.2.7"),
            ("http://[2001:db8::7]", "https://[2001:db8::7]"),
            ("http://localhost", "https://localhost"),
            ("http://www.localhost", "https://www.localhost"),
        ] {
            let (_, others) = names_of_site(word).expect(word);
            let others: Vec<_> = others.iter().map(|url| url.to_string().replace("/robots.txt", "")).collect();
            assert_eq!(others.join(" "), want, "{word}");
        }
    }

    #[test]
    fn a_url_outside_the_root_or_with_an_unsupported_scheme_is_rejected() {
        let error = names_of_site("https://example.com/folder/robots.txt").expect_err("not at the top");
        assert!(error.contains("at the root of a host") && error.ends_with("write https://example.com"), "{error}");
        let error = names_of_site("ftp://example.com").expect_err("ftp");
        assert!(error.contains("ftp is not supported"), "{error}");
    }
}
