//! Measures how many important pages search engines lose through a change. Important pages are
//! pages in sitemaps and lists, and pages that search engines requested according to logs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tower_robots::check::{Page, PageLoss};

use crate::commands::arguments::site::SelectedSite;
use crate::commands::replay::{JsonKey, JsonKeys, LogSelection, ReplayLogFormat, RequestedTargets, SearchRequests};
use crate::evaluator::Evaluator;
use crate::exit::complain;
use crate::html::{counted, grouped};
use crate::input;
use crate::pages::{OwnHosts, SitemapSource, SitemapWalk, read_urls};
use crate::sites::open_sitemap;

/// Maximum number of lost pages that are shown per list and group of crawlers.
const MAX_SHOWN: usize = 10;

/// Phrase for the pages of all sitemaps. In the output, it follows the word "pages".
pub(super) const SITEMAP_PAGES: &str = "of the sitemaps";

/// Phrase for the pages that any search engine requested according to the logs. In the output, it
/// follows the word "pages".
const REQUESTED_PAGES: &str = "that search engines requested in the log";

#[derive(Args, Debug)]
#[command(next_help_heading = "Measuring the effect on important pages")]
pub(super) struct PageListArgs {
    /// Show how many pages of this sitemap, and of the sitemaps that it lists, search engines lose;
    /// may be repeated
    ///
    /// The sitemap may be XML, a feed, a list of URLs or an index of sitemaps, and may be
    /// compressed with gzip. With a config, pages on hosts that do not belong to the site are left
    /// out; without a config, all pages count. If there are more than 50,000 pages, an even sample
    /// is used.
    #[arg(long, value_name = "FILE|URL")]
    sitemap: Vec<SitemapSource>,

    /// Like --sitemap, for the pages in this file: one path or URL per line, with comments that
    /// begin with #; may be repeated
    #[arg(long, value_name = "FILE")]
    urls: Vec<PathBuf>,

    /// Show the share of search engines' requests in this access log that the change disallows; may
    /// be repeated
    ///
    /// The log may have any format that replay reads. Every client that claims to be a search
    /// engine counts as one.
    #[arg(long, value_name = "LOG")]
    log: Vec<PathBuf>,

    /// The host of requests whose log line does not contain a host; with --config, only requests
    /// for hosts of the site count
    #[arg(long, value_name = "HOST", requires = "log")]
    host: Option<String>,

    /// The keys of JSON lines in the logs, if they differ from those of common servers, such as
    /// ua=userAgent; see replay
    #[arg(long, value_name = "VALUE=KEY", value_delimiter = ',', requires = "log")]
    json_keys: Vec<JsonKey>,

    /// Fail if a search engine loses more than this share, such as 1%, of its requests in --log or
    /// of the pages in any other list
    ///
    /// Only pages that the search engine was allowed to fetch before are counted. A list without
    /// pages also fails. Search engines are those with an index that people use; for other
    /// crawlers, use --forbid.
    #[arg(long, value_name = "SHARE", value_parser = parse_percentage)]
    max_loss: Option<f64>,
}

fn parse_percentage(text: &str) -> Result<f64, String> {
    let share = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    share
        .filter(|share| (0.0..=100.0).contains(share))
        .ok_or_else(|| "write a percentage from 0% to 100%, such as 1%".to_owned())
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ListLosses {
    lists: Vec<ListRead>,
    pub(super) losses: Vec<ListLoss>,
}

#[derive(Debug, Serialize)]
struct ListRead {
    of: String,
    pages: usize,
}

/// The pages of one list that the change disallows for certain search engines. All these search
/// engines obey the same groups of the file.
#[derive(Debug, Serialize)]
pub(super) struct ListLoss {
    /// Description of the list of pages. In the output, it follows the word "pages".
    pub(super) of: String,
    pub(super) crawlers: Vec<String>,
    /// Pages that the old file allows, but the new file disallows. `allowed` counts all pages that
    /// the old file allows.
    pub(super) lost: u64,
    pub(super) allowed: u64,
    /// Requests for lost and for allowed pages; `None` if the list is not a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<LostRequests>,
    /// Rules that disallow the lost pages, the rule with the most pages first.
    pub(super) rules: Vec<RuleLoss>,
    pub(super) examples: Vec<LostExample>,
    /// Value of `--max-loss`, as a percentage, if the loss exceeds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permitted: Option<f64>,
}

/// Number of requests for lost pages, and number of requests for all pages that the old file
/// allows.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LostRequests {
    pub(super) lost: u64,
    pub(super) all: u64,
}

