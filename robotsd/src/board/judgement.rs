//! Judges a crawler by its disallowed requests: does it ignore robots.txt, or does it not know the
//! rules yet?
//!
//! No crawler is accused falsely. A request counts against a crawler only if **every** read that
//! may have been its last one accuses it: the version read disallows the request, or the read was
//! more than 24 hours old (RFC 9309, section 2.4). These reads are considered:
//!
//! - the last read before the request by a verified crawler of the same chain at the same origin.
//!   Without such a read, there is no accusation;
//! - every later read by the operator's crawlers, including unverified ones whose claim is not
//!   refuted;
//! - a read that may have been missed: while no process watched, while enforcement was off, or
//!   while counts were lost.

use tower_robots::agent::Agent;
use tower_robots::live::VersionHash;
use tower_robots::policy::{Policy, RequestFacts};
use tower_robots::rules::{Access, PathForm, RuleSet};

use super::row::{ANY_ORIGIN, Case, DAY, Second};

/// How long a crawler may rely on the version it read (RFC 9309, section 2.4), in seconds, with an
/// hour to spare.
pub(crate) const GONE_BY: Second = DAY + super::row::HOUR;

/// Maximum number of versions of a site that requests are judged by.
pub(crate) const MAX_VERSIONS: usize = 5;

/// A version that a crawler may still rely on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoneBy<'v> {
    pub(crate) hash: VersionHash,
    /// Name of the version on the board.
    pub(crate) name: &'v str,
    pub(crate) rules: &'v RuleSet,
}

/// A request that the version in force disallows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disallowed<'r> {
    pub(crate) agent: &'r Agent,
    pub(crate) method: &'r str,
    pub(crate) target: &'r [u8],
    /// The version in force, and the path form that it disallows.
    pub(crate) by: VersionHash,
    pub(crate) form: PathForm,
}

impl Case {
    /// Records which versions disallow the request, the one in force first, and which allow it. A
    /// version counts as disallowing only if it disallows the path as the client sent it: a crawler
    /// need not expect a match under another path form.
    pub(crate) fn judge_by<'v>(
        &mut self,
        versions: impl Iterator<Item = GoneBy<'v>> + Clone,
        policy: Option<&Policy>,
        request: &Disallowed<'_>,
    ) {
        let (mut disallowing, mut allowing) = (0, 0);
        let is_live = |version: &GoneBy<'_>| version.hash == request.by;
        let live_first = versions.clone().filter(is_live).chain(versions.filter(|version| !is_live(version)));
        for version in live_first {
            // The version in force has already decided about this request.
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
    /// Returns the path form that `rules` disallow; `None` if they allow the request.
    fn disallowed_by(&self, rules: &RuleSet, policy: Option<&Policy>) -> Option<PathForm> {
        let facts = RequestFacts::of_target(self.method, self.target);
        let verdict = policy?.decide(rules, std::slice::from_ref(self.agent), facts).verdict?;
        if verdict.access() == Access::Disallow { Some(verdict.form()) } else { None }
    }
}

/// Overwrites the next name of a list, and reuses its memory.
fn rewrite_next(list: &mut Vec<String>, written: &mut usize, name: &str) {
    match list.get_mut(*written) {
        Some(own) => name.clone_into(own),
        None => list.push(name.to_owned()),
    }
    *written += 1;
}

/// Result of judging disallowed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadJudgement {
    /// The version last read disallows them, or was read more than 24 hours before.
    Ignored,
    /// The version last read was an older one that allows them, read less than 24 hours before.
    NotNewest,
    /// No earlier read was seen here.
    Unread,
    /// There was a read, but it is unknown what the last one contained.
    Undecided,
}

/// Reads of robots.txt that may matter: reads by crawlers of one operator.
#[derive(Clone, Debug)]
pub(crate) struct Reading<'r> {
    pub(crate) origin: &'r str,
    pub(crate) version: Option<&'r str>,
    pub(crate) first: Second,
    pub(crate) last: Second,
    pub(crate) reader: Reader,
}

/// The client that read robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A verified crawler that obeys one of the same tokens. Its reads can accuse.
    Chain,
    /// Another crawler of the operator, or an unverified one. Its reads can only excuse.
    Operator,
}

/// A time when a read may have been missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: Second,
    pub(crate) to: Second,
    /// The version that was served throughout; `None` if that is not certain.
    pub(crate) version: Option<String>,
}

/// A read that may have been the last one.
struct Candidate<'r> {
    version: Option<&'r str>,
    /// Latest possible time of the read.
    at: Second,
    is_seen: bool,
}

