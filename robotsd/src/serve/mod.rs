//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.
//!
//! [`command`] prepares the process, [`startup`] opens what a config names, and [`control_loop`] then waits for signals and
//! requests to change something. A request passes [`router`] → the layer of its site ([`sites`]) → [`backend`]. A config
//! that takes the place of another passes [`reconfigure`] and [`renewal`].

mod descriptors;
mod signals;
mod socket_activation;
mod supervisor;

mod command;
mod control_loop;
mod startup;

mod backend;
mod backend_source;
mod router;
mod static_files;
mod workers;

mod gate_settings;
mod robots_opener;
mod served_site;
mod site_name;
mod site_opener;
mod site_robots;
mod site_settings;
mod site_switches;
mod sites;
mod state_handle;

mod certificate_watch;
mod config_requests;
mod config_waiters;
mod dry_run;
mod listeners;
mod operate;
mod preparation;
mod reconfigure;
mod reload;
mod renewal;
mod sockets;
mod watched_files;

mod log_events;
mod next_steps;
mod reload_counts;
mod site_report;

pub(crate) use self::command::{ServeArgs, run};
pub(crate) use self::config_requests::ConfigRequests;
pub(crate) use self::dry_run::rehearse;
pub(crate) use self::operate::{ChangeError, accept_at_rest, roll_back_at_rest, unknown};
pub(crate) use self::reload::UnknownSite;
pub(crate) use self::sites::Sites;
