//! The admin interface of a running robotsd: a small HTTP/1.1 service on a loopback address, a Unix
//! socket, or both.
//!
//! Requests to this interface can change which robots.txt is served and enforced, so access is
//! restricted. [`access_rule`] refuses requests that may come from a web page or an unconfigured
//! proxy, and requests whose `Host` does not belong to this interface. [`authority`] identifies
//! clients and checks their rights, and [`change`] writes audit records of changes. [`place_file`]
//! records the address of the interface for commands. [`replicas`] sends requests to all replicas
//! of a fleet. [`routes`] is the table of paths; a new path is a new entry in it.
//! [`report`](crate::report) contains the types of the responses, and [`state`] contains the data
//! for the responses. [`metrics`] formats the data for Prometheus. [`watchdog`] detects stalled
//! threads.
//!
//! The interface runs on the control thread and shares no thread with the listeners that serve
//! sites. The interface therefore responds even if these listeners are busy. The number of
//! connections, the size of requests and all waiting times are limited.

mod access_rule;
mod audit_writer;
mod authority;
mod change;
mod connection_slots;
mod fleet_changes;
mod listen;
mod metrics;
mod place_file;
mod replicas;
mod reply;
mod routes;
mod server;
mod state;
mod token;
mod watchdog;

pub(crate) mod client;

pub(crate) use self::connection_slots::{ConnectionSlots, max_admin_connections};
pub(crate) use self::listen::{AddressSocket, CommandPlace, CommandSocket, InheritedSocket, OpenListener};
pub(crate) use self::place_file::{CommandAccess, PlaceFile, find_place};
pub(crate) use self::replicas::{ask_all, replica_error, resolve_place};
pub(crate) use self::server::serve;
pub(crate) use self::state::{
    CONFIG_RELOAD_TIMEOUT, ControlRequests, Phase, ReloadWaiter, ServerState, Serving, UpgradeWaiter,
};
pub(crate) use self::token::{StoredToken, ensure_local_token, new_token};
pub(crate) use self::watchdog::WatchGuard;
