//! The sites of a process, each with its live robots.txt and its backend.
//!
//! - [`site_list`] contains all sites of a config.
//! - [`site_opener`] and [`robots_opener`] open a site.
//! - [`renewal`] creates the sites of a new config, and [`inheritance`] determines the state that
//!   new sites inherit.
//! - [`reload`] reads files again.
//! - [`operator_changes`] contains the changes that an operator makes.
//! - [`site_report`] reports the status and the history, [`site_metrics`] writes the same data as
//!   metrics, and [`notices`] finds events to notify operators about.
//!
//! Listeners, workers and the admin interface are in other modules.

mod gate_settings;
mod site_documents;
mod site_pages;
mod site_robots;

mod sender_evidence;

mod backend;
mod refusal_server;
mod static_files;

mod served_site;
mod site_list;
mod state_handle;

mod appended_parts;
mod inheritance;
mod robots_opener;
mod site_opener;

mod dry_run;
mod operator_changes;
mod reload;
mod renewal;

mod log_events;
mod notices;
mod site_metrics;
mod site_report;

pub(crate) use self::appended_parts::available_parts;
pub(crate) use self::backend::SiteBackend;
pub(crate) use self::dry_run::{DryRun, Problem, find_problems, open_sitemap};
pub(crate) use self::inheritance::has_own_state;
pub(crate) use self::operator_changes::{ChangeError, accept_unserved, roll_back_unserved, unknown};
pub(crate) use self::refusal_server::{PermitBody, RefusalServers};
pub(crate) use self::renewal::{Renewal, UnusableSource, in_parallel};
pub(crate) use self::sender_evidence::EVIDENCE_FOLDER;
pub(crate) use self::served_site::ServedSite;
pub(crate) use self::site_list::Sites;
pub(crate) use self::site_metrics::write_responses;
pub(crate) use self::site_robots::LiveSite;
pub(crate) use log_events::SiteName;
