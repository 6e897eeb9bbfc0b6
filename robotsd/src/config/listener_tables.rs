//! The tables `[[listener]]` and `[admin]`, key by key, with every default.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::values::Address;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawListener {
    pub(super) name: Option<Spanned<String>>,
    pub(super) address: Spanned<Address>,
    #[serde(default)]
    pub(super) kind: ListenerKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on_error: Option<Spanned<OnError>>,
    #[serde(default)]
    pub(super) trusted_proxies: Vec<Spanned<String>>,
    pub(super) agent_header: Option<Spanned<String>>,
    #[serde(default = "no")]
    pub(super) proxy_protocol: Spanned<bool>,
    #[serde(default, rename = "certificate")]
    pub(super) certificates: Vec<RawCertificate>,
}

fn no() -> Spanned<bool> {
    Spanned::new(0..0, false)
}

/// A certificate with those of its issuers, and its key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCertificate {
    pub(super) chain: Spanned<PathBuf>,
    pub(super) key: Spanned<PathBuf>,
}

/// The service of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListenerKind {
    #[default]
    Proxy,
    /// Answers the questions of other proxies.
    Decision,
}

impl ListenerKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Decision => "decision",
        }
    }
}

/// The answer to a question that does not identify the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnError {
    #[default]
    Pass,
    Refuse,
}

/// The admin interface; on a socket in the runtime folder where the table is absent.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawAdmin {
    pub(super) mode: AdminMode,
    pub(super) address: Option<Spanned<Address>>,
    pub(super) socket: Option<Spanned<PathBuf>>,
    pub(super) hosts: Vec<Spanned<String>>,
    pub(super) reach: Reach,
    #[serde(rename = "listener")]
    pub(super) listeners: Vec<RawAdminListener>,
}

/// A further address of the admin interface.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdminListener {
    pub(super) address: Spanned<Address>,
    /// Default: `full` on a loopback address, `read` on any other.
    pub(super) access: Option<AdminAccess>,
}

/// What a client of an admin listener may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdminAccess {
    /// Nothing is changed.
    Read,
    /// Versions are accepted and rolled back, enforcement is switched, files are read again.
    Full,
}

/// Whether there is an admin interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AdminMode {
    #[default]
    On,
    Off,
}

/// From where the admin address can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reach {
    /// This machine.
    #[default]
    Loopback,
    /// Every machine that the network lets through.
    Network,
}
