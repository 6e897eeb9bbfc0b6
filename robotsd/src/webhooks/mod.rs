//! Sends requests when a version of a robots.txt goes live, so that caches drop their copies, and
//! notifies people of events.
//!
//! The requests are sent on [separate threads](lane), so reloads and clients' requests do not wait
//! for them, and urgent notices do not wait for other hooks. For one robots.txt, a hook sends one
//! request after another, and a newer notice replaces a waiting notice. A failed request is retried
//! a limited number of times. Secrets are read from their files for each attempt and never appear
//! in messages. Destinations are [checked by address](destination).

mod attempt;
mod destination;
mod lane;
mod sender;
mod sender_election;
mod settings;
mod turns;

pub(crate) use self::attempt::{RetryPlan, signing_key};
pub(crate) use self::destination::{HookHost, HookScope};
pub(crate) use self::sender::{HookEvent, HookEventKind, HookStatus, PublishHooks, SiteHooks};
pub(crate) use self::settings::{
    BodyFormat, BodyTemplate, DEFAULT_BODY, DEFAULT_TIMEOUT, HookHeader, HookSettings, HookTarget, Notice, NotifyEvent,
};
pub(crate) use self::turns::{Turn, TurnReport, Turns};

#[cfg(test)]
mod tests;
