//! Looking names of addresses up, before the requests of a log are counted.
//!
//! Bounded: 50 questions a second, 32 addresses at once, and a number of addresses in all. Ctrl-C ends it; then what is
//! known by then counts.

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

/// Addresses that are looked up. Each takes one question at least, so this many take more than three minutes.
const MOST_LOOKED_UP: usize = 10_000;

/// More take so long that it is said where no bar shows it.
const FEW: usize = 500;

/// Questions that leave in a second.
const PACE: usize = 50;

/// The exit status of a process that Ctrl-C ends.
const INTERRUPTED: i32 = 130;

/// Asks the resolvers, or without any those of the system.
pub(crate) fn look_up(
    questions: NameQuestions,
    patterns: &[Arc<[NamePattern]>],
    resolvers: &[SocketAddr],
) -> io::Result<NameAnswers> {
    let is_cut = questions.dropped.requests > 0;
    let mut questions: Vec<_> = questions.sorted().into_iter().map(|(question, _)| question).collect();
    let left_out = questions.len().saturating_sub(MOST_LOOKED_UP);
    if left_out > 0 {
        let more = if is_cut { "more than " } else { "" };
        complain(&format_args!(
            "{more}{} addresses would need their names looked up: the {MOST_LOOKED_UP} with the most requests are looked up, and the \
             others count as claimed",
            questions.len()
        ));
        questions.truncate(MOST_LOOKED_UP);
    }
    if questions.is_empty() {
        return Ok(NameAnswers { outcomes: HashMap::new(), asked: seconds(SystemTime::now()), left_out });
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let addresses = questions.len();
    let progress = source::bar(Some(addresses as u64), "{bar:40} names of {pos} of {len} addresses, {eta} left");
    if progress.is_hidden() && addresses > FEW {
        let seconds = addresses / PACE;
        complain(&format_args!(
            "the names of {addresses} addresses are looked up, which takes {seconds} seconds or more"
        ));
    }
    let mut outcomes = runtime.block_on(ask(&questions, patterns, resolvers, &progress))?;
    drop(progress);
    let unasked = questions.len() - outcomes.len();
    if unasked > 0 {
        complain(&format_args!("interrupted: {unasked} addresses were not looked up, and count as claimed"));
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
                // A check that panicked has no outcome.
                Some(Err(_)) => {}
            },
        }
    }
    Ok(outcomes)
}

/// From the first Ctrl-C that was waited for, the process has to end itself.
fn end_on_the_next_interrupt(runtime: Runtime) {
    thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            std::process::exit(INTERRUPTED);
        }
    });
}

/// A resolver without a way out says no to everything: that an address failed counts only where one of the same operator
/// verified. The look-ups of a run take less than the hour that such a proof holds.
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

/// Addresses that are counted before the most frequent are looked up.
const MOST_COUNTED: usize = 1 << 16;

/// An address, and the number of the patterns that its names are to have.
pub(crate) type NameQuestion = (usize, PublicAddress);

/// The addresses whose names say more, with their requests.
pub(in crate::commands::replay) type NameQuestions = FrequentCounts<NameQuestion, MOST_COUNTED>;

/// The results by names for claims.
#[derive(Debug)]
pub(crate) struct NameAnswers {
    pub(crate) outcomes: HashMap<NameQuestion, MethodOutcome>,
    /// When they were queried, in seconds since 1970.
    pub(super) asked: i64,
    /// Addresses that were not looked up.
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
            assert!(all.sorted().len() <= MOST_COUNTED);
        }
        let (questions, is_cut) = (all.sorted(), all.dropped.requests > 0);
        assert_eq!((questions[0].0, is_cut), ((1, address(7)), true));
    }
}
