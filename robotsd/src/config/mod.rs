//! The config file.
//!
//! Each submodule declares one table, with the defaults and bounds of its keys, and the resolved
//! settings that the program uses. The module [`site`] contains the settings of a site.
//!
//! If a file has a syntax error, [`reader`] reports only that error. Without a syntax error,
//! [`reader`] reports every problem with keys and types, and [`resolve`] adds the problems with
//! values. Each problem is reported with its line, its column and a correction.

mod admin;
mod admin_place;
mod admin_rights;
mod board;
mod error;
mod file;
mod fleet;
mod identity;
mod included;
mod joined_text;
mod keys;
mod limits;
mod listener;
mod log;
mod partial_parse;
mod published;
mod rate_store;
mod reader;
mod registry;
mod resolve;
mod review;
mod schema;
mod setting_changes;
mod site;
mod state_dir;
mod tables;
mod values;

pub(crate) use self::admin::{
    AdminAccess, AdminListenerConfig, AdminProxy, AdminSettings, RawAdmin, connect_now, instance_name, is_open,
    local_token_files, runtime_folders, staging_socket,
};
pub(crate) use self::admin_place::{AdminPlace, TokenFile};
pub(crate) use self::admin_rights::{AdminRights, AdminRole, AdminUser, Grant, LocalToken, UNKNOWN_ID};
pub(crate) use self::board::BoardConfig;
pub(crate) use self::error::{
    CONFIG_VARIABLE, ConfigArgument, ConfigError, DEFAULT_CONFIG, Fault, Faults, Placed, config_if_any,
    config_of_environment, parsed,
};
pub(crate) use self::file::{Config, RawConfig};
pub(crate) use self::fleet::{FleetSettings, replicas};
pub(crate) use self::identity::{IdentityConfig, resolver_address};
pub(crate) use self::included::{GoodCopies, IncludePattern, RefusedFile, StateSettings};
pub(crate) use self::keys::{Key, Keys, Kind};
pub(crate) use self::listener::{
    ListenerConfig, ListenerKind, OnError, QuestionSettings, RawListener, UnknownHost, uncovered,
};
pub(crate) use self::log::{AccessFormat, AccessSettings, AddressLogging, LogConfig, LogFormat, QueryLogging};
pub(crate) use self::published::DocumentSettings;
pub(crate) use self::reader::{Document, Place, Reader, Table, Value, as_utf8, read as read_document};
pub(crate) use self::registry::{RegistrySources, extended_registry, load_registry, read_published};
pub(crate) use self::resolve::ConfigFile;
pub(crate) use self::schema::{schema, schema_of};
pub(crate) use self::setting_changes::{SettingChange, setting_changes};
pub(crate) use self::site::{
    AppendSettings, AppendSource, Backend, Dotfiles, GateBasis, RawAgents, RawCheck, RawExempt, RawSite, Remote,
    RobotsSource, SiteConfig, StaticFiles, host_patterns, owners,
};
pub(crate) use self::tables::{tables, unplaced, word_values, words};
pub(crate) use self::values::{Size, Span, bound, matches_pattern};

#[cfg(test)]
mod tests;
