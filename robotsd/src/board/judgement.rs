//! Decides whether a crawler that sent disallowed requests ignores robots.txt, or has not fetched
//! the current rules yet.
//!
//! No crawler may be falsely reported as ignoring robots.txt. It is often uncertain which fetch of
//! robots.txt was the crawler's last fetch before a request. The request counts against the crawler
//! only if **every** fetch that may have been the last fetch is evidence against the crawler. A
//! fetch is evidence if the fetched version disallows the request, or if the fetch was more than 24
//! hours before the request (RFC 9309, section 2.4). Each of the following fetches may have been
//! the crawler's last fetch:
//!
//! - the last verified fetch before the request, from the same origin, by the crawler itself or by
//!   another crawler that obeys one of the same product tokens. Without a fetch of this kind, the
//!   request does not count against the crawler;
//! - every fetch after that one by crawlers of the same operator, unless the client was an
//!   impostor;
//! - every fetch that may not have been recorded, because no process was running, enforcement was
//!   off, or counts were lost.

use tower_robots::agent::Agent;
use tower_robots::live::VersionHash;
use tower_robots::policy::{Policy, RequestFacts};
use tower_robots::rules::{Access, PathForm, RuleSet};

use super::row::{ANY_ORIGIN, Case, DAY, Second};

/// Time during which a replaced version of robots.txt is still used to judge requests, in seconds.
/// A crawler may rely on a fetched version for 24 hours (RFC 9309, section 2.4). The additional
/// hour is a margin.
pub(crate) const VERSION_LIFETIME: Second = DAY + super::row::HOUR;

/// Maximum number of versions of robots.txt that are used to judge one request.
pub(crate) const MAX_VERSIONS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct UsableVersion<'v> {
    pub(crate) hash: VersionHash,
    /// Name of the version, as displayed on the board.
    pub(crate) name: &'v str,
    pub(crate) rules: &'v RuleSet,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Disallowed<'r> {
    pub(crate) agent: &'r Agent,
    pub(crate) method: &'r str,
    pub(crate) target: &'r [u8],
    /// The version in force.
    pub(crate) by: VersionHash,
    /// Form of the requested path that matched a rule of the version in force.
    pub(crate) form: PathForm,
}

impl Case {
    /// Records which versions disallow the request and which allow it, the version in force first.
    /// Uses only the path as the client sent it, because a crawler does not have to know the other
    /// forms of the path.
    pub(crate) fn judge_by<'v>(
        &mut self,
        versions: impl Iterator<Item = UsableVersion<'v>> + Clone,
        policy: Option<&Policy>,
        request: &Disallowed<'_>,
    ) {
        let (mut disallowing, mut allowing) = (0, 0);
        let is_live = |version: &UsableVersion<'_>| version.hash == request.by;
        let live_first = versions.clone().filter(is_live).chain(versions.filter(|version| !is_live(version)));
        for version in live_first {
            // The request was disallowed by the live version, so the path form is known.
            let form =
                if is_live(&version) { Some(request.form) } else { request.disallowed_by(version.rules, policy) };
            match form {
                Some(PathForm::Verbatim | PathForm::Standard) => {
                    rewrite_next(&mut self.disallowed_by, &mut disallowing, version.name);
                }
                Some(_) => {}
                None => rewrite_next(&mut self.allowed_by, &mut allowing, version.name),
            }
        }
        self.disallowed_by.truncate(disallowing);
        self.allowed_by.truncate(allowing);
    }
}

impl Disallowed<'_> {
    fn disallowed_by(&self, rules: &RuleSet, policy: Option<&Policy>) -> Option<PathForm> {
        let facts = RequestFacts::of_target(self.method, self.target);
        let verdict = policy?.decide(rules, std::slice::from_ref(self.agent), facts).verdict?;
        if verdict.access() == Access::Disallow { Some(verdict.form()) } else { None }
    }
}

/// Writes a name at index `written` of a list, and increments `written`. Reuses the memory of the
/// previous name at this index.
fn rewrite_next(list: &mut Vec<String>, written: &mut usize, name: &str) {
    match list.get_mut(*written) {
        Some(own) => name.clone_into(own),
        None => list.push(name.to_owned()),
    }
    *written += 1;
}

