//! The config file.
//!
//! [`raw`] mirrors the TOML, key by key, with its defaults; [`resolve`] validates it; [`settings`] is the result, which the
//! program runs on. Errors have line and column: `robotsd.toml:12:8: …`.

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
    AccessFormat, AccessSettings, Backend, Config, ListenerConfig, LogConfig, Remote, RobotsSource, SiteConfig,
    StaticFiles,
};

#[cfg(test)]
mod tests;
