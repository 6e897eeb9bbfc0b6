//! Requests that are sent when a version of a robots.txt goes live, so that a cache drops its copy, and notifications of events for people.
//!
//! They have [threads of their own](lane): neither a reload nor a request waits for one, and what is urgent waits for no other hook. Each
//! hook of a robots.txt has at most one request under way; a later notice takes the place of the one that waits. A request that fails is
//! tried again within bounds. Secrets are read from their files for each attempt, and appear in no message. What may be reached is
//! [judged by its address](destination).

mod attempt;
mod destination;
mod lane;
mod sender;
mod settings;
mod turn_taking;
mod turns;

pub(crate) use self::attempt::{RetryPlan, signing_key};
pub(crate) use self::destination::{HookHost, HookScope};
pub(crate) use self::sender::{HookEvent, HookEventKind, HookStatus, PublishHooks, SiteHooks};
pub(crate) use self::settings::{
    BodyFormat, BodyTemplate, DEFAULT_TIMEOUT, HookHeader, HookSettings, HookTarget, NOTICE, Notice, NotifyEvent,
};
pub(crate) use self::turns::{Turn, TurnOf, Turns};

#[cfg(test)]
mod tests;
