//! What each replica says of itself, and the word for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::member::{Member, Standing};
use crate::report::FleetReplica;

/// Seconds of silence after which a replica is missing.
pub(super) const SILENT: u64 = 15;

/// What a replica has, as it says every few seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Heartbeat {
    /// By the clock of the store, in seconds since 1970.
    #[serde(skip_serializing)]
    pub(super) at: u64,
    pub(super) version: String,
    pub(super) epoch: Option<String>,
    /// The word for how it stands to the document: `current`, or what is wrong.
    pub(super) state: String,
    pub(super) why: Option<String>,
    pub(super) digest: String,
    /// The accepts whose versions it never had live.
    pub(super) lacks: Vec<String>,
    /// The version that it serves of each site.
    pub(super) sites: BTreeMap<String, String>,
}

impl Standing {
    /// The word, and what is behind it.
    pub(super) fn words(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Unknown => ("unknown", Some("it has read no document, so it enforces nothing".to_owned())),
            Self::Current => ("current", None),
            Self::WentBack(entries) => ("went-back", Some(format!("the store has gone back: {}", entries.join(", ")))),
            Self::Foreign(epoch) => ("foreign", Some(format!("the document is of another fleet, epoch {epoch}"))),
            Self::Rejected(why) => ("rejected", Some(why.clone())),
        }
    }
}

impl Heartbeat {
    pub(super) fn of(member: &Member, standing: &Standing, sites: BTreeMap<String, String>) -> Self {
        let (state, why) = standing.words();
        Self {
            at: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: member.epoch().map(str::to_owned),
            state: state.to_owned(),
            why,
            digest: member.digest(),
            lacks: member.lacking().map(|(site, _)| site.to_owned()).collect(),
            sites,
        }
    }

    /// One of another version of robotsd, which counts as alive.
    pub(super) fn unreadable(now: u64) -> Self {
        let why = Some("its heartbeat cannot be read: it is of another version".to_owned());
        Self { at: now, state: "unknown".to_owned(), why, ..Self::default() }
    }

    const fn silence(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }

    pub(super) const fn is_missing(&self, now: u64) -> bool {
        self.silence(now) > SILENT
    }

    /// The state of the replica, by what the store has now.
    pub(super) fn report(&self, replica: &str, now: u64, document: Option<&Document>) -> FleetReplica {
        let silent = self.silence(now);
        let (state, why) = if self.is_missing(now) {
            ("missing", Some(format!("silent for {silent} s")))
        } else if self.state != "current" {
            (&*self.state, self.why.clone())
        } else if document.is_some_and(|document| document.digest() != self.digest) {
            ("behind", Some("it has other marks or accepts than the store".to_owned()))
        } else if !self.lacks.is_empty() {
            let lacks = self.lacks.join(", ");
            ("lacks", Some(format!("the version that is accepted has not come to its source: {lacks}")))
        } else {
            ("synced", None)
        };
        FleetReplica {
            replica: replica.to_owned(),
            state: state.to_owned(),
            why,
            version: self.version.clone(),
            silent_seconds: silent,
            sites: self.sites.clone(),
        }
    }
}
