//! What a chunk of a log notes of its requests that are held to a delay.

use std::net::IpAddr;

use tower_robots::agent::{Agent, Identity};
use tower_robots::policy::{Decision, is_asset};
use tower_robots::rate::{RateKey, RateSender};
use tower_robots::rules::{ProductToken, RuleSet};

use super::limit::{LimitTable, PacedName, PacedSenders};

/// Of one chunk, in the order of its lines.
#[derive(Debug, Default)]
pub(crate) struct PaceNotes {
    pub(super) table: LimitTable,
    pub(super) notes: Vec<(i64, NotedRequests)>,
}

/// Requests of one sender in a second, that stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotedRequests {
    /// The number of the limit.
    pub(super) limit: usize,
    pub(super) sender: RateSender,
    pub(super) requests: u32,
}

/// A request of a log, as far as limiting goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedLogLine<'a> {
    pub(crate) agents: &'a [Agent],
    /// Of the file that is judged.
    pub(crate) rules: &'a RuleSet,
    pub(crate) identity: Identity,
    /// That of the client, where the log has it: a truncated one tells senders apart as well.
    pub(crate) address: Option<IpAddr>,
    pub(crate) target: &'a [u8],
    pub(crate) time: i64,
}

impl PaceNotes {
    /// Notes a request, if this decision, which believes the identity, holds it to a delay.
    pub(crate) fn note(&mut self, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        let sender = RateSender::of(line.identity, || line.address);
        let senders = if sender == RateSender::Refuted { PacedSenders::Impostors } else { PacedSenders::Own };
        self.note_as(senders, sender, decision, line);
    }

    /// Notes a request whose claim fails, with the decision about it if that says nothing: then its address is not known to be a
    /// client's.
    pub(crate) fn note_doubted(&mut self, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        self.note_as(PacedSenders::Doubted, RateSender::Claimed(None), decision, line);
    }

    fn note_as(&mut self, senders: PacedSenders, sender: RateSender, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        let Some(pace) = decision.pace() else { return };
        let Some(agent) = line.agents.get(pace.agent()) else { return };
        if is_asset(line.target) {
            return;
        }
        let is_named = |token: &ProductToken| pace.is_known() && line.rules.names(token);
        let Some(key) = RateKey::of(agent, sender, is_named) else { return };
        let limit = self.table.of(&PacedName::of(agent, line.rules), senders, &key, &pace);
        match self.notes.last_mut() {
            Some((time, last)) if *time == line.time && (last.limit, last.sender) == (limit, sender) => {
                last.requests += 1;
            }
            _ => self.notes.push((line.time, NotedRequests { limit, sender, requests: 1 })),
        }
    }
}
