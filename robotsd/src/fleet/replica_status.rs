//! The heartbeats of replicas. This module determines the state of each replica from its heartbeat.

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::member::{DocumentState, Member};
use crate::report::{FleetReplica, ReplicaState, ServedVersions};

/// Maximum age of a heartbeat, in seconds. If the last heartbeat of a replica is older, the replica
/// counts as missing.
pub(super) const MAX_HEARTBEAT_AGE: u64 = 15;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Heartbeat {
    /// Time of the heartbeat by the clock of the store, as Unix time in seconds.
    #[serde(skip_serializing)]
    pub(super) at: u64,
    pub(super) version: String,
    pub(super) process: String,
    pub(super) epoch: Option<String>,
    pub(super) state: ReplicaState,
    pub(super) why: Option<String>,
    pub(super) digest: String,
    /// Sites whose accepted version has never been live on the replica.
    pub(super) lacks: Vec<String>,
    pub(super) sites: ServedVersions,
}

/// The state of a replica, with the reason if it is not [`Current`](ReplicaState::Current).
pub(super) type StateAndReason = (ReplicaState, Option<String>);

impl DocumentState {
    pub(super) fn state(&self) -> StateAndReason {
        let (state, why) = match self {
            Self::Current => return (ReplicaState::Current, None),
            Self::Unknown => (
                ReplicaState::Unknown,
                "this replica has not read the fleet's document, so it enforces nothing".to_owned(),
            ),
            Self::WentBack(entries) => (
                ReplicaState::WentBack,
                format!(
                    "the store was reset to an earlier state, so these entries are older or missing there: {entries}",
                    entries = entries.join(", ")
                ),
            ),
            Self::Foreign(epoch) => (
                ReplicaState::Foreign,
                format!("the document in the store belongs to another fleet (its epoch is {epoch})"),
            ),
            Self::Rejected(why) => (ReplicaState::Rejected, why.clone()),
            Self::Damaged(fields) => (
                ReplicaState::Damaged,
                format!(
                    "the fleet's document has damaged fields: {fields} (repair them with `robotsd fleet restore \
                     --repair`; off switches still take effect)",
                    fields = fields.join("; ")
                ),
            ),
        };
        (state, Some(why))
    }
}

impl Heartbeat {
    pub(super) fn of(member: &Member, (state, why): StateAndReason, sites: ServedVersions) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: member.epoch().map(str::to_owned),
            state,
            why,
            digest: member.digest(),
            lacks: member.unfulfilled_accepts().map(|(site, _)| site.to_owned()).collect(),
            sites,
            ..Self::default()
        }
    }

    /// Returns a substitute for a heartbeat that cannot be parsed. A heartbeat that cannot be
    /// parsed comes from another version of robotsd, so its replica counts as running.
    pub(super) fn unreadable(now: u64) -> Self {
        let why = Some(
            "the status that this replica sends cannot be read, because the replica runs another version of robotsd"
                .to_owned(),
        );
        Self { at: now, state: ReplicaState::Unknown, why, ..Self::default() }
    }

    const fn heartbeat_age(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }

    pub(super) const fn is_missing(&self, now: u64) -> bool {
        self.heartbeat_age(now) > MAX_HEARTBEAT_AGE
    }

    pub(super) fn report(&self, replica: &str, now: u64, document: Option<&Document>) -> FleetReplica {
        let silent = self.heartbeat_age(now);
        let (state, why) = if self.is_missing(now) {
            (ReplicaState::Missing, Some(format!("nothing was heard from this replica for {silent} s")))
        } else if self.state != ReplicaState::Current {
            (self.state, self.why.clone())
        } else if document.is_some_and(|document| document.digest() != self.digest) {
            (
                ReplicaState::Behind,
                Some("the off switches or accepted versions of this replica differ from those in the store".to_owned()),
            )
        } else if !self.lacks.is_empty() {
            let lacks = self.lacks.join(", ");
            (
                ReplicaState::Lacks,
                Some(format!(
                    "the source of this replica does not yet contain the accepted version of these sites: \
                     {lacks}"
                )),
            )
        } else {
            (ReplicaState::Synced, None)
        };
        FleetReplica {
            replica: replica.to_owned(),
            state,
            why,
            version: self.version.clone(),
            silent_seconds: silent,
            sites: self.sites.clone(),
        }
    }
}
