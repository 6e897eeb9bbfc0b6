//! The settings of the log: `[log]`.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::{Fault, Placed, tables, words};
use crate::files;

tables! {
    /// Where and how robotsd logs, and which parts of requests are left out.
    RawLog {
        format: LogFormat,
        query: QueryLogging,
        address: AddressLogging,
        access: AccessLogging,
        access_path: Option<Spanned<PathBuf>>,
    }
}

words! {
    /// The log of requests.
    AccessLogging {
        #[default]
        Off = "off",
        Combined = "combined",
        Json = "json",
    }

    LogFormat {
        #[default]
        Json = "json",
        Text = "text",
    }

    /// The part of a query that log lines contain.
    QueryLogging {
        Keep = "keep",
        /// Only the names of parameters, without their values.
        #[default]
        Redact = "redact",
        Drop = "drop",
    }

    /// The part of the client's address that log lines contain.
    AddressLogging {
        Keep = "keep",
        /// The /24 network of an IPv4 address, or the /48 network of an IPv6 address.
        #[default]
        Truncate = "truncate",
        Drop = "drop",
    }
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct LogConfig {
    pub(crate) format: LogFormat,
    pub(crate) query: QueryLogging,
    pub(crate) address: AddressLogging,
    /// `None` if only events are logged.
    pub(crate) access: Option<AccessSettings>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct AccessSettings {
    pub(crate) format: AccessFormat,
    /// Path of the log file; `None` for standard output, which events are also written to.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFormat {
    Combined,
    Json,
}

pub(super) fn resolve(log: &RawLog, folder: &Path) -> Result<LogConfig, Fault> {
    let format = match (log.access, &log.access_path) {
        (AccessLogging::Off, Some(path)) => {
            return Err(path.fault("\"access_path\" requires access = \"combined\" or access = \"json\""));
        }
        (AccessLogging::Off, None) => None,
        (AccessLogging::Combined, _) => Some(AccessFormat::Combined),
        (AccessLogging::Json, _) => Some(AccessFormat::Json),
    };
    let path = log.access_path.as_ref().map(|path| access_path(path, folder)).transpose()?;
    Ok(LogConfig {
        format: log.format,
        query: log.query,
        address: log.address,
        access: format.map(|format| AccessSettings { format, path }),
    })
}

/// Resolves the path of the access log. Returns an error if the file cannot be created, because the
/// process would fail at the next start without this file.
fn access_path(written: &Spanned<PathBuf>, folder: &Path) -> Result<PathBuf, Fault> {
    let path = folder.join(written.get_ref());
    let wrong = match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => {
            Some(format!("{path} is a folder: write the path of a file", path = path.display()))
        }
        Ok(_) => None,
        Err(_) => creation_error(&path),
    };
    wrong.map_or(Ok(path), |wrong| Err(written.fault(wrong)))
}

pub(super) fn creation_error(path: &Path) -> Option<String> {
    let (shown, folder) = (path.display(), files::folder_of(path));
    if !folder.is_dir() {
        return Some(format!(
            "{shown} cannot be created: the folder {folder} does not exist",
            folder = folder.display()
        ));
    }
    (!is_writable(folder))
        .then(|| format!("{shown} cannot be created: the current user may not write to the folder of the file"))
}

pub(super) fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}
