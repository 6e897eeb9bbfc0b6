//! The sitemaps that a robots.txt names: whether they can be fetched, are sitemaps, and are about this site.
//!
//! Sitemaps that an index lists are not fetched.

use memchr::memmem::Finder;
use serde::Serialize;
use tower_robots::rules::RobotsTxt;
use tower_robots::source::Origin;
use tower_robots::source::fetch::FetchUrl;

use super::lints;
use crate::html::figures::grouped;
use crate::render::{AnswerFinding, AnswerLint};
use crate::retrieval::{DecodedBody, RetrievalRequest, Retriever, decode};

/// Sitemaps of one file that are fetched.
const MOST_SITEMAPS: usize = 50;

/// Octets of one sitemap, as the protocol has it; that many are read as sent, and as many decoded.
const MOST_OCTETS: usize = 50 << 20;

/// URLs of one sitemap, as the protocol has it.
const MOST_URLS: usize = 50_000;

/// Octets at the beginning in which the kind of a document shows.
const HEAD: usize = 4 << 10;

/// One sitemap, as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct SitemapSummary {
    pub(super) url: String,
    /// Its status, or why there is none.
    pub(super) answer: String,
    /// How many URLs it lists, where it is a sitemap.
    pub(super) urls: Option<usize>,
    pub(super) is_index: bool,
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SitemapKind {
    Urls,
    Index,
    Feed,
    Lines,
    Other,
}

/// Fetches the sitemaps that a file names; relative addresses are a finding about the file.
pub(super) fn check(
    retriever: &Retriever,
    robots: &RobotsTxt,
    site: &FetchUrl,
) -> (Vec<SitemapSummary>, Vec<AnswerFinding>) {
    let (mut sitemaps, mut findings) = (Vec::new(), Vec::new());
    let mut seen: Vec<FetchUrl> = Vec::new();
    for sitemap in robots.sitemaps() {
        let address = String::from_utf8_lossy(sitemap.value());
        let url: FetchUrl = match address.parse() {
            Ok(url) => url,
            Err(error) => {
                let message = format!("line {} names a sitemap that no request can name: {error}", sitemap.line());
                findings.push(AnswerFinding::new(&lints::SITEMAP_FAILED, site, &message));
                continue;
            }
        };
        if seen.contains(&url) {
            continue;
        }
        if seen.len() == MOST_SITEMAPS {
            let message = format!("the file names more than {MOST_SITEMAPS} sitemaps: the others were not fetched");
            findings.push(AnswerFinding::new(&lints::SITEMAP_SIZE, site, &message));
            break;
        }
        seen.push(url.clone());
        findings.extend(elsewhere(&url, site));
        let (summary, found) = one(retriever, url, site);
        sitemaps.push(summary);
        findings.extend(found);
    }
    (sitemaps, findings)
}

/// The finding about a sitemap that another host serves, or this one without TLS.
fn elsewhere(url: &FetchUrl, site: &FetchUrl) -> Option<AnswerFinding> {
    let message = if url.host() != site.host() {
        format!("the sitemap is on another host than {}", site.host())
    } else if site.is_https() && !url.is_https() {
        "the sitemap is named with http, and the site is served with https".to_owned()
    } else {
        return None;
    };
    Some(AnswerFinding::new(&lints::SITEMAP_ELSEWHERE, url, &message))
}

