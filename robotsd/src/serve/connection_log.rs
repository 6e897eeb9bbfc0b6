//! The lines about trouble with connections that serving writes to the log.

use crate::edge::{ConnectionError, ConnectionErrorKind};
use crate::log::{Log, LogEntry, LogEvent, LogLevel, LogPrivacy};

/// One line for trouble with connections, which the edge reports at most once a second and kind.
pub(super) fn trouble(log: Log, privacy: LogPrivacy) -> impl Fn(&ConnectionError) + Send + Sync + 'static {
    move |trouble| {
        // Errors may quote what a client sent; the log escapes it.
        let detail = &trouble.detail;
        log.write(&LogEntry {
            level: level(trouble.kind),
            reason: Some(trouble.kind.as_str()),
            address: trouble.peer.and_then(|peer| privacy.address(peer.ip())),
            message: Some(match trouble.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now(LogEvent::Trouble)
        });
    }
}

/// What clients do is ordinary; what holds them up is not.
const fn level(kind: ConnectionErrorKind) -> LogLevel {
    match kind {
        ConnectionErrorKind::Accept => LogLevel::Error,
        ConnectionErrorKind::Full
        | ConnectionErrorKind::Recycled
        | ConnectionErrorKind::Flood
        // Of the operator's own proxies, most likely: all of their connections may be refused.
        | ConnectionErrorKind::Untrusted
        | ConnectionErrorKind::ProxyHeader
        | ConnectionErrorKind::Aborted => LogLevel::Warn,
        ConnectionErrorKind::Slow
        | ConnectionErrorKind::Handshake
        | ConnectionErrorKind::Protocol
        | ConnectionErrorKind::Broken => LogLevel::Info,
    }
}
