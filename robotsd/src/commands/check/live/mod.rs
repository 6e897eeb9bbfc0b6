//! `robotsd check https://example.com`: what crawlers meet where a site is served.
//!
//! The robots.txt is fetched as crawlers fetch it, by each name and scheme of the site ([`variants`]). What is found about the
//! answers is in [`status`], [`fields`] and [`sitemaps`], with the table of everything that can be found in [`lints`]; the
//! file is then checked like any other, and [`front_page`] shows who may fetch `/`.
//!
//! Nothing else is fetched: no page, no link, and sitemaps only where that is wished.

mod fields;
mod front_page;
mod lints;
mod output;
mod record;
mod report;
mod sitemaps;
mod status;
mod text;
mod variants;

use tower_robots::check::Severity;
use tower_robots::live::MAX_FILE;
use tower_robots::rules::Reading;

use self::front_page::FrontPage;
pub(super) use self::lints::{answer_lint, answer_lints};
use self::report::{AnswerSummary, LiveReport, SameFile};
use self::variants::SiteVariants;
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::render::AnswerFinding;
use crate::retrieval::{
    AnswerKind, CrawlerAccess, DocumentError, RequestedCodings, RetrievalChain, RetrievalRequest, Retriever, codings,
};

/// Octets of a robots.txt that are decoded.
const MOST_OCTETS: usize = MAX_FILE as usize;

/// Checks what sites answer.
#[derive(Debug)]
pub(super) struct LiveCheck<'a> {
    pub(super) retriever: Retriever,
    pub(super) settings: &'a EvaluatorSettings,
    pub(super) sitemaps: FetchedSitemaps,
}

/// Whether the sitemaps that a file names are fetched too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchedSitemaps {
    None,
    Named,
}

impl LiveCheck<'_> {
    /// Checks the robots.txt of a host.
    ///
    /// # Errors
    ///
    /// If the word names none.
    fn check(&self, word: &str) -> Result<LiveReport, String> {
        let SiteVariants { named, others } = SiteVariants::of(word)?;
        let chain = self.retriever.retrieve(&RetrievalRequest::new(named));
        let kind = AnswerKind::of(&chain);
        let mut findings: Vec<_> = status::of_status(&chain).into_iter().chain(status::of_redirects(&chain)).collect();
        let document = chain.document(MOST_OCTETS);
        if let Err(DocumentError::Coding(error)) = &document {
            let message = format!("{error}: crawlers find no rule in it, or count it as a failure");
            let help = "send the body as its Content-Encoding says, and compress it only for clients that accept that";
            findings.push(AnswerFinding::new(&lints::UNDECODABLE, chain.url(), &message).help(help));
        }
        let body = document.ok();
        if let Some(body) = &body {
            findings.extend(fields::of_fields(&chain, &body.octets));
            findings.extend(self.unasked_coding(&chain));
        }
        let mut answers = vec![AnswerSummary::new(&chain, body.as_ref(), SameFile::Named)];
        for url in others {
            let other = self.retriever.retrieve(&RetrievalRequest::new(url));
            let other_body = other.document(MOST_OCTETS).ok();
            let same = SameFile::of((&other, other_body.as_ref()), (&chain, body.as_ref()));
            if !matches!(kind, AnswerKind::Unreachable(_)) {
                findings.extend(other_rules(&other, same, &chain));
            }
            answers.push(AnswerSummary::new(&other, other_body.as_ref(), same));
        }
        let evaluator = body.map(|body| Evaluator::new(body.octets, Reading::Standard, self.settings));
        let sitemaps = match (&evaluator, self.sitemaps) {
            (Some(evaluator), FetchedSitemaps::Named) => {
                let origin =
                    if chain.last().url.target().as_str() == "/robots.txt" { &chain.last().url } else { chain.url() };
                let (sitemaps, found) = sitemaps::check(&self.retriever, evaluator.robots(), origin);
                findings.extend(found);
                sitemaps
            }
            _ => Vec::new(),
        };
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
        let front_page = match (&evaluator, kind, kind.access()) {
            (Some(evaluator), ..) => FrontPage::by_rules(evaluator, self.settings),
            (None, AnswerKind::Unreachable(_), _) => FrontPage::default(),
            // Crawlers find no rule in what they cannot decode.
            (None, _, CrawlerAccess::Rules) => FrontPage::without_rules(self.settings, CrawlerAccess::Everything),
            (None, _, access) => FrontPage::without_rules(self.settings, access),
        };
        let unreached = matches!(kind, AnswerKind::Unreachable(_)).then(|| {
            let (detail, access) = (chain.detail().unwrap_or_default(), kind.access());
            let section = kind.section();
            format!(
                "{}: {detail}; crawlers that cannot reach it either {access} (RFC 9309, section {section})",
                chain.url()
            )
        });
        Ok(LiveReport { name: chain.url().to_string(), answers, findings, evaluator, sitemaps, front_page, unreached })
    }

    /// A second request, as of a client that accepts no coding; only where the first answer has one.
    fn unasked_coding(&self, chain: &RetrievalChain) -> Option<AnswerFinding> {
        if codings(chain.headers()?).is_empty() {
            return None;
        }
        let request = RetrievalRequest::new(chain.url().clone()).codings(RequestedCodings::Unmentioned);
        fields::of_unasked_coding(&self.retriever.retrieve(&request))
    }
}

/// The finding about another name of the site; none where its crawlers go by the same rules, or where it is no name.
fn other_rules(other: &RetrievalChain, same: SameFile, named: &RetrievalChain) -> Option<AnswerFinding> {
    let SameFile::Differs = same else { return None };
    let (kind, named_kind) = (AnswerKind::of(other), AnswerKind::of(named));
    let message = match kind {
        AnswerKind::Success(_) => format!("it is another file than that of {}", named.url()),
        _ => {
            let detail = match (kind, other.detail()) {
                (AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => detail,
                (_, Some(detail)) => format!("{kind}: {detail}"),
                (_, None) => kind.to_string(),
            };
            format!("{detail}: crawlers {} here, and {} at {}", kind.access(), named_kind.access(), named.url())
        }
    };
    let finding = AnswerFinding::new(&lints::OTHER_RULES, other.url(), &message);
    // Many sites have no server for one of the schemes, and no crawler loses anything by that.
    let severity = if matches!(kind, AnswerKind::Unreachable(_)) { Severity::Note } else { Severity::Warning };
    let help = match (other.url().is_https(), named.url().is_https()) {
        // No site is to lead back from TLS.
        (true, false) => format!("serve the same file, or redirect {} here", named.url()),
        _ => format!("redirect it to {}, or serve the same file", named.url()),
    };
    Some(finding.severity_is(severity).help(&help))
}
