//! The config file: what may stand in it, and what the program runs on.
//!
//! [`raw`] mirrors the TOML, key by key, with its defaults. [`Config`] is what is left once everything in it is known
//! to make sense. Errors say where: `robotsd.toml:12:8: …`.

mod admin;
mod check;
mod error;
mod gate;
mod limits;
mod listener;
mod load;
mod policy;
mod raw;
mod registry;
mod resolve;
mod settings;
mod source;
mod upstreams;
mod values;

pub(crate) use self::admin::{AdminSettings, StatePlace};
pub(crate) use self::error::ConfigError;
pub(crate) use self::raw::{AddressLogging, Dotfiles, ListenerKind, LogFormat, OnError, QueryLogging};
pub(crate) use self::registry::load_registry;
pub(crate) use self::settings::{
    AccessFormat, AccessSettings, Backend, Config, ListenerConfig, Remote, RobotsSource, SiteConfig, StaticFiles,
};

#[cfg(test)]
mod tests;
