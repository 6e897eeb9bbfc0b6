//! The config file.
//!
//! Every part has a file, which declares its table with the defaults and bounds of its keys, says what it means, and holds the
//! settings that the program runs on; [`site`] has those of a site. [`reader`] reports every problem of keys and types at once, and
//! [`resolve`] every one of values, each with its line, column and what would be right.

mod admin;
mod admin_socket;
mod agents;
mod board;
mod bounds;
mod check;
mod error;
mod file;
mod identity;
mod keys;
mod limits;
mod listener;
mod log;
mod published;
mod rate_store;
mod reader;
mod registry;
mod resolve;
mod review;
mod salvage;
mod schema;
mod setting_changes;
mod site;
mod syntax;
mod tables;
mod translation;
mod values;

pub(crate) use self::admin::{AdminAccess, AdminListenerConfig, AdminSettings, StatePlace};
#[cfg(unix)]
pub(crate) use self::admin_socket::{connect_now, staging_socket};
pub(crate) use self::board::BoardConfig;
use self::bounds::Bounded;
pub(crate) use self::error::{
    CONFIG_VARIABLE, ConfigArgument, ConfigError, Fault, Faults, USUAL_CONFIG, config_if_any, config_of_environment,
};
pub(crate) use self::file::Config;
pub(crate) use self::identity::IdentityConfig;
pub(crate) use self::keys::{Key, Kind};
pub(crate) use self::listener::{ListenerConfig, ListenerKind, OnError, QuestionSettings, UnknownHost};
pub(crate) use self::log::{AccessFormat, AccessSettings, AddressLogging, LogConfig, LogFormat, QueryLogging};
pub(crate) use self::published::PublishedSettings;
pub(crate) use self::reader::{Document, Place, Reader, Table, Value, as_utf8, read as read_document};
pub(crate) use self::registry::{RegistrySources, extended_registry, load_registry, read_published};
pub(crate) use self::resolve::ConfigFile;
pub(crate) use self::schema::schema;
pub(crate) use self::setting_changes::{SettingChange, setting_changes};
pub(crate) use self::site::{
    AppendSettings, AppendSource, Backend, Dotfiles, GateBasis, GateFile, Remote, RobotsSource, SiteConfig, StaticFiles,
};
pub(crate) use self::tables::{tables, word_values, words};

#[cfg(test)]
mod tests;
