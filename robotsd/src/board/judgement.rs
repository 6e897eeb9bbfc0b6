//! The judgement of a crawler by its disallowed requests: whether it ignores robots.txt, or does not know yet.
//!
//! No crawler is accused falsely. A request is held against a crawler only where **every** read that may have been its last one
//! says so: the version disallows the request, or the read was more than 24 hours old (RFC 9309, section 2.4). Such reads are
//!
//! - the last one before the request that a verified crawler of the same chain made at the same origin: without one there is
//!   no accusation;
//! - every later one of the operator's crawlers, of those that are not verified too, as long as nothing refutes them;
//! - one that may have been missed: while no process watched, while enforcement was off, while counts were lost.

use tower_robots::agent::Agent;
use tower_robots::live::VersionHash;
use tower_robots::policy::{Policy, RequestFacts};
use tower_robots::rules::{Access, PathForm, RuleSet};

use super::row::{ANY_ORIGIN, Case, DAY, Second};

/// For how long a crawler may go by the version it read (RFC 9309, section 2.4), with an hour to spare.
pub(crate) const GONE_BY: Second = DAY + super::row::HOUR;

/// Versions of a site that requests are judged by.
pub(crate) const MOST_VERSIONS: usize = 5;

/// A version that a crawler may go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoneBy<'v> {
    pub(crate) hash: VersionHash,
    /// As it is written on the board.
    pub(crate) name: &'v str,
    pub(crate) rules: &'v RuleSet,
}

/// A request that the version in force disallows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disallowed<'r> {
    pub(crate) agent: &'r Agent,
    pub(crate) method: &'r str,
    pub(crate) target: &'r [u8],
    /// The version in force, and the form of the path that it disallows.
    pub(crate) by: VersionHash,
    pub(crate) form: PathForm,
}

impl Case {
    /// Notes the versions that disallow a disallowed request, the one in force first, and those that allow it. A version counts as
    /// disallowing only where the path as the client sent it is disallowed: a match under another reading of the path is
    /// nothing a crawler has to expect.
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
            // By the one in force it was judged a moment ago.
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
    /// The form of the path that other rules disallow; `None` if they allow it.
    fn disallowed_by(&self, rules: &RuleSet, policy: Option<&Policy>) -> Option<PathForm> {
        let facts = RequestFacts::of_target(self.method, self.target);
        let verdict = policy?.decide(rules, std::slice::from_ref(self.agent), facts).verdict?;
        if verdict.access() == Access::Disallow { Some(verdict.form()) } else { None }
    }
}

/// Writes the next name of a list anew, in the memory of the one before.
fn rewrite_next(list: &mut Vec<String>, written: &mut usize, name: &str) {
    match list.get_mut(*written) {
        Some(own) => name.clone_into(own),
        None => list.push(name.to_owned()),
    }
    *written += 1;
}

/// How disallowed requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The version last read disallows them, or that read was more than 24 hours old.
    Ignored,
    /// The version last read was an older one, less than 24 hours before, that allowed them.
    NotNewest,
    /// No read was seen here before them.
    Unread,
    /// There was a read, and it is unknown what the last one said.
    Undecided,
}

/// Reads that may matter: those of one operator's crawlers.
#[derive(Clone, Debug)]
pub(crate) struct Reading<'r> {
    pub(crate) origin: &'r str,
    pub(crate) version: Option<&'r str>,
    pub(crate) first: Second,
    pub(crate) last: Second,
    pub(crate) reader: Reader,
}

/// The client that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A verified crawler that obeys one of the same tokens: its reads may accuse.
    Chain,
    /// Another crawler of the operator, or one that is not verified: its reads may only excuse.
    Operator,
}

/// A time in which a read may have been missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: Second,
    pub(crate) to: Second,
    /// The version that was served throughout, if that is certain.
    pub(crate) version: Option<String>,
}

/// A read that may have been the last one.
struct Candidate<'r> {
    version: Option<&'r str>,
    /// The latest moment it may have been at.
    at: Second,
    is_seen: bool,
}

