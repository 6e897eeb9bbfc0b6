//! Implements the command `robotsd serve`. The command serves sites on listeners. The robots layer
//! decides about each request before the request is forwarded.
//!
//! [`startup`] prepares the process and opens what a config names. [`control_loop`] then waits for
//! signals, and for requests to reload or upgrade. [`router`] passes each request to the layer and
//! the backend of its site ([`sites`](crate::sites)). At a reload, [`preparation`] reads the new
//! config, and [`reconfigure`] applies it.

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
