//! `--history`: judges each request by the version of robots.txt that the crawler had last fetched
//! before it sent the request, as the server's board does.
//!
//! The versions come from git ([`git`]) or from dated files ([`dated`]), and the fetches of
//! robots.txt come from the log. The code of the server's board judges the crawlers ([`LogBoard`]),
//! so the same traffic leads to the same judgements as on the server.

mod dated;
mod git;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use tower_robots::live::VersionHash;
use tower_robots::policy::{Decision, Reason};
use tower_robots::rules::{Access, Reading, RequestPath};

use super::format::LoggedRequest;
use super::headers::VersionHeaders;
use crate::board::{
    self, Counted, CrawlerRequest, Disallowed, Done, LogBoard, LoggedTimes, RowScratch, Second, UsableVersion,
    VERSION_LIFETIME, claim_result, cut, write_origin,
};
use crate::commands::arguments::site::{OtherFiles, RobotsFile};
use crate::evaluator::{Evaluator, EvaluatorSettings, KnownSender};

/// Maximum number of versions that are read. If there are more, the oldest ones are left out.
const MAX_VERSIONS: usize = 512;

/// Maximum size of all versions together, in bytes.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
struct DatedVersion {
    /// Time when the version came into force, in seconds since 1970.
    at: i64,
    /// The commit or the file that contains the version.
    source: String,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct FoundVersions {
    /// Path of the file in git. For dated files, the path of the newest file.
    file: String,
    versions: Vec<DatedVersion>,
    bytes: usize,
    /// Reasons for leaving versions out, for the report. Each reason is a sentence without a full
    /// stop.
    left_out: Vec<String>,
}

impl FoundVersions {
    /// Reports whether a version of this size can be added within the limits on versions. If it
    /// cannot be added, records the reason.
    fn fits_limits(&mut self, bytes: usize, source: &str) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let fault = match (self.versions.len(), self.bytes) {
            (MAX_VERSIONS.., _) => format!("only {MAX_VERSIONS} versions are read"),
            (_, bytes) if bytes > MAX_BYTES => {
                format!("only versions of at most {limit} MiB in total are read", limit = MAX_BYTES >> 20)
            }
            _ => return true,
        };
        self.leave_out(source, &fault);
        false
    }

    fn leave_out(&mut self, source: &str, why: &str) {
        self.left_out.push(format!("the versions up to {source} are left out: {why}"));
    }
}

/// The versions that were in force, the oldest first.
#[derive(Debug)]
pub(super) struct VersionHistory {
    pub(super) versions: Vec<PastVersion>,
    file: String,
    pub(super) left_out: Vec<String>,
    deploy: Second,
}

#[derive(Debug)]
pub(super) struct PastVersion {
    pub(super) since: Second,
    pub(super) name: String,
    pub(super) source: String,
    hash: VersionHash,
    evaluator: Evaluator,
}

impl VersionHistory {
    /// Reads the versions of a robots.txt. `paths` is one path in a git repository, or dated files
    /// and directories of dated files. After the date of a version, the previous version may still
    /// be served for at most `deploy` seconds.
    pub(super) fn read(paths: &[PathBuf], deploy: Option<Second>, settings: &EvaluatorSettings) -> io::Result<Self> {
        let of_git = match paths {
            [path] => git::has_repository(path) && !dated::has_dated_files(path),
            _ => false,
        };
        let FoundVersions { file, versions: found, left_out, .. } = match paths {
            [path] if of_git => git::versions(path)?,
            paths => dated::versions(paths)?,
        };
        if let (true, Some(why)) = (found.is_empty(), left_out.first()) {
            return Err(io::Error::other(why.clone()));
        }
        let mut versions: Vec<PastVersion> = Vec::new();
        for DatedVersion { at, source, bytes } in found.into_iter().rev() {
            let hash = VersionHash::of(&bytes);
            if versions.last().is_some_and(|last| last.hash == hash) {
                continue;
            }
            let (name, since) = (board::version_name(hash), Second::try_from(at).unwrap_or(0));
            // An HTML page that was committed to git was probably served as robots.txt. An HTML
            // page in a saved file is probably an error page that was saved by mistake.
            let evaluator = match of_git {
                true => Evaluator::new(bytes, Reading::Standard, settings),
                false => RobotsFile { name: source.clone(), bytes }
                    .evaluator(Reading::Standard, settings, OtherFiles::Refuse)
                    .map_err(|error| io::Error::other(format!("{error}; {}", dated::EXPECTED)))?,
            };
            versions.push(PastVersion { since, name, source, hash, evaluator });
        }
        // A saved file was served from the date in its name on, but a commit is deployed some time
        // after its date.
        let deploy = deploy.unwrap_or(if of_git { DEFAULT_DEPLOY_SECONDS } else { 0 });
        Ok(Self { versions, file, left_out, deploy })
    }

