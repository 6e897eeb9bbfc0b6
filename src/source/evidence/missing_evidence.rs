//! What evidence is missing, said once by its cause: one network that is down is one line, not one for each list.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::verifier::{Evidence, Verifier};
use super::verifier_status::VerifierStatus;

/// How long the first fetches may take before what is missing is said without them.
const FIRST_FETCHES: Duration = Duration::from_secs(60);

/// Between two looks while the first fetches run, and from then on.
const SOON: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 500 });
const LATER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// Evidence is missing, or is there again. `Display` gives it in one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EvidenceEvent {
    /// Evidence is missing for this cause: a line of [`VerifierStatus::troubles`].
    Missing(String),
    /// Nothing is missing any more.
    Complete,
}

pub(super) type EvidenceListener = Box<dyn Fn(&EvidenceEvent) + Send + Sync>;

impl fmt::Display for EvidenceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(trouble) => f.write_str(trouble),
            Self::Complete => f.write_str("every published list and key directory that was missing is there"),
        }
    }
}

impl VerifierStatus {
    /// What is wrong with the evidence, a line for each cause with the number of lists and directories that have it and one of them; and
    /// that nothing can refute a claim at all, where that is so.
    pub fn troubles(&self) -> Vec<String> {
        self.by_cause().into_values().collect()
    }

    /// The same by cause: the text up to its details.
    fn by_cause(&self) -> BTreeMap<String, String> {
        let lists = self.lists.iter().filter_map(|list| Some((&list.url, list.trouble.as_deref()?, true)));
        let directories = self.directories.iter().filter_map(|one| Some((&one.url, one.trouble.as_deref()?, false)));
        let mut causes: BTreeMap<&str, ([usize; 2], &str, &str)> = BTreeMap::new();
        for (url, trouble, is_list) in lists.chain(directories) {
            let cause = trouble.split_once(": ").map_or(trouble, |(cause, _)| cause);
            let (counts, ..) = causes.entry(cause).or_insert(([0; 2], url, trouble));
            counts[usize::from(!is_list)] += 1;
        }
        let line = |(cause, ([lists, directories], url, trouble)): (&str, ([usize; 2], &str, &str))| {
            let lists = counted(lists, self.lists.len(), "published list", "published lists");
            let directories = counted(directories, self.directories.len(), "key directory", "key directories");
            let of: Vec<_> = [lists, directories].into_iter().flatten().collect();
            (
                cause.to_owned(),
                format!("{} cannot be fetched, so they refute no claim, such as {url}: {trouble}", of.join(" and ")),
            )
        };
        let mut causes: BTreeMap<_, _> = causes.into_iter().map(line).collect();
        for url in &self.unnamed_lists {
            causes.insert(url.to_string(), url.to_string());
        }
        if !causes.is_empty() && self.lookups.is_none() && self.lists.iter().all(|list| list.confirmed.is_none()) {
            let text = "nothing can refute a claim: no list was confirmed by its server, and no names are looked up, so impostors pass";
            causes.insert("nothing".to_owned(), text.to_owned());
        }
        causes
    }
}

/// `41 of 43 published lists`.
fn counted(count: usize, of: usize, one: &str, several: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} of {of} {}", if of == 1 { one } else { several }))
}

/// Notifies the listeners of every cause that is new, and once nothing is missing any more; until the evidence is dropped.
pub(super) async fn report(evidence: Weak<Evidence>, listeners: Vec<EvidenceListener>) {
    let began = Instant::now();
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    loop {
        {
            let Some(inner) = evidence.upgrade() else { return };
            let verifier = Verifier { inner };
            if verifier.has_asked() || began.elapsed() > FIRST_FETCHES {
                let found = verifier.status().by_cause();
                for (_, trouble) in found.iter().filter(|(cause, _)| !said.contains_key(*cause)) {
                    notify(&listeners, &EvidenceEvent::Missing(trouble.clone()));
                }
                if found.is_empty() && !said.is_empty() {
                    notify(&listeners, &EvidenceEvent::Complete);
                }
                said = found;
            }
        }
        sleep(if began.elapsed() > FIRST_FETCHES { LATER } else { SOON }).await;
    }
}

fn notify(listeners: &[EvidenceListener], event: &EvidenceEvent) {
    #[cfg(feature = "tracing")]
    match event {
        EvidenceEvent::Missing(_) => tracing::warn!(target: "tower_robots::evidence", "{event}"),
        EvidenceEvent::Complete => tracing::info!(target: "tower_robots::evidence", "{event}"),
    }
    for listener in listeners {
        // A panic must not end the reports; the panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
    }
}
