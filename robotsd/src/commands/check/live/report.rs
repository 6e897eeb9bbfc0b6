//! The results of a live check, for all output formats.

use serde::Serialize;
use tower_robots::source::fetch::FetchErrorKind;

use super::sitemaps::SitemapSummary;
use crate::commands::check::front_page::FrontPage;
use crate::evaluator::Evaluator;
use crate::fetch::{AnswerKind, AnswerReading, DecodedBody, RetrievalChain, codings};
use crate::render::FoundProblem;

/// The results for one URL on the command line. In JSON output, this object follows the findings.
#[derive(Debug, Serialize)]
pub(super) struct LiveReport {
    #[serde(rename = "file")]
    pub(super) name: String,
    /// Responses: first the response for this URL, then those for the other URLs of the site.
    pub(super) answers: Vec<AnswerSummary>,
    /// Findings, the worst first.
    #[serde(skip)]
    pub(super) findings: Vec<FoundProblem>,
    /// `None` if the response has no body that can be parsed.
    #[serde(skip)]
    pub(super) evaluator: Option<Evaluator>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sitemaps: Vec<SitemapSummary>,
    pub(super) front_page: FrontPage,
    /// Reason why this machine could not reach the server. Crawlers may still be able to reach the
    /// server.
    #[serde(skip)]
    pub(super) unreached: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct AnswerSummary {
    pub(super) url: String,
    pub(super) redirects: Vec<RedirectSummary>,
    #[serde(skip)]
    pub(super) kind: AnswerKind,
    answer: String,
    #[serde(flatten)]
    reading: AnswerReading,
    pub(super) detail: Option<String>,
    /// Address of the server that sent the last response.
    pub(super) address: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) cache_control: Option<String>,
    pub(super) codings: Vec<String>,
    /// Size of the body as sent, in bytes. `octets` is the size of the decoded body.
    pub(super) octets_sent: Option<usize>,
    pub(super) octets: Option<usize>,
    /// Whether the body was too large to be read completely.
    #[serde(skip)]
    pub(super) is_cut: bool,
    pub(super) same: SameFile,
}

#[derive(Debug, Serialize)]
pub(super) struct RedirectSummary {
    pub(super) status: u16,
    pub(super) to: String,
}

/// Result of comparing the robots.txt at a URL of the site with the robots.txt at the URL in the
/// argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SameFile {
    /// The compared URL is the URL in the argument.
    Named,
    /// Both URLs lead to the same rules, or both lead to no rules.
    Same,
    Differs,
    /// The host has no address, so there is no site at this URL.
    NoSite,
}

impl AnswerSummary {
    pub(super) fn new(chain: &RetrievalChain, body: Option<&DecodedBody>, same: SameFile) -> Self {
        let field = |name: &str| {
            let value = chain.headers()?.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).chars().take(256).collect())
        };
        let kind = AnswerKind::of(chain);
        let hops: Vec<_> = chain.hops().collect();
        let redirects = hops.windows(2).filter_map(|pair| {
            let answer = pair[0].answer.as_ref().ok()?;
            Some(RedirectSummary { status: answer.status.as_u16(), to: pair[1].url.to_string() })
        });
        let sent = chain.answer().map(|answer| answer.body.len());
        let size = sent.zip(body.map(|body| body.bytes.len()));
        Self {
            url: chain.url().to_string(),
            redirects: redirects.collect(),
            kind,
            answer: kind.to_string(),
            reading: kind.reading(),
            detail: chain.detail(),
            address: chain.last.address().map(|address| address.to_string()),
            content_type: field("content-type"),
            cache_control: field("cache-control"),
            codings: chain.headers().map_or_else(Vec::new, codings),
            octets_sent: size.map(|(sent, _)| sent),
            octets: size.map(|(_, decoded)| decoded),
            is_cut: body.is_some_and(|body| body.is_cut),
            same,
        }
    }
}

impl SameFile {
    pub(super) fn of(
        (other, other_body): (&RetrievalChain, Option<&DecodedBody>),
        (named, named_body): (&RetrievalChain, Option<&DecodedBody>),
    ) -> Self {
        let (kind, named_kind) = (AnswerKind::of(other), AnswerKind::of(named));
        if kind == AnswerKind::Unreachable(FetchErrorKind::Name) {
            return Self::NoSite;
        }
        let bytes = |body: Option<&DecodedBody>| body.map(|body| body.bytes.clone());
        let has_same_end = other.last.url == named.last.url;
        let is_same = kind.access() == named_kind.access() && bytes(other_body) == bytes(named_body);
        if has_same_end || is_same { Self::Same } else { Self::Differs }
    }
}