/// A rule of the new file, with the number of pages that it disallows.
#[derive(Debug, Serialize)]
pub(super) struct RuleLoss {
    pub(super) line: usize,
    pub(super) pattern: String,
    pub(super) lost: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct LostExample {
    pub(super) page: String,
    pub(super) line: Option<usize>,
}

impl PageListArgs {
    /// Returns the files to read; `-` is standard input.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.urls.iter().chain(&self.log)
    }

    pub(super) fn losses(&self, site: &SelectedSite, old: &Evaluator, new: &Evaluator) -> io::Result<ListLosses> {
        let hosts = site.hosts().map_or(&[][..], |(_, hosts)| hosts);
        let mut found = ListLosses::default();
        if !self.sitemap.is_empty() {
            let pages = self.pages_of_sitemaps(site, &OwnHosts::of(hosts))?;
            found.add(SITEMAP_PAGES.to_owned(), &pages, old, new);
        }
        for path in &self.urls {
            let pages = read_urls(path, input::read, hosts).map_err(io::Error::other)?;
            found.add(format!("of {}", path.display()), &pages, old, new);
        }
        if !self.log.is_empty() {
            let selection = LogSelection::of(
                site,
                ReplayLogFormat::Auto,
                JsonKeys::with_operator_keys(&self.json_keys),
                self.host.as_deref(),
            )?;
            let (requests, errors) = SearchRequests::read(&self.log, &selection, old);
            if let Some(error) = errors.into_iter().next() {
                return Err(error);
            }
            selection.complain_of_missing_keys();
            if requests.requests == 0 {
                let nothing = || "no line of the logs is a request: see `robotsd replay` for details".to_owned();
                return Err(io::Error::other(
                    selection.explain_empty_selection(requests.hosts).unwrap_or_else(nothing),
                ));
            }
            selection.notes(requests.hosts, requests.requests).iter().for_each(|note| complain(note));
            if requests.unread > 0 {
                let lines = counted(requests.unread, "line");
                complain(&format_args!("{lines} of the logs could not be read: `robotsd replay` shows examples"));
            }
            found.add_requests(&requests, old, new);
        }
        if let Some(most) = self.max_loss {
            // A list without pages is an error, because it cannot lose any page, so `--max-loss`
            // would never fail.
            let fault = match found.lists.iter().find(|list| list.pages == 0) {
                None if found.lists.is_empty() => {
                    Some("there are no pages to measure: specify pages with --sitemap, --urls or --log".to_owned())
                }
                Some(list) if list.of == REQUESTED_PAGES => Some(
                    "no request in the logs is from a search engine, so there is nothing to measure: use logs of more \
                     days, or pages with --sitemap or --urls"
                        .to_owned(),
                ),
                empty => empty.map(|list| {
                    format!("the list has no pages ({kind}), so there is nothing to measure", kind = list.of)
                }),
            };
            if let Some(fault) = fault {
                return Err(io::Error::other(format!("--max-loss: {fault}")));
            }
            let is_over = |loss: &&mut ListLoss| loss.share() * 100.0 > most;
            found.losses.iter_mut().filter(is_over).for_each(|loss| loss.permitted = Some(most));
        }
        // The largest loss comes first.
        found.losses.sort_by(|one, other| other.share().total_cmp(&one.share()));
        Ok(found)
    }

    fn pages_of_sitemaps(&self, site: &SelectedSite, hosts: &OwnHosts) -> io::Result<Vec<Page>> {
        let mut retriever = None;
        let mut walk = SitemapWalk::within(hosts, usize::MAX);
        walk.walk(self.sitemap.iter().cloned(), |source| {
            open_sitemap(source, &mut retriever, || site.retriever()).map(Some)
        });
        let (problem, pages) = (walk.problem(), walk.into_pages());
        match problem {
            // If no sitemap has pages, the problem is an error, because the output would otherwise
            // report that no pages are lost.
            Some(problem) if pages.is_empty() => return Err(io::Error::other(problem)),
            Some(problem) => complain(&format_args!("some sitemaps could not be used: {problem}")),
            None => {}
        }
        Ok(pages)
    }
}