/// A conclusion about disallowed requests, from the crawler's earlier fetches of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadJudgement {
    /// The version that the crawler last fetched disallows the requests, or the last fetch was more
    /// than 24 hours before the requests.
    Ignored,
    /// Within the 24 hours before the requests, the crawler last fetched an older version, which
    /// allows them.
    NotNewest,
    /// No fetch of robots.txt was recorded before the requests.
    Unread,
    /// It is uncertain which version the crawler fetched last.
    Undecided,
}

/// Fetches of one version of robots.txt by one crawler. These fetches are used to judge the
/// requests of this crawler and of its operator's other crawlers.
#[derive(Clone, Debug)]
pub(crate) struct Reading<'r> {
    pub(crate) origin: &'r str,
    pub(crate) version: Option<&'r str>,
    pub(crate) first: Second,
    pub(crate) last: Second,
    pub(crate) reader: Reader,
}

/// Relation between the client that fetched robots.txt and the judged crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The judged crawler, or another crawler that obeys one of the same product tokens. The client
    /// is verified, so its fetches can be evidence against the judged crawler.
    Chain,
    /// Another crawler of the operator, or an unverified client. These fetches can excuse the
    /// judged crawler, but cannot be evidence against it.
    Operator,
}

/// A period in which fetches of robots.txt may have happened without being recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: Second,
    pub(crate) to: Second,
    /// The version that was served during the whole gap; `None` if this version is uncertain.
    pub(crate) version: Option<String>,
}

/// A fetch that may have been the crawler's last fetch before the requests.
struct Candidate<'r> {
    version: Option<&'r str>,
    /// Latest possible time of the fetch.
    at: Second,
    is_seen: bool,
}

