//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.
//!
//! [`startup`] prepares the process and opens what a config names. [`control_loop`] then waits for
//! signals and requests to change something. A request goes through [`router`] to the layer and the
//! backend of its site ([`sites`](crate::sites)). A config that replaces another goes through
//! [`preparation`] and [`reconfigure`].

mod descriptors;
mod socket_activation;
mod supervisor;
mod upgrade;

mod control_loop;
mod startup;

mod router;
mod workers;

mod admin_places;
mod board_keeper;
mod listeners;
mod preparation;
mod reconfigure;
mod upgrade_keeper;
mod watched_files;

pub(crate) use startup::{ServeArgs, run};