/// Judges requests by what was read before them.
pub(crate) fn judge(case: &Case, reads: &[Reading<'_>], gaps: &[Gap]) -> Judgement {
    // A request that no version disallows as it was read is disallowed by our stricter forms alone, or its rules are not known.
    if case.origin == ANY_ORIGIN || case.disallowed_by.is_empty() {
        return Judgement::Undecided;
    }
    let reads: Vec<&Reading<'_>> = reads.iter().filter(|read| case.is_after(read)).collect();
    let proofs = || reads.iter().filter(|read| read.reader == Reader::Chain && read.version.is_some());
    let known = proofs().filter_map(|read| Some((read, case.moment_before(read)?))).max_by_key(|(_, at)| *at);
    let Some((known, at)) = known else {
        // Of a read and a request in one second it is not known which came first.
        let is_open = proofs().any(|read| read.first == case.first);
        return if is_open { Judgement::Undecided } else { Judgement::Unread };
    };
    let certain = Candidate { version: known.version, at, is_seen: true };
    let later = reads.iter().filter(|read| read.last >= at);
    let later = later.map(|read| Candidate { version: read.version, at: read.last.min(case.last), is_seen: true });
    let missed = gaps.iter().filter(|gap| gap.to > at && gap.from < case.last);
    let missed =
        missed.map(|gap| Candidate { version: gap.version.as_deref(), at: gap.to.min(case.last), is_seen: false });
    // A read that may have been missed excuses if the read that is certain does not accuse: both say the same.
    let is_mild = !certain.accuses(case);
    let mut others = later.chain(missed).chain([certain]).filter(|candidate| !candidate.accuses(case)).peekable();
    if others.peek().is_none() {
        Judgement::Ignored
    } else if others.all(|other| (other.is_seen || is_mild) && other.is_among(&case.allowed_by)) {
        Judgement::NotNewest
    } else {
        Judgement::Undecided
    }
}

impl Case {
    /// Whether a read is one of the same origin that began before the last of these requests.
    fn is_after(&self, read: &Reading<'_>) -> bool {
        (read.origin == self.origin || read.origin == ANY_ORIGIN) && read.first <= self.last
    }

    /// The last moment of reads that is certainly before the requests.
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
    /// Whether a crawler that read this version then had to expect that the requests are disallowed.
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

    /// Requests that version 2 disallows and version 1 allows, at an hour.
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
            (vec![], 50, Judgement::Unread),
            (vec![read("2", 40)], 50, Judgement::Ignored),
            (vec![read("1", 40)], 50, Judgement::NotNewest),
            (vec![read("1", 26)], 50, Judgement::NotNewest),
            (vec![read("1", 25)], 50, Judgement::Ignored),
            (vec![read("2", 20), read("1", 40)], 50, Judgement::NotNewest),
            (vec![read("1", 20), read("2", 40)], 50, Judgement::Ignored),
            // Its rules are not known any more.
            (vec![read("0", 40)], 50, Judgement::Undecided),
            (vec![read("0", 20)], 50, Judgement::Ignored),
            // A read after the requests says nothing about them.
            (vec![read("2", 51)], 50, Judgement::Unread),
        ] {
            assert_eq!(judge(&case(hour), &reads, &[]), want, "{reads:?}");
        }
    }

    #[test]
    fn a_read_at_another_origin_or_of_the_same_second_accuses_no_crawler() {
        let elsewhere = Reading { origin: "https://b.test", ..read("2", 40) };
        assert_eq!(judge(&case(50), &[elsewhere], &[]), Judgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 50)], &[]), Judgement::Undecided);
        let unknown = Reading { origin: ANY_ORIGIN, version: None, ..read("2", 45) };
        assert_eq!(judge(&case(50), &[read("2", 40), unknown], &[]), Judgement::Undecided);
    }

    #[test]
    fn reads_of_others_of_the_operator_only_excuse() {
        let other = |version| Reading { reader: Reader::Operator, ..read(version, 45) };
        assert_eq!(judge(&case(50), &[other("2")], &[]), Judgement::Unread);
        assert_eq!(judge(&case(50), &[read("2", 40), other("1")], &[]), Judgement::NotNewest);
        assert_eq!(judge(&case(50), &[read("1", 20), other("0")], &[]), Judgement::Undecided);
        assert_eq!(judge(&case(50), &[read("1", 40), other("2")], &[]), Judgement::NotNewest);
    }

    #[test]
    fn a_read_that_may_have_been_missed_excuses() {
        let gap = |from, to, version: Option<&str>| Gap {
            from: START + from * HOUR,
            to: START + to * HOUR,
            version: version.map(str::to_owned),
        };
        for (read, gap, want) in [
            (read("2", 40), gap(45, 46, None), Judgement::Undecided),
            (read("2", 40), gap(45, 46, Some("2")), Judgement::Ignored),
            (read("2", 40), gap(45, 46, Some("1")), Judgement::Undecided),
            (read("2", 40), gap(30, 35, None), Judgement::Ignored),
            // A day has passed since: no crawler may go by it any more.
            (read("1", 1), gap(20, 21, None), Judgement::Ignored),
            (read("1", 1), gap(20, 27, None), Judgement::Undecided),
            (read("1", 40), gap(45, 46, Some("2")), Judgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("1")), Judgement::NotNewest),
            (read("1", 40), gap(45, 46, Some("0")), Judgement::Undecided),
            // It lasts until the requests.
            (read("2", 40), gap(50, 90, None), Judgement::Undecided),
            (read("2", 40), gap(51, 90, None), Judgement::Ignored),
        ] {
            assert_eq!(
                judge(&case(50), std::slice::from_ref(&read), std::slice::from_ref(&gap)),
                want,
                "{read:?} {gap:?}"
            );
        }
    }
}