fn one(retriever: &Retriever, url: FetchUrl, site: &FetchUrl) -> (SitemapSummary, Vec<AnswerFinding>) {
    let request = RetrievalRequest::new(url.clone()).at_most(MOST_OCTETS as u64);
    let chain = retriever.retrieve(&request);
    let mut summary = SitemapSummary { url: url.to_string(), answer: String::new(), urls: None, is_index: false };
    let finding = |lint: &'static AnswerLint, message: &str| AnswerFinding::new(lint, &url, message);
    let body = match chain.document(MOST_OCTETS) {
        Ok(body) => unpacked(body),
        Err(error) => {
            summary.answer = error.to_string();
            let message = format!("{error}: search engines cannot read the sitemap");
            let found = finding(&lints::SITEMAP_FAILED, &message).help("serve it, or take its line out of robots.txt");
            return (summary, vec![found]);
        }
    };
    summary.answer = crate::retrieval::AnswerKind::of(&chain).to_string();
    let kind = SitemapKind::of(&body.octets);
    if kind == SitemapKind::Other {
        let message = "it is no sitemap: neither <urlset> nor <sitemapindex> nor a feed nor a list of URLs";
        return (summary, vec![finding(&lints::SITEMAP_KIND, message).help("serve the sitemap here")]);
    }
    let mut findings = Vec::new();
    let urls = listed(kind, &body.octets);
    let origin = Origin::of(&site.to_string());
    let is_foreign = |url: &&&str| origin.as_ref().is_some_and(|origin| !origin.covers(url));
    let foreign: Vec<_> = urls.iter().filter(is_foreign).collect();
    if let Some(first) = foreign.first() {
        let (count, all) = (grouped(foreign.len() as u64), grouped(urls.len() as u64));
        let shown: String = first.chars().take(200).collect();
        let message = format!("{count} of {all} URLs are of another site than {}, such as {shown}", site_name(site));
        findings.push(finding(&lints::SITEMAP_SCOPE, &message).help("write them with the scheme and host of the site"));
    }
    if body.is_cut || urls.len() > MOST_URLS {
        let size =
            if body.is_cut { "more than 52,428,800 octets".to_owned() } else { grouped(urls.len() as u64) + " URLs" };
        let message = format!("it has {size}: the protocol allows 50,000 URLs and 52,428,800 octets");
        findings.push(finding(&lints::SITEMAP_SIZE, &message).help("split it, and name the parts in a sitemap index"));
    }
    summary.urls = (kind != SitemapKind::Feed).then_some(urls.len());
    summary.is_index = kind == SitemapKind::Index;
    (summary, findings)
}

/// A file that is packed itself, as `sitemap.xml.gz` is, without that.
fn unpacked(body: DecodedBody) -> DecodedBody {
    if !body.octets.starts_with(&[0x1F, 0x8B]) {
        return body;
    }
    match decode(&["gzip".to_owned()], &body.octets, body.is_cut, MOST_OCTETS) {
        Ok(unpacked) => unpacked,
        Err(_) => body,
    }
}

/// As in `https://example.com`.
fn site_name(site: &FetchUrl) -> String {
    format!("{}://{}", if site.is_https() { "https" } else { "http" }, site.authority())
}

impl SitemapKind {
    fn of(body: &[u8]) -> Self {
        let head = &body[..body.len().min(HEAD)];
        let has = |name: &str| Finder::new(name).find(head).is_some();
        let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
        // An index of sitemaps may hold the word <url> nowhere; a page may hold anything, and begins otherwise.
        match () {
            () if has("<sitemapindex") => Self::Index,
            () if has("<urlset") => Self::Urls,
            () if has("<rss") || has("<feed") => Self::Feed,
            () if text.starts_with(b"http://") || text.starts_with(b"https://") => Self::Lines,
            () => Self::Other,
        }
    }
}

/// The URLs that a sitemap lists. Those of a feed are not told from its other links.
fn listed(kind: SitemapKind, body: &[u8]) -> Vec<&str> {
    let text = |octets| std::str::from_utf8(octets).ok().map(str::trim);
    match kind {
        SitemapKind::Lines => {
            body.split(|octet| *octet == b'\n').filter_map(text).filter(|line| !line.is_empty()).collect()
        }
        SitemapKind::Urls | SitemapKind::Index => {
            let finder = Finder::new("<loc>");
            let values = finder.find_iter(body).map(|at| &body[at + "<loc>".len()..]);
            values.filter_map(|rest| text(&rest[..memchr::memchr(b'<', rest).unwrap_or(rest.len())])).collect()
        }
        SitemapKind::Feed | SitemapKind::Other => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart_by_how_they_begin() {
        for (body, want, urls) in [
            (
                "<?xml version=\"1.0\"?>\n<urlset><url><loc> https://a.example/ </loc></url></urlset>",
                SitemapKind::Urls,
                1,
            ),
            (
                "<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>",
                SitemapKind::Index,
                1,
            ),
            ("\u{feff}https://a.example/\n\nhttps://a.example/2\n", SitemapKind::Lines, 2),
            ("<rss version=\"2.0\">", SitemapKind::Feed, 0),
            ("<!DOCTYPE html><html>", SitemapKind::Other, 0),
            ("", SitemapKind::Other, 0),
        ] {
            let kind = SitemapKind::of(body.as_bytes());
            assert_eq!((kind, listed(kind, body.as_bytes()).len()), (want, urls), "{body}");
        }
        assert_eq!(listed(SitemapKind::Urls, b"<loc>https://a.example/x"), ["https://a.example/x"], "a cut end");
    }
}