/// Judges requests by the reads before them.
pub(crate) fn judge(case: &Case, reads: &[Reading<'_>], gaps: &[Gap]) -> ReadJudgement {
    // If no version disallows the path as it was sent, only our stricter path forms disallow it, or
    // the rules are unknown.
    if case.origin == ANY_ORIGIN || case.disallowed_by.is_empty() {
        return ReadJudgement::Undecided;
    }
    let reads: Vec<&Reading<'_>> = reads.iter().filter(|read| case.is_after(read)).collect();
    let proofs = || reads.iter().filter(|read| read.reader == Reader::Chain && read.version.is_some());
    let known = proofs().filter_map(|read| Some((read, case.moment_before(read)?))).max_by_key(|(_, at)| *at);
    let Some((known, at)) = known else {
        // If reads and requests have the same second, their order is unknown.
        let is_open = proofs().any(|read| read.first == case.first);
        return if is_open { ReadJudgement::Undecided } else { ReadJudgement::Unread };
    };
    let certain = Candidate { version: known.version, at, is_seen: true };
    let later = reads.iter().filter(|read| read.last >= at);
    let later = later.map(|read| Candidate { version: read.version, at: read.last.min(case.last), is_seen: true });
    let missed = gaps.iter().filter(|gap| gap.to > at && gap.from < case.last);
    let missed =
        missed.map(|gap| Candidate { version: gap.version.as_deref(), at: gap.to.min(case.last), is_seen: false });
    // A possibly missed read leads to `NotNewest` only if the certain read does not accuse: then
    // both agree.
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
    /// Reports whether a read has the same origin and began no later than the last of these
    /// requests.
    fn is_after(&self, read: &Reading<'_>) -> bool {
        (read.origin == self.origin || read.origin == ANY_ORIGIN) && read.first <= self.last
    }

    /// Returns the latest time of a read that is certainly before the requests.
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
    /// Reports whether a crawler that read this version at this time had to expect a refusal.
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

    /// Requests at `hour` that version 2 disallows and version 1 allows.
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
    fn the_last_read_judges() {
        for (reads, hour, want) in [
            (vec![], 50, ReadJudgement::Unread),
            (vec![read("2", 40)], 50, ReadJudgement::Ignored),
            (vec![read("1", 40)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 26)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 25)], 50, ReadJudgement::Ignored),
            (vec![read("2", 20), read("1", 40)], 50, ReadJudgement::NotNewest),
            (vec![read("1", 20), read("2", 40)], 50, ReadJudgement::Ignored),
            // The rules of this version are unknown.
            (vec![read("0", 40)], 50, ReadJudgement::Undecided),
            (vec![read("0", 20)], 50, ReadJudgement::Ignored),
            // A read after the requests says nothing about them.
            (vec![read("2", 51)], 50, ReadJudgement::Unread),
        ] {
            assert_eq!(judge(&case(hour), &reads, &[]), want, "{reads:?}");
        }
    }

    #[test]
    fn a_read_at_another_origin_or_of_the_same_second_accuses_no_crawler() {
        let elsewhere = Reading { origin: "https://b.test", ..read("2", 40) };
        assert_eq!(judge(&case(50), &[elsewhere], &[]), ReadJudgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 50)], &[]), ReadJudgement::Undecided);
        let unknown = Reading { origin: ANY_ORIGIN, version: None, ..read("2", 45) };
        assert_eq!(judge(&case(50), &[read("2", 40), unknown], &[]), ReadJudgement::Undecided);
    }

    #[test]
    fn reads_of_others_of_the_operator_only_excuse() {
        let other = |version| Reading { reader: Reader::Operator, ..read(version, 45) };
        assert_eq!(judge(&case(50), &[other("2")], &[]), ReadJudgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 40), other("1")], &[]), ReadJudgement::NotNewest);
        assert_eq!(judge(&case(50), &[read("1", 20), other("0")], &[]), ReadJudgement::Undecided);
        assert_eq!(judge(&case(50), &[read("1", 40), other("2")], &[]), ReadJudgement::NotNewest);
    }

    #[test]
    fn a_read_that_may_have_been_missed_excuses() {
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
            // A day has passed since: no crawler may rely on it any more.
            (read("1", 1), gap(20, 21, None), ReadJudgement::Ignored),
            (read("1", 1), gap(20, 27, None), ReadJudgement::Undecided),
            (read("1", 40), gap(45, 46, Some("2")), ReadJudgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("1")), ReadJudgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("0")), ReadJudgement::Undecided),
            // The gap lasts until the requests.
            (read("2", 40), gap(50, 90, None), ReadJudgement::Undecided),
            (read("2", 40), gap(51, 90, None), ReadJudgement::Ignored),
        ] {
            assert_eq!(
                judge(&case(50), std::slice::from_ref(&read), std::slice::from_ref(&gap)),
                want,
                "{read:?} {gap:?}"
            );
        }
    }
}