impl ListLosses {
    fn add(&mut self, of: String, pages: &[Page], old: &Evaluator, new: &Evaluator) {
        for loss in old.page_losses(new, pages) {
            let crawlers = loss.crawlers.iter().filter_map(|subject| subject.name.clone()).collect();
            self.losses.push(ListLoss::new(of.clone(), crawlers, &loss, None));
        }
        self.lists.push(ListRead { of, pages: pages.len() });
    }

    /// Adds the loss of each search engine, measured by its own requests in the log.
    fn add_requests(&mut self, requests: &SearchRequests, old: &Evaluator, new: &Evaluator) {
        let of = "that it requested in the log";
        let mut pages_read = 0;
        for (crawler, requested) in &requests.crawlers {
            if requested.left_out > 0 {
                complain(&format_args!(
                    "{requests} of {crawler} in the logs are left out: only {pages} are measured for each crawler, and \
                     only paths of at most {length} bytes",
                    requests = counted(requested.left_out, "request"),
                    pages = counted(RequestedTargets::MAX as u64, "page"),
                    length = grouped(RequestedTargets::MAX_LENGTH as u64)
                ));
            }
            let mut pages: Vec<_> = requested.targets.keys().map(Page::new).collect();
            pages.sort_unstable();
            pages_read += pages.len();
            let losses = old.page_losses(new, &pages);
            let is_about_crawler =
                |loss: &&PageLoss| loss.crawlers.iter().any(|subject| subject.name.as_deref() == Some(crawler));
            if let Some(loss) = losses.iter().find(is_about_crawler) {
                let count = |page: &Page| requested.targets.get(page.target()).copied().unwrap_or(0);
                let lost = loss.lost.iter().map(|lost| count(&lost.page)).sum();
                let shares = LostRequests { lost, all: loss.allowed.iter().map(count).sum() };
                self.losses.push(ListLoss::new(of.to_owned(), vec![crawler.clone()], loss, Some(shares)));
            }
        }
        self.lists.push(ListRead { of: REQUESTED_PAGES.to_owned(), pages: pages_read });
    }

    pub(super) fn exceeds_limit(&self) -> bool {
        self.losses.iter().any(|loss| loss.permitted.is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the description (see [`ListLoss::of`]) and the number of pages of each list without
    /// losses.
    pub(super) fn without_loss(&self) -> impl Iterator<Item = (&str, u64)> {
        let lists = self.lists.iter().filter(|list| !self.losses.iter().any(|loss| loss.is_of(&list.of)));
        lists.map(|list| (&*list.of, list.pages as u64))
    }
}

impl ListLoss {
    fn new(of: String, crawlers: Vec<String>, loss: &PageLoss, requests: Option<LostRequests>) -> Self {
        let mut rules: BTreeMap<usize, RuleLoss> = BTreeMap::new();
        for rule in loss.lost.iter().filter_map(|lost| lost.rule.as_ref()) {
            let new_loss = || RuleLoss { line: rule.line, pattern: rule.pattern.to_owned(), lost: 0 };
            rules.entry(rule.line).or_insert_with(new_loss).lost += 1;
        }
        let mut rules: Vec<_> = rules.into_values().collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.lost));
        let examples = loss.examples(MAX_SHOWN).map(|lost| LostExample {
            page: String::from_utf8_lossy(lost.page.target()).into_owned(),
            line: lost.rule.as_ref().map(|decider| decider.line),
        });
        let (lost, allowed) = (loss.lost.len() as u64, loss.allowed.len() as u64);
        Self { of, crawlers, lost, allowed, requests, rules, examples: examples.collect(), permitted: None }
    }

    /// Returns the share of requests that are lost or, if requests were not counted, the share of
    /// pages that are lost.
    fn share(&self) -> f64 {
        let (lost, of) = self.requests.map_or((self.lost, self.allowed), |requests| (requests.lost, requests.all));
        lost as f64 / of.max(1) as f64
    }

    fn is_of(&self, list: &str) -> bool {
        self.of == list || self.requests.is_some() && list == REQUESTED_PAGES
    }
}