    pub(super) fn newest(&self) -> Option<RobotsFile> {
        let bytes = self.versions.last()?.evaluator.robots().bytes().to_vec();
        Some(RobotsFile { name: self.file.clone(), bytes })
    }

    pub(super) fn dates(&self) -> Vec<(Second, &str)> {
        self.versions.iter().map(|version| (version.since, version.name.as_str())).collect()
    }

    fn at(&self, time: Second) -> Option<usize> {
        self.versions.partition_point(|version| version.since <= time).checked_sub(1)
    }

    /// Returns the versions before index `place` that may still be served at the time `time`,
    /// because their successors may not be deployed yet.
    fn possibly_served(&self, place: usize, time: Second) -> impl Iterator<Item = &PastVersion> {
        let successors = self.versions[..=place].windows(2).rev();
        let recent = successors.take_while(move |pair| time.saturating_sub(pair[1].since) < self.deploy);
        recent.map(|pair| &pair[0])
    }

    /// Returns the versions that a crawler may rely on at the time `time`, while the version at
    /// index `place` is in force.
    fn usable_versions(&self, place: usize, time: Second) -> impl Iterator<Item = UsableVersion<'_>> + Clone {
        let versions = &self.versions[..=place];
        let may_be = move |at: &usize| versions.get(at + 1).is_none_or(|next| next.since + VERSION_LIFETIME >= time);
        let is_last = move |at: &usize| versions[at + 1..].iter().all(|later| later.hash != versions[*at].hash);
        let places = (0..=place).rev().take_while(may_be).filter(is_last).take(board::MAX_VERSIONS);
        places.map(move |at| {
            let PastVersion { hash, name, evaluator, .. } = &versions[at];
            UsableVersion { hash: *hash, name, rules: &evaluator.rules }
        })
    }
}

/// Default for how long after a commit the previous version may still be served, in seconds.
const DEFAULT_DEPLOY_SECONDS: Second = 15 * 60;

/// The observations in one chunk of the log that are needed to judge crawlers.
#[derive(Debug, Default)]
pub(super) struct BoardNotes {
    /// Counts that have reached the maximum number of rows. Further rows are added to `counted`.
    full: Vec<Counted>,
    counted: Counted,
    times: LoggedTimes,
}

impl BoardNotes {
    pub(super) fn add_to(self, board: &mut LogBoard) {
        self.full.into_iter().chain([self.counted]).for_each(|counted| board.join(counted, &self.times));
    }