pub(crate) fn judge(case: &Case, reads: &[Reading<'_>], gaps: &[Gap]) -> ReadJudgement {
    // `disallowed_by` is empty if the rules are unknown, or if no version disallows the path as the
    // client sent it.
    if case.origin == ANY_ORIGIN || case.disallowed_by.is_empty() {
        return ReadJudgement::Undecided;
    }
    let reads: Vec<&Reading<'_>> = reads.iter().filter(|read| case.is_after(read)).collect();
    let proofs = || reads.iter().filter(|read| read.reader == Reader::Chain && read.version.is_some());
    let known = proofs().filter_map(|read| Some((read, case.moment_before(read)?))).max_by_key(|(_, at)| *at);
    let Some((known, at)) = known else {
        // If the request and a fetch happened in the same second, their order is unknown.
        let is_open = proofs().any(|read| read.first == case.first);
        return if is_open { ReadJudgement::Undecided } else { ReadJudgement::Unread };
    };
    let certain = Candidate { version: known.version, at, is_seen: true };
    let later = reads.iter().filter(|read| read.last >= at);
    let later = later.map(|read| Candidate { version: read.version, at: read.last.min(case.last), is_seen: true });
    let missed = gaps.iter().filter(|gap| gap.to > at && gap.from < case.last);
    let missed =
        missed.map(|gap| Candidate { version: gap.version.as_deref(), at: gap.to.min(case.last), is_seen: false });
    // If the last recorded fetch is evidence against the crawler but a later fetch may have been
    // missed, it is unknown which version the crawler used. So the result is not `NotNewest`.
    let is_mild = !certain.accuses(case);
    let mut others = later.chain(missed).chain([certain]).filter(|candidate| !candidate.accuses(case)).peekable();
    if others.peek().is_none() {
        ReadJudgement::Ignored
    } else if others.all(|other| (other.is_seen || is_mild) && other.is_among(&case.allowed_by)) {
        ReadJudgement::NotNewest
    } else {
        ReadJudgement::Undecided
    }
}

impl Case {
    /// Reports whether some of the requests may have been sent after one of the fetches in `read`.
    fn is_after(&self, read: &Reading<'_>) -> bool {
        (read.origin == self.origin || read.origin == ANY_ORIGIN) && read.first <= self.last
    }

    /// Returns the time of the latest fetch in `read` that was certainly before the requests;
    /// `None` if there is no such fetch.
    const fn moment_before(&self, read: &Reading<'_>) -> Option<Second> {
        if read.last < self.first {
            Some(read.last)
        } else if read.first < self.first {
            Some(read.first)
        } else {
            None
        }
    }
}

impl Candidate<'_> {
    fn accuses(&self, case: &Case) -> bool {
        case.first.saturating_sub(self.at) > DAY || self.is_among(&case.disallowed_by)
    }

    fn is_among(&self, versions: &[String]) -> bool {
        self.version.is_some_and(|read| versions.iter().any(|version| version == read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Second = 3600;
    const START: Second = 1_000 * DAY;

    /// Returns requests that version 2 disallows and version 1 allows.
    fn case(hour: Second) -> Case {
        Case {
            origin: "https://a.test".into(),
            disallowed_by: vec!["2".into()],
            allowed_by: vec!["1".into()],
            first: START + hour * HOUR,
            last: START + hour * HOUR + 60,
            count: 1,
        }
    }

    fn read(version: &str, hour: Second) -> Reading<'_> {
        let at = START + hour * HOUR;
        Reading { origin: "https://a.test", version: Some(version), first: at, last: at, reader: Reader::Chain }
    }

    #[test]
    fn a_request_is_judged_by_the_last_read_before_it() {
        for (reads, hour, want) in [
            (vec![], 50, ReadJudgement::Unread),
            (vec![read("2", 40)], 50, ReadJudgement::Ignored),
            (vec![read("1", 40)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 26)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 25)], 50, ReadJudgement::Ignored),
            (vec![read("2", 20), read("1", 40)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 20), read("2", 40)], 50, ReadJudgement::Ignored),
            // The rules of version 0 are unknown.
            (vec![read("0", 40)], 50, ReadJudgement::Undecided),
            (vec![read("0", 20)], 50, ReadJudgement::Ignored),
            (vec![read("2", 51)], 50, ReadJudgement::Unread),
        ] {
            assert_eq!(judge(&case(hour), &reads, &[]), want, "{reads:?}");
        }
    }

    #[test]
    fn a_read_at_another_origin_or_in_the_same_second_does_not_count_against_a_crawler() {
        let elsewhere = Reading { origin: "https://b.test", ..read("2", 40) };
        assert_eq!(judge(&case(50), &[elsewhere], &[]), ReadJudgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 50)], &[]), ReadJudgement::Undecided);
        let unknown = Reading { origin: ANY_ORIGIN, version: None, ..read("2", 45) };
        assert_eq!(judge(&case(50), &[read("2", 40), unknown], &[]), ReadJudgement::Undecided);
    }

    #[test]
    fn reads_by_other_crawlers_of_the_operator_can_only_excuse_a_crawler() {
        let other = |version| Reading { reader: Reader::Operator, ..read(version, 45) };
        assert_eq!(judge(&case(50), &[other("2")], &[]), ReadJudgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 40), other("1")], &[]), ReadJudgement::NotNewest);
        assert_eq!(judge(&case(50), &[read("1", 20), other("0")], &[]), ReadJudgement::Undecided);
        assert_eq!(judge(&case(50), &[read("1", 40), other("2")], &[]), ReadJudgement::NotNewest);
    }

    #[test]
    fn a_read_that_may_have_been_missed_excuses_a_crawler() {
        let gap = |from, to, version: Option<&str>| Gap {
            from: START + from * HOUR,
            to: START + to * HOUR,
            version: version.map(str::to_owned),
        };
        for (read, gap, want) in [
            (read("2", 40), gap(45, 46, None), ReadJudgement::Undecided),
            (read("2", 40), gap(45, 46, Some("2")), ReadJudgement::Ignored),
            (read("2", 40), gap(45, 46, Some("1")), ReadJudgement::Undecided),
            (read("2", 40), gap(30, 35, None), ReadJudgement::Ignored),
            // After a day, the crawler may not rely on its fetch any more.
            (read("1", 1), gap(20, 21, None), ReadJudgement::Ignored),
            (read("1", 1), gap(20, 27, None), ReadJudgement::Undecided),
            (read("1", 40), gap(45, 46, Some("2")), ReadJudgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("1")), ReadJudgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("0")), ReadJudgement::Undecided),
            // The first gap includes the time of the requests. The second gap begins after the
            // requests.
            (read("2", 40), gap(50, 90, None), ReadJudgement::Undecided),
            (read("2", 40), gap(51, 90, None), ReadJudgement::Ignored),
        ] {
            let found = judge(&case(50), std::slice::from_ref(&read), std::slice::from_ref(&gap));
            assert_eq!(found, want, "{read:?} {gap:?}");
        }
    }
}
