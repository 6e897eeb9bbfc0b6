//! Looks up reverse DNS names of addresses, before the requests of a log are counted.
//!
//! Ctrl-C ends the look-ups. The answers that were received before Ctrl-C are used.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use indicatif::ProgressBar;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tower_robots::agent::UndecidedReason;
use tower_robots::identity::{MethodOutcome, NamePattern, PublicAddress};
use tower_robots::internals::NameResolver;

use crate::commands::replay::source;
use crate::commands::replay::tally::FrequentCounts;
use crate::date::seconds;
use crate::exit::complain;

/// Maximum number of addresses that are looked up. Each address needs at least one DNS query, so
/// 10,000 addresses take more than three minutes.
const MAX_LOOKED_UP: usize = 10_000;

/// Maximum number of addresses that are looked up without an announcement. For more addresses, a
/// progress bar or a message shows how long the look-ups will take.
const MAX_UNANNOUNCED: usize = 500;

/// Number of DNS queries sent per second.
const QUERIES_PER_SECOND: usize = 50;

/// Exit status of a process that was ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Looks up the names of addresses through `resolvers` or, if `resolvers` is empty, through the
/// resolvers of the system.
pub(crate) fn look_up(
    questions: NameQuestions,
    patterns: &[Arc<[NamePattern]>],
    resolvers: &[SocketAddr],
) -> io::Result<NameAnswers> {
    let is_cut = questions.dropped.requests > 0;
    let mut questions: Vec<_> = questions.sorted().into_iter().map(|(question, _)| question).collect();
    let left_out = questions.len().saturating_sub(MAX_LOOKED_UP);
    if left_out > 0 {
        let more = if is_cut { "more than " } else { "" };
        complain(&format_args!(
            "the names of {more}{count} addresses are needed, but only the names of the {MAX_LOOKED_UP} addresses with \
             the most requests are looked up; requests from the other addresses count as unverified",
            count = questions.len()
        ));
        questions.truncate(MAX_LOOKED_UP);
    }
    if questions.is_empty() {
        return Ok(NameAnswers { outcomes: HashMap::new(), asked: seconds(SystemTime::now()), left_out });
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let addresses = questions.len();
    let progress = source::bar(Some(addresses as u64), "{bar:40} names of {pos} of {len} addresses, {eta} left");
    if progress.is_hidden() && addresses > MAX_UNANNOUNCED {
        let seconds = addresses / QUERIES_PER_SECOND;
        complain(&format_args!("looking up the names of {addresses} addresses takes at least {seconds} seconds"));
    }
    let mut outcomes = runtime.block_on(ask(&questions, patterns, resolvers, &progress))?;
    drop(progress);
    let unasked = questions.len() - outcomes.len();
    if unasked > 0 {
        complain(&format_args!(
            "the look-ups were interrupted: the names of {unasked} addresses were not looked up, \
             so their requests count as unverified"
        ));
    }
    end_on_the_next_interrupt(runtime);
    refute_only_through_proven_resolvers(&mut outcomes, patterns.len());
    Ok(NameAnswers { outcomes, asked: seconds(SystemTime::now()), left_out: left_out + unasked })
}

async fn ask(
    questions: &[NameQuestion],
    patterns: &[Arc<[NamePattern]>],
    resolvers: &[SocketAddr],
    progress: &ProgressBar,
) -> io::Result<HashMap<NameQuestion, MethodOutcome>> {
    let resolver = Arc::new(NameResolver::new(resolvers).map_err(io::Error::other)?);
    let mut checks = JoinSet::new();
    for (names, address) in questions.iter().copied() {
        let (resolver, patterns) = (resolver.clone(), patterns.get(names).cloned().unwrap_or_default());
        checks.spawn(async move { ((names, address), resolver.check(address, patterns, |_, _| ()).await) });
    }
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    let mut outcomes = HashMap::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupt => break,
            ended = checks.join_next() => match ended {
                None => break,
                Some(Ok((question, outcome))) => {
                    outcomes.insert(question, outcome);
                    progress.inc(1);
                }
                // A look-up that panicked has no outcome.
                Some(Err(_)) => {}
            },
        }
    }
    Ok(outcomes)
}

/// Ends the process on the next Ctrl-C. Without this handler, the process would ignore Ctrl-C,
/// because tokio has replaced the default handler.
fn end_on_the_next_interrupt(runtime: Runtime) {
    thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            std::process::exit(INTERRUPTED);
        }
    });
}

/// Drops refutations by resolvers that may not work. A resolver without network access finds no
/// name for any address, so a claim is refuted only if another address was verified with the same
/// patterns. This verification proves that the resolver works. A server uses such a proof for an
/// hour, which is longer than the look-ups of one run take.
fn refute_only_through_proven_resolvers(outcomes: &mut HashMap<NameQuestion, MethodOutcome>, patterns: usize) {
    let mut is_proven = vec![false; patterns];
    for ((names, _), outcome) in &*outcomes {
        if let Some(proven) = is_proven.get_mut(*names) {
            *proven |= *outcome == MethodOutcome::Verified;
        }
    }
    for ((names, _), outcome) in outcomes {
        if matches!(outcome, MethodOutcome::Failed(_)) && !is_proven.get(*names).copied().unwrap_or(false) {
            *outcome = MethodOutcome::Undecided(UndecidedReason::UnprovenResolver);
        }
    }
}

const MAX_COUNTED: usize = 1 << 16;

/// A look-up of the host names of an address. The first element is the index of the list of
/// patterns that the host names must match.
pub(crate) type NameQuestion = (usize, PublicAddress);

pub(in crate::commands::replay) type NameQuestions = FrequentCounts<NameQuestion, MAX_COUNTED>;

#[derive(Debug)]
pub(crate) struct NameAnswers {
    pub(crate) outcomes: HashMap<NameQuestion, MethodOutcome>,
    /// Time of the look-ups, in seconds since 1970.
    pub(super) asked: i64,
    pub(crate) left_out: usize,
}

impl NameAnswers {
    pub(super) fn outcome(&self, names: usize, address: PublicAddress) -> MethodOutcome {
        let known = self.outcomes.get(&(names, address)).copied();
        known.unwrap_or(MethodOutcome::Undecided(UndecidedReason::Busy))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn address(number: u32) -> PublicAddress {
        PublicAddress::of(Some(IpAddr::from((0x0808_0000 + number).to_be_bytes())), |_| false).expect("public")
    }

    #[test]
    fn the_most_frequent_addresses_are_kept_and_come_first() {
        let mut all = NameQuestions::default();
        for chunk in 0..4 {
            let mut one = NameQuestions::default();
            (0..40_000).for_each(|number| one.note((0, address(chunk * 40_000 + number)), false));
            (0..3).for_each(|_| one.note((1, address(7)), false));
            all.merge(one);
            assert!(all.sorted().len() <= MAX_COUNTED);
        }
        let (questions, is_cut) = (all.sorted(), all.dropped.requests > 0);
        assert_eq!((questions[0].0, is_cut), ((1, address(7)), true));
    }
}