    pub(super) fn note(
        &mut self,
        history: &VersionHistory,
        headers: &mut VersionHeaders,
        entry: &LoggedRequest<'_>,
        sender: KnownSender,
        at: Second,
    ) {
        self.times.note(at);
        if self.counted.is_full() {
            self.full.push(std::mem::take(&mut self.counted));
        }
        let in_force = history.at(at);
        let place = in_force.unwrap_or(0);
        let Some(version) = history.versions.get(place) else { return };
        let judged = headers.of(place, &version.evaluator, &entry.agent);
        if !judged.is_judged && !judged.agents.iter().any(|agent| agent.class().is_crawler()) {
            return;
        }
        let method = entry.method();
        let path = version.evaluator.path(&entry.target);
        let decision = judged.decide(&version.evaluator, sender, method, &path);
        let decision = decision.unwrap_or(Decision::unjudged(Reason::NoGroup));
        let Evaluator { rules, settings: EvaluatorSettings { policy, .. }, .. } = &version.evaluator;
        let Some(agent) = policy.subject(rules, &judged.agents, &decision) else { return };
        let token = || agent.tokens().first().map(|token| Cow::Owned(token.to_string()));
        let name = agent.crawler().map(Cow::Borrowed).or_else(token).unwrap_or(agent.class().as_str().into());
        let got_page = agent.is_registered() && entry.got_page();
        let seen = CrawlerRequest { agent, name: &name, identity: claim_result(Some(sender.identity)), at, got_page };
        let host = entry.host.as_deref().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let origin = |out: &mut String| write_origin("", host, out);
        if RequestPath::is_robots_txt_target(&entry.target) {
            if let Some(read) = RobotsRead::of(method, entry.status) {
                // The target of a redirect is often fetched in the same second, so the redirect is
                // recorded one second earlier.
                let at = if read == RobotsRead::Redirected { at.saturating_sub(1) } else { at };
                let is_served = in_force.is_some() && at.saturating_sub(version.since) >= history.deploy;
                self.counted.read(&CrawlerRequest { at, ..seen }, |span| {
                    origin(&mut span.origin);
                    let is_known = read == RobotsRead::Rules && is_served;
                    span.version = is_known.then(|| version.name.clone());
                });
            }
            return;
        }
        if in_force.is_none() {
            return;
        }
        let verdict = decision.verdict.filter(|verdict| verdict.access() == Access::Disallow);
        let Some(verdict) = verdict else {
            let limited = u64::from(entry.status == Some(429));
            self.counted.allow(&seen, Done { limited, ..Done::default() });
            return;
        };
        let answer = version.evaluator.refusal(agent, sender, method, &path);
        let refused = u64::from(answer.status.is_some() && answer.status == entry.status);
        let done = Done { refused, observed: 1 - refused, ..Done::default() };
        let request = Disallowed { agent, method, target: &entry.target, by: version.hash, form: verdict.form() };
        self.counted.disallow(&seen, done, |RowScratch { case, hits, .. }| {
            case.judge_by(history.usable_versions(place, at), Some(policy), &request);
            if history.possibly_served(place, at).any(|version| !case.disallowed_by.contains(&version.name)) {
                // The request is judged only if all versions that may have been served disallow it.
                case.disallowed_by.clear();
            }
            origin(&mut case.origin);
            hits.version.clone_from(&version.name);
            let pattern = verdict.rule().map(|rule| String::from_utf8_lossy(rule.pattern())).unwrap_or_default();
            cut(&pattern).clone_into(&mut hits.pattern);
            hits.line = verdict.line().unwrap_or(0);
        });
    }
}

/// Result of a request for `/robots.txt`. A response without rules does not show which version the
/// crawler knows, so it can only excuse the crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RobotsRead {
    Rules,
    Redirected,
    /// The crawler may request everything (RFC 9309, section 2.3.1.3).
    Unavailable,
}

impl RobotsRead {
    /// Returns `None` if the response does not affect what the crawler may request. After a 5xx,
    /// the crawler may request nothing, or may follow the version that it fetched before (RFC 9309,
    /// section 2.3.1.4).
    fn of(method: &str, status: Option<u16>) -> Option<Self> {
        match status {
            _ if method != "GET" => None,
            None | Some(200 | 304) => Some(Self::Rules),
            Some(300..=399) => Some(Self::Redirected),
            Some(400..=499) => Some(Self::Unavailable),
            Some(_) => None,
        }
    }
}

fn must_exist(path: &Path) -> io::Result<std::fs::Metadata> {
    std::fs::metadata(path).map_err(|error| crate::input::named(path, &error))
}

#[cfg(test)]
mod tests {
    use tower_robots::agent::{Identity, IdentityMethod};

    use super::*;
    use crate::board::Evidence;

    const START: Second = 1_000_000;
    const HOUR: Second = 3600;
    const OLD: &str = "User-agent: GPTBot\nDisallow: /old/\n";
    const NEW: &str = "User-agent: GPTBot\nDisallow: /old/\nDisallow: /new/\n";

