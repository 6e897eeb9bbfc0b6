//! The lines about trouble with connections that serving writes to the log.

use crate::edge::ConnectionError;
use crate::log::{Log, LogEntry, LogPrivacy};

/// One line for trouble with connections, which the edge reports at most once a second and kind.
pub(super) fn trouble(log: Log, privacy: LogPrivacy) -> impl Fn(&ConnectionError) + Send + Sync + 'static {
    move |trouble| {
        // Errors may quote what a client sent; the log escapes it.
        let detail = &trouble.detail;
        log.write(&LogEntry {
            event: "trouble",
            reason: Some(trouble.kind.as_str()),
            address: trouble.peer.and_then(|peer| privacy.address(peer.ip())),
            message: Some(match trouble.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now()
        });
    }
}
