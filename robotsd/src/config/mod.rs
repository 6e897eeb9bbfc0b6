//! The config file.
//!
//! [`tables`] mirrors the TOML, key by key, with its defaults; [`resolve`] validates it; [`settings`] is the result, which the
//! program runs on. [`document`] reports every problem of keys and types at once, and [`resolve`] every one of values, each with
//! its line, column and what would be right.

mod admin;
mod admin_socket;
mod board;
mod check;
mod document;
mod document_entry;
mod error;
mod gate;
mod identity;
mod keys;
mod limits;
mod listener;
mod load;
mod policy;
mod publish_hooks;
mod rate_store;
mod refusal;
mod registry_extra;
mod resolve;
mod review;
mod salvage;
mod setting_changes;
mod settings;
mod source;
mod tables;
mod upstreams;
mod value_error;
mod values;

pub(crate) use self::admin::{AdminListenerConfig, AdminSettings, StatePlace};
#[cfg(unix)]
pub(crate) use self::admin_socket::{connect_now, staging_socket};
pub(crate) use self::board::BoardConfig;
pub(crate) use self::document::read as read_document;
pub(crate) use self::identity::IdentityConfig;
pub(crate) use self::keys::Document;
pub(crate) use self::load::ConfigFile;
pub(crate) use self::registry_extra::{extended_registry, load_registry, read_published};
pub(crate) use self::setting_changes::{SettingChange, setting_changes};
pub(crate) use self::settings::{
    AccessFormat, AccessSettings, AppendSettings, AppendSource, Backend, Config, ListenerConfig, LogConfig,
    PublishedSettings, RegistrySources, Remote, RobotsSource, SiteConfig, StaticFiles,
};
pub(crate) use self::tables::{
    AddressLogging, AdminAccess, Dotfiles, ListenerKind, LogFormat, OnError, QueryLogging, QuestionSettings,
    UnknownHost,
};
pub(crate) use document::as_utf8;
pub(crate) use error::{
    CONFIG_VARIABLE, ConfigArgument, ConfigError, Fault, USUAL_CONFIG, config_if_any, config_of_environment,
};
pub(crate) use gate::{GateBasis, GateFile};

#[cfg(test)]
mod tests;
