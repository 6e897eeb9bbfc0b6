//! Checks the sitemaps that a robots.txt names: whether they are on this site, can be fetched, are
//! valid sitemaps, and list URLs of this site.
//!
//! The host and scheme of a sitemap are known without a request, so they are always checked.
//! Sitemaps that are listed in a sitemap index are not fetched.

use serde::Serialize;
use tower_robots::internals::Origin;
use tower_robots::rules::RobotsTxt;
use tower_robots::source::fetch::FetchUrl;

use super::lints;
use crate::fetch::{RetrievalRequest, Retriever, site_of};
use crate::html::grouped;
use crate::pages::{Listed, MAX_BYTES, SitemapFault, read_sitemap};
use crate::render::{AnswerLint, FoundProblem};

/// Maximum number of sitemaps that are fetched for one robots.txt.
const MAX_SITEMAPS: usize = 50;

/// Maximum number of URLs in one sitemap, according to the sitemaps protocol.
const MAX_URLS: u64 = 50_000;

#[derive(Debug, Serialize)]
pub(super) struct SitemapSummary {
    pub(super) url: String,
    /// Status of the response, or the reason why there is no response.
    pub(super) answer: String,
    /// `None` if the document is not a sitemap.
    pub(super) urls: Option<u64>,
    pub(super) is_index: bool,
}

/// Fetches the sitemaps that a robots.txt lists. Reports invalid URLs, such as relative URLs, as
/// findings.
pub(super) fn check(
    retriever: &Retriever,
    robots: &RobotsTxt,
    site: &FetchUrl,
) -> (Vec<SitemapSummary>, Vec<FoundProblem>) {
    let (mut sitemaps, mut findings) = (Vec::new(), Vec::new());
    for sitemap in robots.sitemaps() {
        if let Err(error) = String::from_utf8_lossy(sitemap.value).parse::<FetchUrl>() {
            let message = format!("line {line} names an invalid sitemap URL: {error}", line = sitemap.line);
            findings.push(FoundProblem::answer(&lints::SITEMAP_FAILED, site, &message));
        }
    }
    for (at, url) in sitemap_urls(robots).into_iter().enumerate() {
        if at == MAX_SITEMAPS {
            let message =
                format!("the file names more than {MAX_SITEMAPS} sitemaps: only the first {MAX_SITEMAPS} were fetched");
            findings.push(FoundProblem::answer(&lints::SITEMAP_SIZE, site, &message));
            break;
        }
        if let Some(whole) = retriever.is_over() {
            let whole = humantime::format_duration(whole);
            let message = format!(
                "the time limit of {whole} was reached, so this sitemap and the following ones were not fetched"
            );
            let finding = FoundProblem::answer(&lints::SITEMAP_SIZE, &url, &message);
            findings.push(finding.help("serve the sitemaps faster, or allow more time with --timeout"));
            break;
        }
        let (summary, found) = check_sitemap(retriever, url, site);
        sitemaps.push(summary);
        findings.extend(found);
    }
    (sitemaps, findings)
}

/// Returns the findings about sitemaps that are on another host, or whose URL is http although the
/// site uses https.
pub(super) fn location_findings(robots: &RobotsTxt, site: &FetchUrl) -> Vec<FoundProblem> {
    sitemap_urls(robots).iter().take(MAX_SITEMAPS).filter_map(|url| location_finding(url, site)).collect()
}

/// Returns the URLs of sitemaps without duplicates, at most one more than [`MAX_SITEMAPS`]. The
/// caller uses the additional URL to detect that the limit is exceeded.
fn sitemap_urls(robots: &RobotsTxt) -> Vec<FetchUrl> {
    let mut urls: Vec<FetchUrl> = Vec::new();
    for url in robots.sitemaps().filter_map(|sitemap| String::from_utf8_lossy(sitemap.value).parse().ok()) {
        if urls.len() <= MAX_SITEMAPS && !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

fn location_finding(url: &FetchUrl, site: &FetchUrl) -> Option<FoundProblem> {
    let message = if url.host() != site.host() {
        format!("the sitemap is on another host than the site ({host})", host = site.host())
    } else if site.is_https() && !url.is_https() {
        "the URL of the sitemap is http, but the site is served with https".to_owned()
    } else {
        return None;
    };
    Some(FoundProblem::answer(&lints::SITEMAP_ELSEWHERE, url, &message))
}

fn check_sitemap(retriever: &Retriever, url: FetchUrl, site: &FetchUrl) -> (SitemapSummary, Vec<FoundProblem>) {
    let request = RetrievalRequest { most: MAX_BYTES as u64, ..RetrievalRequest::new(url.clone()) };
    let chain = retriever.retrieve(&request);
    let mut summary = SitemapSummary { url: url.to_string(), answer: String::new(), urls: None, is_index: false };
    let finding = |lint: &'static AnswerLint, message: &str| FoundProblem::answer(lint, &url, message);
    let body = match chain.document(MAX_BYTES) {
        Ok(body) => body,
        Err(error) => {
            summary.answer = error.to_string();
            let message = format!("{error}: search engines cannot read the sitemap");
            let found = finding(&lints::SITEMAP_FAILED, &message)
                .help("serve the sitemap at this URL, or remove its line from robots.txt");
            return (summary, vec![found]);
        }
    };
    summary.answer = crate::fetch::AnswerKind::of(&chain).to_string();
    if body.bytes.trim_ascii().is_empty() {
        return (
            summary,
            vec![finding(&lints::SITEMAP_KIND, "the sitemap is empty").help("serve a sitemap at this URL")],
        );
    }
    let (mut urls, mut foreign, mut first_foreign) = (0, 0, None::<String>);
    let origin = Origin::of(&site.to_string());
    let read = read_sitemap(&body.bytes[..], |listed, url| {
        urls += 1;
        summary.is_index |= listed == Listed::Sitemap;
        let url = String::from_utf8_lossy(url);
        if origin.as_ref().is_some_and(|site| !site.covers(&url)) {
            foreign += 1;
            first_foreign.get_or_insert_with(|| url.chars().take(200).collect());
        }
    });
    let mut findings = Vec::new();
    let is_cut = body.is_cut || matches!(read, Err(SitemapFault::TooLarge));
    if let (Err(fault), false) = (&read, is_cut) {
        findings.push(finding(&lints::SITEMAP_KIND, &fault.to_string()).help("serve a sitemap at this URL"));
        if urls == 0 {
            return (summary, findings);
        }
    }
    if let Some(first) = &first_foreign {
        let (count, all) = (grouped(foreign), grouped(urls));
        let message =
            format!("{count} of {all} URLs belong to a site other than {own}, such as {first}", own = site_of(site));
        findings
            .push(finding(&lints::SITEMAP_SCOPE, &message).help("write each URL with the scheme and host of the site"));
    }
    if is_cut || urls > MAX_URLS {
        let size = if is_cut { "more than 52,428,800 bytes".to_owned() } else { grouped(urls) + " URLs" };
        let message = format!("the sitemap has {size}: the sitemap protocol allows 50,000 URLs and 52,428,800 bytes");
        findings.push(
            finding(&lints::SITEMAP_SIZE, &message).help("split the sitemap, and list the parts in a sitemap index"),
        );
    }
    summary.urls = Some(urls);
    (summary, findings)
}
