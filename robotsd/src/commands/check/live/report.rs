//! What was found where a site is served, before it is written.

use tower_robots::source::fetch::FetchErrorKind;

use super::front_page::FrontPage;
use super::sitemaps::SitemapSummary;
use crate::evaluator::Evaluator;
use crate::render::AnswerFinding;
use crate::retrieval::{AnswerKind, DecodedBody, RetrievalChain, codings};

/// Everything about one URL of the command line.
#[derive(Debug)]
pub(super) struct LiveReport {
    /// The URL of the robots.txt.
    pub(super) name: String,
    /// That of this URL, then those of the other names of the site.
    pub(super) answers: Vec<AnswerSummary>,
    /// The worst first.
    pub(super) findings: Vec<AnswerFinding>,
    /// The file, if there is one.
    pub(super) evaluator: Option<Evaluator>,
    pub(super) sitemaps: Vec<SitemapSummary>,
    pub(super) front_page: FrontPage,
    /// Why the server could not be reached from here, which says little about what others meet.
    pub(super) unreached: Option<String>,
}

/// One answer, as it is shown.
#[derive(Debug)]
pub(super) struct AnswerSummary {
    pub(super) url: String,
    /// Each redirect that was followed: its status, and where it leads.
    pub(super) redirects: Vec<(u16, String)>,
    pub(super) kind: AnswerKind,
    pub(super) detail: Option<String>,
    /// The address that sent the last answer.
    pub(super) address: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) cache_control: Option<String>,
    pub(super) codings: Vec<String>,
    /// Octets as sent, and as decoded.
    pub(super) size: Option<(usize, usize)>,
    /// Whether there is more than was read.
    pub(super) is_cut: bool,
    pub(super) same: SameFile,
}

/// What another name of a site has to do with the one that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SameFile {
    /// It is that one.
    Named,
    /// Crawlers go by the same rules there, or by the same lack of them.
    Same,
    Differs,
    /// The name has no address: there is no such site.
    NoSite,
}

impl AnswerSummary {
    pub(super) fn new(chain: &RetrievalChain, body: Option<&DecodedBody>, same: SameFile) -> Self {
        let field = |name: &str| {
            let value = chain.headers()?.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).chars().take(256).collect())
        };
        let hops: Vec<_> = chain.hops().collect();
        let redirects = hops.windows(2).filter_map(|pair| {
            let answer = pair[0].answer.as_ref().ok()?;
            Some((answer.status().as_u16(), pair[1].url.to_string()))
        });
        let sent = chain.answer().map(|answer| answer.body().len());
        Self {
            url: chain.url().to_string(),
            redirects: redirects.collect(),
            kind: AnswerKind::of(chain),
            detail: chain.detail(),
            address: chain.last().address.map(|address| address.to_string()),
            content_type: field("content-type"),
            cache_control: field("cache-control"),
            codings: chain.headers().map_or_else(Vec::new, codings),
            size: sent.zip(body.map(|body| body.octets.len())),
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
        let octets = |body: Option<&DecodedBody>| body.map(|body| body.octets.clone());
        let has_same_end = other.last().url == named.last().url;
        let is_same = kind.access() == named_kind.access() && octets(other_body) == octets(named_body);
        if has_same_end || is_same { Self::Same } else { Self::Differs }
    }
}