    fn history(deploy: Second, versions: &[(Second, &str)]) -> VersionHistory {
        let version = |(since, text): &(Second, &str)| {
            let (hash, settings) = (VersionHash::of(text.as_bytes()), EvaluatorSettings::default());
            let evaluator = Evaluator::new(text.as_bytes().to_vec(), Reading::Standard, &settings);
            PastVersion { since: *since, name: board::version_name(hash), source: String::new(), hash, evaluator }
        };
        let versions = versions.iter().map(version).collect();
        VersionHistory { versions, file: String::new(), left_out: Vec::new(), deploy }
    }

    /// Returns the counts of judged requests of a verified crawler: ignored, not newest, unread,
    /// undecided. `log` contains the time, the path and the status of each request.
    fn judged(history: &VersionHistory, log: &[(Second, &str, u16)]) -> [u64; 4] {
        let (mut notes, mut headers, mut board) =
            (BoardNotes::default(), VersionHeaders::default(), LogBoard::default());
        let identity = Identity::Verified(IdentityMethod::Range);
        for (at, path, status) in log {
            let entry = LoggedRequest {
                host: Some(Cow::Borrowed(b"shop.test")),
                method: Cow::Borrowed(b"GET"),
                target: Cow::Borrowed(path.as_bytes()),
                status: Some(*status),
                agent: Cow::Borrowed(b"GPTBot/1.2"),
                ..LoggedRequest::default()
            };
            notes.note(history, &mut headers, &entry, KnownSender { identity, address: None }, *at);
        }
        notes.add_to(&mut board);
        board.conclude(&history.dates(), &[]);
        let board = board.board(Evidence::Complete);
        let [crawler] = &*board.crawlers else { panic!("{board:?}") };
        let judged = &crawler.judged;
        [judged.ignored, judged.not_newest, judged.unread, judged.undecided]
    }

    #[test]
    fn a_read_that_got_no_rules_does_not_count_against_a_crawler() {
        let history = history(0, &[(START, NEW)]);
        let (first, later) = ((START + HOUR, "/robots.txt", 200), START + HOUR + 60);
        let request = (START + HOUR + 120, "/new/1", 200);
        assert_eq!(judged(&history, &[first, request]), [1, 0, 0, 0]);
        for status in [301, 307, 401, 403, 404, 410] {
            assert_eq!(judged(&history, &[first, (later, "/robots.txt", status), request]), [0, 0, 0, 1], "{status}");
            assert_eq!(judged(&history, &[(later, "/robots.txt", status), request]), [0, 0, 1, 0], "{status}");
        }
        // A server error does not change the rules that the crawler knows.
        assert_eq!(judged(&history, &[first, (later, "/robots.txt", 503), request]), [1, 0, 0, 0]);
        // If a fetch follows a redirect in the same second, the crawler knows the fetched version.
        let redirected = [(later, "/robots.txt", 301), (later, "/robots.txt", 200), request];
        assert_eq!(judged(&history, &redirected), [1, 0, 0, 0]);
    }

    #[test]
    fn a_request_is_not_judged_if_a_version_that_may_still_be_served_allows_it() {
        let history = history(15 * 60, &[(START, OLD), (START + 30 * HOUR, NEW)]);
        let read = (START + HOUR, "/robots.txt", 200);
        let at = |minutes: Second, path| (START + 30 * HOUR + minutes * 60, path, 200);
        // The log must contain a line in every hour, because the crawler may have fetched
        // robots.txt in a gap of the log.
        let logged = (2..=30).map(|hour| (START + hour * HOUR, "/", 200));
        let log = |request| [read].into_iter().chain(logged.clone()).chain([request]).collect::<Vec<_>>();
        assert_eq!(judged(&history, &log(at(14, "/new/1"))), [0, 0, 0, 1]);
        assert_eq!(judged(&history, &log(at(15, "/new/1"))), [1, 0, 0, 0]);
        assert_eq!(judged(&history, &log(at(14, "/old/1"))), [1, 0, 0, 0]);
    }

    #[test]
    fn versions_are_left_out_once_their_total_size_exceeds_the_limit() {
        let mut found = FoundVersions::default();
        assert!(found.fits_limits(MAX_BYTES - 1, "3") && found.fits_limits(1, "2") && !found.fits_limits(1, "1"));
        assert_eq!(
            found.left_out,
            ["the versions up to 1 are left out: only versions of at most 16 MiB in total are read"]
        );
    }
}
