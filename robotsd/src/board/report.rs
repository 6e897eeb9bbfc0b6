//! What the board says, as `/board.json` has it; the page, the table of a terminal and `/board.csv` are made from it.

use serde::{Deserialize, Serialize};

use super::row::Done;

/// `GET /board.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BoardReport {
    /// When it was made.
    pub(crate) when: String,
    /// The time that is counted, and how many seconds a bar of a trend has.
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) step_seconds: u64,
    /// Whether the config says that every read of robots.txt reaches these processes.
    pub(crate) sees_all: bool,
    /// Processes that serve the sites, and how many of them are counted here.
    pub(crate) replicas: usize,
    pub(crate) counted_replicas: usize,
    /// What limits what is said here, for people.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) sites: Vec<SiteBoard>,
}

/// The crawlers of a site.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteBoard {
    pub(crate) site: String,
    /// None in the first seconds of a process, and where files are read that others wrote.
    #[serde(default)]
    pub(crate) traffic: Option<SiteTraffic>,
    /// None where there is no one live version.
    #[serde(default)]
    pub(crate) never_hit: Option<NeverHit>,
    /// Those with the most disallowed requests first.
    pub(crate) crawlers: Vec<CrawlerBoard>,
    pub(crate) lines: Vec<LineBoard>,
}

/// A crawler on a site.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CrawlerBoard {
    pub(crate) crawler: String,
    /// Empty where no registry knows it.
    pub(crate) operator: String,
    pub(crate) category: String,
    /// `verified`, `claimed` or `impostor`.
    pub(crate) identity: String,
    /// `obeys`, `has not read the newest version`, `ignores` or `no read seen here`.
    #[serde(default)]
    pub(crate) word: Option<String>,
    /// Why there is no word.
    #[serde(default)]
    pub(crate) no_word: Option<String>,
    #[serde(default)]
    pub(crate) last_read: Option<LastRead>,
    pub(crate) reads: u64,
    pub(crate) allowed: u64,
    pub(crate) disallowed: u64,
    /// The disallowed requests by what was read before them.
    pub(crate) judged: Judged,
    pub(crate) done: Done,
    #[serde(default)]
    pub(crate) first_disallowed: Option<String>,
    #[serde(default)]
    pub(crate) last_disallowed: Option<String>,
    #[serde(default)]
    pub(crate) worst_line: Option<LineBoard>,
    /// The oldest first.
    pub(crate) trend: Vec<TrendBar>,
}

/// The requests of the last minute, at this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SiteTraffic {
    /// That it covers.
    pub(crate) seconds: u64,
    pub(crate) requests_per_minute: f64,
    /// Of its requests, from 0 to 1.
    pub(crate) refused_share: f64,
    /// The 99th percentile of decisions since the process began, one in 64 of which is timed; none until one was.
    pub(crate) decision_p99_seconds: Option<f64>,
}

/// Lines of the live version that have disallowed nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NeverHit {
    pub(crate) version: String,
    /// When it went live, or the first moment that is looked at.
    pub(crate) since: String,
    /// Lines that disallow something, and those of them that never did.
    pub(crate) of: usize,
    pub(crate) count: usize,
    /// Whether hits of every line were counted one by one, all the time, and by this process alone; else some of these may have
    /// hits that are counted together with others, are missing, or are those of another replica.
    pub(crate) is_certain: bool,
    /// The first of them.
    pub(crate) lines: Vec<LineBoard>,
}

/// Disallowed requests by what was read before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// The version last read disallows them, or that read was more than 24 hours old.
    pub(crate) ignored: u64,
    /// The version last read was an older one, less than 24 hours before, that allowed them.
    pub(crate) not_newest: u64,
    pub(crate) unread: u64,
    /// It is unknown.
    pub(crate) undecided: u64,
}

/// The last read of robots.txt that was seen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LastRead {
    pub(crate) when: String,
    /// None where another server answered.
    pub(crate) version: Option<String>,
    /// Whether that is the live version; none where it is not known which is.
    #[serde(default)]
    pub(crate) is_newest: Option<bool>,
}

/// A line of robots.txt that disallowed requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineBoard {
    pub(crate) version: String,
    /// 0 stands for lines that are counted together.
    pub(crate) line: usize,
    /// The path pattern, as written.
    pub(crate) pattern: String,
    pub(crate) hits: u64,
    /// Who was disallowed by it, the most often first; empty for the line of one crawler.
    #[serde(default)]
    pub(crate) crawlers: Vec<LineCrawler>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineCrawler {
    pub(crate) crawler: String,
    pub(crate) identity: String,
    pub(crate) hits: u64,
}

/// A bar of a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrendBar {
    pub(crate) allowed: u64,
    pub(crate) disallowed: u64,
}

impl Judged {
    pub(crate) const fn total(&self) -> u64 {
        self.ignored.saturating_add(self.not_newest).saturating_add(self.unread).saturating_add(self.undecided)
    }
}
