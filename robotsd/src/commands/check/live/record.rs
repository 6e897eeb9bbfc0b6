//! What a site answers, as one JSON object on a line, behind the findings.

use std::io::{self, Write};

use serde::Serialize;

use super::front_page::FrontPageRow;
use super::report::{AnswerSummary, LiveReport, SameFile};
use super::sitemaps::SitemapSummary;
use crate::retrieval::CrawlerAccess;

#[derive(Serialize)]
struct LiveRecord<'a> {
    file: &'a str,
    answers: Vec<AnswerRecord<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sitemaps: &'a [SitemapSummary],
    front_page: &'a [FrontPageRow],
}

#[derive(Serialize)]
struct AnswerRecord<'a> {
    url: &'a str,
    redirects: Vec<RedirectRecord<'a>>,
    answer: String,
    /// What RFC 9309 has crawlers do: "rules", "allow-all" or "disallow-all".
    crawlers: &'static str,
    section: &'static str,
    other_readings: Option<&'static str>,
    detail: Option<&'a str>,
    address: Option<&'a str>,
    content_type: Option<&'a str>,
    cache_control: Option<&'a str>,
    codings: &'a [String],
    octets_sent: Option<usize>,
    octets: Option<usize>,
    /// Compared with the first: "named", "same", "differs" or "no-site".
    same: &'static str,
}

#[derive(Serialize)]
struct RedirectRecord<'a> {
    status: u16,
    to: &'a str,
}

pub(super) fn write(out: &mut impl Write, report: &LiveReport) -> io::Result<()> {
    let record = LiveRecord {
        file: &report.name,
        answers: report.answers.iter().map(AnswerRecord::of).collect(),
        sitemaps: &report.sitemaps,
        front_page: &report.front_page.rows,
    };
    serde_json::to_writer(&mut *out, &record)?;
    out.write_all(b"\n")
}

impl<'a> AnswerRecord<'a> {
    fn of(answer: &'a AnswerSummary) -> Self {
        let redirects = answer.redirects.iter().map(|(status, to)| RedirectRecord { status: *status, to });
        Self {
            url: &answer.url,
            redirects: redirects.collect(),
            answer: answer.kind.to_string(),
            crawlers: match answer.kind.access() {
                CrawlerAccess::Rules => "rules",
                CrawlerAccess::Everything => "allow-all",
                CrawlerAccess::Nothing => "disallow-all",
            },
            section: answer.kind.section(),
            other_readings: answer.kind.other_readings(),
            detail: answer.detail.as_deref(),
            address: answer.address.as_deref(),
            content_type: answer.content_type.as_deref(),
            cache_control: answer.cache_control.as_deref(),
            codings: &answer.codings,
            octets_sent: answer.size.map(|(sent, _)| sent),
            octets: answer.size.map(|(_, decoded)| decoded),
            same: match answer.same {
                SameFile::Named => "named",
                SameFile::Same => "same",
                SameFile::Differs => "differs",
                SameFile::NoSite => "no-site",
            },
        }
    }
}
